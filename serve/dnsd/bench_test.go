package dnsd

import (
	"fmt"
	"testing"

	"github.com/miekg/dns"

	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/publish/zonesign"
)

// BenchmarkUDPAnswer answers what was answered before: the hot path without the
// sockets.
func BenchmarkUDPAnswer(b *testing.B) {
	for _, bench := range []struct {
		what string
		rate RateLimit
		m    *dns.Msg
	}{
		{"naptr", RateLimit{}, question("a.001.ab1.paradisec.example.", dns.TypeNAPTR)},
		{"naptr-edns", RateLimit{}, question("a.001.ab1.paradisec.example.", dns.TypeNAPTR).SetEdns0(1232, false)},
		{"naptr-cookie", RateLimit{}, withCookie(question("a.001.ab1.paradisec.example.", dns.TypeNAPTR), "2464c4abcf10c957")},
		{"naptr-limited", RateLimit{Same: 60_000, All: 60_000}, question("a.001.ab1.paradisec.example.", dns.TypeNAPTR)},
		{"nxdomain", RateLimit{}, question("b.001.ab1.paradisec.example.", dns.TypeNAPTR)},
	} {
		b.Run(bench.what, func(b *testing.B) {
			d := newOfflineServer(b, Options{Rate: bench.rate})
			msg, err := bench.m.Pack()
			if err != nil {
				b.Fatal(err)
			}
			now, dst := d.clock.Now(), make([]byte, 0, maxUDP)
			b.ReportAllocs()
			for b.Loop() {
				d.w.respond(dst, msg, someone, now)
			}
		})
	}
}

// BenchmarkUDPMiss answers what was never asked for, out of memory.
func BenchmarkUDPMiss(b *testing.B) {
	d := newOfflineServer(b, Options{})
	msg, err := question("a.001.ab1.paradisec.example.", dns.TypeNAPTR).Pack()
	if err != nil {
		b.Fatal(err)
	}
	now, dst := d.clock.Now(), make([]byte, 0, maxUDP)
	b.ReportAllocs()
	for b.Loop() {
		d.s.cache.drop(d.w.hash)
		d.w.respond(dst, msg, someone, now)
	}
}

// TestNoAllocations holds the hot path to what it promises.
func TestNoAllocations(t *testing.T) {
	d := newOfflineServer(t, Options{Rate: RateLimit{Same: 60_000, All: 60_000}})
	d.sign("paradisec.example.", zonesign.Online, newRing(t, "paradisec.example.", zonekey.ECDSA, false, d.clock.Now()))
	dst := make([]byte, 0, maxUDP)
	for i, m := range []*dns.Msg{
		question("A.001.ab1.paradisec.example.", dns.TypeNAPTR).SetEdns0(1232, true),
		question("b.paradisec.example.", dns.TypeNAPTR).SetEdns0(1232, true),
		question("A.001.ab1.paradisec.example.", dns.TypeNAPTR),
		withCookie(question("a.001.ab1.paradisec.example.", dns.TypeNAPTR), "2464c4abcf10c957"),
		question("b.paradisec.example.", dns.TypeNAPTR),
		question("large.paradisec.example.", dns.TypeTXT),
	} {
		msg, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			now := d.clock.Now()
			if n := testing.AllocsPerRun(100, func() { d.w.respond(dst, msg, someone, now) }); n != 0 {
				t.Errorf("%v allocations", n)
			}
		})
	}
}
