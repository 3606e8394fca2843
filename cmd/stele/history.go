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
its author, and what changed. With --json it prints the whole versions.

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
	fmt.Fprintf(out, "%-3d %s  %s  %s\n", rec.Version, wording.Moment(rec.Modified), printable(rec.By), printable(strings.Join(changes, "; ")))
}
