package dnsd

import (
	"testing"

	"github.com/miekg/dns"

	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/publish/zonesign"
)

// BenchmarkSigned answers with signatures that were made before, beside the same
// answers without; and what one costs that has to be made.
func BenchmarkSigned(b *testing.B) {
	for _, bench := range []struct {
		what, name string
		do, cold   bool
		algorithm  uint8
	}{
		{"naptr-unsigned", "a.001.ab1.paradisec.example.", false, false, zonekey.ECDSA},
		{"naptr", "a.001.ab1.paradisec.example.", true, false, zonekey.ECDSA},
		{"denial-unsigned", "b.001.ab1.paradisec.example.", false, false, zonekey.ECDSA},
		{"denial", "b.001.ab1.paradisec.example.", true, false, zonekey.ECDSA},
		{"naptr-cold-unsigned", "a.001.ab1.paradisec.example.", false, true, zonekey.ECDSA},
		{"naptr-cold-ecdsa", "a.001.ab1.paradisec.example.", true, true, zonekey.ECDSA},
		{"naptr-cold-ed25519", "a.001.ab1.paradisec.example.", true, true, zonekey.Ed25519},
	} {
		b.Run(bench.what, func(b *testing.B) {
			d := newOfflineServer(b, Options{Signatures: 1 << 30})
			d.sign("paradisec.example.", zonesign.Online, newRing(b, "paradisec.example.", bench.algorithm, false, d.clock.Now()))
			m := question(bench.name, dns.TypeNAPTR)
			m.SetEdns0(1232, bench.do)
			msg, err := m.Pack()
			if err != nil {
				b.Fatal(err)
			}
			now, dst := d.clock.Now(), make([]byte, 0, maxUDP)
			b.ReportAllocs()
			for b.Loop() {
				if bench.cold {
					d.s.cache.drop(d.w.hash)
				}
				if len(d.w.respond(dst, msg, someone, now)) < 100 {
					b.Fatal("no answer")
				}
			}
		})
	}
}
