package dnsd

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/publish/publishtest"
	"github.com/stele-id/stele/publish/zonesign"
)

// TestRegistryIsServed asks a server on real sockets for what a registry holds, while
// the registry changes.
func TestRegistryIsServed(t *testing.T) {
	p := publishtest.New(t)
	p.Paradisec()
	s := New(Options{Zones: p.Zones, Now: time.Now, CacheBytes: 1 << 20, Sockets: 2})
	defer s.Shutdown(p.Ctx)
	if err := s.Listen(p.Ctx, "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	ask := func(name string, qtype uint16) *dns.Msg {
		m := question(name, qtype)
		m.SetEdns0(1232, false)
		return exchange(t, "udp", s.Addr(), m)
	}
	if r := ask("A.001.ab1.paradisec.example.", dns.TypeNAPTR); len(r.Answer) < 3 || !r.Authoritative {
		t.Fatalf("%v", r)
	}
	if r := ask(`x\.paradisec.example.`, dns.TypeNAPTR); r.Rcode != dns.RcodeRefused {
		t.Errorf("a name that only looks like one of the zone: %v", r)
	}
	for i := range 20 {
		name := fmt.Sprintf("new%d.001.zz%d.paradisec.example.", i, i)
		before := ask(name, dns.TypeNAPTR)
		above := ask(fmt.Sprintf("zz%d.paradisec.example.", i), dns.TypeNAPTR)
		if before.Rcode != dns.RcodeNameError || above.Rcode != dns.RcodeNameError {
			t.Fatalf("before: %v\n%v", before, above)
		}
		p.Register(fmt.Sprintf("urn:paradisec:zz%d:001:new%d", i, i), "N2L text/html https://example.org/new")
		if r := ask(name, dns.TypeNAPTR); r.Rcode != dns.RcodeSuccess || len(r.Answer) == 0 {
			t.Fatalf("after: %v", r)
		}
		above = ask(fmt.Sprintf("zz%d.paradisec.example.", i), dns.TypeNAPTR)
		if above.Rcode != dns.RcodeSuccess || len(above.Answer) != 0 {
			t.Fatalf("above it: %v", above)
		}
		serial := ask("paradisec.example.", dns.TypeSOA).Answer[0].(*dns.SOA).Serial
		if serial <= before.Ns[0].(*dns.SOA).Serial || serial != above.Ns[0].(*dns.SOA).Serial {
			t.Fatalf("the serial was %d and is %d", before.Ns[0].(*dns.SOA).Serial, serial)
		}
	}
}

// TestNothingOldAfterACommit asks without pause while names come into being: a client that
// asks after a commit sees it.
func TestNothingOldAfterACommit(t *testing.T) {
	p := publishtest.New(t)
	p.Paradisec()
	s := newServer(Options{Now: time.Now, CacheBytes: 1 << 20}, published{p.Zones})
	defer s.Shutdown(p.Ctx)
	p.Lookup("paradisec.example.") // so that the names of changes are told, not that all changed
	var all sync.WaitGroup
	defer all.Wait()
	stop := make(chan struct{})
	defer close(stop)
	const n = 40
	name := func(i int) string { return fmt.Sprintf("n%d.001.yy.paradisec.example.", i) }
	for range 2 {
		w := s.newWorker(p.Ctx, s.newTally())
		all.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				msg, _ := question(name(i%n), dns.TypeNAPTR).Pack()
				w.respond(nil, msg, someone, time.Now())
			}
		})
	}
	w := s.newWorker(p.Ctx, s.newTally())
	for i := range n {
		p.Register(fmt.Sprintf("urn:paradisec:yy:001:n%d", i), "N2L text/html https://example.org/new")
		msg, _ := question(name(i), dns.TypeNAPTR).Pack()
		r := new(dns.Msg)
		if err := r.Unpack(w.respond(nil, msg, someone, time.Now())); err != nil || len(r.Answer) == 0 {
			t.Errorf("%s after its commit: %v %v", name(i), err, r)
		}
	}
}

// TestNoKeys checks that a zone without keys is served without signatures, and that Check
// reports it.
func TestNoKeys(t *testing.T) {
	p := publishtest.New(t)
	p.Paradisec()
	p.SetSigning(func(*stele.Namespace) zonesign.Mode { return zonesign.Online })
	s := newServer(Options{Now: time.Now, CacheBytes: 1 << 20}, published{p.Zones})
	defer s.Shutdown(p.Ctx)
	w := s.newWorker(p.Ctx, s.newTally())
	m := question("a.001.ab1.paradisec.example.", dns.TypeNAPTR)
	m.SetEdns0(1232, true)
	msg, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	r := new(dns.Msg)
	if err := r.Unpack(w.respond(nil, msg, someone, time.Now())); err != nil || len(r.Answer) == 0 || strings.Contains(r.String(), "RRSIG") {
		t.Errorf("%v, %v", r, err)
	}
	var told []string
	err = p.Zones.Check(p.Ctx, "paradisec.example", func(q publish.Problem) {
		if q.Serious {
			told = append(told, q.Text)
		}
	}, nil)
	if err != nil || len(told) != 1 || !strings.Contains(told[0], "no keys that sign") {
		t.Errorf("%q, %v", told, err)
	}
}

// TestNothingOldIsSigned asks without pause, in both modes, while names come into being and
// go: after a commit every client sees it, and what is said is signed and true.
func TestNothingOldIsSigned(t *testing.T) {
	for _, mode := range []zonesign.Mode{zonesign.Online, zonesign.Transfer} {
		t.Run(fmt.Sprint(mode), func(t *testing.T) {
			p := publishtest.New(t)
			p.Paradisec()
			p.SignZones(mode, "paradisec.example.")
			s := newServer(Options{Now: time.Now, CacheBytes: 1 << 20, Signatures: 1 << 30}, published{p.Zones})
			defer s.Shutdown(p.Ctx)
			const n = 30
			name := func(i int) string { return fmt.Sprintf("n%d.001.yy.paradisec.example.", i) }
			ask := func(w *worker, i int) *dns.Msg {
				m := question(name(i), dns.TypeNAPTR)
				m.SetEdns0(1232, true)
				msg, err := m.Pack()
				if err != nil {
					t.Error(err)
				}
				r := new(dns.Msg)
				if err := r.Unpack(w.respond(nil, msg, someone, time.Now())); err != nil {
					t.Error(err)
				}
				return r
			}
			ring := p.Ring("paradisec.example.")
			var all sync.WaitGroup
			stop := make(chan struct{})
			for range 2 {
				w := s.newWorker(p.Ctx, s.newTally())
				all.Go(func() {
					for i := 0; ; i++ {
						select {
						case <-stop:
							return
						default:
							checkSignatures(t, ring, ask(w, i%n), time.Now())
						}
					}
				})
			}
			w := s.newWorker(p.Ctx, s.newTally())
			for i := range n {
				r := p.Register(fmt.Sprintf("urn:paradisec:yy:001:n%d", i), "N2L https://example.org/new")
				if m := ask(w, i); len(m.Answer) == 0 {
					t.Errorf("%s after its commit: %v", name(i), m)
				}
				if i%3 > 0 {
					continue
				}
				if _, err := p.Registrar.Update(p.Ctx, r.ID, 0, func(r *stele.Record) error { r.Readers = []string{"user:ann"}; return nil }); err != nil {
					t.Fatal(err)
				}
				if m := ask(w, i); len(m.Answer) != 0 {
					t.Errorf("%s after it was hidden: %v", name(i), m)
				}
			}
			close(stop)
			all.Wait()
			if mode == zonesign.Transfer {
				p.CheckChain("paradisec.example.")
			}
		})
	}
}
