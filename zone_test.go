package stele_test

import (
	"iter"
	"testing"

	"github.com/stele-id/stele"
	"pgregory.net/rapid"
)

func TestZoneStateChange(t *testing.T) {
	for _, test := range []struct {
		state  stele.ZoneState
		serial uint32
		want   uint64
		ok     bool
	}{
		{stele.ZoneState{Last: 7}, 5, 5, true},
		{stele.ZoneState{Last: 7}, 7, 7, true},
		{stele.ZoneState{Last: 7}, 8, 0, false},
		{stele.ZoneState{Last: 7, Since: 5}, 5, 5, true},
		{stele.ZoneState{Last: 7, Since: 5}, 4, 0, false},
		{stele.ZoneState{Last: 1<<32 + 7}, 5, 1<<32 + 5, true},
		{stele.ZoneState{Last: 1<<32 + 7}, 1<<32 - 5, 1<<32 - 5, true},
		{stele.ZoneState{Last: 1<<32 + 7}, 1 << 31, 0, false},
		{stele.ZoneState{Last: 1<<32 + 7}, 1<<31 + 8, 1<<31 + 8, true},
		{stele.ZoneState{Base: 100, Last: 7, Since: 7}, 107, 7, true},
		{stele.ZoneState{Base: 100, Last: 7, Since: 7}, 7, 0, false}, // the serial before the zone was raised
		{stele.ZoneState{Base: 3, Last: 7, Since: 7}, 7, 0, false},   // the same, by less than its age
		{stele.ZoneState{Base: 1<<32 - 3, Last: 7}, 2, 5, true},      // the serial went round
		{stele.ZoneState{Base: 1<<32 - 3, Last: 7}, 1<<32 - 1, 2, true},
		{stele.ZoneState{Base: 1<<32 - 3, Last: 7}, 1<<32 - 4, 0, false},
	} {
		if got, ok := test.state.Change(test.serial); got != test.want || ok != test.ok {
			t.Errorf("serial %d of %+v: %d, %v; want %d, %v", test.serial, test.state, got, ok, test.want, test.ok)
		}
	}
}

// A zone that is raised is above what it was raised above, and knows no serial from before.
func TestZoneStateAbove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old := stele.ZoneState{Base: rapid.Uint32().Draw(t, "base"), Last: rapid.Uint64Range(0, 1<<40).Draw(t, "last")}
		floor := old.Serial() + rapid.Uint32Range(0, 1<<30).Draw(t, "ahead")
		raised := stele.ZoneState{Base: old.Above(floor), Last: old.Last, Since: old.Last}
		if raised.Serial() != floor+1 || !stele.SerialAfter(raised.Serial(), floor) {
			t.Fatalf("%+v above %d has serial %d", raised, floor, raised.Serial())
		}
		for _, serial := range []uint32{old.Serial(), floor, floor - uint32(rapid.Uint32Range(0, 1<<30).Draw(t, "before"))} {
			if change, ok := raised.Change(serial); ok {
				t.Fatalf("serial %d from before is that of change %d", serial, change)
			}
		}
	})
}

func TestMergeZoneRuns(t *testing.T) {
	list := func(runs []stele.ZoneRun) iter.Seq2[stele.ZoneRun, error] {
		return func(yield func(stele.ZoneRun, error) bool) {
			for _, r := range runs {
				if !yield(r, nil) {
					return
				}
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		runs := make(stele.ZoneRuns)
		var want []uint64
		for n := range uint64(50) {
			if k := rapid.IntRange(0, 2).Draw(t, "zone"); k > 0 {
				runs.Add([]string{"", "a", "b"}[k], n+1)
				want = append(want, n+1)
			}
		}
		var got []uint64
		for run, err := range stele.MergeZoneRuns(list(runs["a"]), list(runs["b"])) {
			if err != nil {
				t.Fatal(err)
			}
			for n := run.First; n <= run.Last; n++ {
				got = append(got, n)
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%d, want %d", got, want)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("%d, want %d", got, want)
			}
		}
	})
}
