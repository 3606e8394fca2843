package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele/registrar"
)

func (p *program) importListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List imports, with their numbers",
		Long: `Ls lists imports, the oldest first: number, when it began, by whom, what was imported
and what became of it. An administrator sees all, others see their own. 'stele revert
--import NUMBER' undoes one.`,
		Example: "  stele import ls\n  stele import ls --json | jq 'select(.updated > 0)'",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.reading(cmd, func(ctx context.Context, l *ledger) error {
				for i, err := range l.Imports(ctx, 0) {
					if err == nil {
						err = p.printImport(i)
					}
					if err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	return neverFiles(cmd)
}

// printImport prints what is kept of an import.
func (p *program) printImport(i registrar.Import) error {
	if p.json {
		i.After, i.Last, i.At = 0, 0, 0 // of use to the registry alone
		text, err := json.Marshal(struct {
			registrar.Import
			After *int `json:"after,omitempty"`
		}{Import: i})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.stdout, "%s\n", text)
		return err
	}
	text := fmt.Sprintf("%d  %s  %s", i.Number, i.Began.UTC().Format(time.DateTime), printable(i.By))
	if i.Label != "" {
		text += "  " + printable(i.Label)
	}
	if i.Reverts != 0 {
		text += fmt.Sprintf("  revert of %d: %s changed, %s left", i.Reverts, grouped(int64(i.Updated)), grouped(int64(i.Refused)))
	} else {
		text += fmt.Sprintf("  %s new, %s updated", grouped(int64(i.Created)), grouped(int64(i.Updated)))
	}
	if i.Ended.IsZero() {
		text += "; not ended"
	}
	if i.Reverted != 0 {
		text += fmt.Sprintf("; reverted by %d", i.Reverted)
	}
	_, err := fmt.Fprintln(p.stdout, text)
	return err
}
