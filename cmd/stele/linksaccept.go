package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/cmd/stele/usage"
)

func (p *program) linksAcceptCommand() *cobra.Command {
	var f replaceFlags
	cmd := &cobra.Command{
		Use:   "accept PREFIX HOST --dry-run | --expect NUMBER | --yes",
		Short: "Give targets the addresses to which they have moved",
		Long: `Accept changes the targets at HOST of names that begin with PREFIX, if the checks have found
that they redirect to another address permanently. A target changes only if it still has the
address that was checked.

--dry-run prints the first changes and how many records change, and writes nothing. Give
this number to --expect then: accept writes only if as many records change. --yes writes
without a number. At most 10,000 targets change at once; give the command again for others.

Accept prints the number of an import. 'stele revert --import NUMBER' undoes it.`,
		Example: "  stele links accept ark:12345 old.example.org --dry-run\n  stele links accept ark:12345 old.example.org --expect 312",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage.Errorf(cmd, "links.accept-incomplete", "give a prefix and a host, as in: ark:12345 old.example.org")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			given := 0
			for _, name := range []string{"dry-run", "expect", "yes"} {
				if cmd.Flags().Changed(name) {
					given++
				}
			}
			if given != 1 || f.expect < 0 {
				return usage.Errorf(cmd, "flag.replace-unconfirmed", "give --dry-run to see how many records change, and then --expect with this number, or --yes")
			}
			return p.withLinks(cmd, &checkFlags{}, func(ctx context.Context, l *Registry) error {
				key, err := l.ParsePrefix(args[0])
				if err != nil {
					return err
				}
				return p.acceptMoved(ctx, l, key, strings.ToLower(args[1]), f)
			})
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.dryRun, "dry-run", false, "print what would change, and change nothing")
	flags.IntVar(&f.expect, "expect", 0, "write only if this `number` of records changes")
	flags.BoolVar(&f.yes, "yes", false, "write without a number")
	return usage.NeverFiles(cmd)
}

// acceptMoved judges what would change, and writes it unless it is a dry run.
func (p *program) acceptMoved(ctx context.Context, l *Registry, key stele.NamespaceKey, host string, f replaceFlags) error {
	report := replaceReport{program: p, dry: f.dryRun}
	if f.dryRun || f.yes {
		told := report.add
		if f.yes {
			told = func(bulk.Replaced) error { return nil }
		}
		counts, err := l.AcceptMoved(ctx, key, host, nil, told)
		if err != nil {
			return err
		}
		if counts.Changed+counts.Refused == 0 {
			return refuse("accept addresses", stele.NotFound, "links.nothing-moved", "no target at {host} is known to have moved", host)
		}
		if f.dryRun {
			return report.end(counts)
		}
		f.expect = counts.Changed
	}
	counts, err := l.AcceptMoved(ctx, key, host, &f.expect, report.add)
	if err != nil {
		return err
	}
	return report.end(counts)
}
