package postgres

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

// migrateAs migrates a database as a program with these numbers does.
func migrateAs(t *testing.T, url string, n numbers) error {
	t.Helper()
	return Migrate(t.Context(), url, Options{Now: time.Now, schema: n}, nil)
}

// TestRollingUpgrade: servers of two versions use one database at once, where the later
// version says that the earlier one may; where it does not, the earlier one is refused,
// also one that has the database open.
func TestRollingUpgrade(t *testing.T) {
	const v = schemaVersion
	before, after, last := numbers{v, v}, numbers{v + 1, v}, numbers{v + 2, v + 1}
	url := server.Database(t)
	if err := migrateAs(t, url, before); err != nil {
		t.Fatal(err)
	}
	old := opened(t, url, Options{schema: before})
	put := func(s *Store, name string) error { return s.Apply(t.Context(), commitOf(record1(t, name))) }
	if err := put(old, "a"); err != nil {
		t.Fatal(err)
	}
	generations, err := old.Generations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), url, Options{Now: time.Now, Brief: true, schema: after}); stele.KindOf(err) != stele.Invalid || !strings.Contains(err.Error(), "stele store migrate") {
		t.Errorf("a later program opens tables that were not migrated: %v", err)
	}
	if err := migrateAs(t, url, after); err != nil {
		t.Fatal(err)
	}
	young := opened(t, url, Options{schema: after})
	restarted := opened(t, url, Options{schema: before}) // the downgrade of one step
	for i, s := range []*Store{old, young, restarted, young, old} {
		if err := put(s, "both"+string(rune('0'+i))); err != nil {
			t.Errorf("commit %d: %v", i, err)
		}
	}
	for name, s := range map[string]*Store{"old": old, "young": young, "restarted": restarted} {
		if n, err := s.LastChange(t.Context()); n != 6 || err != nil {
			t.Errorf("%s: %d changes, %v; want 6", name, n, err)
		}
		if list, err := s.Generations(t.Context()); err != nil || !slices.Equal(list, generations) {
			t.Errorf("%s: generations %+v, %v; want %+v", name, list, err, generations)
		}
	}
	if err := migrateAs(t, url, before); err != nil { // an earlier program takes nothing back
		t.Fatal(err)
	}
	opened(t, url, Options{schema: after})

	if err := migrateAs(t, url, last); err != nil {
		t.Fatal(err)
	}
	if err := put(old, "late"); stele.KindOf(err) != stele.Invalid || !strings.Contains(err.Error(), "use a later program") {
		t.Errorf("an earlier program writes what only later ones may: %v", err)
	}
	if err := put(young, "late"); err != nil { // one step
		t.Error(err)
	}
	if _, err := Open(t.Context(), url, Options{Now: time.Now, Brief: true, schema: before}); stele.KindOf(err) != stele.Invalid || !strings.Contains(err.Error(), "use a later program") {
		t.Errorf("an earlier program opens what only later ones may: %v", err)
	}
	if err := migrateAs(t, url, before); stele.KindOf(err) != stele.Invalid {
		t.Errorf("an earlier program migrates what only later ones may use: %v", err)
	}
}

// TestMigrateFirst: tables of version 1, which have neither two numbers nor generations,
// get them, and keep what they have.
func TestMigrateFirst(t *testing.T) {
	url := migrated(t, server)
	s := open(t, url, Options{})
	if err := s.Apply(t.Context(), commitOf(record1(t, "a"))); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	exec(t, url, `ALTER TABLE registry DROP COLUMN written, DROP COLUMN generations`)
	exec(t, url, `UPDATE registry SET version = 1`)
	if err := migrateAs(t, url, ours); err != nil {
		t.Fatal(err)
	}
	s = opened(t, url, Options{})
	list, err := s.Generations(t.Context())
	if err != nil || len(list) != 1 || list[0].Number != 1 {
		t.Fatalf("generations %+v, %v", list, err)
	}
	if err := migrateAs(t, url, ours); err != nil {
		t.Fatal(err)
	}
	if p, err := s.Position(t.Context()); err != nil || p != (stele.Position{Generation: list[0].ID, Change: 1}) {
		t.Errorf("position %v, %v; want change 1 of %s", p, err, list[0].ID)
	}
}

// TestRestoreFirst: a backup of version 1 is restored, and gets a generation.
func TestRestoreFirst(t *testing.T) {
	url := migrated(t, server)
	s := opened(t, url, Options{})
	if err := s.Apply(t.Context(), commitOf(record1(t, "a"))); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "backup")
	if err := s.Backup(t.Context(), folder); err != nil {
		t.Fatal(err)
	}
	m, err := readManifest(folder)
	if err != nil {
		t.Fatal(err)
	}
	m.Schema, m.Written, m.Generations = 1, 0, ""
	m.Tables = m.Tables[:slices.IndexFunc(m.Tables, func(e tableEntry) bool { return e.Name == "changes" })+1]
	if text, err := json.Marshal(m); err != nil || strings.Contains(string(text), "generations") {
		t.Fatalf("%s %v", text, err)
	}
	if err := os.Remove(filepath.Join(folder, manifestFile)); err != nil {
		t.Fatal(err)
	}
	if err := writeManifest(folder, m); err != nil {
		t.Fatal(err)
	}
	to := migrated(t, server)
	if err := Restore(t.Context(), to, folder, Options{Now: time.Now}); err != nil {
		t.Fatal(err)
	}
	restored := opened(t, to, Options{})
	list, err := restored.Generations(t.Context())
	if err != nil || len(list) != 1 {
		t.Errorf("generations %+v, %v", list, err)
	}
	if n, err := restored.LastChange(t.Context()); n != 1 || err != nil {
		t.Errorf("%d changes, %v", n, err)
	}
}
