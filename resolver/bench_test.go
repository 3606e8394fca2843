package resolver

import (
	"fmt"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/mem"
)

// benchmarkRegistry makes a registry with many records in a namespace among
// others.
func benchmarkRegistry(b *testing.B, cacheBytes uint64) (*registry, []stele.ID) {
	const size = 20_000
	store := mem.New(clock)
	r := &registry{New(store, newSchemes(b), Options{Now: clock, CacheBytes: cacheBytes}), b, store}
	for i := range 1000 {
		r.namespace(stele.Namespace{Scheme: "ark", Prefix: fmt.Sprintf("ark:%d/x5", 10000+i)})
	}
	ids, records := make([]stele.ID, size), make([]*stele.Record, size)
	for i := range ids {
		ids[i] = r.id(fmt.Sprintf("ark:10500/x5%07d", i*7919%size))
		records[i] = &stele.Record{ID: ids[i], Version: 1, State: stele.Active, Created: noon, Modified: noon, By: "user:ada",
			Targets:  []stele.Target{{Service: stele.N2L, URL: fmt.Sprintf("https://example.org/things/%d", i), Type: "text/html", Order: 100, Preference: 10, Partial: true}},
			Metadata: stele.Metadata{stele.Who: "Lovelace, Ada", stele.What: "Notes on the engine", stele.When: "1843"}}
	}
	if _, err := store.Ingest(b.Context(), records, nil, nil, nil); err != nil {
		b.Fatal(err)
	}
	return r, ids
}

func (r *registry) benchmark(b *testing.B, ids []stele.ID, q Request) {
	for _, id := range ids { // as often as it takes to fill what is to be full
		q.ID = id
		_, _ = r.Resolve(b.Context(), q)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		q.ID = ids[i%len(ids)]
		if res, err := r.Resolve(b.Context(), q); err != nil && stele.KindOf(err) != stele.NotFound {
			b.Fatal(res, err)
		}
		i++
	}
}

func BenchmarkResolve(b *testing.B) {
	browser := accept(b, "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8")
	under := func(r *registry, ids []stele.ID, suffix string) (all []stele.ID) {
		for _, id := range ids {
			all = append(all, r.id(id.String()+suffix))
		}
		return all
	}
	b.Run("store alone", func(b *testing.B) {
		r, ids := benchmarkRegistry(b, 0)
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			if _, err := r.store.Record(b.Context(), ids[i%len(ids)]); err != nil {
				b.Fatal(err)
			}
			i++
		}
	})
	b.Run("no cache", func(b *testing.B) {
		r, ids := benchmarkRegistry(b, 0)
		r.benchmark(b, ids, Request{})
	})
	b.Run("cached", func(b *testing.B) {
		r, ids := benchmarkRegistry(b, 64<<20)
		r.benchmark(b, ids, Request{})
	})
	b.Run("cached, browser", func(b *testing.B) {
		r, ids := benchmarkRegistry(b, 64<<20)
		r.benchmark(b, ids, Request{Accept: browser})
	})
	b.Run("cached, parallel", func(b *testing.B) {
		r, ids := benchmarkRegistry(b, 64<<20)
		b.ReportAllocs()
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				if _, err := r.Resolve(b.Context(), Request{ID: ids[i%100]}); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
	b.Run("cache too small", func(b *testing.B) {
		r, ids := benchmarkRegistry(b, 256<<10)
		r.benchmark(b, ids, Request{})
	})
	b.Run("below a name", func(b *testing.B) {
		r, ids := benchmarkRegistry(b, 64<<20)
		r.benchmark(b, under(r, ids, "/page/2"), Request{Query: "a=b"})
	})
	b.Run("unknown", func(b *testing.B) {
		r, ids := benchmarkRegistry(b, 64<<20)
		r.benchmark(b, under(r, ids, "z"), Request{})
	})
}
