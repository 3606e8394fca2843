package dnssec

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele/client/internal/signtest"
)

// without returns a section without records of a type, and without signatures of it.
func without(list []dns.RR, kinds ...uint16) []dns.RR {
	return slices.DeleteFunc(list, func(r dns.RR) bool {
		if sig, ok := r.(*dns.RRSIG); ok {
			return slices.Contains(kinds, sig.TypeCovered) || slices.Contains(kinds, dns.TypeRRSIG)
		}
		return slices.Contains(kinds, r.Header().Rrtype)
	})
}

// at changes the answer to one question.
func at(name string, kind uint16, change func(m *dns.Msg)) func(dns.Question, *dns.Msg) {
	return func(q dns.Question, m *dns.Msg) {
		if q.Name == name && q.Qtype == kind {
			change(m)
		}
	}
}

// TestBogus: an attacker who changes, omits or forges records is detected, and the error
// names the link.
func TestBogus(t *testing.T) {
	const a, c = "a.001.ab1.paradisec.example.", "c.001.ab1.paradisec.example."
	stranger := signtest.NewZone(t, "paradisec.example.", paradisecZone, signtest.Options{}).Sign()
	for _, tt := range []struct {
		about  string
		name   string
		kind   uint16
		change func(w *world) func(dns.Question, *dns.Msg)
		want   string
	}{
		{"a tampered rule", a, dns.TypeNAPTR, func(*world) func(dns.Question, *dns.Msg) {
			return at(a, dns.TypeNAPTR, func(m *dns.Msg) { m.Answer[0].(*dns.NAPTR).Regexp = "!.*!https://evil.example/!" })
		}, a + " NAPTR: wrong signature"},
		{"a rule more", a, dns.TypeNAPTR, func(*world) func(dns.Question, *dns.Msg) {
			return at(a, dns.TypeNAPTR, func(m *dns.Msg) {
				r := dns.Copy(m.Answer[0]).(*dns.NAPTR)
				r.Order = 1
				m.Answer = append(m.Answer, r)
			})
		}, a + " NAPTR: wrong signature"},
		{"no signature", a, dns.TypeNAPTR, func(*world) func(dns.Question, *dns.Msg) {
			return at(a, dns.TypeNAPTR, func(m *dns.Msg) { m.Answer = without(m.Answer, dns.TypeRRSIG) })
		}, a + " NAPTR: no signature"},
		{"a signature of other records", a, dns.TypeNAPTR, func(*world) func(dns.Question, *dns.Msg) {
			return at(a, dns.TypeNAPTR, func(m *dns.Msg) { m.Answer[1].(*dns.RRSIG).TypeCovered = dns.TypeTXT })
		}, a + " NAPTR: no signature"},
		{"a signature of the root", a, dns.TypeNAPTR, func(*world) func(dns.Question, *dns.Msg) {
			return at(a, dns.TypeNAPTR, func(m *dns.Msg) { m.Answer[1].(*dns.RRSIG).SignerName = "." })
		}, a + " NAPTR: no key"},
		{"a signature of another zone", a, dns.TypeNAPTR, func(*world) func(dns.Question, *dns.Msg) {
			return at(a, dns.TypeNAPTR, func(m *dns.Msg) { m.Answer[1].(*dns.RRSIG).SignerName = "open.example." })
		}, a + " NAPTR: wrong signature"},
		{"a signature of what is not a zone", a, dns.TypeNAPTR, func(*world) func(dns.Question, *dns.Msg) {
			return at(a, dns.TypeNAPTR, func(m *dns.Msg) { m.Answer[1].(*dns.RRSIG).SignerName = "ab1.paradisec.example." })
		}, a + " NAPTR: no key"},
		{"records of somebody else's, with a signature of an unknown key", a, dns.TypeNAPTR, func(*world) func(dns.Question, *dns.Msg) {
			return at(a, dns.TypeNAPTR, func(m *dns.Msg) { m.Answer = signtest.Tree{stranger}.Answer(m).Answer })
		}, a + " NAPTR: no key"},
		{"everything of somebody else's", a, dns.TypeNAPTR, func(*world) func(dns.Question, *dns.Msg) {
			return func(q dns.Question, m *dns.Msg) {
				if q.Name == a || q.Name == "paradisec.example." && q.Qtype == dns.TypeDNSKEY {
					m.Answer = signtest.Tree{stranger}.Answer(m).Answer
				}
			}
		}, "paradisec.example. DNSKEY: no key"},
		{"no keys", a, dns.TypeNAPTR, func(*world) func(dns.Question, *dns.Msg) {
			return at("paradisec.example.", dns.TypeDNSKEY, func(m *dns.Msg) { m.Answer = nil })
		}, "paradisec.example. DNSKEY: no key"},
		{"a key more", a, dns.TypeNAPTR, func(*world) func(dns.Question, *dns.Msg) {
			return at("paradisec.example.", dns.TypeDNSKEY, func(m *dns.Msg) { m.Answer = append(m.Answer, stranger.Keys[0].DNSKEY) })
		}, "paradisec.example. DNSKEY: wrong signature"},
		{"a DS record of somebody else's", a, dns.TypeNAPTR, func(*world) func(dns.Question, *dns.Msg) {
			return at("paradisec.example.", dns.TypeDS, func(m *dns.Msg) { m.Answer[0].(*dns.DS).Digest = stranger.Keys[0].ToDS(dns.SHA256).Digest })
		}, "paradisec.example. DS: wrong signature"},
		{"no DS record, and no proof", a, dns.TypeNAPTR, func(*world) func(dns.Question, *dns.Msg) {
			return at("paradisec.example.", dns.TypeDS, func(m *dns.Msg) { m.Answer = nil })
		}, "paradisec.example. DS: no proof"},
		{"no DS record, with the proof of another name", a, dns.TypeNAPTR, func(w *world) func(dns.Question, *dns.Msg) {
			other := w.reply("open.example.", dns.TypeDS)
			return at("paradisec.example.", dns.TypeDS, func(m *dns.Msg) { m.Answer, m.Ns = nil, other.Ns })
		}, "paradisec.example. DS: no proof"},
		{"no DS record, with the proof that there is none in the zone itself", a, dns.TypeNAPTR, func(w *world) func(dns.Question, *dns.Msg) {
			other := w.reply("paradisec.example.", dns.TypeMX)
			return at("paradisec.example.", dns.TypeDS, func(m *dns.Msg) { m.Answer, m.Ns = nil, other.Ns })
		}, "paradisec.example. DS: no proof"},
		{"unsigned, without the proof", "www.open.example.", dns.TypeA, func(*world) func(dns.Question, *dns.Msg) {
			return at("open.example.", dns.TypeDS, func(m *dns.Msg) { m.Ns = without(m.Ns, dns.TypeNSEC, dns.TypeNSEC3) })
		}, "open.example. DS: no proof"},
		{"unsigned, with a proof whose signature is wrong", "www.open.example.", dns.TypeA, func(*world) func(dns.Question, *dns.Msg) {
			return at("open.example.", dns.TypeDS, func(m *dns.Msg) {
				for _, r := range m.Ns {
					if n, ok := r.(*dns.NSEC); ok {
						n.TypeBitMap = []uint16{dns.TypeNS}
					}
				}
			})
		}, "open.example. NSEC: wrong signature"},
		{"a forged NXDOMAIN", a, dns.TypeNAPTR, func(*world) func(dns.Question, *dns.Msg) {
			return at(a, dns.TypeNAPTR, func(m *dns.Msg) {
				m.Rcode, m.Answer = dns.RcodeNameError, nil
				m.Ns = []dns.RR{&dns.SOA{Hdr: dns.RR_Header{Name: "paradisec.example.", Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: 60}, Ns: "ns.", Mbox: "m."}}
			})
		}, a + " NAPTR: no proof"},
		{"an NXDOMAIN of another name", a, dns.TypeNAPTR, func(w *world) func(dns.Question, *dns.Msg) {
			other := w.reply("zzz.paradisec.example.", dns.TypeNAPTR)
			return at(a, dns.TypeNAPTR, func(m *dns.Msg) { m.Rcode, m.Answer, m.Ns = dns.RcodeNameError, nil, other.Ns })
		}, a + " NAPTR: no proof"},
		{"an NXDOMAIN instead of no records", a, dns.TypeSRV, func(*world) func(dns.Question, *dns.Msg) {
			return at(a, dns.TypeSRV, func(m *dns.Msg) { m.Rcode = dns.RcodeNameError })
		}, a + " SRV: no proof"},
		{"no records, with the proof for another type", a, dns.TypeNAPTR, func(w *world) func(dns.Question, *dns.Msg) {
			other := w.reply(a, dns.TypeSRV)
			return at(a, dns.TypeNAPTR, func(m *dns.Msg) { m.Answer, m.Ns = nil, other.Ns })
		}, a + " NAPTR: no proof"},
		{"a stripped denial", c, dns.TypeNAPTR, func(*world) func(dns.Question, *dns.Msg) {
			return at(c, dns.TypeNAPTR, func(m *dns.Msg) { m.Ns = without(m.Ns, dns.TypeNSEC, dns.TypeNSEC3) })
		}, c + " NAPTR: no proof"},
		{"a denial without what is said of wildcards", c, dns.TypeNAPTR, func(*world) func(dns.Question, *dns.Msg) {
			return at(c, dns.TypeNAPTR, func(m *dns.Msg) {
				for i, r := range m.Ns {
					if t := r.Header().Rrtype; t == dns.TypeNSEC || t == dns.TypeNSEC3 {
						m.Ns = m.Ns[:i+2] // the first, and its signature
						break
					}
				}
			})
		}, c + " NAPTR: no proof"},
		{"a SOA record that was changed", c, dns.TypeNAPTR, func(*world) func(dns.Question, *dns.Msg) {
			return at(c, dns.TypeNAPTR, func(m *dns.Msg) { m.Ns[0].(*dns.SOA).Minttl = 86400 })
		}, "paradisec.example. SOA: wrong signature"},
		{"an alias to somewhere else", "alias.paradisec.example.", dns.TypeNAPTR, func(*world) func(dns.Question, *dns.Msg) {
			return at("alias.paradisec.example.", dns.TypeNAPTR, func(m *dns.Msg) {
				m.Answer[0].(*dns.CNAME).Target = "n.open.example."
			})
		}, "alias.paradisec.example. CNAME: wrong signature"},
		{"an alias that does not follow", "a.001.old.paradisec.example.", dns.TypeNAPTR, func(*world) func(dns.Question, *dns.Msg) {
			return at("a.001.old.paradisec.example.", dns.TypeNAPTR, func(m *dns.Msg) {
				for _, r := range m.Answer {
					if alias, ok := r.(*dns.CNAME); ok {
						alias.Target = "n.open.example."
					}
				}
			})
		}, "a.001.old.paradisec.example. CNAME: no signature"},
		{"the proof of a zone above for what is below", "www.sub.paradisec.example.", dns.TypeAAAA, func(w *world) func(dns.Question, *dns.Msg) {
			other := w.reply("sub.paradisec.example.", dns.TypeDS)
			return at("www.sub.paradisec.example.", dns.TypeAAAA, func(m *dns.Msg) { m.Rcode, m.Ns = dns.RcodeNameError, other.Ns })
		}, "www.sub.paradisec.example. AAAA: no proof"},
	} {
		for _, denial := range []signtest.Denial{signtest.NSEC, signtest.NSEC3} {
			w := newWorld(t, signtest.Options{Denial: denial})
			w.change = tt.change(w)
			v, err := w.judge(tt.name, tt.kind)
			if got := verdict(v, err); got != tt.want {
				t.Errorf("%s (%d): %s, want %s\n%v", tt.about, denial, got, tt.want, err)
			}
			if err != nil && !errors.Is(err, ErrBogus) {
				t.Errorf("%s: %v is not bogus", tt.about, err)
			}
		}
	}
}

// TestExpired: each link has its own validity period.
func TestExpired(t *testing.T) {
	past := signtest.Options{From: signtest.Now().Add(-48 * time.Hour), To: signtest.Now().Add(-24 * time.Hour)}
	w := newWorld(t, past)
	if got, want := verdict(w.judge("a.001.ab1.paradisec.example.", dns.TypeNAPTR)), "paradisec.example. DNSKEY: expired"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	// Keys that are signed anew, and records that are not.
	w = newWorld(t, signtest.Options{})
	paradisec := w.zone("paradisec.example.")
	w.change = at("a.001.ab1.paradisec.example.", dns.TypeNAPTR, func(m *dns.Msg) {
		old := *paradisec
		old.Options = past
		m.Answer = append(m.Answer[:1], old.SignSet(m.Answer[:1], old.Keys[0])...)
	})
	_, err := w.judge("a.001.ab1.paradisec.example.", dns.TypeNAPTR)
	b, ok := errors.AsType[*Bogus](err)
	if !ok || b.Reason != Expired || b.Name != "a.001.ab1.paradisec.example." || b.Type != "NAPTR" || b.Signer != "paradisec.example." || b.KeyTag != paradisec.Keys[0].KeyTag() {
		t.Errorf("%+v", err)
	}
}

// TestWorkIsBounded: keys and signatures that were made to keep a validator busy cause
// bounded work (CVE-2023-50387).
func TestWorkIsBounded(t *testing.T) {
	const a = "a.001.ab1.paradisec.example."
	w := newWorld(t, signtest.Options{})
	paradisec := w.zone("paradisec.example.")
	good := paradisec.Keys[0]
	// Keys with the same tag: two bytes of the key at even places, one up, one down.
	raw := func(i int) string {
		k := *good.DNSKEY
		b := []byte(k.PublicKey)
		b[4*i], b[4*(i+1)] = b[4*(i+1)], b[4*i]
		return string(b)
	}
	same := 0
	for i := 0; i < 20; i++ {
		k := *good.DNSKEY
		if k.PublicKey = raw(i); k.KeyTag() == good.KeyTag() && k.PublicKey != good.PublicKey {
			paradisec.AddRR(&k)
			same++
		}
	}
	paradisec.Sign()
	w.change = at(a, dns.TypeNAPTR, func(m *dns.Msg) {
		sig := m.Answer[1].(*dns.RRSIG)
		m.Answer[0].(*dns.NAPTR).Order++
		for range 200 {
			m.Answer = append(m.Answer, dns.Copy(sig))
		}
	})
	w.begin()
	budget := new(Budget)
	m := w.reply(a, dns.TypeNAPTR)
	_, err := w.v.Check(budget, w.ask).Reply(m).Records(t.Context(), a, dns.TypeNAPTR)
	if !errors.Is(err, ErrBogus) || budget.checks.Load() > maxChecksAnswer+8 {
		t.Errorf("%v, after %d checks, with %d keys of the same tag", err, budget.checks.Load(), same)
	}
	// All in all.
	for range 100 {
		_, err = w.v.Check(budget, w.ask).Reply(m).Records(t.Context(), a, dns.TypeNAPTR)
	}
	b, ok := errors.AsType[*Bogus](err)
	if !ok || b.Reason != TooMuchWork {
		t.Errorf("%v", err)
	}
	// Questions.
	budget = new(Budget)
	deep := strings.Repeat("x.", 100) + "open.example."
	w.begin()
	for range 200 {
		w.v = New(w.v.anchors, w.v.now)
		_, err = w.v.Check(budget, w.ask).Reply(new(dns.Msg)).Nothing(t.Context(), deep, dns.TypeA)
	}
	if b, ok := errors.AsType[*Bogus](err); !ok || b.Reason != TooMuchWork || len(w.asked) > 400 {
		t.Errorf("%v, %d questions", err, len(w.asked))
	}
}

// TestHashingIsBounded: names of many labels, and proofs with many iterations, cause bounded
// work (CVE-2023-50868).
func TestHashingIsBounded(t *testing.T) {
	w := newWorld(t, signtest.Options{Denial: signtest.NSEC3, Iterations: maxIterations})
	deep := strings.Repeat("x.", 100) + "paradisec.example."
	budget := new(Budget)
	var err error
	for range 10 {
		_, err = w.v.Check(budget, w.ask).Reply(w.reply(deep, dns.TypeA)).Nothing(t.Context(), deep, dns.TypeA)
	}
	if b, ok := errors.AsType[*Bogus](err); !ok || b.Reason != TooMuchWork || budget.rounds.Load() > maxRounds {
		t.Errorf("%v, %d rounds", err, budget.rounds.Load())
	}
	if got := verdict(w.judge("x.y.paradisec.example.", dns.TypeA)); got != "secure, no name" {
		t.Errorf("a name of few labels: %s", got)
	}
}
