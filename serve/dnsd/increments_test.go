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

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/publishtest"
	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/publish/zonesign"
)

// TestChangesOfSettings changes settings of all kinds. What leaves the form of the zone
// alone is sent as a delta, and after each the copy is as the zone.
func TestChangesOfSettings(t *testing.T) {
	const zone = "z.example."
	own := func(change func(*stele.Namespace)) func(*publishtest.Registry) {
		return func(p *publishtest.Registry) { p.Namespace("urn:paradisec", change) }
	}
	for _, mode := range []zonesign.Mode{zonesign.Unsigned, zonesign.Online, zonesign.Transfer} {
		p := publishtest.New(t)
		p.Publish("urn:paradisec", zone, ":", 2)
		p.SetSecondaries("urn:paradisec", publishtest.Local())
		if mode != zonesign.Unsigned {
			p.SignZones(mode, zone)
		}
		for i := range 20 {
			p.Register(fmt.Sprintf("urn:paradisec:c%d:n%d", i%3, i), "N2L https://example.org/")
		}
		s := serve(p, Options{})
		whole, _, err := take(s, zone, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		serial, copied := publishtest.Ends(t, whole), publishtest.Lines(t, whole)
		for _, test := range []struct {
			what   string
			change func(p *publishtest.Registry)
			whole  bool
		}{
			{"a name", func(p *publishtest.Registry) { p.Register("urn:paradisec:c1:new", "N2L https://example.org/") }, false},
			{"another zone", func(p *publishtest.Registry) { p.Publish("urn:other", "other.example.", ":", 1) }, false},
			{"a title", own(func(ns *stele.Namespace) { ns.Title = "Archive" }), false},
			{"a grant and a secondary", func(p *publishtest.Registry) {
				own(func(ns *stele.Namespace) { ns.Quota = 1000 })(p)
				p.SetSecondaries("urn:paradisec", publishtest.Local(), stele.Secondary{Network: "192.0.2.1"})
			}, false},
			{"the address of a name server", own(func(ns *stele.Namespace) {
				ns.Publication.Servers = []stele.NameServer{{Name: "ns1." + zone, Addresses: []string{"192.0.2.7", "2001:db8::7"}}, {Name: "ns.example.net."}}
			}), false},
			{"and another one, of a name too", func(p *publishtest.Registry) {
				p.Register("urn:paradisec:c2:new", "N2L https://example.org/")
				own(func(ns *stele.Namespace) { ns.Publication.Servers[0].Addresses = []string{"192.0.2.8"} })(p)
				p.Register("urn:paradisec:c3:new", "N2L https://example.org/")
			}, false},
			{"a signing key", func(p *publishtest.Registry) { p.AddKey("urn:paradisec", "ED25519") }, false},
			{"records of the owner", own(func(ns *stele.Namespace) { ns.Publication.Records = publishtest.OwnRecords(zone) }), false},
			{"another one", own(func(ns *stele.Namespace) {
				ns.Publication.Records = append(publishtest.OwnRecords(zone), stele.ZoneRecord{Name: "x.y." + zone, TTL: 9, Type: "AAAA", Data: "2001:db8::9"})
			}), false},
			{"a name where an alias of the owner is", func(p *publishtest.Registry) { p.Register("urn:paradisec:c1:alias", "N2L https://example.org/") }, false},
			{"the end of that alias", own(func(ns *stele.Namespace) { ns.Publication.Records = publishtest.OwnRecords(zone)[:6] }), false},
			{"a resolver", own(func(ns *stele.Namespace) { ns.Publication.Resolver = "other.example.org" }), true},
			{"a TTL", own(func(ns *stele.Namespace) { ns.TTL = 77 }), true},
			{"a promise", own(func(ns *stele.Namespace) { ns.Persistence.Level = stele.Permanent }), true},
			{"a namespace below", func(p *publishtest.Registry) {
				p.Namespace("urn:paradisec:c2", func(ns *stele.Namespace) { ns.Persistence.Level = stele.Permanent })
			}, true},
			{"a zone inside", func(p *publishtest.Registry) { p.Publish("urn:inner", "inner."+zone, ":", 1) }, true},
			{"its servers", func(p *publishtest.Registry) {
				p.Namespace("urn:inner", func(ns *stele.Namespace) {
					ns.Publication.Servers = []stele.NameServer{{Name: "ns.inner." + zone, Addresses: []string{"192.0.2.9"}}}
				})
			}, false},
			{"a key, published", func(p *publishtest.Registry) {
				if mode != zonesign.Unsigned {
					p.ChangeKeys(zone, func(r *zonekey.Ring) error { _, err := r.Roll(zonekey.CSK, time.Now(), rand.Reader); return err })
				}
			}, mode == zonesign.Transfer}, // it signs the keys at once
			{"signatures", func(p *publishtest.Registry) {
				p.ChangeKeys(zone, func(r *zonekey.Ring) error { r.Signed = r.Signed.Add(time.Second); return nil })
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
				serial, copied = publishtest.Ends(t, list), publishtest.Lines(t, list)
			} else {
				serial = publishtest.Apply(t, copied, list, serial)
			}
			if diff := cmp.Diff(publishtest.Lines(t, now), copied); diff != "" || publishtest.Ends(t, now) != serial {
				t.Fatalf("%v, %s: serial %d (-zone +copy):\n%s", mode, test.what, serial, diff)
			}
		}
	}
}

// TestErasBeginWithTheServer checks that a secondary that has a zone from before the server
// began is told what has changed: neither a title nor secondaries are in the zone.
func TestErasBeginWithTheServer(t *testing.T) {
	p := publishtest.New(t)
	p.Publish("urn:paradisec", "z.example.", ":", 2)
	p.SetSecondaries("urn:paradisec", publishtest.Local())
	from, err := p.Store.LastChange(p.Ctx)
	if err != nil {
		t.Fatal(err)
	}
	p.Register("urn:paradisec:a:b", "N2L https://example.org/")
	p.Lookup("z.example.") // the server answers
	p.Namespace("urn:paradisec", func(ns *stele.Namespace) { ns.Title = "Archive" })
	p.Register("urn:paradisec:a:c", "N2L https://example.org/")
	s := serve(p, Options{})
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
		p := publishtest.New(t)
		p.Publish("urn:example", "z.example.", ":", 2) // where case counts
		p.SetSecondaries("urn:example", publishtest.Local())
		if mode != zonesign.Unsigned {
			p.SignZones(mode, "z.example.")
		}
		s := serve(p, Options{})
		whole, _, err := take(s, "z.example.", 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		serial, copied := publishtest.Ends(t, whole), publishtest.Lines(t, whole)
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
						p.AddOrHide(chance, prefix)
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
				serial, copied = publishtest.Ends(t, list), publishtest.Lines(t, list)
				continue
			}
			steps++
			serial = publishtest.Apply(t, copied, list, serial)
		}
		end()
		list, _, err := take(s, "z.example.", serial, nil)
		if err != nil {
			t.Fatal(err)
		}
		serial = publishtest.Apply(t, copied, list, serial)
		if whole, _, err = take(s, "z.example.", 0, nil); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(publishtest.Lines(t, whole), copied); diff != "" || publishtest.Ends(t, whole) != serial {
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
	p := publishtest.New(t)
	for i := range zones {
		p.Namespace(fmt.Sprintf("urn:z%d", i), func(ns *stele.Namespace) {
			ns.Publication = stele.Publication{
				Zone: fmt.Sprintf("z%d.example.", i), Layout: stele.LayoutNames, Separator: ":", Parts: 1,
				Servers: []stele.NameServer{{Name: "ns.example.net."}}, Secondaries: []stele.Secondary{publishtest.Local()},
			}
		})
		p.Register(fmt.Sprintf("urn:z%d:n", i), fmt.Sprintf("N2L https://example.org/%d", i))
	}
	s := serve(p, Options{})
	serials := make(map[int]uint32)
	for i := 0; i < zones; i += 97 {
		list, _, err := take(s, fmt.Sprintf("z%d.example.", i), 0, nil)
		if err != nil || len(list) < 4 {
			t.Fatalf("%d: %v, %v", i, list, err)
		}
		serials[i] = publishtest.Ends(t, list)
	}
	p.Namespace("urn:z0", func(ns *stele.Namespace) { ns.TTL = 60 })
	for i, serial := range serials {
		list, _, err := take(s, fmt.Sprintf("z%d.example.", i), serial, nil)
		if isSame := err == nil && len(list) == 1 && list[0].(*dns.SOA).Serial == serial; isSame != (i != 0) {
			t.Errorf("%d: %v, %v", i, list, err)
		}
	}
}
