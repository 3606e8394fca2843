package transparency

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/pebble"
)

// BenchmarkProve makes proofs of names that nobody asked for lately.
func BenchmarkProve(b *testing.B) {
	h := newHouse(b, func(now func() time.Time) stele.Store {
		s, err := pebble.Open(b.Context(), b.TempDir(), pebble.Options{Now: now, Reserve: 1})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { s.Close() })
		return s
	})
	const names = 100_000
	h.ingest("ark:99999/i", names)
	h.catchUp()
	_, err := h.log.Sign(h.ctx, h.keys)
	h.must(err)
	rnd := rand.New(rand.NewPCG(1, 1))
	b.ReportAllocs()
	for b.Loop() {
		p, err := h.log.Prove(h.ctx, Wanted{ID: h.id(fmt.Sprintf("ark:99999/i%d", rnd.IntN(names))), Version: 1})
		if err != nil || p.Document == nil {
			b.Fatal(p, err)
		}
	}
}
