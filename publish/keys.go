package publish

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
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

// tsigKeys is the TSIG keys of secondaries, as they were a moment ago.
type tsigKeys struct {
	keys map[string]*zonekey.TSIGKey
	read time.Time
}

// tsigKeysLife is how long keys are kept that another process may change.
const tsigKeysLife = time.Minute

// TSIGKey returns a key that is in use, by its name in lower case; nil if there is none. It
// reads the store once a minute, whatever clients ask for.
func (z *Zones) TSIGKey(ctx context.Context, name string) (*zonekey.TSIGKey, error) {
	ring := z.ring.Load()
	if now := z.now(); ring == nil || now.Sub(ring.read) > tsigKeysLife || now.Before(ring.read) {
		var err error
		if ring, err = z.readTSIGKeys(ctx, now); err != nil {
			return nil, err
		}
	}
	return ring.keys[name], nil
}

func (z *Zones) readTSIGKeys(ctx context.Context, now time.Time) (*tsigKeys, error) {
	ring := &tsigKeys{keys: make(map[string]*zonekey.TSIGKey), read: now}
	z.mu.Lock()
	forgotten := z.forgotten
	z.mu.Unlock()
	for c, err := range z.store.Cells(ctx, zonekey.TSIGCellPrefix, "") {
		if err != nil {
			return nil, err
		}
		k, err := zonekey.ReadTSIGKey(c, z.secrets)
		switch {
		case err != nil:
			z.log.Error("a TSIG key is not used", "key", strings.TrimPrefix(c.Name, zonekey.TSIGCellPrefix), "err", err)
		case k.Retired.IsZero():
			ring.keys[k.Name] = k
		}
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	if forgotten == z.forgotten {
		z.ring.Store(ring)
	}
	return ring, nil
}

// IsSecondary reports whether a name server may transfer the zone: one with an address that
// has signed its request with a TSIG key, if key is not "".
func (z *Zone) IsSecondary(addr netip.Addr, key string) bool {
	return slices.ContainsFunc(z.ns.Publication.Secondaries, func(s stele.Secondary) bool {
		return (s.Key == "" || s.Key == key) && (s.Network == "" || inNetwork(s.Network, addr))
	})
}

// inNetwork reports whether an address is the one of a text, or in its network.
func inNetwork(text string, addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	if one, err := netip.ParseAddr(text); err == nil {
		return one == addr
	}
	network, err := netip.ParsePrefix(text)
	return err == nil && network.Contains(addr)
}
