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
	var dryRun, yes bool
	var digest string
	cmd := &cobra.Command{
		Use:   "accept PREFIX HOST --dry-run | --digest DIGEST | --yes",
		Short: "Give targets the addresses to which they have moved",
		Long: `Accept changes the targets at HOST of names that begin with PREFIX, if the checks have found
that they redirect to another address permanently. A target changes only if it still has the
address that was checked.

--dry-run prints the first changes, how many records change, and a digest that stands for
all of them, and writes nothing. Give the digest to --digest then: accept writes only if the
changes are still these. --yes writes without a look. At most 10,000 targets change at once; give the command again for others.

Accept prints the number of an import. 'stele revert --import NUMBER' undoes it.`,
		Example: "  stele links accept ark:12345 old.example.org --dry-run\n  stele links accept ark:12345 old.example.org --digest 1c7a6b09d2f3e4855a6b7c8d9e0f1a2b",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage.Errorf(cmd, "links.accept-incomplete", "give a prefix and a host, as in: ark:12345 old.example.org")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			host := strings.ToLower(strings.TrimSpace(args[1]))
			switch {
			case host == "":
				return usage.Errorf(cmd, "links.accept-incomplete", "give a prefix and a host, as in: ark:12345 old.example.org")
			case !isConfirmed(cmd, "digest") || !dryRun && !yes && digest == "":
				return usage.Errorf(cmd, "flag.accept-unconfirmed", "give --dry-run to see what changes, and then --digest with the digest that it prints, or --yes")
			}
			return p.withLinks(cmd, &checkFlags{}, func(ctx context.Context, l *Registry) error {
				key, err := l.ParsePrefix(args[0])
				if err != nil {
					return err
				}
				return p.acceptMoved(ctx, l, key, host, digest, dryRun)
			})
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&dryRun, "dry-run", false, "print what would change, and change nothing")
	flags.StringVar(&digest, "digest", "", "write only if the changes have this `digest`, which --dry-run prints")
	flags.BoolVar(&yes, "yes", false, "write without a digest")
	return usage.NeverFiles(cmd)
}

// acceptMoved writes what a digest stands for. Without a digest it judges what would change, and writes it unless it is a dry run.
func (p *program) acceptMoved(ctx context.Context, l *Registry, key stele.NamespaceKey, host, digest string, dryRun bool) error {
	report := replaceReport{program: p, dry: dryRun}
	if digest == "" {
		told := report.add
		if !dryRun {
			told = func(bulk.Replaced) error { return nil }
		}
		counts, err := l.AcceptMoved(ctx, key, host, "", told)
		if err != nil {
			return err
		}
		if counts.Changed+counts.Refused == 0 {
			return refuse("accept addresses", stele.NotFound, "links.nothing-moved", "no target at {host} is known to have moved", host)
		}
		if dryRun {
			return report.end(counts)
		}
		digest = counts.Digest
	}
	counts, err := l.AcceptMoved(ctx, key, host, digest, report.add)
	if err != nil {
		return err
	}
	return report.end(counts)
}
