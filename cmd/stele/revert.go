package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/registrar"
)

func (p *program) revertCommand() *cobra.Command {
	var to, ifVersion, number uint64
	var o registrar.RevertOptions
	cmd := &cobra.Command{
		Use:   "revert ID --to VERSION | --import NUMBER",
		Short: "Go back to an earlier version, or undo an import",
		Long: `Revert gives a record the content of an earlier version, as a new version. It deletes
nothing, and the names that the record got since stay. It does not bring back content
that was removed by a legal order. It brings back a signature if its key may still sign.

With --import revert undoes a whole import. It withdraws names that the import made, and
gives records that the import changed their previous content. It lists records that an
editor changed since, and leaves them. If a revert is interrupted, give the same command
again: it continues. The revert has a number itself, and can be reverted. Namespaces
that the import made stay.

'stele history ID' lists the versions of a record, and 'stele import ls' lists imports.`,
		Example: `  stele revert ark:12345/x1 --to 2
  stele revert --import 17 --dry-run
  stele revert --import 17 --reason 'The file had the wrong shelf marks.'`,
		Args: usage.AtMostOne("the identifier"),
		RunE: func(cmd *cobra.Command, args []string) error {
			whole := cmd.Flags().Changed("import")
			switch {
			case whole == (len(args) == 1):
				return usage.Errorf(cmd, "argument.revert-missing", "say what to revert: a record, with --to VERSION, or an import, with --import NUMBER")
			case whole && (cmd.Flags().Changed("to") || cmd.Flags().Changed("if-version")):
				return usage.Errorf(cmd, "flag.version-with-import", "--to and --if-version are for one record, not for an import")
			case whole && number == 0, !whole && to == 0 && cmd.Flags().Changed("to"):
				return usage.Errorf(cmd, "flag.version-or-import-zero", "versions and imports are numbered from 1")
			case !whole && !cmd.Flags().Changed("to"):
				return usage.Errorf(cmd, "flag.revert-version-missing", "which version is missing; give it with --to, and see 'stele history {identifier}'", printable(args[0]))
			case !whole && (o.DryRun || o.Reason != ""):
				return usage.Errorf(cmd, "flag.import-revert-only", "--dry-run and --reason are for the revert of an import")
			}
			return p.reading(cmd, func(ctx context.Context, l *Registry) error {
				if whole {
					return p.revertImport(ctx, l, number, o)
				}
				id, err := l.Parse(args[0])
				if err != nil {
					return err
				}
				rec, err := l.Revert(ctx, id, ifVersion, to)
				if err != nil {
					return err
				}
				return p.printName(p.stdout, rec)
			})
		},
	}
	flags := cmd.Flags()
	flags.Uint64Var(&to, "to", 0, "`version` whose content the record gets")
	flags.Uint64Var(&number, "import", 0, "undo the import with this `number`")
	flags.BoolVar(&o.DryRun, "dry-run", false, "print what would change, and change nothing")
	flags.StringVar(&o.Reason, "reason", "", "`reason` for the tombstones of names that the import made")
	ifVersionFlag(cmd, &ifVersion)
	return usage.NeverFiles(cmd)
}

// shownSteps is how many records a revert prints for people. With --json all are
// printed.
const shownSteps = 200

// revertImport undoes an import. For people it prints what was left; in a dry run, all.
func (p *program) revertImport(ctx context.Context, l *Registry, number uint64, o registrar.RevertOptions) error {
	bar := p.newProgress("revert", "records", 0, nil)
	defer bar.End()
	shown := 0
	result, err := l.RevertImport(ctx, number, o, func(step registrar.RevertStep) error {
		bar.Add(1)
		switch {
		case p.json:
			return p.printStep(step)
		case !o.DryRun && step.Status != registrar.RevertLeft:
			return nil
		}
		if shown++; shown > shownSteps {
			return nil
		}
		text := printable(step.ID.String()) + ": " + step.Status
		if step.To != 0 {
			text += fmt.Sprintf(" to version %d", step.To)
		}
		if step.Why != "" {
			text += ": " + printable(step.Why)
		}
		_, err := fmt.Fprintln(p.stdout, text)
		return err
	})
	bar.End()
	if err != nil {
		if ctx.Err() != nil {
			return refuse("revert import", stele.Unavailable, "command.interrupted", "interrupted; give the same command again to go on")
		}
		return err
	}
	return p.printReverted(result, shown, o.DryRun)
}

// printStep prints what became of a record, as a line of JSON.
func (p *program) printStep(step registrar.RevertStep) error {
	return p.printObject(struct {
		ID     string `json:"id"`
		Status string `json:"status"`
		To     uint64 `json:"to,omitempty"`
		Why    string `json:"why,omitempty"`
	}{step.ID.String(), step.Status, step.To, step.Why})
}

// printReverted prints what a revert did in all.
func (p *program) printReverted(r registrar.RevertResult, shown int, dry bool) error {
	if p.json {
		return p.printObject(struct {
			Import    uint64 `json:"import,omitempty"`
			Withdrawn int    `json:"withdrawn"`
			Reverted  int    `json:"reverted"`
			Left      int    `json:"left"`
			DryRun    bool   `json:"dryRun,omitempty"`
		}{r.Number, r.Withdrawn, r.Reverted, r.Left, dry})
	}
	if shown > shownSteps {
		fmt.Fprintf(p.stdout, "and %s more; --json prints all\n", grouped(int64(shown-shownSteps)))
	}
	text := fmt.Sprintf("%s withdrawn, %s reverted, %s left", grouped(int64(r.Withdrawn)), grouped(int64(r.Reverted)), grouped(int64(r.Left)))
	if dry {
		text += "; nothing was written"
	} else {
		text += fmt.Sprintf("; import %d", r.Number)
	}
	_, err := fmt.Fprintln(p.stdout, text)
	return err
}
