package dnsd

import (
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/miekg/dns"
	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/nsec3"
	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/publish/zonesign"
	"github.com/stele-id/stele/secret"
)

// signed has zones of the registry signed, with keys of their own.
func (p *press) signed(mode zonesign.Mode, zones ...string) {
	p.t.Helper()
	p.setClock(time.Now) // validators of others have their own clock
	p.setSigning(func(ns *stele.Namespace) zonesign.Mode {
		for _, z := range zones {
			if ns.Publication.Zone == z {
				return mode
			}
		}
		return zonesign.Unsigned
	})
	for _, z := range zones {
		p.keys(z, func(r *zonekey.Ring) error { return r.Begin(zonekey.ECDSA, false, time.Now(), rand.Reader) })
	}
}

// keys changes the keys of a zone.
func (p *press) keys(zone string, change func(*zonekey.Ring) error) {
	p.t.Helper()
	one, err := p.zones.KeyZone(p.ctx, zone, 0)
	if err != nil {
		p.t.Fatal(err)
	}
	err = p.registrar.SetZoneKeys(p.ctx, one.Namespace, func(cells []stele.Cell) ([]stele.CellChange, error) {
		r, err := zonekey.ReadRing(zone, cells)
		if err != nil {
			return nil, err
		}
		if err := change(r); err != nil {
			return nil, err
		}
		return r.Changes(func(place string, v *secret.Value) error { return p.registrar.SealSecret(p.ctx, place, v) })
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// ring returns the keys of a zone.
func (p *press) ring(zone string) *zonekey.Ring {
	p.t.Helper()
	r, err := zonekey.Load(p.ctx, p.store, zone, p.secrets)
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

// chainOf returns how many links the NSEC3 chain of a zone has. It compares them with
// those that the records of the zone's file give.
func (p *press) chainOf(zone string) int {
	p.t.Helper()
	kept := p.zone(zone).NSEC3()
	records, cuts := make(map[string][]dns.RR), make(map[string]bool)
	for _, rr := range p.records(zone) {
		h := rr.Header()
		switch h.Rrtype {
		case dns.TypeRRSIG, dns.TypeNSEC3:
			continue
		case dns.TypeNS:
			cuts[h.Name] = h.Name != zone
		}
		records[h.Name] = append(records[h.Name], rr)
	}
	anew := nsec3.New()
	for name, list := range records {
		if !isBelow(name, cuts) {
			anew.Set(name, zone, nsec3.Types(zonesign.TypesAt(list)))
		}
	}
	var a, b []nsec3.Link
	_ = kept.Each(func(q *nsec3.Link) error { a = append(a, *q); return nil })
	_ = anew.Each(func(q *nsec3.Link) error { b = append(b, *q); return nil })
	if fmt.Sprint(a) != fmt.Sprint(b) {
		p.t.Errorf("the chain has %d links, and read anew %d", len(a), len(b))
	}
	return len(a)
}

// isBelow reports whether a name is below one of those that are set.
func isBelow(name string, names map[string]bool) bool {
	for {
		var ok bool
		if _, name, ok = strings.Cut(name, "."); !ok {
			return false
		}
		if names[name] {
			return true
		}
	}
}

// secondaries sets the clients that may have the zone of a namespace.
func (p *press) secondaries(prefix string, list ...stele.Secondary) {
	p.t.Helper()
	p.namespace(prefix, func(ns *stele.Namespace) { ns.Publication.Secondaries = list })
}

// tsigKey makes a key.
func (p *press) tsigKey(name, algorithm string) *zonekey.TSIGKey {
	p.t.Helper()
	keys := &zonekey.TSIGManager{Store: p.registrar, Now: time.Now, Random: rand.Reader}
	k, err := keys.Add(p.ctx, name, algorithm)
	if err != nil {
		p.t.Fatal(err)
	}
	return k
}

// everybody is every client on this machine.
var everybody = stele.Secondary{Network: "127.0.0.0/8"}
