package dnsd

import (
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele/publish/zonesign"
)

// drain is a connection that takes everything.
type drain struct {
	net.Conn
	n int
}

func (d *drain) Write(b []byte) (int, error) {
	d.n += len(b)
	return io.Discard.Write(b)
}

func (d *drain) SetWriteDeadline(time.Time) error { return nil }

// BenchmarkTransfer sends a whole zone, without the network: what a name of it costs.
func BenchmarkTransfer(b *testing.B) {
	const names = 20_000
	for _, mode := range []zonesign.Mode{zonesign.Unsigned, zonesign.Transfer} {
		b.Run(fmt.Sprint("signing=", mode), func(b *testing.B) {
			p := newPress(b)
			p.publish("urn:paradisec", "z.example.", ":", 3)
			p.secondaries("urn:paradisec", everybody)
			for i := range names {
				p.register(fmt.Sprintf("urn:paradisec:c%d:i:n%d", i%10, i), "N2L text/html http://example.org/", "N2L audio/wav http://example.org/wav")
			}
			if mode != zonesign.Unsigned {
				p.signed(mode, "z.example.")
			}
			s := New(Options{Zones: p.zones, Now: time.Now})
			question := []byte("\x01z\x07example\x00\x00\xfc\x00\x01")
			b.ReportAllocs()
			for b.Loop() {
				d := new(drain)
				out := &outgoing{t: &stream{s: s, c: d}, env: newEnvelopes(1, flagQR|flagAA, question)}
				if err := sendWhole(p.ctx, p.zones, out, "z.example."); err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(d.n))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/names, "ns/name")
		})
	}
}

// BenchmarkIncrement tells of 1000 new names in zones of several sizes.
func BenchmarkIncrement(b *testing.B) {
	for _, mode := range []zonesign.Mode{zonesign.Unsigned, zonesign.Transfer} {
		for _, names := range []int{2_000, 20_000, 200_000} {
			b.Run(fmt.Sprint("signing=", mode, "/names=", names), func(b *testing.B) {
				p := newPress(b)
				p.publish("urn:paradisec", "z.example.", ":", 3)
				if mode != zonesign.Unsigned {
					p.signed(mode, "z.example.")
				}
				for i := range names {
					p.register(fmt.Sprintf("urn:paradisec:c%d:i:n%d", i%10, i), "http://example.org/")
				}
				z, err := p.zones.zoneNamed(p.ctx, "z.example.")
				if err != nil {
					b.Fatal(err)
				}
				from, err := p.store.LastChange(p.ctx)
				if err != nil {
					b.Fatal(err)
				}
				for i := range 1000 {
					p.register(fmt.Sprintf("urn:paradisec:new:i:n%d", i), "http://example.org/")
				}
				for !z.index.isReady() {
					time.Sleep(time.Millisecond)
				}
				// Records in memory are work for the collector, and those on disk are not.
				defer debug.SetGCPercent(debug.SetGCPercent(-1))
				began := cpuTime(b)
				for b.Loop() {
					list, err := z.IXFR(p.ctx, uint32(from))
					if err != nil || len(list) < 1000 || list[1].Header().Rrtype != dns.TypeSOA {
						b.Fatal(len(list), err)
					}
				}
				b.ReportMetric(float64((cpuTime(b)-began).Nanoseconds())/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

// cpuTime is the CPU time of the program: other programs have a part in what a clock says.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
