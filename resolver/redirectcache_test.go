package resolver

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/slab"
	"github.com/stele-id/stele/store/mem"
)

// entryTo makes the redirect entry of a name.
func (l *redirectCache) entryTo(t interface{ Fatal(...any) }, name stele.ID, url string) []byte {
	entry, ok := l.dictionary.appendRedirect(nil, name, &stele.Record{ID: name, State: stele.Active, Version: 1, Targets: []stele.Target{page(url)}})
	if !ok {
		t.Fatal("there is no entry")
	}
	return entry
}

// fullPart is how many bytes a part of the largest size takes, with its index.
const fullPart = slab.MaxPart + slab.MaxPart/slotBytes*4

// What is found is what was put last, however full it is and however names share
// hashes. What was removed is not found.
func TestRedirectCache(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newRedirectCache(uint64(rapid.SampledFrom([]int{1, 4 << 10, 64 << 10, fullPart, 2*fullPart + 1}).Draw(t, "size")))
		defer l.close()
		hashes := rapid.SampledFrom([]uint64{1, 3, 1 << 40}).Draw(t, "hashes")
		hash := func(n int) uint64 { return uint64(n) % hashes * 0x9e3779b97f4a7c15 }
		want := map[int]string{} // what was put last; it may be forgotten
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				n := rapid.IntRange(0, 40).Draw(t, "n")
				name := newID(t, "ark", fmt.Sprintf("ark:12345/x%d", n))
				url := "https://example.org/" + rapid.StringMatching(`x{0,300}`).Draw(t, "url")
				if l.put(name, hash(n), l.entryTo(t, name, url)) {
					want[n] = url
					if r := l.find(name, hash(n)); r == nil || r.Targets[0].URL != url {
						t.Fatalf("what was put is %v", r)
					}
				} else {
					if r := l.find(name, hash(n)); r != nil {
						t.Fatalf("it was refused, and is found: %v", r)
					}
					delete(want, n)
				}
			},
			"remove": func(t *rapid.T) {
				n := rapid.IntRange(0, 40).Draw(t, "n")
				l.remove(newID(t, "ark", fmt.Sprintf("ark:12345/x%d", n)), hash(n))
				delete(want, n)
			},
			"": func(t *rapid.T) {
				for n := range 41 {
					r := l.find(newID(t, "ark", fmt.Sprintf("ark:12345/x%d", n)), hash(n))
					if url, ok := want[n]; r != nil && (!ok || r.Targets[0].URL != url) {
						t.Fatalf("%d leads to %s, and should lead to %q", n, r.Targets[0].URL, url)
					}
				}
			},
		})
	})
}

// As many names have room as the documentation says, except a few whose buckets are full.
func TestRedirectCacheRoom(t *testing.T) {
	const size, each = 4 * fullPart, 45
	c := newCache(nil, Options{RedirectBytes: size})
	defer c.redirects.close()
	id := func(n int) stele.ID { return newID(t, "ark", fmt.Sprintf("ark:12345/x%010x", n)) }
	for n := range size / each {
		c.keepRedirect(c.ticket(id(n)), id(n), &stele.Record{ID: id(n), State: stele.Active, Version: 1, Targets: []stele.Target{
			{Service: stele.N2L, URL: fmt.Sprintf("https://archive.example.org/items/%010x/view", n), Order: stele.DefaultOrder, Preference: stele.DefaultPreference}}})
	}
	lost := 0
	for n := range size / each {
		if c.redirect(id(n)) == nil {
			lost++
		}
	}
	if lost > size/each/50 {
		t.Errorf("%d of %d names are not found", lost, size/each)
	}
}

// Where it is full, what is removed makes room in the end.
func TestRedirectCacheAgain(t *testing.T) {
	l := newRedirectCache(16 << 10)
	defer l.close()
	put := func(n int) bool {
		name := newID(t, "ark", fmt.Sprintf("ark:12345/x%d", n))
		return l.put(name, uint64(n)*0x9e3779b97f4a7c15, l.entryTo(t, name, "https://example.org/"+strings.Repeat("x", 200)))
	}
	n := 0
	for refused := 0; refused < 100; n++ { // a few are because of their hash
		if !put(n) {
			refused++
		}
	}
	for i := range n / 2 {
		l.remove(newID(t, "ark", fmt.Sprintf("ark:12345/x%d", i)), uint64(i)*0x9e3779b97f4a7c15)
	}
	if !put(n) {
		t.Error("there is no room")
	}
}

// Requests are answered while the memory is given back, and after that.
func TestRedirectCacheClose(t *testing.T) {
	r := newRegistry(t, Options{Now: clock, RedirectBytes: 1 << 20})
	r.to("ark:12345/x1", page("https://example.org/1"))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 2000 {
				if res := r.resolve(Request{ID: r.id("ark:12345/x1"), Brief: true}); res.URL != "https://example.org/1" {
					t.Error(res.URL)
				}
			}
		})
	}
	r.Close()
	all.Wait()
	r.Close()
	if res := r.resolve(Request{ID: r.id("ark:12345/x1"), Brief: true}); res.Brief {
		t.Error("it is known where there is no memory")
	}
	r.Invalidate(&stele.Record{ID: r.id("ark:12345/x1")})
}

// Requests that are brief are answered without the store, and as others are.
func TestBrief(t *testing.T) {
	r, store := newCounted(t, Options{Now: clock, CacheBytes: 0, RedirectBytes: 1 << 20, DefaultTTL: 60, Hosts: []string{"id.example.org"}})
	defer r.Close()
	r.namespace(stele.Namespace{Scheme: "ark", Prefix: "ark:12345", TTL: 7, Status: 307})
	r.put(stele.Record{ID: r.id("ark:12345/x1"), Aliases: []stele.ID{r.id("20.500.12345/one")}, Targets: []stele.Target{page("https://example.org/1")}, Metadata: stele.Metadata{"who": "Ada"}})
	r.to("urn:example:1", page("https://example.org/2"), stele.Target{Service: stele.N2L, URL: "https://example.org/3", Order: 1, TTL: 5, Status: 303, Type: "text/plain"})
	r.to("urn:example:chained", page("https://id.example.org/urn:example:1"))
	r.to("urn:example:gone", stele.Target{Service: stele.N2L, URL: "https://example.org/4", Status: 410})
	r.put(stele.Record{ID: r.id("urn:example:withdrawn"), State: stele.Withdrawn, Tombstone: &stele.Tombstone{Reason: "lost"}, Targets: []stele.Target{page("https://example.org/5")}})
	r.put(stele.Record{ID: r.id("urn:example:described"), Metadata: stele.Metadata{"who": "Ada"}})
	r.to("ark:12345/part", partial("https://example.org/6/"))
	if err := r.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.resolve(Request{ID: r.id("ark:12345/x1")}) // reads the namespaces
	for _, tt := range []struct {
		name, query string
		brief       bool
	}{
		{"ark:12345/x1", "", true},
		{"20.500.12345/one", "", true},
		{"urn:example:1", "", true},
		{"urn:example:chained", "", true},
		{"urn:example:gone", "", true},
		{"ark:12345/part", "", true},
		{"ark:12345/part", "a=b", false},
		{"ark:12345/part/of", "", false},
		{"urn:example:withdrawn", "", false},
		{"urn:example:described", "", false},
	} {
		q := Request{ID: r.id(tt.name), Query: tt.query}
		want := r.resolve(q)
		before := store.sum()
		q.Brief = true
		got := r.resolve(q)
		if reads := store.sum() - before; got.Brief != tt.brief || (reads == 0) != tt.brief {
			t.Errorf("%s?%s: brief %v, and the store is read %d times", tt.name, tt.query, got.Brief, reads)
		}
		if tt.brief {
			if got.Record.ID != want.Record.ID || got.Record.Version != want.Record.Version || !cmp.Equal(got.Record.Aliases, want.Record.Aliases, cmp.AllowUnexported(stele.ID{})) {
				t.Errorf("%s: the record is %+v", tt.name, got.Record)
			}
			got.Brief, got.Record, want.Record = false, nil, nil
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(stele.ID{})); diff != "" {
			t.Errorf("%s?%s:\n%s", tt.name, tt.query, diff)
		}
	}
	// With an age nothing is kept that does not grow old.
	r, store = newCounted(t, Options{Now: clock, RedirectBytes: 1 << 20, CacheAge: 1})
	r.to("urn:example:1", page("https://example.org/1"))
	if err := r.Load(t.Context()); err != nil || r.resolve(Request{ID: r.id("urn:example:1"), Brief: true}).Brief || store.records.Load() == 0 {
		t.Errorf("%v, and the store is read %d times", err, store.records.Load())
	}
}

// Load reads all of a registry, in pages, and ends where there is no more room.
func TestLoad(t *testing.T) {
	for _, tt := range []struct {
		records int
		size    uint64
		all     bool
	}{
		{2*loadPage + 10, 2 << 20, true},
		{loadPage, 2 << 20, true},
		{3 * loadPage, 64 << 10, false},
	} {
		r := newRegistry(t, Options{Now: clock, RedirectBytes: tt.size})
		defer r.Close()
		var records []*stele.Record
		for i := range tt.records {
			form := "ark:12345/%d"
			if i%2 == 1 {
				form = "urn:example:%d"
			}
			records = append(records, &stele.Record{ID: r.id(fmt.Sprintf(form, i)), Version: 1, State: stele.Active, Targets: []stele.Target{page(fmt.Sprintf("https://example.org/%d", i))}})
		}
		if _, err := r.store.Ingest(t.Context(), records, nil, nil, nil); err != nil {
			t.Fatal(err)
		}
		if err := r.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		known := 0
		for i, record := range records {
			if got := r.records.redirect(record.ID); got != nil {
				known++
				if want := fmt.Sprintf("https://example.org/%d", i); got.Targets[0].URL != want {
					t.Errorf("%s leads to %s", record.ID, got.Targets[0].URL)
				}
			}
		}
		if tt.all && known < tt.records*98/100 || !tt.all && (known == 0 || known > tt.records/2) {
			t.Errorf("%d of %d are known", known, tt.records)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if err := r.Load(ended); err == nil {
			t.Error("it goes on when it should end")
		}
	}
}

// scanned is a store that calls then when a page was read, before the reader gets any
// record of it.
type scanned struct {
	stele.Store
	then func()
}

func (s *scanned) Scan(ctx context.Context, scheme, prefix, after string) iter.Seq2[*stele.Record, error] {
	return func(yield func(*stele.Record, error) bool) {
		var page []*stele.Record
		for record, err := range s.Store.Scan(ctx, scheme, prefix, after) {
			if err != nil {
				yield(nil, err)
				return
			}
			page = append(page, record)
		}
		if len(page) > 0 {
			s.then()
		}
		for _, record := range page {
			if !yield(record, nil) {
				return
			}
		}
	}
}

// What is written while a page is read is not kept as it was before.
func TestSlowLoad(t *testing.T) {
	store := &scanned{Store: mem.New(clock)}
	r := &registry{New(store, newSchemes(t), Options{Now: clock, RedirectBytes: 1 << 20}), t, store}
	defer r.Close()
	for i := range 100 {
		r.to(fmt.Sprintf("ark:12345/x%d", i), page("https://example.org/old"))
	}
	store.then = func() {
		r.put(stele.Record{ID: r.id("ark:12345/x7"), Version: 1, Targets: []stele.Target{page("https://example.org/new")}})
	}
	if err := r.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	known := 0
	for i := range 100 {
		res := r.resolve(Request{ID: r.id(fmt.Sprintf("ark:12345/x%d", i)), Brief: true})
		if want := "https://example.org/new"; i == 7 && res.URL != want {
			t.Errorf("after the write: %s", res.URL)
		}
		if res.Brief {
			known++
		}
	}
	if known < 90 {
		t.Errorf("only %d of 100 are known", known)
	}
}

func BenchmarkBrief(b *testing.B) {
	r, ids := benchmarkRegistry(b, 0)
	r.Resolver = New(r.store, r.schemes, Options{Now: clock, RedirectBytes: 64 << 20})
	defer r.Close()
	if err := r.Load(b.Context()); err != nil {
		b.Fatal(err)
	}
	r.benchmark(b, ids, Request{Brief: true})
}
