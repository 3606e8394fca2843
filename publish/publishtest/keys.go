package publishtest

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

// SignZones has zones of the registry signed, with keys of their own.
func (p *Registry) SignZones(mode zonesign.Mode, zones ...string) {
	p.T.Helper()
	p.SetClock(time.Now) // validators of others have their own clock
	p.SetSigning(func(ns *stele.Namespace) zonesign.Mode {
		for _, z := range zones {
			if ns.Publication.Zone == z {
				return mode
			}
		}
		return zonesign.Unsigned
	})
	for _, z := range zones {
		p.ChangeKeys(z, func(r *zonekey.Ring) error { return r.Begin(zonekey.ECDSA, false, time.Now(), rand.Reader) })
	}
}

// ChangeKeys changes the keys of a zone.
func (p *Registry) ChangeKeys(zone string, change func(*zonekey.Ring) error) {
	p.T.Helper()
	one, err := p.Zones.KeyZone(p.Ctx, zone, 0)
	if err != nil {
		p.T.Fatal(err)
	}
	err = p.Registrar.SetZoneKeys(p.Ctx, one.Namespace, func(cells []stele.Cell) ([]stele.CellChange, error) {
		r, err := zonekey.ReadRing(zone, cells)
		if err != nil {
			return nil, err
		}
		if err := change(r); err != nil {
			return nil, err
		}
		return r.Changes(func(place string, v *secret.Value) error { return p.Registrar.SealSecret(p.Ctx, place, v) })
	})
	if err != nil {
		p.T.Fatal(err)
	}
}

// Ring returns the keys of a zone.
func (p *Registry) Ring(zone string) *zonekey.Ring {
	p.T.Helper()
	r, err := zonekey.Load(p.Ctx, p.Store, zone, p.Secrets)
	if err != nil {
		p.T.Fatal(err)
	}
	return r
}

// CheckChain returns how many links the NSEC3 chain of a zone has. It compares them with
// those that the records of the zone's file give.
func (p *Registry) CheckChain(zone string) int {
	p.T.Helper()
	kept := p.Zone(zone).NSEC3()
	records, cuts := make(map[string][]dns.RR), make(map[string]bool)
	for _, rr := range p.Records(zone) {
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
		p.T.Errorf("the chain has %d links, and read anew %d", len(a), len(b))
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

// SetSecondaries sets the clients that may have the zone of a namespace.
func (p *Registry) SetSecondaries(prefix string, list ...stele.Secondary) {
	p.T.Helper()
	p.Namespace(prefix, func(ns *stele.Namespace) { ns.Publication.Secondaries = list })
}

// AddTSIGKey makes a key.
func (p *Registry) AddTSIGKey(name, algorithm string) *zonekey.TSIGKey {
	p.T.Helper()
	keys := &zonekey.TSIGManager{Store: p.Registrar, Now: time.Now, Random: rand.Reader}
	k, err := keys.Add(p.Ctx, name, algorithm)
	if err != nil {
		p.T.Fatal(err)
	}
	return k
}

// Local is a secondary that is any client on this machine.
func Local() stele.Secondary { return stele.Secondary{Network: "127.0.0.0/8"} }
