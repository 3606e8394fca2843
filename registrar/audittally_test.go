package registrar

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// trail returns the audit trail after an entry.
func (f *fixture) trail(after uint64) (list []*stele.AuditEntry) {
	f.t.Helper()
	for e, err := range f.store.Audit(context.Background(), after) {
		if err != nil {
			f.t.Fatal(err)
		}
		list = append(list, e)
	}
	return list
}

// What is counted in a minute is bounded, however many different things callers do, and
// nothing is left uncounted.
func TestTallyIsBounded(t *testing.T) {
	f := newFixture(t)
	const many = 5 * maxTallied
	for i := range many {
		f.tally.add(&stele.AuditEntry{Operation: fmt.Sprint("op", i), Address: fmt.Sprint("192.0.2.", i), Outcome: stele.AuditRefused, Kind: stele.Unauthenticated}, 1, f.clock())
	}
	if err := f.FlushAudit(f.admin, true); err != nil {
		t.Fatal(err)
	}
	list, sum := f.trail(0), uint64(0)
	for _, e := range list {
		sum += max(e.Count, 1)
	}
	if len(list) > maxTallied+1 || sum != many {
		t.Errorf("%d refusals have %d entries that count %d", many, len(list), sum)
	}
}

// brokenTrail is a store that is unavailable for a while.
type brokenTrail struct {
	stele.Store
	away bool
}

func (b *brokenTrail) Apply(ctx context.Context, c *stele.Commit) error {
	if b.away {
		return &stele.Error{Op: "commit", Kind: stele.Unavailable, Err: errors.New("the database is away")}
	}
	return b.Store.Apply(ctx, c)
}

// What could not be written is counted on, in the minute in which it happened, however
// often it is tried.
func TestTallyWaits(t *testing.T) {
	f := newFixture(t)
	broken := &brokenTrail{Store: f.store, away: true}
	f.store = broken
	f.start()
	begin := f.clock()
	f.tally.add(&stele.AuditEntry{Operation: "listUsers", Outcome: stele.AuditRefused, Kind: stele.Unauthenticated}, 7, begin)
	for range 20 {
		f.jump(time.Minute)
		if err := f.FlushAudit(f.admin, false); err == nil {
			t.Fatal("it was written")
		}
	}
	broken.away = false
	if err := f.FlushAudit(f.admin, false); err != nil {
		t.Fatal(err)
	}
	list := f.trail(0)
	if len(list) != 1 || list[0].Count != 7 || list[0].Details != "counted in the minute "+begin.UTC().Truncate(time.Minute).Format("2006-01-02T15:04Z") {
		t.Errorf("entries %+v", list)
	}
}

// Trimming removes what is older than a time, leaves an entry that says so, and waits
// with a few entries until they are a day late.
func TestTrimAudit(t *testing.T) {
	f := newFixture(t)
	add := func(n int) {
		t.Helper()
		for i := range n {
			if _, err := f.AddUser(f.admin, auth.User{Name: fmt.Sprintf("u%d-%d", f.offset.Load(), i)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	add(3)
	f.jump(48 * time.Hour)
	add(2)
	f.jump(time.Hour)
	if n, err := f.TrimAudit(f.admin, f.clock()); err != nil || n != 5 {
		t.Errorf("%d entries were removed, %v", n, err)
	}
	list := f.trail(0)
	if len(list) != 1 || list[0].Number != 6 || list[0].Trimmed != 5 || list[0].Count != 5 || list[0].Object != "entries:1-5" || !strings.HasPrefix(list[0].Details, "all before 20") {
		t.Fatalf("left are %+v", list)
	}
	add(2)
	f.jump(time.Hour)
	if n, err := f.TrimAudit(f.admin, f.clock()); err != nil || n != 0 {
		t.Errorf("%d entries were removed though they are few, %v", n, err)
	}
	f.jump(25 * time.Hour)
	if n, err := f.TrimAudit(f.admin, f.clock()); err != nil || n != 3 {
		t.Errorf("%d entries were removed when they were late, %v", n, err)
	}
	if _, err := f.TrimAudit(as("ann"), f.clock()); !errors.Is(err, stele.Forbidden) {
		t.Errorf("trimming by a user: %v", err)
	}
}
