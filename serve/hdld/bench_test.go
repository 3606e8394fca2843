package hdld

import (
	"net/netip"
	"testing"

	"github.com/stele-id/stele/wire/hdl"
)

// BenchmarkKnown answers a request for a handle with four values with what is kept, without sockets.
func BenchmarkKnown(b *testing.B) {
	f := newFixture(b)
	request := ask("20.500.99999/abc-1", hdl.PublicOnly)
	f.made(request)
	buffer, now := make([]byte, 0, hdl.MaxDatagram), f.now()
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := f.known(buffer, request, now); !ok {
			b.Fatal("it is not kept")
		}
	}
}

// BenchmarkResolve makes the answer to a request for a handle with four values, without sockets.
func BenchmarkResolve(b *testing.B) {
	f := newFixture(b)
	request := ask("20.500.99999/abc-1", hdl.PublicOnly)
	from := netip.MustParseAddrPort("127.0.0.1:40000")
	sent := 0
	q := call{raw: request, from: from, via: viaTCP, send: func(m []byte) error { sent += len(m); return nil }}
	b.ReportAllocs()
	for b.Loop() {
		one := q
		f.work(b.Context(), &one)
	}
	if sent == 0 {
		b.Error("nothing was sent")
	}
}
