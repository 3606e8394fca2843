package main

import (
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/internal/progress"
	"github.com/stele-id/stele/internal/wording"

	"context"
	"fmt"
	"math"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/remote"
	"github.com/stele-id/stele/store/postgres"
)

func (p *program) verifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify [DIR]",
		Short: "Check the integrity of a registry or a backup",
		Long: `Verify reads the whole registry and checks that it is consistent: every file is intact,
every record is valid and is stored under its own names only, its history is complete,
indexes and counts match the records, the list of changes has no gap, each prefix
belongs to one namespace, minters are ahead of every date that they issued, and the
transparency log is that of the changes.

DIR, or --data, is the folder of a registry, or a backup. The backup of a folder is
itself a registry, and verify checks it like one. The backup of a database has a file
for each table: verify checks that these files are what was written. Only a database can
check whether their rows are consistent, so restore the backup into an empty database
and verify that. For a database (--store) verify checks everything except the database's
own files; PostgreSQL's pg_amcheck checks those. The last lines say what was checked and
what was not.

Verify prints a line for each problem, and exits with 1 if there is one. A note is about
a name that is stored as it was written, and that would not be accepted today: nothing
is damaged. Verify exits with 3 if there is no registry, and does not make one.`,
		Example: `  stele verify
  stele verify /backups/stele-2031-05-02
  stele verify --store postgres://stele@db.example.org/stele
  stele verify --server https://id.example.org`,
		Args:              usage.AtMostOne("the folder"),
		ValidArgsFunction: usage.Folders,
		RunE: func(cmd *cobra.Command, args []string) error {
			flags := cmd.Flags()
			if len(args) == 1 {
				for _, other := range []string{"data", "store", "server"} {
					if flags.Changed(other) {
						return usage.Errorf(cmd, "flag.verify-with-argument", `"{argument}" and --{flag} each name what is checked; keep one`, args[0], other)
					}
				}
				p.data, p.store, p.remote.server = args[0], "", ""
			}
			far, err := p.isRemote(cmd)
			if err != nil {
				return err
			}
			if at := p.place(); !far && !at.IsDatabase() && postgres.IsBackup(at.Folder) {
				return p.interruptible(cmd, func(ctx context.Context) error { return p.verifyBackup(ctx, at.Folder) })
			}
			return p.reading(cmd, func(ctx context.Context, l *Registry) error { return p.verify(ctx, l, far) })
		},
	}
}

// verdict prints what a check finds, and counts it.
type verdict struct {
	p            *program
	wrong, notes int
	done         atomic.Int64 // in thousandths
	progress     *progress.Bar
}

// thousandths is the total of a check's progress.
const thousandths = 1000

func (p *program) newVerdict() *verdict {
	v := &verdict{p: p}
	v.progress = p.newProgress("verify", "problems", thousandths, v.done.Load)
	return v
}

// inspection returns what the check calls.
func (v *verdict) inspection() remote.Inspection {
	return remote.Inspection{
		Problem: func(m *stele.Message) {
			v.wrong++
			v.progress.Add(1)
			v.print("problem", m)
		},
		Note: func(m *stele.Message) {
			v.notes++
			v.print("note", m)
		},
		Progress: func(done float64) {
			v.done.Store(int64(math.Round(done * thousandths)))
			v.progress.Tick()
		},
	}
}

// print prints a line of what was found. The last line reports an error of standard
// output.
func (v *verdict) print(kind string, m *stele.Message) {
	text := m.Error()
	code, _ := stele.CodeOf(m)
	switch {
	case v.p.json:
		_ = v.p.printObject(map[string]string{kind: text, "code": code})
	case kind == "note":
		_ = v.p.say("note: %s\n", printable(text))
	default:
		_ = v.p.say("%s\n", printable(text))
	}
}

// What a check of each kind of place looks at, and what it can't.
const (
	checkedAll       = "files, records, histories, aliases, indexes, counts, the change feed, namespaces, minters, users, tokens and the log"
	checkedRows      = "records, histories, aliases, indexes, counts, the change feed, namespaces, minters, users, tokens and the log"
	uncheckedFiles   = "the database's own files, which pg_amcheck checks"
	checkedBackup    = "that every file is there and is what was written, and how many rows it has"
	uncheckedBackup  = "whether records, indexes and counts fit together; restore the backup into an empty database, and verify that"
	uncheckedChanges = "what was written after the backup was taken"
)

// verify checks the registry and prints what is wrong.
func (p *program) verify(ctx context.Context, l *Registry, far bool) error {
	v := p.newVerdict()
	defer v.progress.End()
	changes, err := l.Check(ctx, v.inspection())
	if err != nil {
		return err
	}
	v.progress.End()
	r := verified{Kind: "folder", Place: l.Place, Changes: changes, Checked: checkedAll}
	switch {
	case far:
		r.Kind = "server"
	case p.place().IsDatabase():
		r.Kind, r.Checked, r.Unchecked = "database", checkedRows, []string{uncheckedFiles}
	}
	return v.conclude(r)
}

// verifyBackup checks the backup of a database.
func (p *program) verifyBackup(ctx context.Context, folder string) error {
	v := p.newVerdict()
	defer v.progress.End()
	tell := v.inspection()
	found, err := postgres.VerifyBackup(ctx, folder, tell.Problem, tell.Progress)
	if err != nil {
		return err
	}
	v.progress.End()
	r := verified{Kind: "backup of a database", Place: folder, Changes: found.Changes, Rows: found.Rows, Checked: checkedBackup,
		Unchecked: []string{uncheckedBackup, uncheckedChanges}}
	if !found.Taken.IsZero() {
		r.Taken = wording.Moment(found.Taken)
	}
	return v.conclude(r)
}

// verified is what was checked.
type verified struct {
	Kind      string   `json:"kind"`
	Place     string   `json:"place"`
	Changes   uint64   `json:"changes"`
	Rows      int64    `json:"rows,omitempty"`
	Taken     string   `json:"taken,omitempty"`
	Notes     int      `json:"notes,omitempty"`
	Checked   string   `json:"checked"`
	Unchecked []string `json:"unchecked,omitempty"`
}

// conclude prints what was checked, or returns the error of what is damaged.
func (v *verdict) conclude(r verified) error {
	if v.wrong > 0 && r.Rows > 0 || v.wrong > 0 && r.Taken != "" {
		return refuse("verify", stele.Internal, "verify.backup-damaged", "the backup in {place} is damaged: {count} problems; use another backup", r.Place, grouped(int64(v.wrong)))
	}
	if v.wrong > 0 {
		return refuse("verify", stele.Internal, "verify.registry-damaged", "{place} is damaged: {count} problems; restore a backup", r.Place, grouped(int64(v.wrong)))
	}
	r.Notes = v.notes
	if v.p.json {
		return v.p.printObject(r)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "all is well: %s changes", grouped(int64(r.Changes)))
	if r.Rows > 0 {
		fmt.Fprintf(&b, ", %s rows", grouped(r.Rows))
	}
	if r.Taken != "" {
		fmt.Fprintf(&b, ", a backup of %s", r.Taken)
	}
	if r.Notes > 0 {
		fmt.Fprintf(&b, ", %s notes", grouped(int64(r.Notes)))
	}
	fmt.Fprintf(&b, "\nchecked: %s\n", r.Checked)
	for _, text := range r.Unchecked {
		fmt.Fprintf(&b, "not checked: %s\n", text)
	}
	return v.p.say("%s", b.String())
}
