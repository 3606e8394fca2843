package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
)

func (p *program) verifyCommand() *cobra.Command {
	return neverFiles(&cobra.Command{
		Use:   "verify",
		Short: "Check that the registry is whole",
		Long: `Verify reads all that the registry keeps, and checks that it fits together: every
file is whole, every record is valid and stands under its names and under no other's,
its history is complete, indexes and counts match the records, the list of changes
has no gap, prefixes belong to one namespace, and minters are ahead of every date
that they issued.

It prints a line for each thing that is wrong, and exits with 1 if there is one.`,
		Example: `  stele verify
  stele verify --data /backups/stele-2031-05-02`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.reading(cmd, p.verify)
		},
	})
}

// verify checks the registry and prints what is wrong.
func (p *program) verify(ctx context.Context, l *ledger) error {
	wrong := 0
	last, err := l.Check(ctx, func(problem string) {
		wrong++
		if p.json {
			if line, err := json.Marshal(map[string]string{"problem": problem}); err == nil {
				fmt.Fprintf(p.stdout, "%s\n", line)
			}
			return
		}
		fmt.Fprintln(p.stdout, printable(problem))
	})
	switch {
	case err != nil:
		return err
	case wrong > 0:
		return refuse("verify", stele.Internal, "%s is damaged: %s problems; restore a backup", l.place, grouped(int64(wrong)))
	case p.json:
		_, err = fmt.Fprintf(p.stdout, `{"changes":%d}`+"\n", last)
	default:
		_, err = fmt.Fprintf(p.stdout, "all is well: %s changes\n", grouped(int64(last)))
	}
	return err
}

// verify calls report for everything that is wrong: with what the store keeps, and
// with what the registrar made of it.
func (r *registry) verify(ctx context.Context, report func(problem string)) error {
	wrong := 0
	err := r.store.Verify(ctx, func(problem string) {
		wrong++
		report(problem)
	})
	if err != nil || wrong > 0 { // what can't be read can't be judged
		return err
	}
	return r.registrar.Verify(ctx, report)
}
