package client

import (
	"testing"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
)

// FuzzAnswer: whatever a name server sends, the records taken from it are for the question,
// and rules can be made of them.
func FuzzAnswer(f *testing.F) {
	q := question{"paradisec.urn.example.", dns.TypeNAPTR}
	seed := func(zone string, change func(m *dns.Msg)) {
		m := new(dns.Msg).SetReply(q.message(manner{transport: netTCP, edns: true}))
		m.Answer = parseZone(f, zone)
		if change != nil {
			change(m)
		}
		f.Add(packed(m, nil))
	}
	seed(paradisecZone, nil)
	seed(thesisZones, nil)
	seed("paradisec.urn.example. CNAME a.example.\na.example. CNAME paradisec.urn.example.", nil)
	seed("paradisec.urn.example. CNAME a.example.\na.example. NAPTR 1 1 \"u\" \"N2L\" \"!.*!x:y!\" .", nil)
	seed("", func(m *dns.Msg) {
		m.Rcode, m.Ns = dns.RcodeNameError, parseZone(f, "urn.example. SOA ns. m. 1 2 3 4 5")
	})
	seed("", func(m *dns.Msg) { m.Ns = parseZone(f, "urn.example. NS ns.example.") })
	d := &DNS{o: DNSOptions{ThesisZones: []string{"example."}}}
	f.Fuzz(func(t *testing.T, b []byte) {
		reply := new(dns.Msg)
		if reply.Unpack(b) != nil {
			return
		}
		a, err := readAnswer(reply, q)
		if err != nil {
			return
		}
		if (len(a.records) > 0) == (a.missing != 0 || a.elsewhere) || a.ttl > maxTTL {
			t.Fatalf("%+v", a)
		}
		for _, r := range a.records {
			if h := r.Header(); dns.CanonicalName(h.Name) != a.owner || h.Rrtype != q.kind || h.Class != dns.ClassINET {
				t.Fatalf("%v is not for %v", r, q)
			}
		}
		a.name(q)
		if a.missing != 0 && stele.KindOf(a.err) != stele.NotFound {
			t.Fatalf("%+v", a)
		}
		for _, rule := range d.readRules(a) {
			_ = rule.Err()
		}
	})
}
