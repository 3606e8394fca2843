package auth

import (
	"context"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

// counting counts commits.
type counting struct {
	stele.Store
	commits, cells int
	meet           func(*stele.Commit) // before a commit
}

func (s *counting) Apply(ctx context.Context, c *stele.Commit) error {
	s.commits++
	s.cells += len(c.Cells)
	if s.meet != nil {
		s.meet(c)
	}
	return s.Store.Apply(ctx, c)
}

func (o *testDirectory) lastUse(id string) string {
	o.t.Helper()
	used, err := o.store.Cell(o.t.Context(), UsedCells+id)
	if err != nil {
		o.t.Fatal(err)
	}
	return string(used)
}

func (o *testDirectory) flush() {
	o.t.Helper()
	if err := o.Flush(o.t.Context()); err != nil {
		o.t.Fatal(err)
	}
}

func TestFlush(t *testing.T) {
	o := newTestDirectory(t)
	o.user(User{Name: "ann"})
	credential, made := o.issue("ann")
	_, unused := o.issue("ann")
	s := &counting{Store: o.store}
	o.Directory.store = s
	o.flush()
	o.refused(credential[:len(credential)-8]+"AAAAAAAA", "not known")
	o.flush()
	if s.commits != 0 {
		t.Errorf("%d commits, and nobody used a token", s.commits)
	}
	for range 30 {
		o.accepted(credential)
		o.pass(time.Second)
	}
	o.Forget() // uses are not forgotten
	o.flush()
	o.flush()
	if got := o.lastUse(made.ID); s.commits != 1 || s.cells != 1 || got != "2026-03-01T12:00:29Z" || o.lastUse(unused.ID) != "" {
		t.Errorf("%d commits of %d cells, used %s", s.commits, s.cells, got)
	}
	o.accepted(credential)
	o.flush()
	if got := o.lastUse(made.ID); got != "2026-03-01T12:00:30Z" {
		t.Errorf("used %s", got)
	}
	// A later use that another process has written stays.
	o.put(stele.Cell{Name: UsedCells + made.ID, Value: []byte("2026-03-01T13:00:00Z")}, nil)
	o.accepted(credential)
	o.flush()
	o.pass(2 * time.Second)
	o.accepted(credential)
	o.flush()
	if got := o.lastUse(made.ID); got != "2026-03-01T13:00:00Z" {
		t.Errorf("used %s", got)
	}
}

// Each of many uses is written, and a write that conflicts with another process's is tried
// again.
func TestFlushMany(t *testing.T) {
	o := newTestDirectory(t)
	o.user(User{Name: "ann"})
	const many = usesAtOnce + 7
	var ids []string
	var credentials []string
	for range many {
		credential, made := o.issue("ann")
		ids, credentials = append(ids, made.ID), append(credentials, credential)
	}
	for _, c := range credentials {
		o.accepted(c)
	}
	met := false
	s := &counting{Store: o.store}
	s.meet = func(c *stele.Commit) {
		if !met {
			met = true
			o.put(stele.Cell{Name: c.Cells[0].Name, Value: []byte("2026-03-01T11:00:00Z")}, nil)
		}
	}
	o.Directory.store = s
	o.flush()
	for _, id := range ids {
		if got := o.lastUse(id); got != "2026-03-01T12:00:00Z" {
			t.Fatalf("%s: used %q", id, got)
		}
	}
	if s.commits != 3 {
		t.Errorf("%d commits, want 3: two, and one again", s.commits)
	}
	// Uses that were not written are written next time.
	o.pass(time.Minute)
	o.accepted(credentials[0])
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := o.Flush(ctx); err == nil {
		t.Fatal("written without a context")
	}
	o.flush()
	if got := o.lastUse(ids[0]); got != "2026-03-01T12:01:00Z" {
		t.Errorf("used %q", got)
	}
}
