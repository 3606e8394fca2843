package main

import (
	"bufio"
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func (p *program) nsHistoryCommand() *cobra.Command {
	return neverFiles(&cobra.Command{
		Use:   "history PREFIX",
		Short: "Show how a namespace came to be what it is",
		Long: `History prints a line for each version of a namespace, the newest first: its number,
when and by whom it was made, its owner and its title. With --json it prints the
versions themselves, each whole.

A registry that an earlier program made has the versions since it was upgraded.`,
		Example: `  stele ns history ark:12345/x5
  stele ns history --json ark:12345/x5 | jq -r .owner`,
		Args: oneArgument("the prefix"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.reading(cmd, func(ctx context.Context, l *ledger) error {
				key, err := l.parsePrefix(args[0])
				if err != nil {
					return err
				}
				out := bufio.NewWriter(p.stdout)
				for ns, err := range l.NamespaceHistory(ctx, key) {
					if err != nil {
						return err
					}
					if p.json {
						err = p.printPrefix(out, ns)
					} else {
						_, err = fmt.Fprintf(out, "%-3d %s  %s  owner %s  %s\n", ns.Version, moment(ns.Modified), printable(ns.By), printable(ns.Owner), printable(ns.Title))
					}
					if err != nil {
						return err
					}
				}
				return out.Flush()
			})
		},
	})
}
