package main

import (
	"bufio"
	"context"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/remote"
	"github.com/stele-id/stele/cmd/stele/usage"
)

// lsFlags say what ls lists.
type lsFlags struct {
	after    string
	pointing string
	state    string
	limit    uint64
}

func (p *program) lsCommand() *cobra.Command {
	var f lsFlags
	cmd := &cobra.Command{
		Use:   "ls [PREFIX]",
		Short: "List identifiers",
		Long: `Ls lists the registered identifiers that begin with PREFIX, in order, one per line; with
--json, their records. PREFIX is the beginning of names, such as ark:12345/x5, or a
scheme with a colon, such as ark:. Without PREFIX ls lists all identifiers. It does not
list aliases.

--pointing searches in reverse: it lists the identifiers that have a target at this URL,
or on this host, in their current version.

For the next page, give the last identifier of this page to --after.`,
		Example: `  stele ls ark:12345/x5
  stele ls 10.5072/ -n 100 --after 10.5072/RIVERS
  stele ls --state withdrawn urn:
  stele ls --pointing old.example.org
  stele ls --pointing https://example.org/report.pdf --json`,
		Args: usage.AtMostOne("the prefix"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.state != "" && !stele.State(f.state).IsValid():
				return usage.Errorf(cmd, "flag.state-unknown", `"{state}" is not a state; there are reserved, active and withdrawn`, f.state)
			case f.after != "" && len(args) == 0 && f.pointing == "":
				return usage.Errorf(cmd, "flag.after-without-prefix", "--after needs the prefix that is listed, or its scheme, such as ark:")
			}
			prefix := ""
			if len(args) == 1 {
				prefix = args[0]
			}
			return p.reading(cmd, func(ctx context.Context, l *Registry) error {
				return p.ls(ctx, l, prefix, f)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.after, "after", "", "list only identifiers after this `text`")
	flags.StringVar(&f.pointing, "pointing", "", "list identifiers with a target at this `URL or host`")
	flags.StringVar(&f.state, "state", "", "list only records in this state: reserved, active or withdrawn")
	flags.Uint64VarP(&f.limit, "limit", "n", 0, "maximum number of identifiers (0: all)")
	usage.Choices(cmd, "state", stele.Reserved, stele.Active, stele.Withdrawn)
	return usage.NeverFiles(cmd)
}

// ls prints what the flags ask for.
func (p *program) ls(ctx context.Context, l *Registry, prefix string, f lsFlags) error {
	q := remote.Listing{State: stele.State(f.state), After: f.after, Limit: f.limit}
	list, err := l.ListBelow(ctx, prefix, q)
	if f.pointing != "" {
		list, err = l.ListPointing(ctx, prefix, f.pointing, q)
	}
	if err != nil {
		return err
	}
	out := bufio.NewWriter(p.stdout)
	defer out.Flush()
	for rec, err := range list {
		if err != nil {
			return err
		}
		if err := p.printName(out, rec); err != nil {
			return err
		}
	}
	return out.Flush()
}
