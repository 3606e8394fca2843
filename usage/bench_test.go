package usage

import (
	"fmt"
	"hash/maphash"
	"math"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/store/pebble"
)

// BenchmarkHit measures what counting costs a request, and BenchmarkCount what it costs the goroutine that counts, for each hit.
func BenchmarkHit(b *testing.B) {
	h := newHouse(&testing.T{})
	id := stele.StoredID("ark", "ark:12345/x1")
	h.counter.classes.keep(h.counter.classes.hash(firefox), Regular)
	b.ReportAllocs()
	for i := range b.N {
		h.counter.Redirected(id, h.ann, firefox, "")
		if i%ringSize == ringSize-1 {
			b.StopTimer()
			for _, r := range h.counter.rings {
				for r.take(h.counter.batch[:]) > 0 {
				}
			}
			b.StartTimer()
		}
	}
}

// BenchmarkCount has as many names and readers as the figure usage of bench has: what is known of them is not in the processor's cache.
func BenchmarkCount(b *testing.B) {
	h := newHouse(&testing.T{})
	list := zipf(h, 1<<16)
	b.ReportAllocs()
	for i := 0; i < b.N; i += batchSize {
		from := i & (len(list) - 1)
		copy(h.counter.batch[:], list[from:from+batchSize])
		if from == 0 {
			for at := range list { // other readers
				list[at].visitor = rand.Uint64() % 500 * 0x9e3779b97f4a7c15
			}
			if h.counter.tally.clicks.used > maxClicks/2 {
				h.counter.tally.clicks = newPairs(len(h.counter.tally.clicks.slots))
			}
		}
		h.counter.countBatch(h.counter.batch[:], noon.Unix())
	}
}

// zipf returns hits on 50,000 names, of which a few are asked for often.
func zipf(h *house, n int) (list []event) {
	for range n {
		text := fmt.Sprintf("ark:12345/n%06d", int(math.Exp(rand.Float64()*math.Log(50_000))))
		list = append(list, event{text: text, name: maphash.String(h.counter.tally.seed, text), visitor: rand.Uint64(), second: uint16(noon.Unix()), scheme: uint8(h.counter.scheme("ark")), what: uint8(Regular)})
	}
	return list
}

// BenchmarkFlush measures what it costs to write the figures of a name in an interval, of 50,000 that are used in each: to their cells each
// time, as with few names, or to the journal, and from there to the cells every foldAfter intervals. It tells the CPU time of the process too, with what the store does
// in the background.
func BenchmarkFlush(b *testing.B) {
	b.Run("cells", func(b *testing.B) {
		benchmarkFlush(b, func(c *Counter) {
			if _, err := c.keeper.keep(c.ctx, noon, c.tally.collect([]addition{began(noon)}, c.tally.recordAdditions(false))); err != nil {
				b.Fatal(err)
			}
		})
	})
	b.Run("journal", func(b *testing.B) {
		n := 0
		benchmarkFlush(b, func(c *Counter) {
			c.flush(noon)
			if n++; n%foldAfter == 0 {
				c.keeper.folds.queue = []string{c.keeper.server}
				if err := c.keeper.fold(c.ctx, noon, 1000); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
}

func benchmarkFlush(b *testing.B, flush func(c *Counter)) {
	h := newHouse(&testing.T{})
	store, err := pebble.Open(b.Context(), b.TempDir(), pebble.Options{Now: h.clock})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	h.counter = h.newCounter(registrar.New(store, h.schemes, registrar.Options{Now: h.clock}))
	h.counter.ctx = b.Context()
	const names = 50_000
	b.ReportAllocs()
	used := time.Duration(0)
	for n := 0; n < b.N; n += names {
		b.StopTimer()
		for i := range names {
			h.counter.tally.count(&reading{at: noon.Unix(), id: stele.StoredID("ark", fmt.Sprintf("ark:12345/n%06d", i*7919%names)), visitor: uint64(n), class: Regular, kind: Redirect})
		}
		b.StartTimer()
		before := cpuTime(b)
		flush(h.counter)
		used += cpuTime(b) - before
	}
	b.StopTimer()
	b.ReportMetric(float64(used)/float64(b.N), "cpu-ns/op")
	if s := h.counter.Stats(); s.Failed > 0 || s.Waiting > 0 {
		b.Errorf("%+v", s)
	}
}

// cpuTime returns the CPU time that the process has used.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
