package dnssec

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/stele-id/stele/client/internal/signtest"
)

// TestSecure: all that a signed zone says is secure, whatever its algorithm and its kind of
// denial.
func TestSecure(t *testing.T) {
	for _, o := range []signtest.Options{
		{},
		{Split: true},
		{Algorithm: dns.ECDSAP384SHA384, Split: true, Denial: signtest.NSEC3},
		{Algorithm: dns.ED25519, Denial: signtest.Compact},
		{Algorithm: dns.RSASHA256, Split: true, Denial: signtest.NSEC3, Iterations: 10, Salt: "ab12"},
		{Algorithm: dns.RSASHA512},
		{Denial: signtest.NSEC3, OptOut: true},
	} {
		t.Run(fmt.Sprintf("%s split=%t denial=%d opt-out=%t", dns.AlgorithmToString[o.Algorithm], o.Split, o.Denial, o.OptOut), func(t *testing.T) {
			w := newWorld(t, o)
			for _, tt := range []struct {
				name string
				kind uint16
				want string
			}{
				{"a.001.ab1.paradisec.example.", dns.TypeNAPTR, "secure"},
				{"A.001.Ab1.PARADISEC.example.", dns.TypeTXT, "secure"},
				{"_http._tcp.paradisec.example.", dns.TypeSRV, "secure"},
				{"id.paradisec.example.", dns.TypeA, "secure"},
				{"paradisec.example.", dns.TypeSOA, "secure"},
				{"alias.paradisec.example.", dns.TypeNAPTR, "secure"},
				{"a.001.old.paradisec.example.", dns.TypeNAPTR, "secure"},
				{"outside.paradisec.example.", dns.TypeA, "insecure"}, // the alias is signed, what it leads to is not
				// Nothing of the type; names with nothing but names below them; no names.
				{"a.001.ab1.paradisec.example.", dns.TypeSRV, "secure"},
				{"id.paradisec.example.", dns.TypeAAAA, "secure"},
				{"paradisec.example.", dns.TypeTXT, "secure"},
				{"001.ab1.paradisec.example.", dns.TypeNAPTR, "secure"},
				{"ab1.paradisec.example.", dns.TypeA, "secure"},
				{"c.001.ab1.paradisec.example.", dns.TypeNAPTR, "secure, no name"},
				{"x.y.z.paradisec.example.", dns.TypeNAPTR, "secure, no name"},
				{"zzz.paradisec.example.", dns.TypeA, "secure, no name"},
				{"x.001.old.paradisec.example.", dns.TypeNAPTR, "secure, no name"},
				{"other.", dns.TypeNS, "secure, no name"},
				// Not signed, and it is proven.
				{"www.open.example.", dns.TypeA, "insecure"},
				{"www.open.example.", dns.TypeAAAA, "insecure"},
				{"nothing.open.example.", dns.TypeA, "insecure"},
				{"www.sub.paradisec.example.", dns.TypeA, "insecure"},
				{"x.y.wild.paradisec.example.", dns.TypeTXT, "secure"},
			} {
				name := tt.name
				if o.OptOut && tt.want == "secure, no name" && strings.HasSuffix(name, "paradisec.example.") {
					tt.want = "insecure, no name" // a zone that is not signed may be there
				}
				got := verdict(w.judge(dns.CanonicalName(name), tt.kind))
				if got != tt.want {
					t.Errorf("%s %s: %s, want %s\n%v", name, dns.TypeToString[tt.kind], got, tt.want, w.reply(dns.CanonicalName(name), tt.kind))
				}
			}
		})
	}
}

// TestWildcards: records made of a wildcard need the proof that there is no closer name.
func TestWildcards(t *testing.T) {
	for _, denial := range []signtest.Denial{signtest.NSEC, signtest.NSEC3} {
		w := newWorld(t, signtest.Options{Denial: denial})
		for _, tt := range []struct {
			name string
			kind uint16
			want string
		}{
			{"anything.wild.paradisec.example.", dns.TypeTXT, "secure"},
			{"any.thing.wild.paradisec.example.", dns.TypeTXT, "secure"},
			{"*.wild.paradisec.example.", dns.TypeTXT, "secure"},
			{"anything.wild.paradisec.example.", dns.TypeA, "secure"},
			{"z.y.wild.paradisec.example.", dns.TypeTXT, "secure, no name"}, // y.wild is there, so the wildcard is not for it
		} {
			if got := verdict(w.judge(tt.name, tt.kind)); got != tt.want {
				t.Errorf("%d %s: %s, want %s", denial, tt.name, got, tt.want)
			}
		}
		// The wildcard's records under a name that is there, or that it is not for.
		wild := w.reply("anything.wild.paradisec.example.", dns.TypeTXT)
		for _, name := range []string{"x.y.wild.paradisec.example.", "z.y.wild.paradisec.example."} {
			w.change = func(q dns.Question, m *dns.Msg) {
				if q.Name != name {
					return
				}
				m.Rcode, m.Answer, m.Ns = dns.RcodeSuccess, nil, append(m.Ns, wild.Ns...)
				for _, r := range wild.Answer {
					r = dns.Copy(r)
					r.Header().Name = name
					m.Answer = append(m.Answer, r)
				}
			}
			if got, want := verdict(w.judge(name, dns.TypeTXT)), name+" TXT: no proof"; got != want {
				t.Errorf("%d: %s, want %s", denial, got, want)
			}
		}
		w.change = func(q dns.Question, m *dns.Msg) { m.Ns = nil }
		if got, want := verdict(w.judge("anything.wild.paradisec.example.", dns.TypeTXT)), "anything.wild.paradisec.example. TXT: no proof"; got != want {
			t.Errorf("%d: without a proof: %s, want %s", denial, got, want)
		}
	}
}

// TestTime: signatures are valid from their inception to their expiration.
func TestTime(t *testing.T) {
	w := newWorld(t, signtest.Options{})
	for _, tt := range []struct {
		at   time.Duration
		want string
	}{
		{0, "secure"},
		{24 * time.Hour, "secure"},
		{24*time.Hour + time.Second, ". DNSKEY: expired"},
		{-time.Hour, "secure"},
		{-time.Hour - time.Second, ". DNSKEY: not yet valid"},
	} {
		w.begin()
		w.now = signtest.Now().Add(tt.at)
		v, err := w.judge("a.001.ab1.paradisec.example.", dns.TypeNAPTR)
		if got := verdict(v, err); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.at, got, tt.want)
		}
		if tt.at == 24*time.Hour && v.TTL != 0 {
			t.Errorf("what expires now holds for %d s", v.TTL)
		}
		if tt.at > 24*time.Hour && !strings.Contains(err.Error(), "expired on 2027-01-16T08:00:00Z, and it is 2027-01-16T08:00:01Z by this machine's clock (key ") {
			t.Errorf("%v", err)
		}
	}
}

// TestRemembers: keys are asked for once, as long as they are valid.
func TestRemembers(t *testing.T) {
	w := newWorld(t, signtest.Options{})
	want := []string{
		"a.001.ab1.paradisec.example. NAPTR", ". DNSKEY", "example. DS", "example. DNSKEY", "paradisec.example. DS", "paradisec.example. DNSKEY",
	}
	for i, tt := range []struct {
		move time.Duration
		want []string
	}{
		{0, want},
		{0, want[:1]},
		{299 * time.Second, want[:1]},
		{time.Second, want},
		{-time.Hour, want[:1]}, // the cached keys are of a later time, but a day is not over
		{-24 * time.Hour, nil},
	} {
		w.asked = nil
		w.now = w.now.Add(tt.move)
		v, err := w.judge("a.001.ab1.paradisec.example.", dns.TypeNAPTR)
		if tt.want == nil {
			if verdict(v, err) == "secure" {
				t.Error("before all signatures: secure")
			}
			continue
		}
		if err != nil || cmp.Diff(w.asked, tt.want) != "" {
			t.Errorf("%d: %v, %q", i, err, w.asked)
		}
	}
}

// TestNoAnchor: without a trust anchor, the status of a name is unknown.
func TestNoAnchor(t *testing.T) {
	w := newWorld(t, signtest.Options{})
	w.anchors = w.zone("paradisec.example.").Anchor()
	w.begin()
	if got := verdict(w.judge("a.001.ab1.paradisec.example.", dns.TypeNAPTR)); got != "secure" || len(w.asked) != 2 {
		t.Errorf("an anchor in the middle: %s, asked %q", got, w.asked)
	}
	v, err := w.judge("www.open.example.", dns.TypeA)
	if got := verdict(v, err); got != "insecure" || v.Why != "no trust anchor is above www.open.example." {
		t.Errorf("%s, %s", got, v.Why)
	}
	// An anchor below another one counts alone.
	w.anchors = w.zone(".").Anchor() + signtest.NewKey(t, "paradisec.example.", 257, 0, 0).DNSKEY.String()
	w.begin()
	if got := verdict(w.judge("a.001.ab1.paradisec.example.", dns.TypeNAPTR)); got != "paradisec.example. DNSKEY: no key" {
		t.Errorf("a wrong anchor: %s", got)
	}
	if got := verdict(w.judge("www.open.example.", dns.TypeA)); got != "insecure" {
		t.Errorf("beside it: %s", got)
	}
}

// TestUnsupported: zones that are signed with obsolete algorithms, or with algorithms that
// the validator can't check, count as not signed.
func TestUnsupported(t *testing.T) {
	for _, tt := range []struct {
		about  string
		change func(ds *dns.DS)
		want   string
	}{
		{"SHA-1 digests", func(ds *dns.DS) { ds.DigestType, ds.Digest = dns.SHA1, strings.Repeat("ab", 20) }, "digest SHA1"},
		{"RSASHA1", func(ds *dns.DS) { ds.Algorithm = dns.RSASHA1 }, "RSASHA1 with"},
		{"DSA", func(ds *dns.DS) { ds.Algorithm = dns.DSA }, "DSA with"},
		{"an algorithm of the future", func(ds *dns.DS) { ds.Algorithm = 200 }, "200 with digest"},
	} {
		w := newWorld(t, signtest.Options{})
		paradisec := w.zone("paradisec.example.")
		ds := paradisec.Keys[0].ToDS(dns.SHA256)
		tt.change(ds)
		example := signtest.NewZone(t, "example.", "paradisec NS ns.other.test.\n"+ds.String()+"\n", signtest.Options{})
		w.tree = signtest.Tree{example.Sign(), paradisec}
		w.anchors = example.Anchor()
		w.begin()
		v, err := w.judge("a.001.ab1.paradisec.example.", dns.TypeNAPTR)
		if got := verdict(v, err); got != "insecure" || !strings.Contains(v.Why, tt.want) {
			t.Errorf("%s: %s, %s", tt.about, got, v.Why)
		}
	}
}

// TestIterations: proofs that take much hashing prove nothing.
func TestIterations(t *testing.T) {
	for _, tt := range []struct {
		iterations uint16
		want       string
	}{{100, "secure, no name"}, {101, "insecure"}, {2500, "insecure"}} {
		w := newWorld(t, signtest.Options{Denial: signtest.NSEC3, Iterations: tt.iterations})
		v, err := w.judge("c.001.ab1.paradisec.example.", dns.TypeNAPTR)
		if got := verdict(v, err); got != tt.want || tt.iterations > 100 && !strings.Contains(v.Why, fmt.Sprintf("take %d rounds", tt.iterations)) {
			t.Errorf("%d: %s, %s", tt.iterations, got, v.Why)
		}
		// What is there is signed all the same.
		if got := verdict(w.judge("a.001.ab1.paradisec.example.", dns.TypeNAPTR)); got != "secure" {
			t.Errorf("%d: %s", tt.iterations, got)
		}
	}
}

// TestRollover: a zone may have more keys than its DS records name, and more DS records
// than keys.
func TestRollover(t *testing.T) {
	w := newWorld(t, signtest.Options{Split: true})
	paradisec := w.zone("paradisec.example.")
	next := paradisec.AddKey(257)
	gone := signtest.NewKey(t, "paradisec.example.", 257, dns.ED25519, 0)
	paradisec.Sign()
	for _, ds := range [][]*dns.DS{
		{paradisec.Keys[0].ToDS(dns.SHA384)},
		{gone.ToDS(dns.SHA256), paradisec.Keys[0].ToDS(dns.SHA256)},
		{next.ToDS(dns.SHA256), paradisec.Keys[0].ToDS(dns.SHA256), gone.ToDS(dns.SHA1)},
	} {
		text := "paradisec NS ns.other.test.\n"
		for _, one := range ds {
			text += one.String() + "\n"
		}
		example := signtest.NewZone(t, "example.", text, signtest.Options{})
		w.tree, w.anchors = signtest.Tree{example.Sign(), paradisec}, example.Anchor()
		w.begin()
		if got := verdict(w.judge("a.001.ab1.paradisec.example.", dns.TypeNAPTR)); got != "secure" {
			t.Errorf("%v: %s", ds, got)
		}
	}
}
