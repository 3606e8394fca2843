package dnsd

import (
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stele-id/stele/publish/publishtest"
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
			p := publishtest.New(b)
			p.Publish("urn:paradisec", "z.example.", ":", 3)
			p.SetSecondaries("urn:paradisec", publishtest.Local())
			for i := range names {
				p.Register(fmt.Sprintf("urn:paradisec:c%d:i:n%d", i%10, i), "N2L text/html http://example.org/", "N2L audio/wav http://example.org/wav")
			}
			if mode != zonesign.Unsigned {
				p.SignZones(mode, "z.example.")
			}
			s := New(Options{Zones: p.Zones, Now: time.Now})
			question := []byte("\x01z\x07example\x00\x00\xfc\x00\x01")
			b.ReportAllocs()
			for b.Loop() {
				d := new(drain)
				out := &outgoing{t: &stream{s: s, c: d}, env: newEnvelopes(1, flagQR|flagAA, question)}
				if err := sendWhole(p.Ctx, p.Zones, out, "z.example."); err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(d.n))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/names, "ns/name")
		})
	}
}
