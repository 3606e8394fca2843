package publish

import (
	"context"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
)

// What tests in package publish_test use of the inside of this package.
const (
	MaxCollection    = maxCollection
	SpreadShared     = spreadShared
	SpreadSecondary  = spreadSecondary
	DefaultParentTTL = defaultParentTTL
)

// Delta returns the records that are gone since a change, and those that are new; ok is
// false if that can't be told.
func (z *ZoneSnapshot) Delta(ctx context.Context, from uint64) (removed, added []dns.RR, ok bool, err error) {
	d, err := z.delta(ctx, from)
	if d == nil || err != nil {
		return nil, nil, false, err
	}
	for _, set := range d.removed {
		removed = append(removed, set.records...)
	}
	for _, set := range d.added {
		added = append(added, set.records...)
	}
	return removed, added, true, nil
}

// Has reports whether an identifier is in the zone, as transfers ask.
func (z *Zone) Has(id stele.ID) bool { return z.has(id) }

// ZoneOf returns the zone of an identifier, as answers ask.
func (z *Zones) ZoneOf(ctx context.Context, id stele.ID) (*Zone, error) {
	set, err := z.current(ctx)
	if err != nil {
		return nil, err
	}
	return set.zoneOf(id), nil
}

// AppliedIsFree reports whether no goroutine notes which changes the NSEC3 chains have.
func (z *Zones) AppliedIsFree() bool {
	if !z.applied.mu.TryLock() {
		return false
	}
	z.applied.mu.Unlock()
	return true
}

// HoldReader takes the place of the reader of names, if none works.
func (z *Zones) HoldReader() bool {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.reading {
		return false
	}
	z.reading = true
	return true
}

// AwaitsReader reports whether answers wait for the reader.
func (z *Zones) AwaitsReader() bool {
	z.mu.Lock()
	defer z.mu.Unlock()
	return len(z.unsettled) > 0
}

// ReleaseReader lets the reader work again after HoldReader.
func (z *Zones) ReleaseReader() { z.work.Go(z.readNames) }
