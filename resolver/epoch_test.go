package resolver

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// TestEpoch: an epoch ends with the next write of its name, by whatever name of the record, or of a namespace, and when all is
// forgotten; a server without caches has epochs too.
func TestEpoch(t *testing.T) {
	for _, o := range []Options{{}, {Now: clock, CacheBytes: 1 << 20, RedirectBytes: 1 << 20}} {
		r := newRegistry(t, o)
		defer r.Close()
		alias := r.id("20.500.12345/one")
		one := r.put(stele.Record{ID: r.id("urn:example:1"), Aliases: []stele.ID{alias}})
		for what, change := range map[string]func(){
			"the record is written":     func() { one = r.put(*one) },
			"a namespace is written":    func() { r.InvalidateNamespaces() },
			"everything may be written": func() { r.InvalidateAll() },
		} {
			for _, name := range []stele.ID{one.ID, alias} {
				e := r.Epoch(name)
				var b [EpochBytes]byte
				e.Put(b[:])
				if !r.MayKeep(e) || !r.IsCurrent(ReadEpoch(b[:])) {
					t.Errorf("%s: %s is not current from the beginning", what, name)
				}
				change()
				if r.IsCurrent(e) || r.MayKeep(e) || r.IsCurrent(ReadEpoch(b[:])) {
					t.Errorf("%s: %s is current still", what, name)
				}
			}
		}
		if r.IsCurrent(Epoch{}) || r.MayKeep(Epoch{}) {
			t.Error("the zero epoch is current")
		}
	}
}

// TestEpochNotKept: what may be from a copy that lags is not kept, nor anything where records grow old by themselves.
func TestEpochNotKept(t *testing.T) {
	since, lagging := time.Time{}, true
	r := newRegistry(t, Options{Now: clock, Lagging: func() (time.Time, bool) { return since, lagging }})
	name := r.id("urn:example:1")
	if e := r.Epoch(name); r.MayKeep(e) {
		t.Error("what lags is kept")
	}
	lagging = false
	e := r.Epoch(name)
	since = noon
	if r.MayKeep(e) {
		t.Error("what lagged meanwhile is kept")
	}
	if !r.MayKeep(r.Epoch(name)) {
		t.Error("nothing is kept")
	}
	aged := newRegistry(t, Options{Now: clock, CacheAge: time.Minute})
	if aged.MayKeep(aged.Epoch(name)) {
		t.Error("what grows old is kept")
	}
}

// TestEpochConcurrent: readers that keep what they read with its epoch never see an older version than one whose writer has
// finished, while others have everything forgotten.
func TestEpochConcurrent(t *testing.T) {
	const versions = 300
	r := newRegistry(t, Options{Now: clock, CacheBytes: 1 << 20})
	one := r.put(stele.Record{ID: r.id("urn:example:1")})
	name := one.ID
	type answer struct {
		version uint64
		epoch   Epoch
	}
	var finished atomic.Uint64
	var kept atomic.Pointer[answer]
	var wg sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				least := finished.Load()
				if a := kept.Load(); a != nil && r.IsCurrent(a.epoch) {
					if a.version < least {
						t.Errorf("version %d was kept, and %d is written", a.version, least)
						return
					}
					continue
				}
				e := r.Epoch(name)
				record, err := r.Record(t.Context(), auth.Principal{}, name)
				if err != nil || record == nil {
					t.Errorf("%v, %v", record, err)
					return
				}
				if r.MayKeep(e) {
					kept.Store(&answer{record.Version, e})
				}
			}
		})
	}
	wg.Go(func() {
		defer close(done)
		for i := range versions {
			if i%7 == 0 {
				r.InvalidateAll()
			}
			one = r.put(*one)
			finished.Store(one.Version)
		}
	})
	wg.Wait()
}
