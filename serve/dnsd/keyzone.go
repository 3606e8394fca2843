package dnsd

import (
	"context"
	"time"

	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/publish/zonesign"
)

// How long a change takes until all servers of a zone have it: the servers that share the
// registry, and secondaries, which refresh that often if no NOTIFY reaches them. And how
// long caches keep DS records if the owner does not say it.
const (
	spreadShared     = 5 * time.Minute
	spreadSecondary  = (soaRefresh + soaRetry) * time.Second
	defaultParentTTL = 24 * time.Hour
)

// KeyZone returns what rolls of keys have to know of a zone; see [zonekey.Zones].
func (z *Zones) KeyZone(ctx context.Context, name string, parent time.Duration) (zonekey.Zone, error) {
	one, err := z.zoneNamed(ctx, name)
	if err != nil {
		return zonekey.Zone{}, err
	}
	return zonekey.Zone{Name: one.Name, Namespace: one.ns.Key(), Times: one.keyTimes(parent)}, nil
}

// SignedForTransfer returns the names of the zones that are signed in the mode transfer,
// in order.
func (z *Zones) SignedForTransfer(ctx context.Context) ([]string, error) {
	set, err := z.current(ctx)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, name := range set.order {
		if set.zones[name].hasNSEC3() {
			list = append(list, name)
		}
	}
	return list, nil
}

// keyTimes returns the times of the zone's keys. parent is the TTL of the DS records at
// the parent, if that is not a zone of this registry.
func (z *Zone) keyTimes(parent time.Duration) zonekey.Times {
	ttl := time.Duration(z.zones.ttl) * time.Second
	t := zonekey.Times{Keys: ttl, Zone: ttl, Parent: parent, Spread: spreadShared}
	for _, ns := range z.set.byKey {
		t.Zone = max(t.Zone, time.Duration(ns.TTL)*time.Second)
	}
	if t.Parent == 0 {
		t.Parent = defaultParentTTL
	}
	if z.set.outer(z) != nil {
		t.Parent, t.LocalParent = ttl, true
	}
	if z.zones.signing(z.ns) == zonesign.Transfer {
		t.Spread = spreadSecondary
	}
	return t
}
