package pebble

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

// A backup and the store itself are private even if the process does not restrict modes.
func TestModes(t *testing.T) {
	defer setUmask(0)()
	folder := filepath.Join(t.TempDir(), "data")
	s, err := Open(t.Context(), folder, Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		setCell(t, s, "a", []byte("value"))
		if err := s.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	copied := folder + "-backup"
	if err := s.Backup(t.Context(), copied); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	files := 0
	for _, root := range []string{folder, copied} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			files++
			if mode := info.Mode().Perm(); mode&0o077 != 0 {
				t.Errorf("%s has mode %04o", path, mode)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 10 {
		t.Errorf("only %d files; the walk is broken", files)
	}
}

// setCell gives a cell a value, whatever it had before.
func setCell(t *testing.T, s *Store, name string, value []byte) {
	t.Helper()
	before, err := s.Cell(t.Context(), name)
	if err == nil {
		err = s.Apply(t.Context(), &stele.Commit{Cells: []stele.CellChange{{Name: name, Before: before, After: value}}})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Values that were replaced are in no file after Compact: neither in a table nor in a log
// that Pebble keeps for reuse.
func TestCompactForgets(t *testing.T) {
	folder := t.TempDir()
	s, err := Open(t.Context(), folder, Options{Now: time.Now, memTable: 256 << 10})
	if err != nil {
		t.Fatal(err)
	}
	filler := make([]byte, 100<<10)
	_, _ = rand.Read(filler)
	old := make(map[string]string)
	for i := range 20 { // in several logs and tables
		name := "secret " + string(rune('a'+i))
		old[name] = "clear-" + hex.EncodeToString(filler[i*16:i*16+16])
		setCell(t, s, name, []byte(old[name]))
		setCell(t, s, "filler", filler)
	}
	for name := range old {
		setCell(t, s, name, []byte("encrypted"))
	}
	if found := holding(t, folder, old); found == 0 {
		t.Fatal("no file had the values even before; the search is broken")
	}
	if err := s.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found := holding(t, folder, old); found > 0 {
		t.Errorf("%d values are in files still, while the store is open", found)
	}
	if got, err := s.Cell(t.Context(), "secret a"); err != nil || string(got) != "encrypted" {
		t.Errorf("the cell has %q, %v", got, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if found := holding(t, folder, old); found > 0 {
		t.Errorf("%d values are in files still", found)
	}
}

// holding counts the values that a file of the folder has.
func holding(t *testing.T, folder string, values map[string]string) (found int) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it was merged with others meanwhile
		}
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		for _, v := range values {
			if bytes.Contains(data, []byte(v)) {
				found++
				t.Log(strings.TrimPrefix(path, folder), "has", v)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
