package dnsd

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/publish/nsec3"
	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/publish/zonesign"
)

// newRing makes the keys of a zone.
func newRing(t testing.TB, zone string, algorithm uint8, split bool, now time.Time) *zonekey.Ring {
	t.Helper()
	r, err := zonekey.ReadRing(zone, nil)
	if err == nil {
		err = r.Begin(algorithm, split, now, rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// sign has a zone of the memory signed.
func (d *offlineServer) sign(zone string, mode zonesign.Mode, ring *zonekey.Ring) {
	d.t.Helper()
	s, err := zonesign.New(mode, ring, 3600, d.clock.Now)
	if err != nil {
		d.t.Fatal(err)
	}
	d.from.mu.Lock()
	z := d.from.zones[zone]
	z.signer = s
	if mode == zonesign.Transfer {
		z.chain = publish.CompleteNSEC3Chain(nsec3.New())
		for name, records := range z.nodes {
			n := publish.Node{Records: append(records[:len(records):len(records)], s.ApexRecords(name)...)}
			z.chain.Set(name, zone, nsec3.Types(n.Types(name == zone)))
		}
		for name, one := range d.from.zones {
			if name != zone && dns.IsSubDomain(zone, name) {
				z.chain.Set(name, zone, nsec3.Types(zonesign.TypesAt(one.ns)))
			}
		}
	}
	d.from.changes++
	d.from.mu.Unlock()
	for _, f := range d.from.told {
		f(nil)
	}
}

// secure asks with DO, and checks all signatures of the answer by the keys of the ring.
func (d *offlineServer) secure(ring *zonekey.Ring, name string, qtype uint16, from peer) *dns.Msg {
	d.t.Helper()
	m := question(name, qtype)
	m.SetEdns0(1232, true)
	r := d.ask(m, from)
	checkSignatures(d.t, ring, r, d.clock.Now())
	return r
}

// checkSignatures fails on a set of records in an answer that has no good signature.
func checkSignatures(t testing.TB, ring *zonekey.Ring, m *dns.Msg, now time.Time) {
	t.Helper()
	if m == nil {
		t.Fatal("no answer")
	}
	for _, section := range [][]dns.RR{m.Answer, m.Ns, m.Extra} {
		sets, signatures := make(map[string][]dns.RR), make(map[string][]*dns.RRSIG)
		for _, rr := range section {
			h := rr.Header()
			if sig, ok := rr.(*dns.RRSIG); ok {
				key := strings.ToLower(h.Name) + dns.TypeToString[sig.TypeCovered]
				signatures[key] = append(signatures[key], sig)
			} else if h.Rrtype != dns.TypeOPT {
				key := strings.ToLower(h.Name) + dns.TypeToString[h.Rrtype]
				sets[key] = append(sets[key], rr)
			}
		}
		for key, set := range sets {
			if !verified(ring, set, signatures[key], now) {
				t.Errorf("no good signature for %s in\n%v", key, m)
			}
		}
	}
}

// verified reports whether one of the signatures is good.
func verified(ring *zonekey.Ring, set []dns.RR, signatures []*dns.RRSIG, now time.Time) bool {
	for _, sig := range signatures {
		for _, k := range ring.Current() {
			key := k.DNSKEY(ring.Zone, 3600)
			if key.KeyTag() == sig.KeyTag && sig.ValidityPeriod(now) && sig.Verify(key, set) == nil && set[0].Header().Ttl == sig.Hdr.Ttl {
				return true
			}
		}
	}
	return false
}

// briefSigned is brief without signatures and the OPT record.
func briefSigned(m *dns.Msg) string {
	text := brief(m)
	for _, section := range []string{"answer", "authority", "additional"} {
		text = strings.ReplaceAll(text, " "+section+":RRSIG", "")
	}
	return strings.ReplaceAll(text, " additional:OPT", "")
}

func TestOnlineAnswers(t *testing.T) {
	for _, algorithm := range []uint8{zonekey.ECDSA, zonekey.Ed25519} {
		for _, split := range []bool{false, true} {
			t.Run(fmt.Sprint(zonekey.AlgorithmName(algorithm), split), func(t *testing.T) { testOnlineAnswers(t, algorithm, split) })
		}
	}
}

func testOnlineAnswers(t *testing.T, algorithm uint8, split bool) {
	d := newOfflineServer(t, Options{})
	ring := newRing(t, "paradisec.example.", algorithm, split, d.clock.Now())
	d.sign("paradisec.example.", zonesign.Online, ring)
	for _, test := range []struct {
		name  string
		qtype uint16
		want  string
		types string // of the NSEC record
	}{
		{"A.001.ab1.paradisec.example.", dns.TypeNAPTR, "NOERROR aa answer:NAPTR answer:NAPTR answer:NAPTR", ""},
		{"a.001.ab1.paradisec.example.", dns.TypeANY, "NOERROR aa answer:HINFO", ""},
		{"a.001.ab1.paradisec.example.", dns.TypeA, "NOERROR aa authority:SOA authority:NSEC", "NAPTR RRSIG NSEC URI"},
		{"a.001.ab1.paradisec.example.", dns.TypeNSEC, "NOERROR aa answer:NSEC", "NAPTR RRSIG NSEC URI"},
		{"001.ab1.paradisec.example.", dns.TypeNAPTR, "NOERROR aa authority:SOA authority:NSEC", "RRSIG NSEC"},
		{"b.001.ab1.PARADISEC.example.", dns.TypeNAPTR, "NOERROR aa authority:SOA authority:NSEC", "RRSIG NSEC NXNAME"},
		{`\000x\.y.paradisec.example.`, dns.TypeNAPTR, "NOERROR aa authority:SOA authority:NSEC", "RRSIG NSEC NXNAME"},
		{strings.Repeat("x.", 109) + "paradisec.example.", dns.TypeA, "NOERROR aa authority:SOA authority:NSEC", "RRSIG NSEC NXNAME"},
		{"paradisec.example.", dns.TypeSOA, "NOERROR aa answer:SOA", ""},
		{"paradisec.example.", dns.TypeNS, "NOERROR aa answer:NS answer:NS additional:A additional:AAAA", ""},
		{"paradisec.example.", dns.TypeCDS, "NOERROR aa answer:CDS", ""},
		{"paradisec.example.", dns.TypeCDNSKEY, "NOERROR aa answer:CDNSKEY", ""},
		{"paradisec.example.", dns.TypeDS, "NOERROR aa authority:SOA authority:NSEC", "NS SOA TXT RRSIG NSEC DNSKEY CDS CDNSKEY"},
		{"inner.paradisec.example.", dns.TypeDS, "NOERROR aa authority:SOA authority:NSEC", "NS RRSIG NSEC"},
		{"large.paradisec.example.", dns.TypeTXT, "NOERROR aa tc", ""},
	} {
		for _, from := range []peer{someone, someone} { // the second time it is known already
			r := d.secure(ring, test.name, test.qtype, from)
			if got := briefSigned(r); got != test.want {
				t.Errorf("%s %s: %s, want %s", test.name, dns.TypeToString[test.qtype], got, test.want)
			}
			if got := nsecTypes(t, r, test.name); got != test.types {
				t.Errorf("%s %s: NSEC has %q, want %q", test.name, dns.TypeToString[test.qtype], got, test.types)
			}
		}
	}
	want := 1
	if split {
		want = 2
	}
	if r := d.secure(ring, "paradisec.example.", dns.TypeDNSKEY, someone); len(r.Answer) != want+1 {
		t.Errorf("%v", r)
	}
	if r := d.secure(ring, "large.paradisec.example.", dns.TypeTXT, caller); len(r.Answer) != 2 {
		t.Errorf("over TCP: %v", r)
	}
	if r := d.secure(ring, "a.001.ab1.paradisec.example.", dns.TypeRRSIG, someone); len(r.Answer) != 1 || r.Answer[0].(*dns.RRSIG).TypeCovered != dns.TypeNAPTR {
		t.Errorf("asked for signatures: %v", r)
	}
}

// nsecTypes returns the types of the NSEC record of an answer, which must tell of the
// name that was asked for and of no other.
func nsecTypes(t *testing.T, m *dns.Msg, name string) string {
	t.Helper()
	for _, rr := range append(m.Answer, m.Ns...) {
		n, ok := rr.(*dns.NSEC)
		if !ok {
			continue
		}
		if dns.CanonicalName(n.Hdr.Name) != dns.CanonicalName(name) {
			t.Errorf("asked for %s: %v", name, n)
		}
		if len(name) < 250 && n.NextDomain != `\000.`+dns.CanonicalName(name) {
			t.Errorf("asked for %s: %v", name, n)
		}
		var types []string
		for _, t := range n.TypeBitMap {
			types = append(types, dns.TypeToString[t])
		}
		return strings.Join(types, " ")
	}
	return ""
}

// TestCompactAnswersOK checks RFC 9824, section 5.1: a client that sets CO gets the real
// response code.
func TestCompactAnswersOK(t *testing.T) {
	d := newOfflineServer(t, Options{})
	ring := newRing(t, "paradisec.example.", zonekey.ECDSA, false, d.clock.Now())
	d.sign("paradisec.example.", zonesign.Online, ring)
	for _, test := range []struct {
		what   string
		do, co bool
		name   string
		rcode  int
	}{
		{"plain", false, false, "b.paradisec.example.", dns.RcodeNameError},
		{"CO alone", false, true, "b.paradisec.example.", dns.RcodeNameError},
		{"DO", true, false, "b.paradisec.example.", dns.RcodeSuccess},
		{"DO and CO", true, true, "b.paradisec.example.", dns.RcodeNameError},
		{"DO and CO, empty", true, true, "ab1.paradisec.example.", dns.RcodeSuccess},
		{"DO and CO, other type", true, true, "ns1.paradisec.example.", dns.RcodeSuccess},
	} {
		for range 2 {
			m := question(test.name, dns.TypeTXT)
			m.SetEdns0(1232, test.do)
			m.IsEdns0().SetCo(test.co)
			r := d.ask(m, someone)
			if r.Rcode != test.rcode || r.IsEdns0().Co() != (test.do && test.co) || r.IsEdns0().Do() != test.do {
				t.Errorf("%s: %v", test.what, r)
			}
			if signed := len(r.Ns) == 4; signed != test.do {
				t.Errorf("%s: %v", test.what, r)
			}
		}
	}
	if r := d.ask(question("b.paradisec.example.", dns.TypeNXNAME), someone); r.Rcode != dns.RcodeFormatError {
		t.Errorf("asked for NXNAME: %v", r)
	}
}

// TestOnlineWalk tries to list a zone by what denials say: it learns no name that it
// did not ask for.
func TestOnlineWalk(t *testing.T) {
	d := newOfflineServer(t, Options{})
	ring := newRing(t, "paradisec.example.", zonekey.Ed25519, false, d.clock.Now())
	d.sign("paradisec.example.", zonesign.Online, ring)
	at := "paradisec.example."
	for range 100 {
		r := d.secure(ring, at, dns.TypeNULL, someone)
		var next string
		for _, rr := range r.Ns {
			if n, ok := rr.(*dns.NSEC); ok {
				next = n.NextDomain
			}
		}
		if next != `\000.`+at {
			t.Fatalf("%s is followed by %s", at, next)
		}
		at = next
	}
	for _, rr := range []string{"0", "zzz", "ns0", "ab0", `a\255`} {
		for _, known := range []string{"ns1", "001", "www", "middle", "_http"} {
			if r := d.secure(ring, rr+".paradisec.example.", dns.TypeA, someone); strings.Contains(r.String(), known) && !strings.Contains(r.String(), "SOA\tns1") {
				t.Errorf("asked for %s: %v", rr, r)
			}
		}
	}
}

// TestSerialIsSigned changes the zone: answers that were packed before carry the new
// serial, and its signature.
func TestSerialIsSigned(t *testing.T) {
	d := newOfflineServer(t, Options{})
	ring := newRing(t, "paradisec.example.", zonekey.ECDSA, false, d.clock.Now())
	d.sign("paradisec.example.", zonesign.Online, ring)
	for i := range 5 {
		for _, name := range []string{"none.paradisec.example.", "ab1.paradisec.example."} {
			r := d.secure(ring, name, dns.TypeSOA, someone)
			if serial := r.Ns[0].(*dns.SOA).Serial; serial != uint32(7+i) {
				t.Errorf("serial %d in\n%v", serial, r)
			}
		}
		if r := d.secure(ring, "paradisec.example.", dns.TypeSOA, someone); r.Answer[0].(*dns.SOA).Serial != uint32(7+i) {
			t.Errorf("%v", r)
		}
		d.from.change(t, "www.paradisec.example.", fmt.Sprintf("www.paradisec.example. 600 A 192.0.2.%d", i))
		d.clock.add(soaSignInterval)
	}
	// A change below the apex may change the apex, but not what is beside it.
	if misses := d.s.Stats().Misses; misses != 2+5 {
		t.Errorf("%d answers were made, want 7", misses)
	}
	// In a burst the serial lags, with a good signature.
	d.secure(ring, "none.paradisec.example.", dns.TypeA, someone)
	d.from.change(t, "www.paradisec.example.", "www.paradisec.example. 600 A 192.0.2.99")
	if r := d.secure(ring, "none.paradisec.example.", dns.TypeA, someone); r.Ns[0].(*dns.SOA).Serial != 12 {
		t.Errorf("%v", r)
	}
}

// TestSignaturesAnew lets time pass: signatures are good whenever they are sent, and
// are made anew when they have to be.
func TestSignaturesAnew(t *testing.T) {
	d := newOfflineServer(t, Options{})
	ring := newRing(t, "paradisec.example.", zonekey.ECDSA, false, d.clock.Now())
	d.sign("paradisec.example.", zonesign.Online, ring)
	// An answer that was signed by a wrong clock is not reused.
	d.clock.add(30 * 24 * time.Hour)
	d.secure(ring, "a.001.ab1.paradisec.example.", dns.TypeNAPTR, someone)
	d.secure(ring, "none.paradisec.example.", dns.TypeNAPTR, someone)
	d.clock.add(-30 * 24 * time.Hour)
	wrong := d.s.Stats().Misses
	var made []uint64
	for range 12 {
		for _, name := range []string{"a.001.ab1.paradisec.example.", "none.paradisec.example."} {
			r := d.secure(ring, name, dns.TypeNAPTR, someone)
			for _, rr := range append(r.Answer, r.Ns...) {
				if sig, ok := rr.(*dns.RRSIG); ok && time.Unix(int64(sig.Expiration), 0).Sub(d.clock.Now()) < 40*time.Hour {
					t.Errorf("%v ends soon", sig)
				}
			}
		}
		made = append(made, d.s.Stats().Misses-wrong)
		d.clock.add(24 * time.Hour)
	}
	if last := made[len(made)-1]; made[0] != 2 || made[4] != 2 || last < 4 || last > 8 {
		t.Errorf("answers made so far, by day: %v", made)
	}
}

// TestSigningIsBounded asks for names that are made up: they use up half of what may be
// signed, and clients are sent to TCP then. Names that exist are signed all the same.
func TestSigningIsBounded(t *testing.T) {
	d := newOfflineServer(t, Options{Signatures: 100})
	ring := newRing(t, "paradisec.example.", zonekey.Ed25519, false, d.clock.Now())
	d.sign("paradisec.example.", zonesign.Online, ring)
	short := 0
	for i := range 200 {
		if r := d.secure(ring, fmt.Sprintf("x%d.paradisec.example.", i), dns.TypeA, someone); r.Truncated {
			short++
		}
	}
	if short < 170 || d.s.Stats().Busy != uint64(short) {
		t.Errorf("%d of 200 answers were shortened", short)
	}
	if r := d.secure(ring, "y.paradisec.example.", dns.TypeA, caller); len(r.Ns) != 4 {
		t.Errorf("over TCP: %v", r)
	}
	if r := d.secure(ring, "ns1.paradisec.example.", dns.TypeA, someone); len(r.Answer) != 2 {
		t.Errorf("a name that exists: %v", r)
	}
	if r := d.secure(ring, "x1.paradisec.example.", dns.TypeA, someone); len(r.Ns) != 4 {
		t.Errorf("what was signed before: %v", r)
	}
	for i := range 100 {
		d.secure(ring, fmt.Sprintf("z%d.paradisec.example.", i), dns.TypeA, caller)
	}
	m := question("zz.paradisec.example.", dns.TypeA)
	m.SetEdns0(1232, true)
	if r := d.ask(m, caller); r.Rcode != dns.RcodeServerFailure {
		t.Errorf("over TCP, with nothing left: %v", r)
	}
	d.clock.add(time.Second)
	if r := d.secure(ring, "zz.paradisec.example.", dns.TypeA, someone); len(r.Ns) != 4 {
		t.Errorf("later: %v", r)
	}
}
