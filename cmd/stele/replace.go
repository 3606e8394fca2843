package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/cmd/stele/usage"
)

// replaceFlags say what replace does.
type replaceFlags struct {
	namespace   string
	dryRun, yes bool
	expect      int
}

func (p *program) replaceCommand() *cobra.Command {
	var f replaceFlags
	cmd := &cobra.Command{
		Use:   "replace OLD NEW --dry-run | --expect NUMBER | --yes",
		Short: "Replace a host, or the beginning of URLs, in many targets",
		Long: `Replace changes the targets of all records that lead to a host, or to URLs with a
certain beginning. OLD and NEW are two hosts, such as old.example.org, or two beginnings
of URLs, such as https://old.example.org/maps/. A host is replaced in URLs of every
protocol, but not where OLD is only a part of the host. Withdrawn records stay as they
are, and so do values of handles.

--dry-run prints the first changes and how many records change, and writes nothing. Give
this number to --expect then: replace writes only if as many records change. --yes writes
without a number.

Replace changes a record as a new version. It does not change a record that another user
changes at the same time, or that you may not change: it lists these, and exits with 1.

Replace prints the number of an import. 'stele revert --import NUMBER' undoes it. If
replace is interrupted, give the same command again: it continues, and changes no record
twice.`,
		Example: `  stele replace old.example.org new.example.org --dry-run
  stele replace old.example.org new.example.org --expect 1204
  stele replace https://example.org/maps/ https://maps.example.org/ --namespace ark:12345 --yes`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage.Errorf(cmd, "argument.replace-incomplete", "give what is replaced and what comes instead of it, as in: old.example.org new.example.org")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !isConfirmed(cmd, "expect") || f.expect < 0 {
				return usage.Errorf(cmd, "flag.replace-unconfirmed", "give --dry-run to see how many records change, and then --expect with this number, or --yes")
			}
			r, err := bulk.NewReplacement(args[0], args[1], "")
			if err != nil {
				return usage.Errorf(cmd, "", "{cause}", stele.Reason(err))
			}
			return p.writing(cmd, func(ctx context.Context, l *Registry) error {
				if f.namespace != "" {
					key, err := l.ParsePrefix(f.namespace)
					if err != nil {
						return err
					}
					r.Namespace = key.String()
				}
				return p.replace(ctx, l, r, f)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.namespace, "namespace", "", "change only records of the namespace with this `prefix`, and of those below it")
	flags.BoolVar(&f.dryRun, "dry-run", false, "print what would change, and change nothing")
	flags.IntVar(&f.expect, "expect", 0, "write only if this `number` of records changes")
	flags.BoolVar(&f.yes, "yes", false, "write without a number")
	return usage.NeverFiles(cmd)
}

// isConfirmed reports whether a command that changes many records got exactly one of --dry-run, --yes, and the flag that has what was seen.
func isConfirmed(cmd *cobra.Command, seen string) bool {
	given := 0
	for _, name := range []string{"dry-run", "yes", seen} {
		if cmd.Flags().Changed(name) {
			given++
		}
	}
	return given == 1
}

// replace judges a replacement, and writes it unless it is a dry run.
func (p *program) replace(ctx context.Context, l *Registry, r bulk.Replacement, f replaceFlags) error {
	report := replaceReport{program: p, dry: f.dryRun}
	if f.dryRun || f.yes {
		told := report.add
		if f.yes {
			told = func(bulk.Replaced) error { return nil }
		}
		counts, err := l.JudgeReplacement(ctx, r, told)
		if err != nil {
			return err
		}
		if counts.Changed+counts.Refused == 0 {
			return refuse("replace", stele.NotFound, "command.nothing-to-replace", `no target of a record that you may list begins with "{text}"`, r.From)
		}
		if f.dryRun {
			return report.end(counts)
		}
		f.expect = counts.Changed
	}
	bar := p.newProgress("replace", "records", int64(f.expect), nil)
	defer bar.End()
	counts, err := l.Replace(ctx, r, f.expect, func(one bulk.Replaced) error {
		bar.Add(1)
		return report.add(one)
	})
	bar.End()
	if err != nil && ctx.Err() != nil {
		return refuse("replace", stele.Unavailable, "command.interrupted", "interrupted; give the same command again to go on")
	} else if err != nil {
		return err
	}
	return report.end(counts)
}

// shownReplaced is how many records that change, and how many that are refused, replace prints for
// people. With --json all are printed.
const shownReplaced = 20

// replaceReport prints what became of records: for people those that are refused, and in a dry run
// also the first that change.
type replaceReport struct {
	*program
	dry              bool
	changed, refused int
}

// add prints what became of a record.
func (r *replaceReport) add(one bulk.Replaced) error {
	status, why := "changed", ""
	if one.IsRefused() {
		status, why = "refused", stele.Reason(one.Err).Error()
	}
	if r.json {
		return r.printObject(struct {
			ID     string `json:"id"`
			Status string `json:"status"`
			Old    string `json:"old"`
			New    string `json:"new"`
			Why    string `json:"why,omitempty"`
		}{one.ID.String(), status, one.Old, one.New, why})
	}
	var err error
	if why != "" {
		if r.refused++; r.refused <= shownReplaced {
			_, err = fmt.Fprintf(r.stdout, "%s: refused: %s\n", printable(one.ID.String()), printable(strings.ReplaceAll(why, "\n", "; ")))
		}
	} else if r.changed++; r.dry && r.changed <= shownReplaced {
		_, err = fmt.Fprintf(r.stdout, "%s\n  %s\n  %s\n", printable(one.ID.String()), printable(one.Old), printable(one.New))
	}
	return err
}

// end prints what became of all. A record that was refused is a failure.
func (r *replaceReport) end(n bulk.ReplaceCounts) error {
	if r.json {
		if err := r.printObject(struct {
			Import  uint64 `json:"import,omitempty"`
			Changed int    `json:"changed"`
			Refused int    `json:"refused"`
			DryRun  bool   `json:"dryRun,omitempty"`
			Digest  string `json:"digest,omitempty"`
		}{n.Import, n.Changed, n.Refused, r.dry, n.Digest}); err != nil {
			return err
		}
	} else {
		more := max(0, r.refused-shownReplaced)
		if r.dry {
			more += max(0, r.changed-shownReplaced)
		}
		if more > 0 {
			fmt.Fprintf(r.stdout, "and %s more; --json prints all\n", grouped(int64(more)))
		}
		text := fmt.Sprintf("%s changed, %s refused", grouped(int64(n.Changed)), grouped(int64(n.Refused)))
		if n.Import != 0 {
			text += fmt.Sprintf("; import %d", n.Import)
		}
		if r.dry {
			text = fmt.Sprintf("%s records would change, %s refused; nothing was written", grouped(int64(n.Changed)), grouped(int64(n.Refused)))
			if n.Digest != "" {
				text += "; digest " + n.Digest
			}
		}
		if _, err := fmt.Fprintln(r.stdout, text); err != nil {
			return err
		}
	}
	if n.Refused > 0 {
		return refuse("replace", stele.Invalid, "command.records-refused", "{refused} of {records} records were refused", grouped(int64(n.Refused)), grouped(int64(n.Changed+n.Refused)))
	}
	return nil
}
