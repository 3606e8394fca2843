package registry

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/mem"
)

// sharedStore is a store that several registries share, each through one of its own:
// with a network that may be away, and a copy that is read then.
type sharedStore struct {
	stele.Store
	away    atomic.Bool
	lag     atomic.Bool
	lagged  atomic.Int64 // when that began last
	reads   atomic.Int64 // of records
	ignores atomic.Int64 // so many changes are not seen, from the last one on
	looks   atomic.Int64 // for the last change
	feeds   atomic.Int64 // that were read
	delay   atomic.Int64 // of a look, nanoseconds

	onLook, onFeed func() // what happens meanwhile; may be nil
}

var errAway = &stele.Error{Op: "read", Kind: stele.Unavailable, Err: errors.New("the network is away")}

func (s *sharedStore) Lagging() (time.Time, bool) {
	if at := s.lagged.Load(); at != 0 {
		return time.Unix(0, at), s.lag.Load()
	}
	return time.Time{}, false
}

func (s *sharedStore) Record(ctx context.Context, name stele.ID) (*stele.Record, error) {
	s.reads.Add(1)
	if s.away.Load() {
		return nil, errAway
	}
	return s.Store.Record(ctx, name)
}

func (s *sharedStore) LastChange(ctx context.Context) (uint64, error) {
	s.looks.Add(1)
	time.Sleep(time.Duration(s.delay.Load()))
	if s.onLook != nil {
		s.onLook()
	}
	if s.away.Load() {
		return 0, errAway
	}
	last, err := s.Store.LastChange(ctx)
	return last - min(last, uint64(s.ignores.Load())), err
}

func (s *sharedStore) Position(ctx context.Context) (stele.Position, error) {
	last, err := s.LastChange(ctx)
	if err != nil {
		return stele.Position{}, err
	}
	p, err := s.Store.Position(ctx)
	p.Change = last
	return p, err
}

func (s *sharedStore) Changes(ctx context.Context, after uint64) iter.Seq2[stele.Change, error] {
	s.feeds.Add(1)
	feed := s.Store.Changes(ctx, after)
	return func(yield func(stele.Change, error) bool) {
		feed(yield)
		if s.onFeed != nil {
			s.onFeed()
		}
	}
}

func (s *sharedStore) Cells(ctx context.Context, prefix, after string) iter.Seq2[stele.Cell, error] {
	if s.away.Load() {
		return func(yield func(stele.Cell, error) bool) { yield(stele.Cell{}, errAway) }
	}
	return s.Store.Cells(ctx, prefix, after)
}

// peer is one of several servers on a store.
type peer struct {
	*Registry
	t     testing.TB
	store *sharedStore
	admin context.Context
}

// newPeers makes several servers on one store in memory.
func newPeers(t testing.TB, n int, published bool) []*peer {
	t.Helper()
	schemes, err := all.New(all.Config{Now: time.Now, PURLHosts: []string{"purl.org"}})
	if err != nil {
		t.Fatal(err)
	}
	common := mem.New(time.Now)
	var peers []*peer
	for range n {
		store := &sharedStore{Store: common}
		log := slog.New(slog.DiscardHandler)
		r := New(store, schemes, Options{Now: time.Now, Random: rand.IntN, Log: log, Resolver: resolver.Options{CacheBytes: 1 << 20, RedirectBytes: 1 << 20}})
		if published {
			r.Published = publish.NewZones(publish.ZonesOptions{Store: store, Schemes: schemes, Now: time.Now})
			t.Cleanup(r.Published.Close)
		}
		if err := r.Share(t.Context(), time.Now, log); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.Resolver.Close)
		peers = append(peers, &peer{r, t, store, auth.With(t.Context(), auth.Local())})
	}
	return peers
}

func (p *peer) id(text string) stele.ID {
	p.t.Helper()
	id, err := p.Schemes.Parse(text)
	if err != nil {
		p.t.Fatal(err)
	}
	return id
}

// where asks where a name leads, as redirects do.
func (p *peer) where(name string) string {
	p.t.Helper()
	res, err := p.Resolver.Resolve(p.t.Context(), resolver.Request{ID: p.id(name), Brief: true})
	if err != nil {
		return stele.KindOf(err).String()
	}
	return res.URL
}

func (p *peer) register(name, url string, aliases ...string) {
	p.t.Helper()
	rec := &stele.Record{ID: p.id(name), Targets: []stele.Target{{Service: stele.N2L, URL: url, Order: 100, Preference: 10}}}
	for _, alias := range aliases {
		rec.Aliases = append(rec.Aliases, p.id(alias))
	}
	if _, err := p.Registrar.Register(p.admin, rec); err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) update(name, url string) {
	p.t.Helper()
	if _, err := p.Registrar.Update(p.admin, p.id(name), 0, func(r *stele.Record) error {
		r.Targets[0].URL = url
		return nil
	}); err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) namespace(prefix string, change func(*stele.Namespace)) {
	p.t.Helper()
	key, err := p.Registrar.ParsePrefix(prefix)
	if err != nil {
		p.t.Fatal(err)
	}
	ns := &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix}
	change(ns)
	if _, err := p.Registrar.AddNamespace(p.admin, ns); err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) follow() {
	p.t.Helper()
	if err := p.Follower.catchUp(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
}

const urlBefore, urlAfter = "https://example.org/before", "https://example.org/after"

// TestFollow: what one server writes another one does not know as long as it has not
// looked, and knows when it has. Both are asked for all kinds of changes.
func TestFollow(t *testing.T) {
	for name, tt := range map[string]struct {
		prepare, write func(p *peer)
		look           string
		before, after  string
	}{
		"a new name":  {func(p *peer) {}, func(p *peer) { p.register("urn:example:1", urlAfter) }, "urn:example:1", "not found", urlAfter},
		"a new alias": {func(p *peer) {}, func(p *peer) { p.register("urn:example:1", urlAfter, "ark:12345/x1") }, "ark:12345/x1", "not found", urlAfter},
		"an alias of what is there": {
			func(p *peer) { p.register("urn:example:1", urlBefore) },
			func(p *peer) {
				if _, err := p.Registrar.AddAlias(p.admin, p.id("urn:example:1"), 0, p.id("ark:12345/x1")); err != nil {
					p.t.Fatal(err)
				}
			}, "ark:12345/x1", "not found", urlBefore,
		},
		"another target": {
			func(p *peer) { p.register("urn:example:1", urlBefore) },
			func(p *peer) { p.update("urn:example:1", urlAfter) }, "urn:example:1", urlBefore, urlAfter,
		},
		"another target, by an alias": {
			func(p *peer) { p.register("urn:example:1", urlBefore, "ark:12345/x1") },
			func(p *peer) { p.update("urn:example:1", urlAfter) }, "ark:12345/x1", urlBefore, urlAfter,
		},
		"withdrawn": {
			func(p *peer) { p.register("urn:example:1", urlBefore) },
			func(p *peer) {
				if _, err := p.Registrar.Withdraw(p.admin, p.id("urn:example:1"), 0, "why not", stele.ID{}); err != nil {
					p.t.Fatal(err)
				}
			}, "urn:example:1", urlBefore, "",
		},
		"a delegation": {
			func(p *peer) {},
			func(p *peer) {
				p.namespace("urn:example", func(ns *stele.Namespace) { ns.Delegate = "https://resolver.example.org/{id}" })
			}, "urn:example:1", "not found", "https://resolver.example.org/urn:example:1",
		},
		"many": {
			func(p *peer) { p.register("urn:example:1", urlBefore) },
			func(p *peer) {
				for i := range 2500 {
					p.update("urn:example:1", fmt.Sprint("https://example.org/", i))
				}
			}, "urn:example:1", urlBefore, "https://example.org/2499",
		},
		"too many": {
			func(p *peer) { p.register("urn:example:1", urlBefore) },
			func(p *peer) {
				for i := range followFar + 1 {
					p.update("urn:example:1", fmt.Sprint("https://example.org/", i))
				}
			}, "urn:example:1", urlBefore, fmt.Sprint("https://example.org/", followFar),
		},
	} {
		for _, published := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, dns %v", name, published), func(t *testing.T) {
				peers := newPeers(t, 2, published)
				a, b := peers[0], peers[1]
				tt.prepare(a)
				b.follow()
				if got := b.where(tt.look); got != tt.before {
					t.Fatalf("before: %s", got)
				}
				tt.write(a)
				if got := a.where(tt.look); got != tt.after {
					t.Fatalf("who wrote it sees %s", got)
				}
				if got := b.where(tt.look); got != tt.before {
					t.Fatalf("nothing was kept, so that this test says nothing: %s", got)
				}
				b.follow()
				if got := b.where(tt.look); got != tt.after {
					t.Errorf("got %s, want %s", got, tt.after)
				}
			})
		}
	}
}

// TestFollowNewWithoutReading: a large import on one server does not make the others
// read all of it.
func TestFollowNewWithoutReading(t *testing.T) {
	peers := newPeers(t, 2, false)
	a, b := peers[0], peers[1]
	for i := range 500 {
		a.register(fmt.Sprint("urn:example:", i), urlAfter)
	}
	b.follow()
	if n := b.store.reads.Load(); n != 0 {
		t.Errorf("%d records were read", n)
	}
	if got := b.Follower.position.Load(); got != 500 {
		t.Errorf("at change %d", got)
	}
}

// TestFollowRegistrar: a namespace that is added on one server is known to the
// registrar of another, and a right that is revoked is revoked there.
func TestFollowRegistrar(t *testing.T) {
	peers := newPeers(t, 2, false)
	a, b := peers[0], peers[1]
	ann := auth.With(t.Context(), auth.Principal{Name: "ann"})
	write := func(n int) error {
		_, err := b.Registrar.Register(ann, &stele.Record{ID: b.id(fmt.Sprint("urn:example:", n)), Targets: []stele.Target{{Service: stele.N2L, URL: urlBefore}}})
		return err
	}
	if err := write(1); stele.KindOf(err) != stele.Forbidden {
		t.Fatalf("got %v", err)
	}
	a.namespace("urn:example", func(ns *stele.Namespace) { ns.Owner = "ann" })
	b.follow()
	if err := write(1); err != nil {
		t.Fatal(err)
	}
	key, _ := a.Registrar.ParsePrefix("urn:example")
	if _, err := a.Registrar.SetNamespace(a.admin, key, 0, func(ns *stele.Namespace) error { ns.Owner = "bob"; return nil }); err != nil {
		t.Fatal(err)
	}
	b.follow()
	if err := write(2); stele.KindOf(err) != stele.Forbidden {
		t.Errorf("got %v", err)
	}
}

// TestFollowSerials: all servers have the same serial for the same state, whichever
// server writes, and none runs ahead when its store does not answer.
func TestFollowSerials(t *testing.T) {
	peers := newPeers(t, 2, true)
	a, b := peers[0], peers[1]
	a.namespace("urn:example", func(ns *stele.Namespace) {
		ns.Publication = stele.Publication{Zone: "example.org.", Layout: stele.LayoutNames, Separator: ":", Parts: 1}
	})
	serial := func(p *peer) string {
		t.Helper()
		shown, err := p.Published.(*publish.Zones).Show(t.Context(), "example.org.")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(shown.Records[0].Text)[5]
	}
	place := func(p *peer) string {
		t.Helper()
		at, err := p.Published.(*publish.Zones).Where(t.Context(), p.id("urn:example:1"))
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(at.Records)
	}
	b.follow()
	for round := range 5 {
		for i, p := range peers {
			if round == 0 && i == 0 {
				p.register("urn:example:1", urlBefore)
			} else {
				p.update("urn:example:1", fmt.Sprintf("https://example.org/%d/%d", round, i))
			}
			a.follow()
			b.follow()
			if x, y := serial(a), serial(b); x != y || x != fmt.Sprint(2+2*round+i) {
				t.Fatalf("serials %s and %s after %d changes", x, y, 2+2*round+i)
			}
			if x, y := place(a), place(b); x != y || !strings.Contains(x, "example.org") {
				t.Fatalf("one has %s, the other %s", x, y)
			}
		}
	}
	was := serial(a)
	a.store.away.Store(true)
	a.Published.Invalidate() // a commit whose fate is not known
	if got := serial(a); got != was {
		t.Errorf("the serial is %s, and was %s", got, was)
	}
	a.store.away.Store(false)
	b.update("urn:example:1", urlAfter)
	a.follow()
	b.follow()
	if x, y := serial(a), serial(b); x != y {
		t.Errorf("serials %s and %s", x, y)
	}
}

// TestFollowAway: while the store does not answer the server answers from memory, and
// afterwards it reads all changes that it missed.
func TestFollowAway(t *testing.T) {
	peers := newPeers(t, 2, false)
	a, b := peers[0], peers[1]
	a.register("urn:example:1", urlBefore)
	b.follow()
	b.where("urn:example:1")
	b.store.away.Store(true)
	a.update("urn:example:1", urlAfter)
	if err := b.Follower.catchUp(t.Context()); stele.KindOf(err) != stele.Unavailable {
		t.Fatal(err)
	}
	if got := b.where("urn:example:1"); got != urlBefore {
		t.Errorf("got %s", got)
	}
	b.store.away.Store(false)
	b.follow()
	if got := b.where("urn:example:1"); got != urlAfter {
		t.Errorf("got %s", got)
	}
}

// TestFollowReady: a server is ready as long as its database can be read.
func TestFollowReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newPeers(t, 1, false)[0]
		time.Sleep(cutOff)
		if err := b.Follower.Ready(); err != nil {
			t.Error(err)
		}
		b.store.away.Store(true)
		_ = b.Follower.catchUp(t.Context())
		time.Sleep(time.Nanosecond)
		if err := b.Follower.Ready(); stele.KindOf(err) != stele.Unavailable {
			t.Errorf("got %v", err)
		}
		b.store.away.Store(false)
		b.follow()
		if err := b.Follower.Ready(); err != nil {
			t.Error(err)
		}
	})
}

// TestFollowLost: if the database has lost changes, or has others in their place, the
// follower accepts its state.
func TestFollowLost(t *testing.T) {
	peers := newPeers(t, 2, false)
	a, b := peers[0], peers[1]
	a.register("urn:example:1", urlBefore)
	a.update("urn:example:1", urlAfter)
	b.follow()
	b.where("urn:example:1")
	b.store.ignores.Store(1)
	b.follow()
	if got := b.Follower.position.Load(); got != 1 {
		t.Errorf("at change %d", got)
	}
	reads := b.store.reads.Load()
	b.where("urn:example:1")
	if b.store.reads.Load() == reads {
		t.Error("nothing was forgotten")
	}
	b.store.ignores.Store(0)
	b.follow()
	// The feed is another one than before the lag.
	b.where("urn:example:1")
	b.Follower.mark.Version++
	b.store.lagged.Store(time.Now().UnixNano())
	b.follow()
	reads = b.store.reads.Load()
	b.where("urn:example:1")
	if b.store.reads.Load() == reads {
		t.Error("nothing was forgotten")
	}
	// It is the same, and all is kept.
	b.store.lagged.Store(time.Now().UnixNano())
	b.follow()
	reads = b.store.reads.Load()
	if b.where("urn:example:1"); b.store.reads.Load() != reads {
		t.Error("it was forgotten")
	}
}

// TestAwait: a client with a version token gets a state that has it, or is told to try
// again.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peers := newPeers(t, 2, false)
		a, b := peers[0], peers[1]
		b.where("urn:example:1")
		a.register("urn:example:1", urlAfter)
		version, err := a.Version(t.Context())
		if err != nil || version.Change != 1 || version.Generation.IsZero() {
			t.Fatal(version, err)
		}
		next := version
		next.Change++
		if err := b.Await(t.Context(), version); err != nil {
			t.Fatal(err)
		}
		if got := b.where("urn:example:1"); got != urlAfter {
			t.Errorf("got %s", got)
		}
		began := time.Now()
		if err := b.Await(t.Context(), next); stele.KindOf(err) != stele.Unavailable {
			t.Errorf("got %v", err)
		}
		if waited := time.Since(began); waited < awaitLongest || waited > 2*awaitLongest {
			t.Errorf("it took %s", waited)
		}
		// It may come while a caller waits.
		go func() {
			time.Sleep(time.Second)
			a.update("urn:example:1", urlBefore)
		}()
		if err := b.Await(t.Context(), next); err != nil {
			t.Error(err)
		}
		// A copy that has not got so far is not good enough, though the server once had it.
		b.store.lagged.Store(time.Now().UnixNano())
		b.store.lag.Store(true)
		b.store.ignores.Store(1)
		if err := b.Await(t.Context(), next); stele.KindOf(err) != stele.Unavailable {
			t.Errorf("got %v", err)
		}
		if err := b.Await(t.Context(), version); err != nil {
			t.Error(err)
		}
	})
}

// TestFollowTokens: a token that was revoked on one server is refused by the others after
// a second, and a known token stays valid for a while if the database is unavailable.
func TestFollowTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peers := newPeers(t, 2, false)
		a, b := peers[0], peers[1]
		if _, err := a.Registrar.AddUser(a.admin, auth.User{Name: "ann"}); err != nil {
			t.Fatal(err)
		}
		credential, token, err := a.Registrar.CreateToken(a.admin, auth.TokenRequest{User: "ann", Label: "x", Never: true})
		if err != nil {
			t.Fatal(err)
		}
		known := func(p *peer) error {
			_, err := p.Directory.Authenticate(t.Context(), credential)
			return err
		}
		if err := known(b); err != nil {
			t.Fatal(err)
		}
		b.store.away.Store(true)
		time.Sleep(accessGrace)
		if err := known(b); err != nil {
			t.Errorf("a database that is away shuts people out: %v", err)
		}
		time.Sleep(accessAge)
		if err := known(b); stele.KindOf(err) != stele.Unavailable {
			t.Errorf("a server that is cut off believes for ever: %v", err)
		}
		b.store.away.Store(false)
		if err := known(b); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Registrar.RevokeToken(a.admin, token.ID); err != nil {
			t.Fatal(err)
		}
		if err := known(a); stele.KindOf(err) != stele.Unauthenticated {
			t.Errorf("got %v", err)
		}
		time.Sleep(accessAge)
		if err := known(b); stele.KindOf(err) != stele.Unauthenticated {
			t.Errorf("got %v", err)
		}
	})
}
