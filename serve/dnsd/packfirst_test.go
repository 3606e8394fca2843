package dnsd

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele/publish/publishtest"
	"github.com/stele-id/stele/publish/zonesign"
)

// TestMakeFirst holds that answers which are packed without records of the DNS library have the
// same octets as those that the library packs, with signatures and without.
func TestMakeFirst(t *testing.T) {
	const zone = "zone.example."
	for _, prefix := range []string{"urn:paradisec", "urn:example"} { // case counts in one of them
		for _, mode := range []zonesign.Mode{zonesign.Unsigned, zonesign.Online, zonesign.Transfer} {
			t.Run(fmt.Sprint(prefix, mode), func(t *testing.T) {
				p := publishtest.New(t)
				p.Publish(prefix, zone, ":", 2)
				long := "N2L http://example.org/" + strings.Repeat("x", 1000)
				p.Register(prefix+":long:x", long, "N2C http://example.org/json")
				p.Register(prefix+":many:x", "N2L text/html http://example.org/1", "N2L audio/wav http://example.org/2", "N2L http://example.org/a%5Cb")
				chance := rand.New(rand.NewPCG(1, 2))
				for range 60 {
					p.AnyChange(chance, prefix)
				}
				if mode != zonesign.Unsigned {
					p.SignZones(mode, zone)
				}
				now := p.Now()
				p.SetClock(func() time.Time { return now }) // signatures that are compared are of one time
				s := New(Options{Zones: p.Zones, Now: p.Now, CacheBytes: 1 << 20, Signatures: 1 << 20})
				defer s.Shutdown(p.Ctx)
				w := s.newWorker(p.Ctx, new(tally))
				fast := 0
				for _, name := range firstNames(zone) {
					for _, qtype := range []uint16{dns.TypeNAPTR, dns.TypeURI, dns.TypeTXT} {
						for _, signed := range []bool{false, true} {
							if sameAsResolved(t, w, name, qtype, signed) {
								fast++
							}
						}
					}
				}
				if fast < 20 {
					t.Errorf("only %d answers were packed without the library", fast)
				}
			})
		}
	}
}

func firstNames(zone string) (list []string) {
	for _, part := range []string{"a", "b", "c", "xy", "xz"} {
		for _, last := range []string{"a", "b", "c", "x.y", "x.z", "nothing"} {
			list = append(list, last+"."+part+"."+zone, last+"alias."+part+"."+zone)
		}
		list = append(list, part+"."+zone)
	}
	return append(list, zone, "x.long."+zone, "x.many."+zone, `x\.y.`+zone, "ns1."+zone, "example.org.")
}

// sameAsResolved compares both ways to an answer, and reports whether the first one made it.
func sameAsResolved(t *testing.T, w *worker, name string, qtype uint16, signed bool) bool {
	t.Helper()
	w.name, _ = packName(w.name[:0], name)
	w.q = query{qtype: qtype, do: signed}
	now := w.s.o.Now()
	a := asked{qtype: qtype, signed: signed}
	got, ok, err := w.makeFirst(w.ctx, now, &a)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	body := bytes.Clone(got.body)
	want := packOf(t, w, asked{name: name, qtype: qtype, signed: signed})
	if !ok { // what it has found is what there is
		a.name = name
		body, got = bytes.Clone(packOf(t, w, a).body), packOf(t, w, a)
	}
	if !bytes.Equal(body, want.body) {
		t.Errorf("%s, type %d, signed %t:\n%q, want\n%q", name, qtype, signed, body, want.body)
	}
	got.body, want.body = nil, nil
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("%s, type %d, signed %t:\n%+v, want\n%+v", name, qtype, signed, got, want)
	}
	return ok
}

// packOf is the answer to a question as the library packs it.
func packOf(t *testing.T, w *worker, a asked) packed {
	t.Helper()
	r, err := resolve(w.ctx, w.s.source, a)
	if err != nil {
		t.Fatalf("%s: %v", a.name, err)
	}
	if r.apex == "" {
		return packed{rcode: uint8(r.rcode)}
	}
	p, err := r.pack(a.name, a.qtype, w.s.serials.numberOf(r.apex), nil)
	if err != nil {
		t.Fatalf("%s: %v", a.name, err)
	}
	return p
}

// BenchmarkFirst measures an answer that was not asked for before, of a registry in memory:
// without the DNS library between, and signed.
func BenchmarkFirst(b *testing.B) {
	for _, mode := range []zonesign.Mode{zonesign.Unsigned, zonesign.Online} {
		b.Run(fmt.Sprint(mode), func(b *testing.B) {
			p := publishtest.New(b)
			p.Publish("urn:paradisec", "zone.example.", ":", 2)
			p.Register("urn:paradisec:a:b", "N2L text/html https://example.org/a/b", "N2L audio/wav https://example.org/a/b.wav")
			if mode != zonesign.Unsigned {
				p.SignZones(mode, "zone.example.")
			}
			s := New(Options{Zones: p.Zones, Now: p.Now, CacheBytes: 1 << 20, Signatures: 1 << 30})
			defer s.Shutdown(p.Ctx)
			w := s.newWorker(p.Ctx, new(tally))
			msg, err := question("b.a.zone.example.", dns.TypeNAPTR).SetEdns0(1232, mode != zonesign.Unsigned).Pack()
			if err != nil {
				b.Fatal(err)
			}
			now, dst := p.Now(), make([]byte, 0, maxUDP)
			b.ReportAllocs()
			for b.Loop() {
				s.cache.drop(w.hash)
				if len(w.respond(dst, msg, someone, now)) < 100 {
					b.Fatal("no answer")
				}
			}
		})
	}
}

// TestLookupContext checks that a lookup has most of its time whenever it begins.
func TestLookupContext(t *testing.T) {
	var l lookup
	begin := time.Unix(1_700_000_000, 0)
	first := l.context(t.Context(), begin, time.Hour)
	if again := l.context(t.Context(), begin.Add(time.Minute), time.Hour); again != first {
		t.Error("there is another one after a minute")
	}
	if later := l.context(t.Context(), begin.Add(10*time.Minute), time.Hour); later == first || first.Err() == nil || later.Err() != nil {
		t.Error("there is none of its own after ten minutes, or the one before goes on")
	}
	later := l.ctx
	if back := l.context(t.Context(), begin, time.Hour); back == later {
		t.Error("there is no other when the clock was set back")
	}
	l.cancel()
	if next := l.context(t.Context(), begin, time.Hour); next.Err() != nil {
		t.Error("one that has ended is used again")
	}
	l.cancel()
}
