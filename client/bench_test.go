package client

import (
	"testing"
	"time"

	"github.com/miekg/dns"
)

// threeZone takes three questions.
const threeZone = `
paradisec.urn.example. NAPTR 100 10 "" "" "" paradisec.example.
paradisec.example. NAPTR 100 10 "" "" "!^urn:paradisec:([-_a-z0-9]{1,63}):([-_a-z0-9]{1,63}):([-_a-z0-9]{1,63})$!\\3.\\2.\\1.paradisec.example.!i" .
a.001.ab1.paradisec.example. NAPTR 100 10 "RES:https" "N2L:text/html" "!^urn:paradisec:ab1:001:a$!https://data.example/ab1/001/a.html!i" .
a.001.ab1.paradisec.example. NAPTR 100 20 "RES:https" "N2L:audio/wav" "!^urn:paradisec:ab1:001:a$!https://store.example/ab1/001/a.wav!i" .
a.001.ab1.paradisec.example. NAPTR 100 30 "RES:https" "N2C" "!^urn:paradisec:ab1:001:a$!https://data.example/ab1/001/a.json!i" .
`

// BenchmarkResolve is a resolution that asks three questions, and beside it a bare
// client that asks the same: the difference is our cost. With a trace and from the cache
// too.
func BenchmarkResolve(b *testing.B) {
	server := newNameServer(b, threeZone)
	b.Run("bare", func(b *testing.B) {
		c := new(dns.Client)
		for b.Loop() {
			for _, name := range []string{"paradisec.urn.example.", "paradisec.example.", "a.001.ab1.paradisec.example."} {
				m := new(dns.Msg).SetQuestion(name, dns.TypeNAPTR).SetEdns0(ednsSize, false)
				if r, _, err := c.Exchange(m, server.addr.String()); err != nil || len(r.Answer) == 0 {
					b.Fatal(r, err)
				}
			}
		}
	})
	for _, bb := range []struct {
		name  string
		o     DNSOptions
		trace bool
	}{
		{"stele", DNSOptions{}, false},
		{"trace", DNSOptions{}, true},
		{"memory", DNSOptions{Now: time.Now}, false},
	} {
		b.Run(bb.name, func(b *testing.B) {
			d := newDNS(b, bb.o, server)
			for b.Loop() {
				res, err := d.Resolve(b.Context(), Request{Name: paradisec, Trace: bb.trace})
				if err != nil || res.Location != htmlLocation {
					b.Fatal(res, err)
				}
			}
		})
	}
}
