package test

import (
	"crypto"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	vocabulary "github.com/stele-id/stele"
	"github.com/stele-id/stele/client"
	"github.com/stele-id/stele/client/dnssec"
	"github.com/stele-id/stele/scheme/all"
)

// signedRule is a rule that leads to a location.
const signedRule = ` NAPTR 10 10 "u" "http+N2L" "!.*!https://data.example/ok!" .` + "\n"

// knotSigned is Knot, which signs by itself.
func knotSigned() stockServer {
	s := knot
	s.config = strings.Replace(s.config, "zone:\n", `policy:
  - id: own
    algorithm: ED25519
    single-type-signing: on
    nsec3: on
    nsec3-iterations: 0
    nsec3-salt-length: 0
zone:
`, 1)
	s.zone += "    dnssec-signing: on\n    dnssec-policy: own\n"
	return s
}

// newSignedTree makes a tree with zones of all kinds, sound and broken, and an attacker on
// the network path to them.
func newSignedTree(t *testing.T, change func(q dns.Question, m *dns.Msg)) *signedTree {
	t.Helper()
	s := &signedTree{t: t, folder: t.TempDir(), change: change}
	names := "n" + signedRule + "*.wild" + signedRule + "alias CNAME n\nold DNAME new\nx.new" + signedRule + "a.b.c" + signedRule + "away CNAME n.open.example.\n"
	for _, name := range []string{"tampered", "unsigned", "forged", "swapped", "emptied"} {
		names += name + signedRule
	}
	past, future := []string{"-s", "20200101000000", "-e", "20200201000000", "-P"}, []string{"-s", "+10d", "-e", "+20d", "-P"}
	var example strings.Builder
	delegate := func(zone, ds string) { example.WriteString(zone + " NS ns.other.test.\n" + ds) }
	delegate("good.example.", s.sign("good.example.", names, signing{}))
	delegate("hashed.example.", s.sign("hashed.example.", names, signing{"RSASHA256", []string{"-3", "-", "-H", "0"}}))
	delegate("optout.example.", s.sign("optout.example.", names+"open NS ns.other.test.\n", signing{"ED25519", []string{"-3", "abcd", "-H", "5", "-A"}}))
	delegate("p384.example.", s.sign("p384.example.", names, signing{algorithm: "ECDSAP384SHA384"}))
	delegate("expired.example.", s.sign("expired.example.", names, signing{flags: past}))
	delegate("early.example.", s.sign("early.example.", names, signing{flags: future}))
	s.sign("mismatch.example.", names, signing{})
	delegate("mismatch.example.", strings.ReplaceAll(s.sign("other.example.", names, signing{}), "other.example.", "mismatch.example."))
	s.leave("open.example.", names)
	delegate("open.example.", "")
	s.leave("open.optout.example.", names)
	s.leave("lost.example.", names)
	delegate("lost.example.", "")
	byKnot := zoneFile{"knot.example.", s.folder + "/knot"}
	writeFile(t, byKnot.file, "$TTL 300\n@ SOA ns.other.test. mail.other.test. 1 3600 600 86400 60\n@ NS ns.other.test.\n"+names, 0o644)
	at := knotSigned().start(t, byKnot)
	s.routes = append(s.routes, route{byKnot.zone, at})
	delegate(byKnot.zone, dsAt(t, at, byKnot.zone))
	ds := s.sign("example.", example.String(), signing{})
	s.sign(".", "example. NS ns.other.test.\nns.other.test. A 127.0.0.1\n"+ds, signing{})
	s.serve()
	return s
}

// dsAt makes the DS record of the key that a server has for a zone.
func dsAt(t *testing.T, at *nameServer, zone string) string {
	t.Helper()
	for range 100 {
		m, _, err := (&dns.Client{Net: "tcp", Timeout: 10 * time.Second}).Exchange(new(dns.Msg).SetQuestion(zone, dns.TypeDNSKEY).SetEdns0(4096, true), at.addr)
		if err == nil {
			for _, r := range m.Answer {
				if key, ok := r.(*dns.DNSKEY); ok && key.Flags&dns.SEP != 0 {
					return key.ToDS(dns.SHA256).String() + "\n"
				}
			}
		}
		time.Sleep(50 * time.Millisecond) // it signs
	}
	t.Fatalf("%s has no key for %s", at.name, zone)
	return ""
}

// proofs are what validators are asked, and what they find. Records of names that are
// changed on the way are changed for all.
var proofs = []struct {
	name string
	want string // secure, insecure or bogus
	link string // that our client finds broken
}{
	{"n.good.example.", "secure", ""}, {"n.hashed.example.", "secure", ""}, {"n.optout.example.", "secure", ""},
	{"n.p384.example.", "secure", ""}, {"n.knot.example.", "secure", ""},
	{"alias.good.example.", "secure", ""}, {"alias.hashed.example.", "secure", ""}, {"x.old.knot.example.", "secure", ""}, {"x.old.good.example.", "secure", ""},
	{"any.wild.good.example.", "secure", ""}, {"any.wild.hashed.example.", "secure", ""}, {"any.wild.knot.example.", "secure", ""},
	// What is not there.
	{"none.good.example.", "secure", ""}, {"none.hashed.example.", "secure", ""}, {"none.knot.example.", "secure", ""}, {"none.p384.example.", "secure", ""},
	{"x.y.z.none.hashed.example.", "secure", ""}, {"b.c.good.example.", "secure", ""}, {"b.c.knot.example.", "secure", ""}, {"good.example.", "secure", ""},
	{"none.example.", "secure", ""}, {"none.", "secure", ""},
	{"none.optout.example.", "insecure", ""}, // a zone that is not signed may be there (RFC 5155, section 9.2)
	// Not signed, and it is proven.
	{"n.open.example.", "insecure", ""}, {"none.open.example.", "insecure", ""}, {"n.open.optout.example.", "insecure", ""},
	{"away.good.example.", "insecure", ""}, {"away.knot.example.", "insecure", ""},
	// Broken.
	{"n.expired.example.", "bogus", "expired.example. DNSKEY: expired"},
	{"n.early.example.", "bogus", "early.example. DNSKEY: not yet valid"},
	{"n.mismatch.example.", "bogus", "mismatch.example. DNSKEY: no key"},
	{"none.mismatch.example.", "bogus", "mismatch.example. DNSKEY: no key"},
	{"tampered.good.example.", "bogus", "tampered.good.example. NAPTR: wrong signature"},
	{"tampered.knot.example.", "bogus", "tampered.knot.example. NAPTR: wrong signature"},
	{"unsigned.good.example.", "bogus", "unsigned.good.example. NAPTR: no signature"},
	{"unsigned.hashed.example.", "bogus", "unsigned.hashed.example. NAPTR: no signature"},
	{"swapped.good.example.", "bogus", "swapped.good.example. NAPTR: no key"},
	{"forged.good.example.", "bogus", "forged.good.example. NAPTR: no proof"},
	{"forged.hashed.example.", "bogus", "forged.hashed.example. NAPTR: no proof"},
	{"emptied.hashed.example.", "bogus", "emptied.hashed.example. NAPTR: no proof"},
	{"stripped.good.example.", "bogus", "stripped.good.example. NAPTR: no proof"},
	{"stripped.hashed.example.", "bogus", "stripped.hashed.example. NAPTR: no proof"},
	{"n.lost.example.", "bogus", "lost.example. DS: no proof"},
}

// tamper is an attacker on the network path.
func tamper(sign func(set []dns.RR) *dns.RRSIG) func(q dns.Question, m *dns.Msg) {
	without := func(list []dns.RR, kinds ...uint16) []dns.RR {
		return slices.DeleteFunc(list, func(r dns.RR) bool {
			if sig, ok := r.(*dns.RRSIG); ok {
				return slices.Contains(kinds, sig.TypeCovered) || slices.Contains(kinds, dns.TypeRRSIG)
			}
			return slices.Contains(kinds, r.Header().Rrtype)
		})
	}
	return func(q dns.Question, m *dns.Msg) {
		label, _, _ := strings.Cut(q.Name, ".")
		switch {
		case q.Qtype == dns.TypeDS && q.Name == "lost.example.":
			m.Ns = without(m.Ns, dns.TypeNSEC, dns.TypeNSEC3)
		case q.Qtype != dns.TypeNAPTR:
		case label == "tampered":
			for _, r := range m.Answer {
				if rule, ok := r.(*dns.NAPTR); ok {
					rule.Regexp = "!.*!https://evil.example/!"
				}
			}
		case label == "unsigned":
			m.Answer = without(m.Answer, dns.TypeRRSIG)
		case label == "swapped":
			m.Answer = without(m.Answer, dns.TypeRRSIG)
			m.Answer = append(m.Answer, sign(m.Answer))
		case label == "forged":
			m.Rcode, m.Answer = dns.RcodeNameError, nil
			m.Ns = []dns.RR{&dns.SOA{Hdr: dns.RR_Header{Name: strings.TrimPrefix(q.Name, "forged."), Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: 60}, Ns: "ns.", Mbox: "m."}}
		case label == "emptied":
			m.Answer = nil
		case label == "stripped":
			m.Ns = without(m.Ns, dns.TypeNSEC, dns.TypeNSEC3)
		}
	}
}

// Our client, unbound and delv find the same of zones that BIND's tools and Knot have
// signed, sound and broken; and our client says which link is broken.
func TestDNSSEC(t *testing.T) {
	key := &dns.DNSKEY{Hdr: dns.RR_Header{Name: "good.example.", Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET, Ttl: 300}, Flags: 256, Protocol: 3, Algorithm: dns.ECDSAP256SHA256}
	private, err := key.Generate(256)
	if err != nil {
		t.Fatal(err)
	}
	signer, ok := private.(crypto.Signer)
	if !ok {
		t.Fatalf("%T does not sign", private)
	}
	s := newSignedTree(t, tamper(func(set []dns.RR) *dns.RRSIG {
		sig := &dns.RRSIG{
			Hdr: dns.RR_Header{Name: set[0].Header().Name, Rrtype: dns.TypeRRSIG, Class: dns.ClassINET, Ttl: 300}, Algorithm: key.Algorithm, KeyTag: key.KeyTag(),
			SignerName: "good.example.", Inception: uint32(time.Now().Add(-time.Hour).Unix()), Expiration: uint32(time.Now().Add(time.Hour).Unix()),
		}
		if err := sig.Sign(signer, set); err != nil {
			t.Error(err)
		}
		return sig
	}))
	unbound := s.validatingUnbound()
	for _, p := range proofs {
		got, link := ourVerdict(t, s, p.name)
		if got != p.want || link != p.link {
			t.Errorf("%s: %s %s, want %s %s", p.name, got, link, p.want, p.link)
		}
		if got := unboundVerdict(t, unbound, p.name, dns.TypeNAPTR); got != p.want {
			t.Errorf("%s: unbound finds it %s, and should %s", p.name, got, p.want)
		}
		if got := s.delv(p.name, "NAPTR"); got != p.want && p.name != "none.optout.example." { // of which it does not think
			t.Errorf("%s: delv finds it %s, and should %s", p.name, got, p.want)
		}
	}
	t.Run("the program", func(t *testing.T) { provesWithProgram(t, s) })
}

// ourVerdict asks with our client, which starts at the name.
func ourVerdict(t *testing.T, s *signedTree, name string) (verdict, link string) {
	t.Helper()
	res, err := provingClient(t, s, "@"+name).Resolve(t.Context(), client.Request{Name: "urn:x1:y", Trace: true})
	b, isBogus := errors.AsType[*dnssec.Bogus](err)
	switch {
	case isBogus:
		return "bogus", b.Name + " " + b.Type + ": " + string(b.Reason)
	case err != nil && vocabulary.KindOf(err) != vocabulary.NotFound:
		return err.Error(), res.Trace.String()
	case err == nil && res.DNSSEC != res.Trace.DNSSEC:
		return "two verdicts", res.Trace.String()
	}
	return res.Trace.DNSSEC.String(), ""
}

// provingClient is a client that asks the tree, and validates.
func provingClient(t *testing.T, s *signedTree, root string) *client.DNS {
	t.Helper()
	anchors, err := dnssec.ParseAnchors(strings.NewReader(s.root))
	if err != nil {
		t.Fatal(err)
	}
	schemes, err := all.New(all.Config{})
	if err != nil {
		t.Fatal(err)
	}
	server, err := client.ParseServer(s.addr)
	if err != nil {
		t.Fatal(err)
	}
	way, err := client.NewDNS(client.DNSOptions{
		Schemes: schemes, Servers: []client.NameServer{server}, Roots: map[string]string{"urn": root}, Now: time.Now, TryTimeout: 10 * time.Second,
		DNSSEC: client.Validate, Anchors: anchors,
	})
	if err != nil {
		t.Fatal(err)
	}
	return way
}

// provesWithProgram has the program say what it finds.
func provesWithProgram(t *testing.T, s *signedTree) {
	for _, tt := range []struct {
		name string
		code int
		want string // in what it prints
	}{
		{"n.good.example.", 0, "https://data.example/ok\n"},
		{"n.open.example.", 0, "stele: INSECURE: n.open.example. NAPTR: open.example. is not signed (example. proves that it has no DS record)\n"},
		{"n.expired.example.", 1, "BOGUS: expired.example. DNSKEY: the signature expired on 2020-02-01T00:00:00Z, and it is "},
		{"tampered.good.example.", 1, "BOGUS: tampered.good.example. NAPTR: the signature is wrong"},
		{"none.good.example.", 3, "none.good.example.: no such name"},
	} {
		out, code := resolveWith(t, wanted{name: "urn:x1:y", service: "N2L"}, "--dns", s.addr, "--root", "@"+tt.name, "--dnssec", "--anchors", s.anchors())
		if code != tt.code || !strings.Contains(out, tt.want) || tt.code == 0 && !strings.Contains(out, "https://data.example/ok\n") {
			t.Errorf("%s: exit %d, %s", tt.name, code, out)
		}
	}
}
