package usage

import (
	"fmt"
	"testing"

	"github.com/stele-id/stele"
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
				h.counter.batch = r.take(h.counter.batch[:0])
			}
			b.StartTimer()
		}
	}
}

func BenchmarkCount(b *testing.B) {
	h := newHouse(&testing.T{})
	var list []event
	for n := range 1000 {
		list = append(list, event{text: fmt.Sprintf("ark:12345/n%06d", n), visitor: 7, second: uint16(noon.Unix()), scheme: uint8(h.counter.scheme("ark")), what: uint8(Regular)})
	}
	b.ReportAllocs()
	for i := range b.N {
		h.counter.count(&list[i*7919%1000], noon.Unix(), Regular, "")
	}
}
