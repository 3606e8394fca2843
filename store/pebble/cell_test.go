package pebble

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stele-id/stele"
)

// TestCellGroup: commits that wait for the disk together are one group, and each finds
// the cells as those before it in the group left them.
func TestCellGroup(t *testing.T) {
	s := openOn(t, vfs.NewMem(), "db")
	defer mustClose(t, s)
	mustApply(t, s, &stele.Commit{Cells: []stele.CellChange{{Name: "old", After: []byte("0")}}})
	steps := []struct {
		name, before, after string // "-" for none
		refused             bool
	}{
		{"new", "-", "1", false},
		{"new", "-", "2", true}, // another commit of the group was faster
		{"new", "1", "", false},
		{"new", "-", "2", true}, // empty is not nothing
		{"new", "", "-", false}, // removed, and made again
		{"new", "1", "2", true},
		{"new", "-", "2", false},
		{"new", "2", "-", false},
		{"old", "0", "-", false},
		{"old", "0", "1", true},
		{"other", "-", "-", false},
		{"other", "-", "x", false},
		{"other", "-", "-", true},
		{"last", "-", "", false},
	}
	value := func(text string) []byte {
		if text == "-" {
			return nil
		}
		return []byte(text)
	}
	g := &group{store: s, pending: make(map[string][]byte), runs: make(stele.ZoneRuns)}
	for i, step := range steps {
		q, err := newRequest(&stele.Commit{
			Cells:   []stele.CellChange{{Name: step.name, Before: value(step.before), After: value(step.after)}},
			Records: []*stele.Record{sample(t, fmt.Sprint(i), 1)},
		})
		if err != nil {
			t.Fatal(err)
		}
		g.requests = append(g.requests, q)
	}
	requests := append([]*request(nil), g.requests...)
	g.commit()
	for i, step := range steps {
		err := <-requests[i].done
		if (err != nil) != step.refused || err != nil && !errors.Is(err, stele.Conflict) {
			t.Errorf("step %d, %+v: %v", i, step, err)
		}
		_, err = s.Record(t.Context(), ark(t, fmt.Sprint(i)))
		if (err != nil) != step.refused {
			t.Errorf("step %d, its record: %v", i, err)
		}
	}
	for name, want := range map[string]string{"new": "-", "old": "-", "other": "x", "last": ""} {
		wantCell(t, s, name, value(want))
	}
	wantSound(t, s)
}

func wantCell(t testing.TB, s *Store, name string, want []byte) {
	t.Helper()
	if got, err := s.Cell(t.Context(), name); err != nil || string(got) != string(want) || (got == nil) != (want == nil) {
		t.Errorf("Cell(%q) = %q (nil: %t), %v; want %q (nil: %t)", name, got, got == nil, err, want, want == nil)
	}
}

// TestCellCrash: a crash loses no change of a cell that was acknowledged, be it a new
// value or that it was removed, and tears none from the record it was committed with.
func TestCellCrash(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	disk := &faulty{FS: vfs.NewCrashableMem()}
	s := openOn(t, disk, "db")
	defer mustClose(t, s)
	known := make(map[string][]byte)
	for i := range 200 {
		name := fmt.Sprint("c", rng.IntN(5))
		c := stele.CellChange{Name: name, Before: known[name]}
		if rng.IntN(4) > 0 {
			c.After = fmt.Append(nil, i)
		}
		mustApply(t, s, &stele.Commit{Cells: []stele.CellChange{c}, Records: []*stele.Record{sample(t, fmt.Sprint(i), 1)}})
		if known[name] = c.After; rng.IntN(10) > 0 {
			continue
		}
		after := openOn(t, disk.crash(rng), "db")
		for name, want := range known {
			wantCell(t, after, name, want)
		}
		wantAll(t, after, map[stele.ID]uint64{ark(t, fmt.Sprint(i)): 1})
		mustClose(t, after)
	}
}

// TestCellReadOnly: while the disk fails, readers see no cell change; and a change of
// unknown outcome is there as a whole or not at all.
func TestCellReadOnly(t *testing.T) {
	for n := range int64(6) {
		disk := &faulty{FS: vfs.NewMem()}
		s := openOn(t, disk, "db")
		mustApply(t, s, &stele.Commit{Cells: []stele.CellChange{{Name: "a", After: []byte("1")}, {Name: "b", After: []byte("1")}}})
		disk.failAfter(1+n, 1<<40, "", errFull, n%2 == 0)
		for range 20 {
			err := s.Apply(t.Context(), &stele.Commit{
				Cells:   []stele.CellChange{{Name: "a", Before: []byte("1"), After: []byte("2")}, {Name: "b", Before: []byte("1")}},
				Records: []*stele.Record{sample(t, "x", 1)},
			})
			if err == nil {
				break // the failure comes with a later write
			}
			if !errors.Is(err, stele.Unavailable) {
				t.Fatalf("a commit that the disk refused: %v", err)
			}
			wantCell(t, s, "a", []byte("1"))
			wantCell(t, s, "b", []byte("1"))
		}
		disk.heal()
		waitReady(t, s)
		if _, err := s.Record(t.Context(), ark(t, "x")); err == nil {
			wantCell(t, s, "a", []byte("2"))
			wantCell(t, s, "b", nil)
		} else {
			wantCell(t, s, "a", []byte("1"))
			wantCell(t, s, "b", []byte("1"))
		}
		wantSound(t, s)
		mustClose(t, s)
	}
}
