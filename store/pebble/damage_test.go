package pebble

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stele-id/stele"
)

// numbered makes n new records whose names begin alike.
func numbered(t testing.TB, name string, n int) []*stele.Record {
	records := make([]*stele.Record, n)
	for i := range records {
		records[i] = sample(t, fmt.Sprintf("%s%05d", name, i), 1)
	}
	return records
}

func mustIngest(t testing.TB, s *Store, records []*stele.Record) {
	t.Helper()
	errs, err := s.Ingest(t.Context(), records, nil, nil, nil)
	if err := errors.Join(err, errors.Join(errs...)); err != nil {
		t.Fatal(err)
	}
}

func mustApply(t testing.TB, s *Store, c *stele.Commit) {
	t.Helper()
	if err := s.Apply(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

// tableOf returns the file that has the key of a name.
func tableOf(t testing.TB, s *Store, id stele.ID) string {
	t.Helper()
	levels, err := s.current.Load().db.SSTables()
	if err != nil {
		t.Fatal(err)
	}
	key := nameKey(id)
	for _, table := range slices.Concat(levels...) {
		if bytes.Compare(table.Smallest.UserKey, key) <= 0 && bytes.Compare(key, table.Largest.UserKey) <= 0 {
			return s.tablePath(&table)
		}
	}
	t.Fatalf("no table has %q", id)
	return ""
}

func readAll(t testing.TB, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func writeAll(t testing.TB, fs vfs.FS, name string, data []byte) {
	t.Helper()
	if err := writeFile(fs, name, string(data)); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedTable: a table that is damaged is found, named in the error, and keeps
// nothing else from being read or written.
func TestDamagedTable(t *testing.T) {
	for name, spoil := range map[string]func(fs vfs.FS, file string){
		"a byte is another": func(fs vfs.FS, file string) {
			data := readAll(t, fs, file)
			data[100] ^= 0x20
			writeAll(t, fs, file, data)
		},
		"half of it is missing": func(fs vfs.FS, file string) {
			data := readAll(t, fs, file)
			writeAll(t, fs, file, data[:len(data)/2])
		},
		"it is empty": func(fs vfs.FS, file string) { writeAll(t, fs, file, nil) },
		"it is gone": func(fs vfs.FS, file string) {
			if err := fs.Remove(file); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			s := openOn(t, fs, "db")
			bad, good := numbered(t, "a", 3000), numbered(t, "b", 3000)
			mustIngest(t, s, bad)
			mustIngest(t, s, good)
			file := tableOf(t, s, bad[0].ID)
			if other := tableOf(t, s, good[0].ID); other == file {
				t.Fatalf("%q has all records", file)
			}
			mustClose(t, s)
			spoil(fs, file)

			s = openOn(t, fs, "db")
			defer mustClose(t, s)
			wantDamage := func(what string, err error) {
				t.Helper()
				if err == nil || stele.KindOf(err) != stele.Internal || !strings.Contains(err.Error(), file) {
					t.Errorf("%s: %v; want damage in %q", what, err, file)
				}
			}
			_, err := s.Record(t.Context(), bad[0].ID)
			wantDamage("Record", err)
			for _, err = range s.Scan(t.Context(), "ark", "", "") {
			}
			wantDamage("Scan", err)
			wantDamage("Apply to a damaged name", s.Apply(t.Context(), &stele.Commit{Records: bad[:1]}))

			for _, r := range good {
				if _, err := s.Record(t.Context(), r.ID); err != nil {
					t.Fatalf("another table: %v", err)
				}
			}
			mustApply(t, s, &stele.Commit{Records: []*stele.Record{sample(t, "new", 1)}})
			n := 0
			for _, err := range s.Changes(t.Context(), 0) {
				if n++; err != nil {
					t.Fatal(err)
				}
			}
			if n != 6001 {
				t.Errorf("%d changes, want 6001", n)
			}
			named := false
			err = s.Verify(t.Context(), func(problem *stele.Message) { named = named || strings.Contains(problem.Error(), file) })
			if err != nil || !named {
				t.Errorf("Verify: %v; the file was named: %v", err, named)
			}
		})
	}
}

// TestDamagedLog: damage in the middle of a log, after a crash, is found, and the log
// is named.
func TestDamagedLog(t *testing.T) {
	disk := &faulty{FS: vfs.NewCrashableMem()}
	s, err := Open(t.Context(), "db", Options{Now: time.Now, FS: disk, Log: testLog(t)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		r := sample(t, fmt.Sprint("a", i), 1)
		r.Metadata[stele.What] = strings.Repeat("long ", 2000)
		mustApply(t, s, &stele.Commit{Records: []*stele.Record{r}})
	}
	crashed := disk.crash(rand.New(rand.NewPCG(1, 2)))
	mustClose(t, s)
	names, err := crashed.List("db")
	if err != nil {
		t.Fatal(err)
	}
	log, data := "", []byte(nil)
	for _, name := range names {
		if !strings.HasSuffix(name, ".log") {
			continue
		}
		if d := readAll(t, crashed, crashed.PathJoin("db", name)); len(d) > len(data) {
			log, data = crashed.PathJoin("db", name), d
		}
	}
	if len(data) < 100_000 {
		t.Fatalf("the log has %d bytes only", len(data))
	}
	copy(data[20_000:], "not what was written")
	writeAll(t, crashed, log, data)
	s, err = Open(t.Context(), "db", Options{Now: time.Now, FS: crashed, Log: testLog(t)})
	if err == nil {
		mustClose(t, s)
		t.Fatal("a damaged log was not noticed")
	}
	if stele.KindOf(err) != stele.Internal || !strings.Contains(err.Error(), log) {
		t.Errorf("%v; want damage in %q", err, log)
	}
}

// TestForeignFolder: a database that this package did not make is left alone.
func TestForeignFolder(t *testing.T) {
	fs := vfs.NewMem()
	s := openOn(t, fs, "db")
	db := s.current.Load().db
	if err := errors.Join(db.Delete(metaReadable, nil), db.Set([]byte("key"), []byte("value"), nil)); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	if s, err := Open(t.Context(), "db", Options{Now: s.now, FS: fs}); !errors.Is(err, stele.Invalid) {
		if err == nil {
			mustClose(t, s)
		}
		t.Errorf("another database was opened: %v", err)
	}
}
