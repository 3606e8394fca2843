package dnsd

import (
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/publish/zonesign"
)

func TestChainedAnswers(t *testing.T) {
	d := newOfflineServer(t, Options{})
	ring := newRing(t, "paradisec.example.", zonekey.ECDSA, true, d.clock.Now())
	d.sign("paradisec.example.", zonesign.Transfer, ring)
	for _, test := range []struct {
		name  string
		qtype uint16
		want  string
		match string // names whose links are there
		cover string // names that the links deny
	}{
		{"A.001.ab1.paradisec.example.", dns.TypeNAPTR, "NOERROR aa answer:NAPTR answer:NAPTR answer:NAPTR", "", ""},
		{"paradisec.example.", dns.TypeNSEC3PARAM, "NOERROR aa answer:NSEC3PARAM", "", ""},
		{"a.001.ab1.paradisec.example.", dns.TypeA, "NOERROR aa authority:SOA authority:NSEC3", "a.001.ab1", ""},
		{"001.ab1.paradisec.example.", dns.TypeA, "NOERROR aa authority:SOA authority:NSEC3", "001.ab1", ""},
		{"ab1.paradisec.example.", dns.TypeANY, "NOERROR aa authority:SOA authority:NSEC3", "ab1", ""},
		{"b.c.001.ab1.paradisec.example.", dns.TypeA, "NXDOMAIN aa authority:SOA", "001.ab1", "c.001.ab1 *.001.ab1"},
		{"x.paradisec.example.", dns.TypeA, "NXDOMAIN aa authority:SOA", "", "x *"},
		{"inner.paradisec.example.", dns.TypeDS, "NOERROR aa authority:SOA authority:NSEC3", "inner", ""},
	} {
		for range 2 {
			r := d.secure(ring, test.name, test.qtype, someone)
			got := briefSigned(r)
			if test.cover != "" {
				got = strings.ReplaceAll(got, " authority:NSEC3", "") // one link may serve twice
			}
			if got != test.want {
				t.Errorf("%s %s: %s, want %s", test.name, dns.TypeToString[test.qtype], got, test.want)
			}
			for _, name := range strings.Fields(test.match) {
				if !hasNSEC3(r, func(n *dns.NSEC3) bool { return n.Match(name + ".paradisec.example.") }) {
					t.Errorf("%s: no link of %s in\n%v", test.name, name, r)
				}
			}
			for _, name := range strings.Fields(test.cover) {
				if !hasNSEC3(r, func(n *dns.NSEC3) bool { return n.Cover(name + ".paradisec.example.") }) {
					t.Errorf("%s: nothing denies %s in\n%v", test.name, name, r)
				}
			}
		}
	}
}

func hasNSEC3(m *dns.Msg, good func(*dns.NSEC3) bool) bool {
	return slices.ContainsFunc(m.Ns, func(rr dns.RR) bool {
		n, ok := rr.(*dns.NSEC3)
		return ok && good(n)
	})
}

// TestChainedAnswersAreDropped checks that a cached denial is dropped when a new name
// changes its links: a denial depends on names beside its own.
func TestChainedAnswersAreDropped(t *testing.T) {
	d := newOfflineServer(t, Options{})
	ring := newRing(t, "paradisec.example.", zonekey.Ed25519, false, d.clock.Now())
	d.sign("paradisec.example.", zonesign.Transfer, ring)
	const name = "x.paradisec.example."
	before := d.secure(ring, name, dns.TypeA, someone)
	if misses := d.s.Stats().Misses; misses != 1 {
		t.Fatalf("%d answers were made", misses)
	}
	d.secure(ring, name, dns.TypeA, someone)
	links := d.from.zones["paradisec.example."].chain
	for i := range 20 {
		other := strings.Repeat("n", i+1) + ".paradisec.example."
		links.Set(other, "paradisec.example.", []uint16{dns.TypeA})
		d.from.change(t, other, other+" 60 A 192.0.2.7")
		r := d.secure(ring, name, dns.TypeA, someone)
		if hasNSEC3(r, func(n *dns.NSEC3) bool { return n.Cover(other) && !n.Match(other) }) {
			t.Fatalf("%s exists, and is denied still:\n%v\nbefore\n%v", other, r, before)
		}
	}
}
