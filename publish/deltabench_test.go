package publish_test

import (
	"fmt"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele/publish/publishtest"
	"github.com/stele-id/stele/publish/zonesign"
)

// BenchmarkIncrement tells of 1000 new names in zones of several sizes.
func BenchmarkIncrement(b *testing.B) {
	for _, mode := range []zonesign.Mode{zonesign.Unsigned, zonesign.Transfer} {
		for _, names := range []int{2_000, 20_000, 200_000} {
			b.Run(fmt.Sprint("signing=", mode, "/names=", names), func(b *testing.B) {
				p := publishtest.New(b)
				p.Publish("urn:paradisec", "z.example.", ":", 3)
				if mode != zonesign.Unsigned {
					p.SignZones(mode, "z.example.")
				}
				for i := range names {
					p.Register(fmt.Sprintf("urn:paradisec:c%d:i:n%d", i%10, i), "http://example.org/")
				}
				z := p.Zone("z.example.")
				from, err := p.Store.LastChange(p.Ctx)
				if err != nil {
					b.Fatal(err)
				}
				for i := range 1000 {
					p.Register(fmt.Sprintf("urn:paradisec:new:i:n%d", i), "http://example.org/")
				}
				p.AwaitNames(p.Zones, "z.example.")
				// Records in memory are work for the collector, and those on disk are not.
				defer debug.SetGCPercent(debug.SetGCPercent(-1))
				began := cpuTime(b)
				for b.Loop() {
					list, err := z.IXFR(p.Ctx, uint32(from))
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
