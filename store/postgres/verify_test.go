package postgres

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

// filled makes a small registry with everything in it, long names too, and backs it up.
func filled(t *testing.T) (folder string) {
	t.Helper()
	s := opened(t, migrated(t, server), Options{})
	long := strings.Repeat("l", 2*maxKey)
	a := record1(t, "a", newID(t, "hdl", "10.1000/1"), newID(t, "hdl", long))
	big := record1(t, long)
	count := func(stele.ID) (stele.NamespaceKey, uint64) { return stele.NamespaceKey{Scheme: "ark"}, 10 }
	apply := func(c *stele.Commit) {
		t.Helper()
		if err := s.Apply(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	apply(&stele.Commit{
		Records: []*stele.Record{a, big, record1(t, "b")}, Counter: count,
		Namespaces: []*stele.Namespace{{Scheme: "ark", Version: 1}, {Scheme: "hdl", Prefix: long, Version: 1}},
		Minters:    []stele.MinterState{{Name: "m", After: []byte{}}, {Name: long, After: []byte{1}}},
		Cells:      []stele.CellChange{{Name: "c", After: []byte{}}, {Name: "d", After: []byte{1}}},
	})
	for version := uint64(2); version < 5; version++ {
		next := *a
		next.Version = version
		apply(commitOf(&next))
	}
	wantSound(t, s)
	folder = filepath.Join(t.TempDir(), "backup")
	if err := s.Backup(t.Context(), folder); err != nil {
		t.Fatal(err)
	}
	return folder
}

// TestVerify: each sort of damage is found.
func TestVerify(t *testing.T) {
	folder := filled(t)
	database := server.Database(t)
	for i, damage := range []string{
		``, // the backup as it is
		`UPDATE names SET body = 'x' WHERE version = 4`,
		`UPDATE names SET version = 5 WHERE version = 4`,
		`UPDATE names SET body = (SELECT body FROM history WHERE version = 2) WHERE version = 4`,
		`UPDATE names SET "full" = 'x' WHERE "full" IS NOT NULL AND record IS NULL`,
		`DELETE FROM names WHERE record IS NOT NULL AND "full" IS NULL`,
		`UPDATE names SET record = 'elsewhere' WHERE record IS NOT NULL AND "full" IS NULL`,
		`INSERT INTO names (key, record) VALUES ('more', 'elsewhere')`,
		`INSERT INTO names (key, record) SELECT 'more', key FROM names WHERE version = 4`,
		`DELETE FROM history WHERE version = 1`,
		`DELETE FROM history WHERE version = 2`,
		`UPDATE history SET body = 'x' WHERE version = 2`,
		`UPDATE history SET version = 7 WHERE version = 3`,
		`INSERT INTO history (key, version, body) VALUES ('nobody', 1, 'x')`,
		`DELETE FROM places WHERE place = 'uhttps://example.org/b'`,
		`INSERT INTO places (place, record) SELECT 'hother.example', key FROM names WHERE version = 4`,
		`UPDATE namespaces SET body = 'x' WHERE "full" IS NULL`,
		`UPDATE namespaces SET version = 2 WHERE "full" IS NULL`,
		`DELETE FROM namespaces WHERE "full" IS NULL`,
		`UPDATE counts SET n = n + 1`,
		`DELETE FROM counts`,
		`INSERT INTO counts (key, n) VALUES ('more', 1)`,
		`UPDATE minters SET "full" = 'x' WHERE "full" IS NULL`,
		`INSERT INTO cells (name, value) VALUES ('', '')`,
		`DELETE FROM changes WHERE seq = 3`,
		`DELETE FROM changes WHERE seq = (SELECT max(seq) FROM changes)`,
		`UPDATE changes SET name = 'x' WHERE seq = 3`,
		`UPDATE changes SET version = 2 WHERE seq = 7`,
		`UPDATE changes SET counted = NULL WHERE seq = 1`,
		`UPDATE changes SET counted = 'ark'::bytea || '\x00' WHERE seq = 7`,
		`UPDATE registry SET last = last + 1`,
		`DELETE FROM registry`,
	} {
		url := fmt.Sprintf("%s&search_path=damage%d", database, i)
		if err := Migrate(t.Context(), url, Options{Now: time.Now}, nil); err != nil {
			t.Fatal(err)
		}
		if err := Restore(t.Context(), url, folder, Options{Now: time.Now}); err != nil {
			t.Fatal(err)
		}
		s := open(t, url, Options{Brief: true})
		if damage != "" {
			exec(t, url, damage)
		}
		var problems []string
		if err := s.Verify(t.Context(), func(p *stele.Message) { problems = append(problems, p.Error()) }); err != nil {
			t.Errorf("%s: %v", damage, err)
		}
		if (damage == "") != (len(problems) == 0) {
			t.Errorf("%q: Verify reports %q", damage, problems)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestDamagedBackup: no byte of a backup can change without being noticed, and a registry
// that is there is not written over.
func TestDamagedBackup(t *testing.T) {
	folder := filled(t)
	url := migrated(t, server)
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := filepath.Join(folder, f.Name())
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		step := max(1, len(text)/7)
		for at := 0; at < len(text); at += step {
			text[at] ^= 1
			wantBroken(t, url, folder, name, text)
			text[at] ^= 1
		}
		wantBroken(t, url, folder, name, text[:len(text)-1])
		wantBroken(t, url, folder, name, append(text[:len(text):len(text)], 0))
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Restore(t.Context(), url, t.TempDir(), Options{Now: time.Now}); stele.KindOf(err) != stele.NotFound {
		t.Errorf("Restore from a folder without a backup: %v", err)
	}
	for i, kind := range []stele.Kind{0, stele.Conflict} {
		if err := Restore(t.Context(), url, folder, Options{Now: time.Now}); (err == nil) != (i == 0) || err != nil && stele.KindOf(err) != kind {
			t.Errorf("Restore number %d: %v", i+1, err)
		}
	}
	wantSound(t, opened(t, url, Options{}))
}

func wantBroken(t *testing.T, url, folder, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	err := Restore(context.Background(), url, folder, Options{Now: time.Now})
	if err == nil || stele.KindOf(err) != stele.Internal && stele.KindOf(err) != stele.Invalid {
		t.Fatalf("Restore with a damaged %s: %v", filepath.Base(name), err)
	}
}
