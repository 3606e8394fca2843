package drill

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/registry/access"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/pebble"
)

// tampering is a registry whose backups are changed after they were made.
type tampering struct {
	access.Backend
	t  *testing.T
	do func(stele.Store) // nil for nothing
}

func (b *tampering) Backup(ctx context.Context, folder string) (uint64, error) {
	n, err := b.Backend.Backup(ctx, folder)
	if err != nil || b.do == nil {
		return n, err
	}
	s, err := pebble.Open(ctx, folder, pebble.Options{Now: time.Now, Brief: true})
	if err != nil {
		b.t.Fatal(err)
	}
	b.do(s)
	return n, s.Close()
}

// newDrill makes a registry with a record in two versions, a namespace and a cell.
func newDrill(t *testing.T) (context.Context, *Drill) {
	t.Helper()
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	ctx := auth.With(t.Context(), auth.Local())
	open := registry.OpenOptions{Options: registry.Options{Now: time.Now, Random: rand.IntN, Log: slog.New(slog.DiscardHandler)}, Brief: true, Create: true}
	at := registry.Place{Folder: filepath.Join(t.TempDir(), "data")}
	r, err := registry.Open(ctx, at, schemes, open)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	local := access.NewLocal(r, time.Now, "here")
	key := stele.NamespaceKey{Scheme: "urn", Prefix: "urn:example"}
	if _, err := local.AddNamespace(ctx, &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix}); err != nil {
		t.Fatal(err)
	}
	if _, err := local.Register(ctx, recordOf(t, schemes, "urn:example:a")); err != nil {
		t.Fatal(err)
	}
	update(ctx, t, local, "urn:example:a")
	if err := r.Store.Apply(ctx, &stele.Commit{Cells: []stele.CellChange{{Name: "test", After: []byte("one")}}}); err != nil {
		t.Fatal(err)
	}
	local.Backend = &tampering{Backend: local.Backend, t: t}
	return ctx, &Drill{
		Source: local, Store: r.Store, Position: r.Store.Position, Scratch: t.TempDir(), Now: time.Now,
		Begin: func(string) func(float64) { return func(float64) {} },
		Restore: &registry.Restore{Schemes: schemes, Open: open, OnDamaged: func(err error) { t.Error(err) },
			Ask: func(context.Context, ...stele.Store) ([]stele.SecondaryAnswer, error) { return nil, nil }},
	}
}

func recordOf(t *testing.T, schemes *stele.Schemes, text string) *stele.Record {
	t.Helper()
	id, err := schemes.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return &stele.Record{ID: id, State: stele.Active, Version: 1, Targets: []stele.Target{{Service: stele.N2L, URL: "https://example.org/1", Order: stele.DefaultOrder, Preference: stele.DefaultPreference}}}
}

// update makes a new version of a record.
func update(ctx context.Context, t *testing.T, l *access.Registry, text string) {
	t.Helper()
	id, err := l.Parse(text)
	if err == nil {
		_, err = l.Update(ctx, id, 0, func(rec *stele.Record) error {
			rec.Targets[0].URL += "1"
			return nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// findings returns all that is wrong, in one text.
func findings(r *Report) string {
	var list []string
	for _, m := range append(r.Problems, r.Differences...) {
		code, _ := stele.CodeOf(m)
		list = append(list, code)
	}
	return strings.Join(list, " ")
}

// TestDrill: a good backup has no difference, and what was changed in a backup is found.
func TestDrill(t *testing.T) {
	for name, tt := range map[string]struct {
		tamper func(ctx context.Context, t *testing.T, d *Drill, copy stele.Store)
		want   string
		moved  uint64
	}{
		"nothing": {},
		"a later cell": {func(ctx context.Context, t *testing.T, d *Drill, _ stele.Store) {
			apply(ctx, t, d.Store, &stele.Commit{Cells: []stele.CellChange{{Name: "test", Before: []byte("one"), After: []byte("two")}}})
		}, "", 1},
		"a later version": {func(ctx context.Context, t *testing.T, d *Drill, _ stele.Store) {
			update(ctx, t, d.Source, "urn:example:a")
		}, "", 0},
		"another cell": {func(ctx context.Context, t *testing.T, _ *Drill, copy stele.Store) {
			apply(ctx, t, copy, &stele.Commit{Cells: []stele.CellChange{{Name: "test", Before: []byte("one"), After: []byte("two")}}})
		}, "drill.value-differs", 0},
		"a cell that is missing": {func(ctx context.Context, t *testing.T, _ *Drill, copy stele.Store) {
			apply(ctx, t, copy, &stele.Commit{Cells: []stele.CellChange{{Name: "test", Before: []byte("one")}}})
		}, "drill.value-differs", 0},
		"a damaged minter": {func(ctx context.Context, t *testing.T, _ *Drill, copy stele.Store) {
			apply(ctx, t, copy, &stele.Commit{Minters: []stele.MinterState{{Name: "m", After: []byte("x")}}})
		}, "mint.state-damaged", 0},
		"another version": {func(ctx context.Context, t *testing.T, d *Drill, copy stele.Store) {
			next, err := copy.Record(ctx, recordOf(t, d.Source.Schemes, "urn:example:a").ID)
			if err != nil {
				t.Fatal(err)
			}
			next.Version++
			next.Targets[0].URL = "https://example.com/"
			apply(ctx, t, copy, &stele.Commit{Records: []*stele.Record{next}})
			update(ctx, t, d.Source, "urn:example:a")
		}, "drill.version-differs drill.change-differs", 0},
		"a version too many": {func(ctx context.Context, t *testing.T, d *Drill, copy stele.Store) {
			apply(ctx, t, copy, &stele.Commit{Records: []*stele.Record{recordOf(t, d.Source.Schemes, "urn:example:b")}})
		}, "drill.registry-lacks-changes", 0},
		"a version that is missing": {func(ctx context.Context, t *testing.T, d *Drill, copy stele.Store) {
			at := d.Position
			update(ctx, t, d.Source, "urn:example:a")
			d.Position = func(ctx context.Context) (stele.Position, error) { // as if the version were from before the backup
				p, err := at(ctx)
				p.Change--
				return p, err
			}
		}, "drill.versions-missing", 0},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, d := newDrill(t)
			if tt.tamper != nil {
				d.Source.Backend.(*tampering).do = func(copy stele.Store) { tt.tamper(ctx, t, d, copy) }
			}
			report, err := d.Run(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if got := findings(&report); got != tt.want || (report.Wrong > 0) != (tt.want != "") {
				t.Errorf("found %q, %d wrong; want %q", got, report.Wrong, tt.want)
			}
			if tt.want == "" && (report.Records != 1 || report.Versions != 2 || report.Namespaces != 1 || report.Changes != 3 || report.Bytes == 0 || len(report.Steps) != 5 || report.Moved != tt.moved) {
				t.Errorf("%+v", report)
			}
			wantEmpty(t, d.Scratch)
		})
	}
}

func apply(ctx context.Context, t *testing.T, s stele.Store, c *stele.Commit) {
	t.Helper()
	if err := s.Apply(ctx, c); err != nil {
		t.Fatal(err)
	}
}

func wantEmpty(t *testing.T, folder string) {
	t.Helper()
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("the drill leaves %v, %v", left, err)
	}
}

// TestDrillEarlier examines a backup that was there before: cells that differ are counted.
func TestDrillEarlier(t *testing.T) {
	ctx, d := newDrill(t)
	d.Backup = filepath.Join(t.TempDir(), "saved")
	if _, err := d.Source.Backup(ctx, d.Backup); err != nil {
		t.Fatal(err)
	}
	update(ctx, t, d.Source, "urn:example:a")
	apply(ctx, t, d.Store, &stele.Commit{Cells: []stele.CellChange{{Name: "test", Before: []byte("one"), After: []byte("two")}}})
	report, err := d.Run(ctx)
	if err != nil || report.Wrong > 0 || report.Since != 1 || report.Moved != 1 || report.Versions != 2 || len(report.Steps) != 4 {
		t.Errorf("%+v %s %v", report, findings(&report), err)
	}
	wantEmpty(t, d.Scratch)
	if err := registry.IsFolderBackup(d.Backup); err != nil {
		t.Errorf("the backup is gone: %v", err)
	}

	// A damaged backup is not restored, and nothing is left.
	tables, err := filepath.Glob(filepath.Join(d.Backup, "*.sst"))
	if more, _ := filepath.Glob(filepath.Join(d.Backup, "*.log")); err == nil {
		tables = append(tables, more...)
	}
	for _, name := range tables {
		if err := os.WriteFile(name, []byte("nonsense"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if report, err := d.Run(ctx); err == nil && report.Wrong == 0 || len(tables) == 0 {
		t.Errorf("a damaged backup passes: %+v, %q", report, tables)
	}
	wantEmpty(t, d.Scratch)
}

// TestDrillInterrupted: an interrupt ends a drill, which leaves nothing.
func TestDrillInterrupted(t *testing.T) {
	ctx, d := newDrill(t)
	ctx, cancel := context.WithCancel(ctx)
	d.Source.Backend.(*tampering).do = func(stele.Store) { cancel() }
	if _, err := d.Run(ctx); err == nil {
		t.Error("it went on")
	}
	wantEmpty(t, d.Scratch)
}
