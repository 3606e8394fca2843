package dnsd

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/zonekey"
)

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
