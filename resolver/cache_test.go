package resolver

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/mem"
)

// counting is a store that counts what it is asked.
type counting struct {
	stele.Store
	records, longest, namespaces atomic.Uint64
}

func (c *counting) Record(ctx context.Context, name stele.ID) (*stele.Record, error) {
	c.records.Add(1)
	return c.Store.Record(ctx, name)
}

func (c *counting) Longest(ctx context.Context, name stele.ID, cuts func(n int) bool) (*stele.Record, stele.Prefix, error) {
	c.longest.Add(1)
	return c.Store.Longest(ctx, name, cuts)
}

func (c *counting) Namespaces(ctx context.Context) iter.Seq2[*stele.Namespace, error] {
	c.namespaces.Add(1)
	return c.Store.Namespaces(ctx)
}

func (c *counting) sum() uint64 { return c.records.Load() + c.longest.Load() + c.namespaces.Load() }

// newCounted makes a registry over a store that counts.
func newCounted(t *testing.T, o Options) (*registry, *counting) {
	store := &counting{Store: mem.New(clock)}
	return &registry{New(store, newSchemes(t), o), t, store}, store
}

func TestCacheHits(t *testing.T) {
	r, store := newCounted(t, Options{Now: clock, CacheBytes: 1 << 20})
	r.put(stele.Record{ID: r.id("ark:12345/x1"), Aliases: []stele.ID{r.id("20.500.12345/one")}, Targets: []stele.Target{partial("https://example.org/1")}})
	for _, tt := range []struct {
		name  string
		reads uint64 // of the store, the first time
		want  string
	}{
		{"ark:12345/x1", 2, "https://example.org/1"}, // with the namespaces
		{"20.500.12345/one", 1, "https://example.org/1"},
		{"ark:12345/x1/a", 2, "https://example.org/1/a"}, // the name, and its longest prefix
		{"ark:12345/x1/b/c", 2, "https://example.org/1/b/c"},
		{"ark:12345/x1/b/d", 2, "https://example.org/1/b/d"},
		{"ark:12345/x2", 2, "not found"},
		{"ark:12345/y2", 2, "not found"},
		{"ark:12345/y3b", 2, "not found"},
		{"20.500.12345/two", 2, "not found"},
		{"20.500.12345/three", 2, "not found"},
	} {
		for _, reads := range []uint64{tt.reads, 0, 0} {
			before := store.sum()
			if got := r.location(tt.name); got != tt.want {
				t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
			}
			if n := store.sum() - before; n != reads {
				t.Errorf("%s: %d reads of the store, want %d", tt.name, n, reads)
			}
		}
	}
}

// Unknown names are forgotten soon, and everything is where there is an age.
func TestCacheAge(t *testing.T) {
	now := noon
	for _, tt := range []struct {
		age            time.Duration
		known, unknown time.Duration // how long they are kept; 0: for ever
	}{
		{0, 0, unknownAge},
		{time.Second, time.Second, time.Second},
		{time.Hour, time.Hour, unknownAge},
	} {
		r, store := newCounted(t, Options{Now: func() time.Time { return now }, CacheBytes: 1 << 20, CacheAge: tt.age})
		r.to("urn:example:1", page("https://example.org/1"))
		reads := func(name string, wait time.Duration) uint64 {
			r.location(name)
			before := store.records.Load()
			now = now.Add(wait)
			r.location(name)
			return store.records.Load() - before
		}
		for name, age := range map[string]time.Duration{"urn:example:1": tt.known, "urn:example:2": tt.unknown} {
			if age == 0 {
				if n := reads(name, 1000*time.Hour); n != 0 {
					t.Errorf("age %v: %s is forgotten", tt.age, name)
				}
				continue
			}
			if n := reads(name, age-1); n != 0 {
				t.Errorf("age %v: %s is forgotten too early", tt.age, name)
			}
			if n := reads(name, age); n != 1 {
				t.Errorf("age %v: %s is kept too long", tt.age, name)
			}
		}
		// Another process changes a namespace.
		before := store.namespaces.Load()
		now = now.Add(2 * time.Hour)
		r.location("urn:example:1")
		if n := store.namespaces.Load() - before; n != min(1, uint64(tt.age)) {
			t.Errorf("age %v: namespaces are read %d times", tt.age, n)
		}
	}
	// Without a clock nothing is kept that would have to grow old.
	r, store := newCounted(t, Options{CacheBytes: 1 << 20})
	r.location("urn:example:2")
	before := store.records.Load()
	r.location("urn:example:2")
	if store.records.Load() == before {
		t.Error("an unknown name is kept without a clock")
	}
}

func TestCacheBytes(t *testing.T) {
	const limit = 64 << 10
	r, _ := newCounted(t, Options{Now: clock, CacheBytes: limit})
	for i := range 200 {
		name := fmt.Sprintf("urn:example:%d", i)
		r.to(name, page("https://example.org/"+strings.Repeat("x", 1000)))
		r.location(name)
		r.location(fmt.Sprintf("urn:example:none-%d", i))
	}
	kept := r.records.kept
	kept.CleanUp()
	if n := kept.WeightedSize(); n > limit || n < limit/2 {
		t.Errorf("%d bytes are kept, where %d may be", n, limit)
	}
	var texts int
	for _, e := range kept.All() {
		if e.record != nil {
			texts += len(e.record.Targets[0].URL)
		}
	}
	if texts > limit || texts == 0 {
		t.Errorf("%d bytes of texts", texts)
	}
	whole := stele.Record{ID: r.id("ark:12345/x1"), Aliases: []stele.ID{r.id("ark:12345/x2")}, Tombstone: &stele.Tombstone{Reason: "reason"},
		Targets: []stele.Target{page("https://example.org/")}, Metadata: stele.Metadata{"who": "Ada"}, Readers: []string{"user:ada"},
		Values: []stele.HandleValue{{Data: make([]byte, 5000), References: []stele.HandleReference{{Handle: strings.Repeat("x", 3000)}}}}}
	if n := weigh(whole.ID, &entry{record: &whole}); n < 8500 || n > 10000 {
		t.Errorf("a record of about 9000 bytes weighs %d", n)
	}
}

// What is kept does not hold the text of a request in memory.
func TestCacheOwnsNames(t *testing.T) {
	r, _ := newCounted(t, Options{Now: clock, CacheBytes: 1 << 20})
	r.put(stele.Record{ID: r.id("ark:12345/a"), Aliases: []stele.ID{r.id("20.500.12345/A")}, Targets: []stele.Target{partial("https://example.org/")}})
	asked := []stele.ID{r.id("ark:12345/a/b"), r.id("ark:12345/a"), r.id("20.500.12345/A"), r.id("urn:example:none")}
	for _, id := range asked {
		_, _ = r.Resolve(t.Context(), Request{ID: id})
	}
	inside := func(part, whole string) bool {
		p, w := uintptr(unsafe.Pointer(unsafe.StringData(part))), uintptr(unsafe.Pointer(unsafe.StringData(whole)))
		return p >= w && p < w+uintptr(len(whole))
	}
	n := 0
	for name := range r.records.kept.Keys() {
		n++
		for _, id := range asked {
			if inside(name.String(), id.String()) {
				t.Errorf("%s is a piece of %s", name, id)
			}
		}
	}
	if n < len(asked) {
		t.Errorf("only %d names are kept", n)
	}
}

// A cache that is full does not take in what is asked for once, and takes in what
// is asked for often.
func TestCacheFull(t *testing.T) {
	r, store := newCounted(t, Options{Now: clock, CacheBytes: 64 << 10})
	ask := func(name string) (reads uint64) {
		before := store.records.Load()
		r.location(name)
		return store.records.Load() - before
	}
	for i := 0; !r.records.full.Load(); i++ {
		if i == 100_000 {
			t.Fatal("it never gets full")
		}
		ask(fmt.Sprintf("urn:example:%d", i))
	}
	for i := range 100 {
		name := fmt.Sprintf("urn:example:once-%d", i)
		ask(name)
		if _, ok := r.records.kept.GetEntryQuietly(r.id(name)); ok {
			t.Fatalf("%s is kept", name)
		}
	}
	var reads uint64
	for range 1000 {
		reads += ask("urn:example:often")
	}
	if reads > 500 {
		t.Errorf("%d of 1000 times the store is read", reads)
	}
}

// slow is a store whose answers are held back, once they are read, for as long as the
// test wants.
type slow struct {
	stele.Store
	hold  atomic.Bool
	read  chan struct{} // a value comes when an answer was read
	leave chan struct{} // it goes to the reader when a value is sent here
}

func newSlow() *slow {
	return &slow{Store: mem.New(clock), read: make(chan struct{}), leave: make(chan struct{})}
}

func (s *slow) wait() {
	if s.hold.Load() {
		s.read <- struct{}{}
		<-s.leave
	}
}

func (s *slow) Record(ctx context.Context, name stele.ID) (*stele.Record, error) {
	defer s.wait()
	return s.Store.Record(ctx, name)
}

func (s *slow) Longest(ctx context.Context, name stele.ID, cuts func(n int) bool) (*stele.Record, stele.Prefix, error) {
	defer s.wait()
	return s.Store.Longest(ctx, name, cuts)
}

func (s *slow) Namespaces(ctx context.Context) iter.Seq2[*stele.Namespace, error] {
	return func(yield func(*stele.Namespace, error) bool) {
		for n, err := range s.Store.Namespaces(ctx) {
			if !yield(n, err) {
				return
			}
		}
		s.wait()
	}
}

// A reader has the store's old answer in its hands when a write is finished. It
// may give that answer, since it began before, but no reader that begins later may get
// it.
func TestSlowReader(t *testing.T) {
	for _, tt := range []struct {
		what       string
		name       string
		prepare    func(r *registry)
		write      func(r *registry)
		old, fresh string
	}{
		{"record", "ark:12345/a",
			func(r *registry) { r.to("ark:12345/a", page("https://example.org/1")) },
			func(r *registry) {
				r.put(stele.Record{ID: r.id("ark:12345/a"), Version: 1, Targets: []stele.Target{page("https://example.org/2")}})
			}, "https://example.org/1", "https://example.org/2"},
		{"new record", "ark:12345/a",
			func(r *registry) {},
			func(r *registry) { r.to("ark:12345/a", page("https://example.org/2")) },
			"not found", "https://example.org/2"},
		{"alias", "20.500.12345/a",
			func(r *registry) {
				r.put(stele.Record{ID: r.id("ark:12345/a"), Aliases: []stele.ID{r.id("20.500.12345/a")}, Targets: []stele.Target{page("https://example.org/1")}})
			},
			func(r *registry) {
				r.put(stele.Record{ID: r.id("ark:12345/a"), Aliases: []stele.ID{r.id("20.500.12345/a")}, Version: 1, Targets: []stele.Target{page("https://example.org/2")}})
			}, "https://example.org/1", "https://example.org/2"},
		{"new alias", "20.500.12345/a",
			func(r *registry) { r.to("ark:12345/a", page("https://example.org/1")) },
			func(r *registry) {
				r.put(stele.Record{ID: r.id("ark:12345/a"), Aliases: []stele.ID{r.id("20.500.12345/a")}, Version: 1, Targets: []stele.Target{page("https://example.org/2")}})
			}, "not found", "https://example.org/2"},
		{"prefix", "ark:12345/a/b",
			func(r *registry) { r.to("ark:12345/a", partial("https://example.org/1")) },
			func(r *registry) {
				r.put(stele.Record{ID: r.id("ark:12345/a"), Version: 1, Targets: []stele.Target{partial("https://example.org/2")}})
			}, "https://example.org/1/b", "https://example.org/2/b"},
		{"longer prefix", "ark:12345/a/b/c",
			func(r *registry) { r.to("ark:12345/a", partial("https://example.org/1")) },
			func(r *registry) { r.to("ark:12345/a/b", partial("https://example.org/2")) },
			"https://example.org/1/b/c", "https://example.org/2/c"},
		{"new prefix", "ark:12345/a/b",
			func(r *registry) {},
			func(r *registry) { r.to("ark:12345/a", partial("https://example.org/2")) },
			"not found", "https://example.org/2/b"},
		{"namespace", "ark:12345/a",
			func(r *registry) {},
			func(r *registry) {
				r.namespace(stele.Namespace{Scheme: "ark", Prefix: "ark:12345", Delegate: "https://example.org/{id}"})
			}, "not found", "https://example.org/ark:12345/a"},
	} {
		for held := range 3 {
			t.Run(fmt.Sprintf("%s, answer %d", tt.what, held), func(t *testing.T) {
				store := newSlow()
				r := &registry{New(store, newSchemes(t), Options{Now: clock, CacheBytes: 1 << 20}), t, store}
				tt.prepare(r)
				store.hold.Store(true)
				got := make(chan string)
				go func() { got <- r.location(tt.name) }()
				var answer string
				written := false
				for n := 0; answer == ""; n++ {
					select {
					case <-store.read:
						if n == held {
							tt.write(r)
							written = true
						}
						store.leave <- struct{}{}
					case answer = <-got:
					}
				}
				store.hold.Store(false)
				if !written {
					tt.write(r)
				}
				if answer != tt.old && answer != tt.fresh {
					t.Errorf("the slow reader gets %s", answer)
				}
				for range 2 {
					if got := r.location(tt.name); got != tt.fresh {
						t.Errorf("after the write: %s, want %s", got, tt.fresh)
					}
				}
			})
		}
	}
}

// Once a write is acknowledged, no reader that begins later sees an older version: by
// any name of the record, and below it, while records come and go in a cache that is
// too small for them.
func TestNeverStale(t *testing.T) {
	const things, versions, readers = 4, 400, 4
	for _, o := range []Options{{CacheBytes: 4 << 10}, {CacheBytes: 1 << 20}, {RedirectBytes: 4 << 10}, {CacheBytes: 1 << 20, RedirectBytes: 1 << 20}} {
		t.Run(fmt.Sprint(o.CacheBytes, "+", o.RedirectBytes), func(t *testing.T) {
			store := mem.New(clock)
			o.Now = clock
			r := &registry{New(store, newSchemes(t), o), t, store}
			defer r.Close()
			var acknowledged [things]atomic.Uint64
			var names [things][]stele.ID
			for i := range things {
				for _, form := range []string{"ark:12345/a%d", "20.500.12345/a%d", "urn:example:a%d", "ark:12345/a%d/b", "urn:example:a%d:b:c"} {
					names[i] = append(names[i], r.id(fmt.Sprintf(form, i)))
				}
			}
			var writers, all sync.WaitGroup
			done := make(chan struct{})
			for i := range things {
				writers.Go(func() {
					for v := range uint64(versions) {
						record := &stele.Record{ID: names[i][0], Aliases: names[i][1:2], Version: v + 1, State: stele.Active, Targets: []stele.Target{partial("https://example.org/")}}
						if v >= versions/2 { // a name that was unknown until now
							record.Aliases = names[i][1:3]
						}
						if err := store.Apply(t.Context(), &stele.Commit{Records: []*stele.Record{record}}); err != nil {
							t.Error(err)
							return
						}
						r.Invalidate(record)
						acknowledged[i].Store(v + 1)
					}
				})
			}
			for n := range readers {
				all.Go(func() {
					random := rand.New(rand.NewPCG(uint64(n), o.CacheBytes))
					for last := false; !last; {
						select {
						case <-done:
							last = true // each reads once when all is written
						default:
						}
						i, j := random.IntN(things), random.IntN(len(names[0]))
						least := acknowledged[i].Load()
						if j == 2 || j == 4 {
							if least <= versions/2 {
								least = 0 // not an alias yet
							}
						}
						res, err := r.Resolve(t.Context(), Request{ID: names[i][j], Brief: random.IntN(2) == 0})
						var version uint64
						if err == nil {
							version = res.Record.Version
						} else if stele.KindOf(err) != stele.NotFound {
							t.Error(err)
						}
						if version < least {
							t.Errorf("%s: version %d after %d was acknowledged", names[i][j], version, least)
						}
					}
				})
			}
			all.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
					}
					if err := r.Load(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
			writers.Wait()
			close(done)
			all.Wait()
		})
	}
}

// The same for namespaces.
func TestNamespacesNeverStale(t *testing.T) {
	const versions, readers = 300, 3
	store := mem.New(clock)
	r := &registry{New(store, newSchemes(t), Options{Now: clock, CacheBytes: 1 << 20}), t, store}
	id := r.id("ark:12345/a")
	var acknowledged atomic.Uint64
	var all sync.WaitGroup
	for range readers {
		all.Go(func() {
			for {
				least := acknowledged.Load()
				res, err := r.Resolve(t.Context(), Request{ID: id})
				if least > 0 && (err != nil || res.Namespace.Version < least) {
					t.Errorf("%+v, %v after version %d was acknowledged", res, err, least)
				}
				if least == versions {
					return
				}
			}
		})
	}
	for v := range uint64(versions) {
		r.namespace(stele.Namespace{Scheme: "ark", Prefix: "ark:12345", Delegate: "https://example.org/{id}", Version: v})
		acknowledged.Store(v + 1)
	}
	all.Wait()
}

// TestStats: the resolver counts which look-ups its caches answered.
func TestStats(t *testing.T) {
	for _, tt := range []struct {
		o    Options
		want Stats
	}{
		{Options{Now: clock, CacheBytes: 1 << 20}, Stats{RecordHits: 2, RecordMisses: 1}},
		{Options{Now: clock, CacheBytes: 1 << 20, RedirectBytes: 1 << 20}, Stats{RedirectHits: 2, RedirectMisses: 1, RecordMisses: 1}},
	} {
		r, _ := newCounted(t, tt.o)
		r.put(stele.Record{ID: r.id("ark:12345/x1"), Targets: []stele.Target{partial("https://example.org/1")}})
		for range 3 {
			r.resolve(Request{ID: r.id("ark:12345/x1"), Service: stele.N2L, Brief: true})
		}
		if got := r.Stats(); got != tt.want {
			t.Errorf("%+v, want %+v", got, tt.want)
		}
	}
}
