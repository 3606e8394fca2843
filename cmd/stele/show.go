package main

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele/cmd/stele/card"
	"github.com/stele-id/stele/cmd/stele/usage"
)

func (p *program) showCommand() *cobra.Command {
	var at string
	var version uint64
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show the record of an identifier",
		Long: `Show prints the record that has a name, by its identifier or by an alias, in any
spelling: names, state, targets, metadata and persistence. For a withdrawn record it
prints the tombstone.

With --at it prints the record as it was at a date (at the end of that day, in UTC) or
at a time; with --version it prints that version. 'stele history ID' lists the versions.

It exits with 3 if the record does not exist, or did not exist at that time.`,
		Example: `  stele show ark:12345/x54xz321
  stele show https://doi.org/10.5072/rivers --at 2024-05-17
  stele show 10.5072/rivers --version 2 --json | jq .targets`,
		Args: usage.OneArgument("the identifier"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var then time.Time
			if cmd.Flags().Changed("at") {
				if cmd.Flags().Changed("version") {
					return usage.Errorf(cmd, "flag.at-and-version", "--at and --version each choose a version; keep one")
				}
				var err error
				if then, err = usage.ParseMoment(at); err != nil {
					return usage.Errorf(cmd, "", "{cause}", err)
				}
			}
			if cmd.Flags().Changed("version") && version == 0 {
				return usage.Errorf(cmd, "flag.version-zero", "versions are numbered from 1")
			}
			return p.reading(cmd, func(ctx context.Context, l *Registry) error {
				rec, err := l.Find(ctx, args[0], then, version)
				if err != nil {
					return err
				}
				if p.json {
					return p.printName(p.stdout, rec)
				}
				_, err = io.WriteString(p.stdout, card.Record(rec))
				return err
			})
		},
	}
	cmd.Flags().StringVar(&at, "at", "", "show the record as it was at this `date`, or date and time")
	cmd.Flags().Uint64Var(&version, "version", 0, "show this `version` of the record")
	return usage.NeverFiles(cmd)
}
