package dnsd

import (
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/publish/zonesign"

	"github.com/stele-id/stele"
)

// TestChangesOfSettings changes settings of all kinds. What leaves the form of the zone
// alone is sent as a delta, and after each the copy is as the zone.
func TestChangesOfSettings(t *testing.T) {
	const zone = "z.example."
	own := func(change func(*stele.Namespace)) func(*press) {
		return func(p *press) { p.namespace("urn:paradisec", change) }
	}
	for _, mode := range []zonesign.Mode{zonesign.Unsigned, zonesign.Online, zonesign.Transfer} {
		p := newPress(t)
		p.publish("urn:paradisec", zone, ":", 2)
		p.secondaries("urn:paradisec", everybody)
		if mode != zonesign.Unsigned {
			p.signed(mode, zone)
		}
		for i := range 20 {
			p.register(fmt.Sprintf("urn:paradisec:c%d:n%d", i%3, i), "N2L https://example.org/")
		}
		s := p.serve(Options{})
		whole, _, err := take(s, zone, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		serial, copied := ends(t, whole), lines(t, whole)
		for _, test := range []struct {
			what   string
			change func(p *press)
			whole  bool
		}{
			{"a name", func(p *press) { p.register("urn:paradisec:c1:new", "N2L https://example.org/") }, false},
			{"another zone", func(p *press) { p.publish("urn:other", "other.example.", ":", 1) }, false},
			{"a title", own(func(ns *stele.Namespace) { ns.Title = "Archive" }), false},
			{"a grant and a secondary", func(p *press) {
				own(func(ns *stele.Namespace) { ns.Quota = 1000 })(p)
				p.secondaries("urn:paradisec", everybody, stele.Secondary{Network: "192.0.2.1"})
			}, false},
			{"the address of a name server", own(func(ns *stele.Namespace) {
				ns.Publication.Servers = []stele.NameServer{{Name: "ns1." + zone, Addresses: []string{"192.0.2.7", "2001:db8::7"}}, {Name: "ns.example.net."}}
			}), false},
			{"and another one, of a name too", func(p *press) {
				p.register("urn:paradisec:c2:new", "N2L https://example.org/")
				own(func(ns *stele.Namespace) { ns.Publication.Servers[0].Addresses = []string{"192.0.2.8"} })(p)
				p.register("urn:paradisec:c3:new", "N2L https://example.org/")
			}, false},
			{"a signing key", func(p *press) { p.signer("urn:paradisec", "ED25519") }, false},
			{"records of the owner", own(func(ns *stele.Namespace) { ns.Publication.Records = ownRecords(zone) }), false},
			{"another one", own(func(ns *stele.Namespace) {
				ns.Publication.Records = append(ownRecords(zone), stele.ZoneRecord{Name: "x.y." + zone, TTL: 9, Type: "AAAA", Data: "2001:db8::9"})
			}), false},
			{"a name where an alias of the owner is", func(p *press) { p.register("urn:paradisec:c1:alias", "N2L https://example.org/") }, false},
			{"the end of that alias", own(func(ns *stele.Namespace) { ns.Publication.Records = ownRecords(zone)[:6] }), false},
			{"a resolver", own(func(ns *stele.Namespace) { ns.Publication.Resolver = "other.example.org" }), true},
			{"a TTL", own(func(ns *stele.Namespace) { ns.TTL = 77 }), true},
			{"a promise", own(func(ns *stele.Namespace) { ns.Persistence.Level = stele.Permanent }), true},
			{"a namespace below", func(p *press) {
				p.namespace("urn:paradisec:c2", func(ns *stele.Namespace) { ns.Persistence.Level = stele.Permanent })
			}, true},
			{"a zone inside", func(p *press) { p.publish("urn:inner", "inner."+zone, ":", 1) }, true},
			{"its servers", func(p *press) {
				p.namespace("urn:inner", func(ns *stele.Namespace) {
					ns.Publication.Servers = []stele.NameServer{{Name: "ns.inner." + zone, Addresses: []string{"192.0.2.9"}}}
				})
			}, false},
			{"a key, published", func(p *press) {
				if mode != zonesign.Unsigned {
					p.keys(zone, func(r *zonekey.Ring) error { _, err := r.Roll(zonekey.CSK, time.Now(), rand.Reader); return err })
				}
			}, mode == zonesign.Transfer}, // it signs the keys at once
			{"signatures", func(p *press) {
				p.keys(zone, func(r *zonekey.Ring) error { r.Signed = r.Signed.Add(time.Second); return nil })
			}, mode == zonesign.Transfer},
		} {
			test.change(p)
			list, _, err := take(s, zone, serial, nil)
			if err != nil {
				t.Fatalf("%v, %s: %v", mode, test.what, err)
			}
			if isWhole := len(list) > 1 && list[1].Header().Rrtype != dns.TypeSOA; isWhole != test.whole {
				t.Errorf("%v, %s: whole is %v", mode, test.what, isWhole)
			}
			now, _, err := take(s, zone, 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			if test.whole {
				serial, copied = ends(t, list), lines(t, list)
			} else {
				serial = apply(t, copied, list, serial)
			}
			if diff := cmp.Diff(lines(t, now), copied); diff != "" || ends(t, now) != serial {
				t.Fatalf("%v, %s: serial %d (-zone +copy):\n%s", mode, test.what, serial, diff)
			}
		}
	}
}

// TestErasBeginWithTheServer checks that a secondary that has a zone from before the server
// began is told what has changed: neither a title nor secondaries are in the zone.
func TestErasBeginWithTheServer(t *testing.T) {
	p := newPress(t)
	p.publish("urn:paradisec", "z.example.", ":", 2)
	p.secondaries("urn:paradisec", everybody)
	from, err := p.store.LastChange(p.ctx)
	if err != nil {
		t.Fatal(err)
	}
	p.register("urn:paradisec:a:b", "N2L https://example.org/")
	p.lookup("z.example.") // the server answers
	p.namespace("urn:paradisec", func(ns *stele.Namespace) { ns.Title = "Archive" })
	p.register("urn:paradisec:a:c", "N2L https://example.org/")
	s := p.serve(Options{})
	for serial, want := range map[uint64]bool{from: true, from - 1: true, 0: false} {
		list, _, err := take(s, "z.example.", uint32(serial), nil)
		if err != nil || len(list) < 3 || (list[1].Header().Rrtype == dns.TypeSOA) != want {
			t.Errorf("from %d, settings changed at %d: %v, %v", serial, from, list, err)
		}
	}
}

// TestIncrementsNeverWait keeps a copy of a zone up to date while it changes without a
// pause, and compares it at the end.
func TestIncrementsNeverWait(t *testing.T) {
	for _, mode := range []zonesign.Mode{zonesign.Unsigned, zonesign.Transfer} {
		p := newPress(t)
		p.publish("urn:example", "z.example.", ":", 2) // where case counts
		p.secondaries("urn:example", everybody)
		if mode != zonesign.Unsigned {
			p.signed(mode, "z.example.")
		}
		s := p.serve(Options{})
		whole, _, err := take(s, "z.example.", 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		serial, copied := ends(t, whole), lines(t, whole)
		stop := make(chan struct{})
		var all sync.WaitGroup
		end := sync.OnceFunc(func() { close(stop); all.Wait() })
		defer end()
		for seed := range uint64(2) {
			all.Go(func() {
				chance := mathrand.New(mathrand.NewPCG(seed, 8))
				prefix := fmt.Sprintf("urn:example:p%d", seed)
				for {
					select {
					case <-stop:
						return
					default:
						p.deepChange(chance, prefix)
					}
				}
			})
		}
		steps := 0
		for range 40 {
			list, _, err := take(s, "z.example.", serial, nil)
			if err != nil {
				t.Fatalf("%v, from %d: %v", mode, serial, err)
			}
			if len(list) > 1 && list[1].Header().Rrtype != dns.TypeSOA {
				serial, copied = ends(t, list), lines(t, list)
				continue
			}
			steps++
			serial = apply(t, copied, list, serial)
		}
		end()
		list, _, err := take(s, "z.example.", serial, nil)
		if err != nil {
			t.Fatal(err)
		}
		serial = apply(t, copied, list, serial)
		if whole, _, err = take(s, "z.example.", 0, nil); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(lines(t, whole), copied); diff != "" || ends(t, whole) != serial {
			t.Errorf("%v, serial %d (-zone +copy):\n%s", mode, serial, diff)
		}
		if steps < 10 {
			t.Errorf("%v: only %d differences", mode, steps)
		}
	}
}

// TestThousandZones publishes a thousand zones. Each goes out by itself, and a change of
// the settings of one is not a change of another.
func TestThousandZones(t *testing.T) {
	const zones = 1000
	p := newPress(t)
	for i := range zones {
		p.namespace(fmt.Sprintf("urn:z%d", i), func(ns *stele.Namespace) {
			ns.Publication = stele.Publication{
				Zone: fmt.Sprintf("z%d.example.", i), Layout: stele.LayoutNames, Separator: ":", Parts: 1,
				Servers: []stele.NameServer{{Name: "ns.example.net."}}, Secondaries: []stele.Secondary{everybody},
			}
		})
		p.register(fmt.Sprintf("urn:z%d:n", i), fmt.Sprintf("N2L https://example.org/%d", i))
	}
	s := p.serve(Options{})
	serials := make(map[int]uint32)
	for i := 0; i < zones; i += 97 {
		list, _, err := take(s, fmt.Sprintf("z%d.example.", i), 0, nil)
		if err != nil || len(list) < 4 {
			t.Fatalf("%d: %v, %v", i, list, err)
		}
		serials[i] = ends(t, list)
	}
	p.namespace("urn:z0", func(ns *stele.Namespace) { ns.TTL = 60 })
	for i, serial := range serials {
		list, _, err := take(s, fmt.Sprintf("z%d.example.", i), serial, nil)
		if isSame := err == nil && len(list) == 1 && list[0].(*dns.SOA).Serial == serial; isSame != (i != 0) {
			t.Errorf("%d: %v, %v", i, list, err)
		}
	}
}
