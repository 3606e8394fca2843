package registry

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stele-id/stele"
)

// TestFollowPromoted: if a database replaces another one, silently and without the last
// changes, the follower accepts its state. Nothing in memory says that it is outdated.
func TestFollowPromoted(t *testing.T) {
	for name, tt := range map[string]struct {
		before func(p *peer) // on the server
		after  func(p *peer) // on the database that takes the place
		wait   time.Duration
	}{
		"more changes":                    {(*peer).follow, func(p *peer) { p.register("urn:example:2", urlBefore) }, 0},
		"as many changes":                 {(*peer).follow, func(p *peer) {}, markAge},
		"more, before it looked":          {func(p *peer) {}, func(p *peer) { p.register("urn:example:2", urlBefore) }, 0},
		"as many, before it looked":       {func(p *peer) {}, func(p *peer) {}, markAge},
		"more, when all was forgotten":    {(*peer).forget, func(p *peer) { p.register("urn:example:2", urlBefore) }, 0},
		"as many, when all was forgotten": {(*peer).forget, func(p *peer) {}, markAge},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lost, promoted, b := newPeers(t, 1, false)[0], newPeers(t, 1, false)[0], newPeers(t, 1, false)[0]
				lost.register("urn:example:1", urlBefore)
				time.Sleep(time.Millisecond)
				promoted.register("urn:example:1", urlAfter)
				b.store.Store = lost.store.Store
				b.begin()
				tt.before(b)
				if got := b.where("urn:example:1"); got != urlBefore {
					t.Fatalf("before: %s", got)
				}
				tt.after(promoted)
				b.store.Store = promoted.store.Store
				if got := b.where("urn:example:1"); got != urlBefore {
					t.Fatalf("nothing was kept, so that this test says nothing: %s", got)
				}
				time.Sleep(tt.wait)
				b.follow()
				if got := b.where("urn:example:1"); got != urlAfter {
					t.Errorf("got %s", got)
				}
			})
		})
	}
}

// begin has a server follow anew, as if it were started.
func (p *peer) begin() {
	p.t.Helper()
	if err := p.Share(p.t.Context(), time.Now, slog.New(slog.DiscardHandler)); err != nil {
		p.t.Fatal(err)
	}
}

// forget has a server forget everything.
func (p *peer) forget() {
	p.t.Helper()
	last, err := p.store.LastChange(p.t.Context())
	if err == nil {
		err = p.Follower.forgetAll(p.t.Context(), last)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// TestFollowIdle: as long as there is nothing new the follower reads only the last
// number, most of the time.
func TestFollowIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peers := newPeers(t, 2, false)
		a, b := peers[0], peers[1]
		a.register("urn:example:1", urlBefore)
		b.follow()
		feeds := b.store.feeds.Load()
		for range 40 {
			b.follow()
			time.Sleep(markAge / 4)
		}
		if n := b.store.feeds.Load() - feeds; n != 9 {
			t.Errorf("the feed was read %d times", n)
		}
	})
}

// TestFollowCut: a primary that dies during a look, so that a lagging copy answers, has
// not lost anything; the follower invalidates nothing.
func TestFollowCut(t *testing.T) {
	for name, lasts := range map[string]bool{"still away": true, "back already": false} {
		t.Run(name, func(t *testing.T) {
			peers := newPeers(t, 2, false)
			a, b := peers[0], peers[1]
			a.register("urn:example:1", urlBefore)
			a.register("urn:example:2", urlBefore)
			b.follow()
			b.where("urn:example:1")
			b.store.onLook = func() {
				b.store.lagged.Store(time.Now().UnixNano())
				b.store.lag.Store(lasts)
				b.store.ignores.Store(1)
			}
			b.follow()
			if got := b.Follower.position.Load(); got != 2 {
				t.Errorf("at change %d", got)
			}
			b.store.onLook = nil
			b.store.ignores.Store(0)
			b.store.lag.Store(false)
			b.follow()
			reads := b.store.reads.Load()
			if b.where("urn:example:1"); b.store.reads.Load() != reads {
				t.Error("it was forgotten")
			}
		})
	}
}

// TestFollowCutBetween is TestFollowCut for a primary that dies when the feed is read,
// and the records are not.
func TestFollowCutBetween(t *testing.T) {
	peers := newPeers(t, 2, false)
	a, b, lagging := peers[0], peers[1], newPeers(t, 1, false)[0]
	a.register("urn:example:1", urlBefore)
	a.register("urn:example:2", urlBefore)
	b.follow()
	b.where("urn:example:2")
	a.update("urn:example:1", urlAfter)
	whole := b.store.Store
	b.store.onFeed = func() {
		b.store.lagged.Store(time.Now().UnixNano())
		b.store.lag.Store(true)
		b.store.Store = lagging.store.Store
	}
	if err := b.Follower.catchUp(t.Context()); stele.KindOf(err) != stele.Unavailable {
		t.Errorf("got %v", err)
	}
	b.store.onFeed = nil
	b.store.Store = whole
	b.store.lag.Store(false)
	b.follow()
	if got := b.where("urn:example:1"); got != urlAfter {
		t.Errorf("got %s", got)
	}
	reads := b.store.reads.Load()
	if b.where("urn:example:2"); b.store.reads.Load() != reads {
		t.Error("it was forgotten")
	}
}

// TestFollowBegunLagging: what a server that is started without a primary reads of
// namespaces is read again when there is one.
func TestFollowBegunLagging(t *testing.T) {
	peers := newPeers(t, 2, false)
	a, b, lagging := peers[0], peers[1], newPeers(t, 1, false)[0]
	a.namespace("urn:example", func(ns *stele.Namespace) { ns.Delegate = "https://resolver.example.org/{id}" })
	b.store.lagged.Store(time.Now().UnixNano())
	b.store.lag.Store(true)
	b.begin()
	whole := b.store.Store
	b.store.Store = lagging.store.Store
	if got := b.where("urn:example:1"); got != "not found" {
		t.Fatalf("got %s", got)
	}
	b.store.Store = whole
	b.store.lag.Store(false)
	b.follow()
	if got := b.where("urn:example:1"); got != "https://resolver.example.org/urn:example:1" {
		t.Errorf("got %s", got)
	}
}

// writtenStore is a shared store that knows what was written here.
type writtenStore struct {
	*sharedStore
	applied uint64
}

var _ stele.Shared = (*writtenStore)(nil)

func (s *writtenStore) Applied() uint64    { return s.applied }
func (s *writtenStore) Rewind(last uint64) { s.applied = min(s.applied, last) }

// TestFollowOwnLost: what a server has written itself may be lost, too, before it looked.
// That is dealt with once.
func TestFollowOwnLost(t *testing.T) {
	b := newPeers(t, 1, false)[0]
	b.register("urn:example:1", urlBefore)
	b.follow()
	b.where("urn:example:1")
	b.Registry.Store = &writtenStore{b.store, 2}
	for _, forgets := range []bool{true, false} {
		b.follow()
		reads := b.store.reads.Load()
		b.where("urn:example:1")
		if got := b.store.reads.Load() != reads; got != forgets {
			t.Errorf("everything was forgotten: %v", got)
		}
	}
}

// TestAwaitTogether: however many callers ask for a state that is not there, they share
// looks, and another caller does not queue after all of them.
func TestAwaitTogether(t *testing.T) {
	const look = 100 * time.Millisecond
	for name, tt := range map[string]struct {
		ahead uint64
		looks int64         // at most
		waits time.Duration // at most; a look that was begun is ended
	}{
		"far ahead":      {1 << 60, 2, 2 * look},
		"next":           {1, int64(awaitLongest/look) + 1, awaitLongest + 2*look},
		"as far as that": {awaitFar, int64(awaitLongest/look) + 1, awaitLongest + 2*look},
		"too far":        {awaitFar + 1, 2, 2 * look},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newPeers(t, 1, false)[0]
				b.register("urn:example:1", urlBefore)
				b.follow()
				b.store.delay.Store(int64(look))
				looks, began := b.store.looks.Load(), time.Now()
				var all sync.WaitGroup
				for range 100 {
					all.Go(func() {
						if err := b.Await(t.Context(), stele.Position{Change: 1 + tt.ahead}); stele.KindOf(err) != stele.Unavailable {
							t.Errorf("got %v", err)
						}
					})
				}
				time.Sleep(look / 2)
				asked := time.Now()
				b.follow()
				if waited := time.Since(asked); waited > 2*look {
					t.Errorf("the follower waited for %s", waited)
				}
				all.Wait()
				if n := b.store.looks.Load() - looks; n > tt.looks {
					t.Errorf("they looked %d times", n)
				}
				if waited := time.Since(began); waited > tt.waits {
					t.Errorf("they waited for %s", waited)
				}
			})
		})
	}
}

// TestCatchUpLeft: when the caller that looks is cancelled, the callers that wait for
// it get no error, and one of them looks instead.
func TestCatchUpLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newPeers(t, 1, false)[0]
		b.Follower.turn <- struct{}{} // another caller looks
		brief, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			if err := b.Follower.catchUp(brief); !errors.Is(err, context.Canceled) {
				t.Errorf("who went away got %v", err)
			}
		})
		synctest.Wait()
		looks := b.store.looks.Load()
		for range 10 {
			all.Go(func() {
				if err := b.Follower.catchUp(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		<-b.Follower.turn
		all.Wait()
		if n := b.store.looks.Load() - looks; n != 1 {
			t.Errorf("they looked %d times", n)
		}
	})
}
