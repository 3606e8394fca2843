package dnsd

import (
	"fmt"
	"testing"
)

// BenchmarkCache measures the cache alone: answers of 250 bytes, 50,000 of them in a cache
// that has room for all, and in one that is full all the time.
func BenchmarkCache(b *testing.B) {
	const n = 50_000
	names, answers := make([][]byte, n), make([]*packed, n)
	for i := range names {
		names[i] = fmt.Appendf(nil, "\x08%08d\x05names\x07example\x00", i)
		answers[i] = stored(i, 250)
	}
	filled := func(size int) *cache {
		c := newCache(size)
		for i, name := range names {
			c.put(name, c.hash(name), 35, 0, answers[i])
		}
		return c
	}
	dst := make([]byte, 0, maxMessage)
	get := func(b *testing.B, qtype uint16) {
		c := filled(64 << 20)
		defer c.close()
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			name := names[i*7919%n]
			c.get(dst, name, c.hash(name), qtype, maxMessage)
		}
	}
	b.Run("hit", func(b *testing.B) { get(b, 35) })
	b.Run("miss", func(b *testing.B) { get(b, 1) })
	b.Run("hit, parallel", func(b *testing.B) {
		c := filled(64 << 20)
		defer c.close()
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			dst := make([]byte, 0, maxMessage)
			for i := 0; pb.Next(); i++ {
				name := names[i*7919%n]
				c.get(dst, name, c.hash(name), 35, maxMessage)
			}
		})
	})
	put := func(b *testing.B, size int) {
		c := filled(size)
		defer c.close()
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			name := names[i*7919%n]
			c.put(name, c.hash(name), 35, 0, answers[i*7919%n])
		}
	}
	b.Run("put", func(b *testing.B) { put(b, 64<<20) })
	b.Run("put, full", func(b *testing.B) { put(b, 2<<20) })
}
