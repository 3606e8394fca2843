package dnsd

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"pgregory.net/rapid"

	"github.com/stele-id/stele/publish/zonekey"
)

func TestChainedAnswers(t *testing.T) {
	d := newDesk(t, Options{})
	ring := newRing(t, "paradisec.example.", zonekey.ECDSA, true, d.clock.Now())
	d.sign("paradisec.example.", SignTransfer, ring)
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

// A denial depends on names beside its own: one that comes between takes its place.
func TestChainedAnswersAreDropped(t *testing.T) {
	d := newDesk(t, Options{})
	ring := newRing(t, "paradisec.example.", zonekey.Ed25519, false, d.clock.Now())
	d.sign("paradisec.example.", SignTransfer, ring)
	const name = "x.paradisec.example."
	before := d.secure(ring, name, dns.TypeA, someone)
	if misses := d.s.Stats().Misses; misses != 1 {
		t.Fatalf("%d answers were made", misses)
	}
	d.secure(ring, name, dns.TypeA, someone)
	links := d.from.zones["paradisec.example."].signer.NSEC3
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

// Signatures of a zone that is handed on depend on nothing but what is signed.
func TestSteadySignatures(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for _, algorithm := range []uint8{zonekey.ECDSA, zonekey.Ed25519} {
		ring := newRing(t, "paradisec.example.", algorithm, false, now)
		rr, err := dns.NewRR("a.paradisec.example. 60 TXT x")
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for i := range 3 {
			s, err := NewSigner(SignTransfer, ring, 3600, func() time.Time { return now.Add(time.Duration(i) * time.Hour) })
			if err != nil {
				t.Fatal(err)
			}
			list, err := s.Sign([]dns.RR{rr})
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, list[0].String())
		}
		if texts[0] != texts[1] || texts[0] != texts[2] {
			t.Errorf("three signatures: %q", texts)
		}
	}
}

// TestSuccessor holds that nothing is between a name and the one that follows it.
func TestSuccessor(t *testing.T) {
	const zone = "z."
	rapid.Check(t, func(t *rapid.T) {
		var wire []byte
		for range rapid.IntRange(0, 6).Draw(t, "labels") {
			size := rapid.SampledFrom([]int{1, 2, 30, 61, 62, 63}).Draw(t, "size")
			label := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 'a', 'z', '@', '[', 0xfe, 0xff}), size, size).Draw(t, "label")
			if len(wire)+len(label)+1+3 <= maxName {
				wire = append(append(wire, byte(len(label))), label...)
			}
		}
		wire = append(wire, 1, 'z', 0)
		name, _, err := dns.UnpackDomainName(wire, 0)
		if err != nil {
			t.Fatal(err)
		}
		next, err := successor(name, zone)
		if err != nil {
			t.Fatal(err)
		}
		order := compareNames(t, name, next)
		if order >= 0 && next != zone {
			t.Fatalf("%s is followed by %s", name, next)
		}
		if len(wire)+2 <= maxName && next != `\000.`+name {
			t.Fatalf("%s is followed by %s", name, next)
		}
	})
}

// compareNames compares two names in canonical order (RFC 4034, section 6.1).
func compareNames(t *rapid.T, a, b string) int {
	x, y := labelsOf(t, a), labelsOf(t, b)
	for i := 1; i <= min(len(x), len(y)); i++ {
		if c := bytes.Compare(x[len(x)-i], y[len(y)-i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(x), len(y))
}

func labelsOf(t *rapid.T, name string) (list [][]byte) {
	wire, ok := packName(nil, name)
	if !ok {
		t.Fatalf("%q is no name", name)
	}
	for ; wire[0] != 0; wire = wire[1+wire[0]:] {
		list = append(list, wire[1:1+wire[0]])
	}
	return list
}
