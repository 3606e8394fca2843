package hdld

import (
	"net/netip"
	"testing"

	"github.com/stele-id/stele/wire/hdl"
)

// BenchmarkResolve answers a request for a handle with four values, without sockets.
func BenchmarkResolve(b *testing.B) {
	f := newFixture(b)
	request := ask("20.500.99999/abc-1", hdl.PublicOnly)
	from := netip.MustParseAddrPort("127.0.0.1:40000")
	sent := 0
	q := call{raw: request, from: from, via: viaTCP, send: func(m []byte) error { sent += len(m); return nil }}
	b.ReportAllocs()
	for b.Loop() {
		one := q
		f.answer(b.Context(), &one)
	}
	if sent == 0 {
		b.Error("nothing was sent")
	}
}
