package dnsd

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// TestRegistryIsServed asks a server on real sockets for what a registry holds, while
// the registry changes.
func TestRegistryIsServed(t *testing.T) {
	p := newPress(t)
	p.paradisec()
	s := New(Options{Zones: p.zones, Now: time.Now, CacheBytes: 1 << 20, Sockets: 2})
	defer s.Shutdown(p.ctx)
	if err := s.Listen(p.ctx, "127.0.0.1:0"); err != nil {
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
		p.register(fmt.Sprintf("urn:paradisec:zz%d:001:new%d", i, i), "N2L text/html https://example.org/new")
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
	p := newPress(t)
	p.paradisec()
	s := newServer(Options{Now: time.Now, CacheBytes: 1 << 20}, published{p.zones})
	defer s.Shutdown(p.ctx)
	p.lookup("paradisec.example.") // the press notes what it is told without a lock
	var all sync.WaitGroup
	defer all.Wait()
	stop := make(chan struct{})
	defer close(stop)
	const n = 40
	name := func(i int) string { return fmt.Sprintf("n%d.001.yy.paradisec.example.", i) }
	for range 2 {
		w := s.newWorker(p.ctx, s.newTally())
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
	w := s.newWorker(p.ctx, s.newTally())
	for i := range n {
		p.register(fmt.Sprintf("urn:paradisec:yy:001:n%d", i), "N2L text/html https://example.org/new")
		msg, _ := question(name(i), dns.TypeNAPTR).Pack()
		r := new(dns.Msg)
		if err := r.Unpack(w.respond(nil, msg, someone, time.Now())); err != nil || len(r.Answer) == 0 {
			t.Errorf("%s after its commit: %v %v", name(i), err, r)
		}
	}
}
