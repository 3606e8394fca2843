package pebble

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	pebbledb "github.com/cockroachdb/pebble/v2"

	"github.com/stele-id/stele"
)

// openAs opens a store as a program with these numbers does.
func openAs(t *testing.T, folder string, n numbers) (*Store, error) {
	t.Helper()
	return Open(t.Context(), folder, Options{Now: time.Now, schema: n})
}

func numbersOf(t *testing.T, s *Store) numbers {
	t.Helper()
	n, found, err := readNumbers(s.current.Load().db)
	if err != nil || !found {
		t.Fatalf("the store has no numbers: %v", err)
	}
	return n
}

// TestSchemaNumbers: a program opens what later programs wrote if they say that it may,
// refuses it otherwise, and brings what earlier ones wrote up to date.
func TestSchemaNumbers(t *testing.T) {
	const v = schemaVersion
	for name, tt := range map[string]struct {
		wrote, opens, after numbers
		refused             bool
	}{
		"its own":                         {numbers{v, v}, numbers{v, v}, numbers{v, v}, false},
		"a later one that it may use":     {numbers{v + 1, v}, numbers{v, v}, numbers{v + 1, v}, false},
		"a later one that it may not use": {numbers{v + 1, v + 1}, numbers{v, v}, numbers{v + 1, v + 1}, true},
		"an earlier one":                  {numbers{v, v}, numbers{v + 1, v}, numbers{v + 1, v}, false},
		"an earlier one, and shuts it":    {numbers{v, v}, numbers{v + 1, v + 1}, numbers{v + 1, v + 1}, false},
		"two steps at once":               {numbers{v, v}, numbers{v + 2, v + 1}, numbers{v + 2, v + 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			s, err := openAs(t, folder, tt.wrote)
			if err != nil {
				t.Fatal(err)
			}
			before, err := s.Position(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			mustClose(t, s)
			s, err = openAs(t, folder, tt.opens)
			if tt.refused {
				if err == nil {
					mustClose(t, s)
				}
				if !errors.Is(err, stele.Invalid) || !strings.Contains(err.Error(), "use a later program") {
					t.Errorf("a store that only later programs may use: %v", err)
				}
				s, err = openAs(t, folder, tt.wrote)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer mustClose(t, s)
			if got := numbersOf(t, s); got != tt.after {
				t.Errorf("the store has the numbers %+v, want %+v", got, tt.after)
			}
			if after, err := s.Position(t.Context()); err != nil || after != before {
				t.Errorf("the position is %v, %v; it was %v", after, err, before)
			}
		})
	}
}

// TestMigrateFirst: a store from before there were two numbers and generations gets them
// when it is opened, and keeps all that it has. Verify of an older program does not
// complain of what a later one keeps.
func TestMigrateFirst(t *testing.T) {
	folder := t.TempDir()
	s, err := Open(t.Context(), folder, Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(t.Context(), &stele.Commit{Cells: []stele.CellChange{{Name: "a", After: []byte("b")}}}); err != nil {
		t.Fatal(err)
	}
	db := s.current.Load().db
	if err := errors.Join(
		db.Set(metaReadable, binary.AppendUvarint(nil, 1), pebbledb.Sync),
		db.Delete(metaWritten, pebbledb.Sync), db.Delete(metaGenerations, pebbledb.Sync)); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	var first stele.Generations
	for range 2 { // the second time nothing is left to do
		if s, err = Open(t.Context(), folder, Options{Now: time.Now}); err != nil {
			t.Fatal(err)
		}
		if got := numbersOf(t, s); got != ours {
			t.Errorf("the store has the numbers %+v, want %+v", got, ours)
		}
		list, err := s.Generations(t.Context())
		if err != nil || len(list) != 1 || list[0].Number != 1 || first != nil && first[0] != list[0] {
			t.Errorf("generations %+v, %v; before: %+v", list, err, first)
		}
		first = list
		if kept, err := s.Cell(t.Context(), "a"); string(kept) != "b" || err != nil {
			t.Errorf("the cell is %q, %v", kept, err)
		}
		verified(t, s, 0)
		mustClose(t, s)
	}
}

func verified(t *testing.T, s *Store, want int) {
	t.Helper()
	var problems []string
	if err := s.Verify(t.Context(), func(p *stele.Message) { problems = append(problems, p.Error()) }); err != nil || len(problems) != want {
		t.Errorf("Verify: %q, %v; want %d problems", problems, err, want)
	}
}

// TestVerifyLater: what a later program keeps beside is not called damage; in a store of
// this version it is.
func TestVerifyLater(t *testing.T) {
	for name, n := range map[string]numbers{"later": {schemaVersion + 1, schemaVersion}, "own": ours} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			s, err := openAs(t, folder, n)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.current.Load().db.Set([]byte("\x01news"), []byte("x"), pebbledb.Sync); err != nil {
				t.Fatal(err)
			}
			mustClose(t, s)
			if s, err = openAs(t, folder, ours); err != nil {
				t.Fatal(err)
			}
			defer mustClose(t, s)
			if name == "own" {
				verified(t, s, 1)
			} else {
				verified(t, s, 0)
			}
		})
	}
}
