package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/postgres/postgrestest"
)

// outcomes is what writers were told, by identifier.
type outcomes struct {
	mu           sync.Mutex
	told         map[stele.ID]error
	acknowledged int
	failed       int
}

func (o *outcomes) add(id stele.ID, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.told[id] = err; err != nil {
		o.failed++
	} else {
		o.acknowledged++
	}
}

// more waits until so many more writes are acknowledged.
func (o *outcomes) more(t *testing.T, n int) {
	t.Helper()
	count := func() int {
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.acknowledged
	}
	before := count()
	waitFor(t, "writes", func() bool { return count() >= before+n })
}

// want checks that what was acknowledged is there, and that what is said not to be written
// is not. What is unknown may be either.
func (o *outcomes) want(t *testing.T, s *Store) {
	t.Helper()
	for id, err := range o.told {
		_, found := s.Record(t.Context(), id)
		switch {
		case found != nil && stele.KindOf(found) != stele.NotFound:
			t.Fatal(found)
		case err == nil && found != nil:
			t.Errorf("%s was acknowledged, and is lost", id)
		case err == nil:
		case stele.KindOf(err) != stele.Unavailable:
			t.Errorf("%s: the error is not one to try again: %v", id, err)
		case !errors.Is(err, errUnknown) && found == nil:
			t.Errorf("%s was said not to be written, and is there: %v", id, err)
		}
	}
	t.Logf("%d acknowledged, %d failed", o.acknowledged, o.failed)
}

// TestKill: kill -9 of the server under load, and its recovery. Nothing that was
// acknowledged is lost, what failed is not there, and the store goes on by itself.
func TestKill(t *testing.T) {
	own := postgrestest.Start(t, postgrestest.Options{})
	url := migrated(t, own)
	stores := []*Store{opened(t, url, Options{Wait: time.Second}), opened(t, url, Options{Wait: time.Second})}
	told := &outcomes{told: make(map[stele.ID]error)}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := 0; ctx.Err() == nil; j++ {
				r := record1(t, fmt.Sprintf("w%d-%d", i, j))
				told.add(r.ID, stores[i%2].Apply(context.Background(), commitOf(r)))
			}
		})
	}
	for _, down := range []time.Duration{0, 1500 * time.Millisecond} { // less and more than is waited for
		told.more(t, 50)
		own.Kill(t)
		time.Sleep(down)
		own.Restart(t)
	}
	told.more(t, 50)
	stop()
	all.Wait()
	if told.failed == 0 {
		t.Error("no write failed while the server was away for longer than is waited for")
	}
	told.want(t, stores[0])
	wantSound(t, stores[1])
}

// waitFor waits until something is so.
func waitFor(t testing.TB, what string, so func() bool) {
	t.Helper()
	for range 3000 {
		if so() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("waited in vain for %s", what)
}

// TestStandby: while the primary is unavailable reads come from a standby, and writes
// fail after Wait; when it is back all is as before.
func TestStandby(t *testing.T) {
	first := postgrestest.Start(t, postgrestest.Options{NoSync: true})
	database := databaseOf(t, migrated(t, first))
	second := first.Standby(t)
	url := postgrestest.Hosts(database, first, second)
	s := opened(t, url, Options{Wait: time.Second})
	var list []*stele.Record
	for i := range 3 * firstPage {
		list = append(list, record1(t, fmt.Sprintf("%03d", i)))
	}
	if _, err := s.Ingest(t.Context(), list, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	behind := opened(t, second.URL(database), Options{Brief: true, Wait: time.Second}) // a standby alone can be read
	waitFor(t, "the standby to have it all", func() bool {
		n, err := behind.LastChange(t.Context())
		return err == nil && n == uint64(len(list))
	})
	if _, yes := s.Lagging(); yes {
		t.Error("the primary is there, and the store says that it lags")
	}
	if _, yes := behind.Lagging(); !yes {
		t.Error("there is only a standby, and the store does not say that it lags")
	}

	first.Kill(t)
	n := 0
	for _, err := range s.Scan(t.Context(), "ark", "", "") {
		if err != nil {
			t.Fatalf("a scan while the primary is away: %v", err)
		}
		n++
	}
	if _, err := s.Record(t.Context(), list[0].ID); err != nil || n != len(list) {
		t.Errorf("reads while the primary is away: %d of %d, %v", n, len(list), err)
	}
	if _, yes := s.Lagging(); !yes {
		t.Error("the primary is away, and the store does not say that it lags")
	}
	late := record1(t, "late")
	if err := s.Apply(t.Context(), commitOf(late)); stele.KindOf(err) != stele.Unavailable || errors.Is(err, errUnknown) {
		t.Errorf("a write while the primary is away: %v", err)
	}
	if err := s.Ready(t.Context()); stele.KindOf(err) != stele.Unavailable {
		t.Errorf("Ready while the primary is away: %v", err)
	}
	other := opened(t, url, Options{Wait: time.Second}) // one that is started meanwhile
	if _, err := other.Record(t.Context(), list[1].ID); err != nil {
		t.Errorf("a store that was opened while the primary is away: %v", err)
	}

	first.Restart(t)
	waitFor(t, "the primary to be found", func() bool { _, yes := s.Lagging(); return !yes })
	for _, one := range []*Store{s, other} {
		if err := one.Ready(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := s.Apply(t.Context(), commitOf(late)); err != nil {
		t.Error(err)
	}
	if _, err := s.Record(t.Context(), late.ID); err != nil {
		t.Error(err)
	}
	wantSound(t, s)
}

// TestHang: a caller waits no longer than Wait for a server that hangs.
func TestHang(t *testing.T) {
	own := postgrestest.Start(t, postgrestest.Options{NoSync: true})
	url := migrated(t, own)
	s := opened(t, url, Options{Wait: 600 * time.Millisecond})
	r := record1(t, "a")
	if err := s.Apply(t.Context(), commitOf(r)); err != nil {
		t.Fatal(err)
	}
	resume := own.Pause(t)
	_, err := s.Record(t.Context(), r.ID)
	if stele.KindOf(err) != stele.Unavailable {
		t.Errorf("a read of a server that hangs: %v", err)
	}
	late := record1(t, "late")
	if err := s.Apply(t.Context(), commitOf(late)); stele.KindOf(err) != stele.Unavailable {
		t.Errorf("a write to a server that hangs: %v", err)
	}
	resume()
	waitFor(t, "the server to be found", func() bool { _, yes := s.Lagging(); return !yes })
	if err := s.Apply(t.Context(), commitOf(record1(t, "b"))); err != nil {
		t.Error(err)
	}
	wantSound(t, s)
}
