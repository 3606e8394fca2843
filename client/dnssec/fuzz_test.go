package dnssec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/internal/signtest"
)

// FuzzReply: whatever bytes come back for a question, an answer that is secure is what the
// zone says.
func FuzzReply(f *testing.F) {
	var worlds []*world
	for _, denial := range []signtest.Denial{signtest.NSEC, signtest.NSEC3, signtest.Compact} {
		worlds = append(worlds, newWorld(f, signtest.Options{Denial: denial, Seed: fmt.Sprint("fuzz", denial)}))
	}
	questions := []struct {
		name string
		kind uint16
	}{
		{"a.001.ab1.paradisec.example.", dns.TypeNAPTR},
		{"any.wild.paradisec.example.", dns.TypeTXT},
		{"alias.paradisec.example.", dns.TypeCNAME},
		{"a.001.ab1.paradisec.example.", dns.TypeSRV},
		{"c.001.ab1.paradisec.example.", dns.TypeNAPTR},
		{"001.ab1.paradisec.example.", dns.TypeNAPTR},
		{"sub.paradisec.example.", dns.TypeDS},
		{"paradisec.example.", dns.TypeDNSKEY},
	}
	answers := make([]map[string]*dns.Msg, len(worlds)) // by name and type; the rest is unknown
	for i, w := range worlds {
		answers[i] = make(map[string]*dns.Msg)
		for _, zone := range []string{".", "example.", "paradisec.example.", "sub.paradisec.example.", "ab1.paradisec.example.", "wild.paradisec.example."} {
			for _, kind := range []uint16{dns.TypeDS, dns.TypeDNSKEY} {
				answers[i][zone+dns.TypeToString[kind]] = w.reply(zone, kind)
			}
		}
		for j, q := range questions {
			m := w.reply(q.name, q.kind)
			answers[i][q.name+dns.TypeToString[q.kind]] = m
			packed, err := m.Pack()
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(i), uint8(j), packed)
		}
	}
	f.Fuzz(func(t *testing.T, i, j uint8, b []byte) {
		w, known, q := worlds[int(i)%len(worlds)], answers[int(i)%len(worlds)], questions[int(j)%len(questions)]
		m := new(dns.Msg)
		if m.Unpack(b) != nil {
			return
		}
		ask := func(_ context.Context, name string, kind uint16, judge func(*dns.Msg) error) error {
			if reply := known[name+dns.TypeToString[kind]]; reply != nil {
				return judge(reply)
			}
			return errors.New("nobody answers")
		}
		check := func() *Reply { return w.v.Check(new(Budget), ask).Reply(m) }
		want := known[q.name+dns.TypeToString[q.kind]]
		has := setOf(want.Answer, q.name, q.kind)
		if v, err := check().Records(t.Context(), q.name, q.kind); err == nil && v.Status == Secure {
			if got := setOf(m.Answer, q.name, q.kind); !sameSet(got, has) {
				t.Fatalf("secure, but it is %v and not %v", got.records, has.records)
			}
		}
		v, err := check().Nothing(t.Context(), q.name, q.kind)
		if err != nil || v.Status != Secure {
			return
		}
		noName := want.Rcode == dns.RcodeNameError || slices.ContainsFunc(want.Ns, func(r dns.RR) bool {
			n, ok := r.(*dns.NSEC)
			return ok && slices.Contains(n.TypeBitMap, dns.TypeNXNAME)
		})
		if len(has.records) > 0 || v.NoName && !noName {
			t.Fatalf("secure that there is nothing (no name: %t), but there is:\n%v\n%v", v.NoName, want, m)
		}
	})
}

// sameSet reports whether records are the same, except for their TTL.
func sameSet(a, b set) bool {
	text := func(s set) (list []string) {
		for _, r := range s.records {
			r = dns.Copy(r)
			r.Header().Ttl = 0
			switch r := r.(type) { // names in them are the same in any case (RFC 4034, section 6.2)
			case *dns.NAPTR:
				r.Replacement = dns.CanonicalName(r.Replacement)
			case *dns.CNAME:
				r.Target = dns.CanonicalName(r.Target)
			}
			list = append(list, r.String())
		}
		slices.Sort(list)
		return slices.Compact(list)
	}
	return slices.Equal(text(a), text(b))
}

// FuzzAnchors: a file of anchors has anchors that can be used, or an error that says
// what to do.
func FuzzAnchors(f *testing.F) {
	f.Add([]byte(rootKeys))
	f.Add([]byte("example. IN DNSKEY 257 3 15 l02Woi0iS8Aa25FQkUd9RMzZHJpBoRQwAQEX1SxZJA4="))
	f.Add([]byte("; nothing\n"))
	f.Add([]byte("$ORIGIN example.\n$TTL 60\n@ DS 1 13 2 (\n" + strings.Repeat("ab", 32) + " )"))
	f.Add([]byte("$GENERATE 1-65535 $ DS 1 13 2 " + strings.Repeat("ab", 32)))
	f.Add([]byte("$INCLUDE /etc/hostname\n"))
	f.Add([]byte("example. IN A 192.0.2.1"))
	f.Add([]byte(". IN DNSKEY 385 3 8 AwEAAQ=="))
	f.Fuzz(func(t *testing.T, text []byte) {
		a, err := ParseAnchors(bytes.NewReader(text))
		if err != nil {
			if stele.KindOf(err) != stele.Invalid || strings.ContainsAny(err.Error(), "\n\x00") {
				t.Fatalf("%q", err)
			}
			return
		}
		if len(a.zones) == 0 || len(a.zones) > maxAnchors {
			t.Fatalf("%d zones", len(a.zones))
		}
		for zone, one := range a.zones {
			if len(one.keys)+len(one.ds) == 0 || dns.CanonicalName(zone) != zone {
				t.Fatalf("%q: %+v", zone, one)
			}
			if found, ok := a.above("x." + strings.TrimPrefix(zone, ".")); !ok || found == "" {
				t.Fatalf("nothing above %q", zone)
			}
		}
	})
}
