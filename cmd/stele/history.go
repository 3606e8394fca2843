package main

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/internal/wording"
)

func (p *program) historyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "history ID",
		Short: "List the versions of a record",
		Long: `History prints a line for each version of a record, newest first: its number, its date,
its author, the import that wrote it, if one did, and what changed. A version that was
imported with its date has the date and the author of the registry that it comes from.
With --json it prints the whole versions.

'stele show ID --version N' shows one version.`,
		Example: `  stele history ark:12345/x54xz321
  stele history --json 10.5072/rivers | jq -r '.targets[].url'`,
		Args: usage.OneArgument("the identifier"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.reading(cmd, func(ctx context.Context, l *Registry) error {
				id, err := l.Parse(args[0])
				if err != nil {
					return err
				}
				return l.Meant(ctx, id, p.history(ctx, l, id))
			})
		},
	}
	return usage.NeverFiles(cmd)
}

// history prints the versions of a record. What changed in a version is known only when the
// version before it has come, so a line is printed one version later.
func (p *program) history(ctx context.Context, l *Registry, id stele.ID) error {
	out := bufio.NewWriter(p.stdout)
	defer out.Flush()
	var later *stele.Record
	for rec, err := range l.History(ctx, id) {
		if err != nil {
			return err
		}
		if p.json {
			if err := p.printName(out, rec); err != nil {
				return err
			}
			continue
		}
		if later != nil {
			writeVersion(out, rec, later)
		}
		later = rec
	}
	if later != nil {
		writeVersion(out, nil, later)
	}
	return out.Flush()
}

func writeVersion(out *bufio.Writer, before, rec *stele.Record) {
	changes := wording.Differences(before, rec)
	by := printable(rec.By)
	if rec.Import != 0 {
		by = strings.TrimPrefix(by+fmt.Sprintf(" (import %d)", rec.Import), " ")
	}
	fmt.Fprintf(out, "%-3d %s  %s  %s\n", rec.Version, wording.Moment(rec.Modified), by, printable(strings.Join(changes, "; ")))
}
