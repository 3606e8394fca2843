package main

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/internal/progress"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/registry/access"
	"github.com/stele-id/stele/registry/drill"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/store/postgres"
)

// drillFlags are the flags of backup that are about drills.
type drillFlags struct {
	drill   bool
	scratch string
	into    string
}

func (f *drillFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.drill, "drill", false, "restore a backup elsewhere, verify it, and compare it with the registry")
	cmd.Flags().StringVar(&f.scratch, "scratch", "", "`folder` in which a drill makes its own folder (default: that of TMPDIR)")
	cmd.Flags().StringVar(&f.into, "into", "", "`URL` of a database in which a drill restores the backup of a database, in a schema of its own")
	// They fail only for flags that the command does not have.
	_ = cmd.RegisterFlagCompletionFunc("scratch", usage.Folders)
	_ = cmd.RegisterFlagCompletionFunc("into", cobra.NoFileCompletions)
}

// arguments checks the arguments and flags of backup. A drill needs no folder.
func (f *drillFlags) arguments(cmd *cobra.Command, args []string) error {
	if f.drill {
		if f.into != "" {
			if err := postgres.CheckURL(f.into); err != nil {
				return usage.Errorf(cmd, "", "--into: {cause}", err)
			}
		}
		return usage.AtMostOne("the folder")(cmd, args)
	}
	for _, name := range []string{"scratch", "into"} {
		if cmd.Flags().Changed(name) {
			return usage.Errorf(cmd, "flag.drill-only", "--{flag} is for a drill; add --drill, or leave it out", name)
		}
	}
	return usage.OneArgument("the folder")(cmd, args)
}

// drill shows that a backup can be restored.
func (p *program) drill(cmd *cobra.Command, f *drillFlags, args []string) error {
	return p.reading(cmd, func(ctx context.Context, l *Registry) error {
		d := &drill.Drill{Source: l, Scratch: f.scratch, Into: f.into, Now: p.now}
		switch at := l.Backend.(type) {
		case *access.Local:
			d.Store, d.Position = at.Registry.Store, at.Registry.Store.Position
			if p.place().IsDatabase() && d.Into == "" {
				d.Into = p.store
			}
		case *access.Remote:
			d.Position = at.Position
		}
		if len(args) == 1 {
			d.Backup = args[0]
		}
		schemes, err := p.schemes(cmd)
		if err != nil {
			return err
		}
		d.Restore = &registry.Restore{
			Schemes: schemes, Open: p.openOptions(p.logger(), resolver.Options{}),
			Ask:       func(context.Context, ...stele.Store) ([]stele.SecondaryAnswer, error) { return nil, nil },
			OnDamaged: func(error) {},
		}
		var bar *progress.Bar
		var done atomic.Int64
		end := func() {
			if bar != nil {
				bar.End()
			}
		}
		d.Begin = func(step string) func(float64) {
			end()
			done.Store(0)
			bar = p.newProgress(step, "problems", thousandths, done.Load)
			return func(part float64) {
				done.Store(int64(math.Round(min(1, part) * thousandths)))
				bar.Tick()
			}
		}
		report, err := d.Run(byCommand(ctx))
		end()
		if err != nil {
			return err
		}
		return p.printDrill(&report)
	})
}

// printDrill prints the report, and returns the error of a backup that is not what it should be.
func (p *program) printDrill(r *drill.Report) error {
	if err := p.printDrillReport(r); err != nil || r.Wrong == 0 {
		return err
	}
	return refuse("drill", stele.Internal, "drill.failed", "the backup can't replace {source}: {problems} problems, {differences} differences; make another backup, and find out why",
		r.Source, len(r.Problems), len(r.Differences))
}

func (p *program) printDrillReport(r *drill.Report) error {
	if p.json {
		type finding struct {
			Code string `json:"code"`
			Text string `json:"text"`
		}
		list := func(from []*stele.Message) []finding {
			out := []finding{}
			for _, m := range from {
				code, _ := stele.CodeOf(m)
				out = append(out, finding{code, m.Error()})
			}
			return out
		}
		return p.printObject(struct {
			*drill.Report
			Problems    []finding `json:"problems"`
			Differences []finding `json:"differences"`
		}{r, list(r.Problems), list(r.Differences)})
	}
	var b strings.Builder
	for _, m := range r.Problems {
		fmt.Fprintf(&b, "problem: %s\n", printable(m.Error()))
	}
	for _, m := range r.Differences {
		fmt.Fprintf(&b, "difference: %s\n", printable(m.Error()))
	}
	if r.Wrong == 0 {
		fmt.Fprintf(&b, "the backup restores all that %s had: %s changes in %s bytes, restored to a %s\n", printable(r.Source), grouped(int64(r.Changes)), grouped(r.Bytes), r.Restored)
	}
	fmt.Fprintf(&b, "compared: %s records in %s versions, %s namespaces", grouped(int64(r.Records)), grouped(int64(r.Versions)), grouped(int64(r.Namespaces)))
	if r.Minters+r.Cells+r.Audit > 0 {
		fmt.Fprintf(&b, ", %s minters, %s cells, %s entries of the audit trail", grouped(int64(r.Minters)), grouped(int64(r.Cells)), grouped(int64(r.Audit)))
	}
	if r.Since+r.Moved > 0 {
		fmt.Fprintf(&b, "\nsince the backup: %s changes, and %s other values changed", grouped(int64(r.Since)), grouped(int64(r.Moved)))
	}
	b.WriteString("\ntook:")
	for i, s := range r.Steps {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, " %s %.1f s", s.Name, s.Seconds)
	}
	return p.say("%s\n", b.String())
}
