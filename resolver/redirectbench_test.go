package resolver

import (
	"fmt"
	"testing"

	"github.com/stele-id/stele"
)

// BenchmarkRedirectCache measures the cache of redirects alone, with 50,000 names.
func BenchmarkRedirectCache(b *testing.B) {
	const n = 50_000
	ids, absent, records := make([]stele.ID, n), make([]stele.ID, n), make([]*stele.Record, n)
	for i := range ids {
		ids[i], absent[i] = newID(b, "ark", fmt.Sprintf("ark:12345/x%010x", i)), newID(b, "ark", fmt.Sprintf("ark:12345/y%010x", i))
		records[i] = &stele.Record{ID: ids[i], State: stele.Active, Version: 1, Targets: []stele.Target{page(fmt.Sprintf("https://archive.example.org/items/%010x/view", i))}}
	}
	filled := func(size uint64) *cache {
		c := newCache(nil, Options{RedirectBytes: size})
		for i, id := range ids {
			c.keepRedirect(c.ticket(id), id, records[i])
		}
		return c
	}
	b.Run("hit", func(b *testing.B) {
		c := filled(8 << 20)
		defer c.redirects.close()
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			c.redirect(ids[i*7919%n])
		}
	})
	b.Run("miss", func(b *testing.B) {
		c := filled(8 << 20)
		defer c.redirects.close()
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			c.redirect(absent[i*7919%n])
		}
	})
	b.Run("hit, parallel", func(b *testing.B) {
		c := filled(8 << 20)
		defer c.redirects.close()
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				c.redirect(ids[i*7919%n])
			}
		})
	})
	b.Run("put", func(b *testing.B) {
		c := filled(8 << 20)
		defer c.redirects.close()
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			id := ids[i*7919%n]
			c.keepRedirect(c.ticket(id), id, records[i*7919%n])
		}
	})
	b.Run("put and remove", func(b *testing.B) {
		c := filled(8 << 20)
		defer c.redirects.close()
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			id := ids[i*7919%n]
			c.redirects.remove(id, c.hash(id))
			c.keepRedirect(c.ticket(id), id, records[i*7919%n])
		}
	})
	b.Run("put, full", func(b *testing.B) {
		c := filled(1 << 20)
		defer c.redirects.close()
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			id := ids[i*7919%n]
			c.keepRedirect(c.ticket(id), id, records[i*7919%n])
		}
	})
}
