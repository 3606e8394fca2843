package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele/auth"
)

func (p *program) tokenOpenCommand() *cobra.Command {
	all := false
	cmd := &cobra.Command{
		Use:   "open ID...",
		Short: "Open tokens that a restore shut",
		Long: `Open makes tokens good again that a restore shut, and prints their IDs. A restore shuts
all tokens where there was no registry that knows which were revoked since the backup:
list them with 'stele token ls', revoke those that should not be used any more, and open
the others, one by one or with --all. A token that is not shut stays as it is. Only an
administrator may.`,
		Example: "  stele token open 4k2m9x0q7rbc\n  stele token open --all",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return misuse(cmd, "name the tokens to open, or give --all")
			}
			return p.reading(cmd, func(ctx context.Context, l *ledger) error {
				ids := args
				if all {
					var err error
					if ids, err = shutTokens(ctx, l); err != nil {
						return err
					}
				}
				for _, id := range ids {
					if err := p.openToken(ctx, l, id); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "open all tokens that are shut")
	return neverFiles(cmd)
}

// shutTokens returns the IDs of tokens that are shut.
func shutTokens(ctx context.Context, l *ledger) (ids []string, err error) {
	for t, err := range l.Tokens(ctx, "") {
		if err != nil {
			return nil, err
		}
		if t.Shut {
			ids = append(ids, t.ID)
		}
	}
	return ids, nil
}

// openToken opens a token and prints it.
func (p *program) openToken(ctx context.Context, l *ledger, id string) error {
	if c, err := auth.ParseCredential(id); err == nil { // the whole of it
		id = c.ID() // so that no secret is sent
	}
	t, err := l.OpenToken(ctx, id)
	if err != nil {
		return err
	}
	if p.json {
		return p.printObject(&t)
	}
	return p.say("%s\n", t.ID)
}
