package dnssec

import (
	"fmt"
	"testing"

	"github.com/miekg/dns"

	"github.com/stele-id/stele/client/internal/signtest"
)

// BenchmarkReply validates an answer with cached keys, and one for which the chain is asked
// from the root on, without the cost of asking.
func BenchmarkReply(b *testing.B) {
	for _, algorithm := range []uint8{dns.ECDSAP256SHA256, dns.ED25519, dns.RSASHA256} {
		w := newWorld(b, signtest.Options{Algorithm: algorithm, Denial: signtest.NSEC3})
		for _, tt := range []struct {
			about string
			name  string
			first bool // nothing is cached
		}{
			{"records", "a.001.ab1.paradisec.example.", false},
			{"no name", "c.001.ab1.paradisec.example.", false},
			{"chain", "a.001.ab1.paradisec.example.", true},
		} {
			b.Run(fmt.Sprintf("%s %s", dns.AlgorithmToString[algorithm], tt.about), func(b *testing.B) {
				w.begin()
				for b.Loop() {
					if tt.first {
						w.v = New(w.v.anchors, w.v.now)
					}
					if got := verdict(w.judge(tt.name, dns.TypeNAPTR)); got != "secure" && got != "secure, no name" {
						b.Fatal(got)
					}
				}
			})
		}
	}
}
