package pebble

import (
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	pebbledb "github.com/cockroachdb/pebble/v2"

	"github.com/stele-id/stele"
)

// alwaysMerges is a database that allows two merges.
type alwaysMerges struct {
	pebbledb.DBForCompaction
	waiting atomic.Int32
	begun   atomic.Int32
}

func (a *alwaysMerges) GetAllowedWithoutPermission() int { return 2 }

func (a *alwaysMerges) GetWaitingCompaction() (bool, pebbledb.WaitingCompaction) {
	return a.waiting.Load() > 0, pebbledb.WaitingCompaction{}
}

func (a *alwaysMerges) Schedule(grant pebbledb.CompactionGrantHandle) bool {
	if a.waiting.Add(-1) < 0 {
		a.waiting.Add(1)
		return false
	}
	a.begun.Add(1)
	grant.Started()
	return true
}

// TestMergingBrief: an opening for a moment leaves alone what a large import left.
func TestMergingBrief(t *testing.T) {
	for _, tt := range []struct {
		name  string
		brief bool
		set   func(m *merging)
		want  int
	}{
		{"an opening that stays", false, func(*merging) {}, 2},
		{"one for a moment", true, func(*merging) {}, 0},
		{"little is left", true, func(m *merging) { m.little.Store(true) }, 2},
		{"an import", true, func(m *merging) { m.ingests() }, 2},
		{"a caller waits", true, func(m *merging) { m.ask() }, 2},
		{"it does not wait any more", true, func(m *merging) { m.ask()() }, 0},
	} {
		m := &merging{now: time.Now, brief: tt.brief, db: new(alwaysMerges), poke: make(chan struct{}, 1)}
		tt.set(m)
		got := 0
		for ok, _ := m.TrySchedule(); ok; ok, _ = m.TrySchedule() {
			got++
		}
		if got != tt.want {
			t.Errorf("%s: %d merges begin, want %d", tt.name, got, tt.want)
		}
	}
}

// TestMergingGrants: merges that wait begin when one has ended, and when they may; none begins after the end.
func TestMergingGrants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var db alwaysMerges
		db.waiting.Store(3)
		m := &merging{now: time.Now, brief: true, poke: make(chan struct{}, 1), stop: make(chan struct{})}
		m.Register(2, &db)
		begun := func(want int32) {
			t.Helper()
			time.Sleep(2 * lookOften)
			synctest.Wait()
			if got := db.begun.Load(); got != want {
				t.Errorf("%d merges have begun, want %d", got, want)
			}
		}
		begun(0)
		m.ingests()
		begun(2)
		(&merge{m: m}).Done()
		begun(3)
		(&merge{m: m}).Done()
		begun(3)
		db.waiting.Store(1)
		m.Unregister()
		if ok, _ := m.TrySchedule(); ok {
			t.Error("a merge begins after the end")
		}
		(&merge{m: m}).Done() // of the last one
		begun(3)
	})
}

// TestMergingGivesWay: merging rests three times as long as it works, except while tables come, a caller waits, or the store is closed.
func TestMergingGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closing := make(chan struct{})
		m := &merging{now: time.Now, closing: closing, poke: make(chan struct{}, 1)}
		p := &merge{m: m}
		rest := func(worked time.Duration) time.Duration {
			p.Started()
			time.Sleep(worked)
			begin := time.Now()
			p.CumulativeStats(pebbledb.CompactionGrantHandleStats{})
			return time.Since(begin)
		}
		for _, tt := range []struct {
			what         string
			before       func()
			worked, want time.Duration
		}{
			{"at rest", func() {}, 2 * time.Millisecond, 6 * time.Millisecond},
			{"much work at once", func() {}, time.Second, longestRest},
			{"tables come", m.ingests, 2 * time.Millisecond, 0},
			{"some time later", func() { time.Sleep(ingestsLast) }, 2 * time.Millisecond, 6 * time.Millisecond},
			{"a caller waits", func() { m.ask() }, 2 * time.Millisecond, 0},
			{"it has what it wants", func() { m.asked.Store(0) }, 2 * time.Millisecond, 6 * time.Millisecond},
			{"merging is behind", func() { m.behind.Store(true) }, 2 * time.Millisecond, 0},
			{"it has caught up", func() { m.behind.Store(false) }, 2 * time.Millisecond, 6 * time.Millisecond},
			{"the store is closed", func() { close(closing) }, 2 * time.Millisecond, 0},
		} {
			tt.before()
			if got := rest(tt.worked); got != tt.want {
				t.Errorf("%s: it rests %v, want %v", tt.what, got, tt.want)
			}
		}
	})
}

// TestMergingLater: tables that an import left are merged by an opening that stays, and not by one for a moment.
func TestMergingLater(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "store")
	open := func(brief bool) *Store {
		t.Helper()
		s, err := Open(t.Context(), folder, Options{Now: time.Now, Brief: brief})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open(true)
	for i := range 12 {
		var records []*stele.Record
		for k := range 50 {
			records = append(records, benchRecord(t, 50*i+k, true))
		}
		if _, err := s.Ingest(t.Context(), records, nil, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	unmerged := func(s *Store) int32 { return s.current.Load().db.Metrics().Levels[0].Sublevels }
	if n := unmerged(s); n < 9 {
		t.Fatalf("an import leaves %d tables above each other", n)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(true)
	if err := s.Compact(t.Context()); err != nil { // waits for merging
		t.Fatal(err)
	}
	before := unmerged(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(false)
	defer s.Close()
	for deadline := time.Now().Add(time.Minute); unmerged(s) > 8; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d tables are above each other, and %d were", unmerged(s), before)
		}
	}
}
