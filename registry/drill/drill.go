// Package drill restores a backup to another place, verifies what was restored, and compares it
// with the registry of which it is a backup: only that shows that a backup is whole. It
// changes nothing in that registry, and removes what it has made.
package drill

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/disk"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/registry/access"
	"github.com/stele-id/stele/store/postgres"
)

// Drill is a restore drill.
type Drill struct {
	// Source is the registry, here or at a server.
	Source   *access.Registry
	Position func(context.Context) (stele.Position, error) // of Source

	// Store is the store of Source if this process has it open: then everything is compared.
	// If it is nil, records and namespaces are compared with what the server says of them.
	Store stele.Store

	Backup  string            // folder of the backup; "" makes one, and removes it
	Scratch string            // folder in which the backup is made and restored
	Into    string            // URL of a database in which a backup of a database is restored
	Restore *registry.Restore // how a restored registry is opened
	Now     func() time.Time

	// Begin is called when a step begins, and returns what is called with its progress, from
	// 0 to 1.
	Begin func(step string) (progress func(done float64))
}

// Report is the result of a drill.
type Report struct {
	Source   string    `json:"source"`
	Backup   string    `json:"backup,omitempty"` // that was there before, or that stays
	Restored string    `json:"restored"`         // folder or database
	Began    time.Time `json:"began"`
	Steps    []Step    `json:"steps"`
	Bytes    int64     `json:"bytes"`   // of the backup
	Changes  uint64    `json:"changes"` // that the backup has
	Since    uint64    `json:"since"`   // changes of the registry that are later than the backup

	Compared

	Problems    []*stele.Message `json:"-"` // that verify found, the first of them
	Differences []*stele.Message `json:"-"` // from the registry, the first of them
	Wrong       int              `json:"wrong"`
}

// Step is a part of the work, and how long it took.
type Step struct {
	Name    string  `json:"step"`
	Seconds float64 `json:"seconds"`
}

// Compared counts what is in the backup as it is in the registry.
type Compared struct {
	Records    uint64 `json:"records"`
	Versions   uint64 `json:"versions"`
	Namespaces uint64 `json:"namespaces"`

	// Only if this process has the registry open:
	Minters uint64 `json:"minters,omitempty"`
	Cells   uint64 `json:"cells,omitempty"`
	Zones   uint64 `json:"zones,omitempty"`
	Audit   uint64 `json:"audit,omitempty"` // entries of the audit trail

	// Moved counts what has changed in the registry since the backup, and has no versions
	// that could be compared: counters, tokens, and what was redacted.
	Moved uint64 `json:"moved,omitempty"`
}

// maxListed is how many problems and how many differences are listed.
const maxListed = 20

func failf(kind stele.Kind, code, text string, args ...any) error {
	return &stele.Error{Op: "drill", Kind: kind, Err: stele.Messagef(code, text, args...)}
}

// Run does it. The error is of what could not be done; what is wrong with the backup is in the
// report.
func (d *Drill) Run(ctx context.Context) (report Report, err error) {
	report = Report{Source: d.Source.Place, Backup: d.Backup, Began: d.Now().UTC()}
	work, err := os.MkdirTemp(d.Scratch, "stele-drill-")
	if err != nil {
		return report, failf(stele.Unavailable, "drill.scratch-not-writable", "there is no folder for the drill: {cause}; name one with --scratch", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	r := &run{Drill: d, report: &report, backup: d.Backup}
	if r.backup == "" {
		r.backup = filepath.Join(work, "backup")
	}
	if _, err := os.Stat(r.backup); err != nil {
		if err := r.step("backup", func(func(float64)) error { return r.makeBackup(ctx) }); err != nil {
			return report, err
		}
	}
	if report.Bytes, err = disk.FolderSize(r.backup); err != nil {
		return report, disk.FileError(err)
	}
	at, drop, err := r.place(ctx, work)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, drop(context.WithoutCancel(ctx))) }()
	return report, r.rehearse(ctx, at)
}

// run is a drill under way.
type run struct {
	*Drill
	report *Report
	backup string
	before *sums // of what the registry has before the backup is made; nil if it was there
	copy   *registry.Registry
}

// step does a part of the work, and notes how long it took.
func (r *run) step(name string, do func(progress func(float64)) error) error {
	began := r.Now()
	err := do(r.Begin(name))
	r.report.Steps = append(r.report.Steps, Step{name, r.Now().Sub(began).Seconds()})
	return err
}

// makeBackup makes the backup as 'stele backup' does.
func (r *run) makeBackup(ctx context.Context) (err error) {
	if r.Store != nil {
		if r.before, err = sum(ctx, r.Store); err != nil {
			return err
		}
	}
	_, err = r.Source.Backup(ctx, r.backup)
	return err
}

// place returns where the backup is restored. Drop removes it.
func (r *run) place(ctx context.Context, work string) (at registry.Place, drop func(context.Context) error, err error) {
	if !postgres.IsBackup(r.backup) {
		r.report.Restored = "folder"
		return registry.Place{Folder: filepath.Join(work, "restored")}, func(context.Context) error { return nil }, nil
	}
	if r.Into == "" {
		return at, nil, failf(stele.Invalid, "drill.database-missing", "{backup} is a backup of a database, and can only be restored into one; name a database for the drill with --into, best at another server", r.backup)
	}
	r.report.Restored = "database"
	name := "stele_drill_" + r.Now().UTC().Format("20060102t150405_000000")
	o := r.Restore.Open
	at.URL, drop, err = postgres.Scratch(ctx, r.Into, name, postgres.Options{Now: o.Now, Log: o.Log, Brief: true})
	return at, drop, err
}

// rehearse restores, verifies and compares, and then makes of the copy what a restore makes of
// it where there is no registry to replace.
func (r *run) rehearse(ctx context.Context, at registry.Place) (err error) {
	err = r.step("restore", func(func(float64)) (err error) {
		r.copy, err = r.Restore.Elsewhere(ctx, r.backup, at)
		return err
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.copy.Close()) }()
	if r.report.Changes, err = r.copy.Store.LastChange(ctx); err != nil {
		return err
	}
	err = r.step("verify", func(progress func(float64)) error {
		return r.copy.Inspect(ctx, registry.Inspection{Problem: func(m *stele.Message) { r.wrong(&r.report.Problems, m) }, Progress: progress})
	})
	if err != nil || r.report.Wrong > 0 { // what is damaged can't be compared
		return err
	}
	if err := r.step("compare", func(progress func(float64)) error { return r.compare(ctx, progress) }); err != nil {
		return err
	}
	return r.step("adopt", func(func(float64)) error {
		_, err := r.Restore.Inherit(ctx, r.copy, nil, nil)
		return err
	})
}

// wrong notes a problem or a difference.
func (r *run) wrong(list *[]*stele.Message, m *stele.Message) {
	if r.report.Wrong++; len(*list) < maxListed {
		*list = append(*list, m)
	}
}

func (r *run) differs(code, text string, args ...any) {
	r.wrong(&r.report.Differences, stele.Messagef(code, text, args...))
}
