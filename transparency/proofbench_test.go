package transparency

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/pebble"
)

// benchNames is how many names the logs of benchmarks have.
const benchNames = 100_000

// newBenchHouse makes a log of many names in a folder.
func newBenchHouse(b *testing.B) *house {
	h := newHouse(b, func(now func() time.Time) stele.Store {
		s, err := pebble.Open(b.Context(), b.TempDir(), pebble.Options{Now: now, Reserve: 1})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { s.Close() })
		return s
	})
	h.ingest("ark:99999/i", benchNames)
	h.catchUp()
	_, err := h.log.Sign(h.ctx, h.keys)
	h.must(err)
	return h
}

// BenchmarkProve makes proofs of names that were not asked for lately.
func BenchmarkProve(b *testing.B) {
	h := newBenchHouse(b)
	rnd := rand.New(rand.NewPCG(1, 1))
	b.ReportAllocs()
	for b.Loop() {
		p, err := h.log.Prove(h.ctx, Wanted{ID: h.id(fmt.Sprintf("ark:99999/i%d", rnd.IntN(benchNames))), Version: 1})
		if err != nil || p.Document == nil {
			b.Fatal(p, err)
		}
	}
}

// BenchmarkVerify checks a whole log.
func BenchmarkVerify(b *testing.B) {
	h := newBenchHouse(b)
	for b.Loop() {
		h.must(h.log.Verify(h.ctx, func(m *stele.Message) { b.Error(m) }))
	}
}
