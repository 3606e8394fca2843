package publish

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
)

// zoneSerial is the serial of a zone as far as it is known here.
type zoneSerial struct {
	state atomic.Pointer[readState]
}

// readState is the state of a zone, and in which life of the registry it was read: another
// one begins when a registry that was restored takes its place.
type readState struct {
	stele.ZoneState
	life uint64
}

// now returns the serial; 0 if it is not known yet.
func (s *zoneSerial) now() uint32 {
	if st := s.state.Load(); st != nil {
		return st.Serial()
	}
	return 0
}

// isShut reports whether the zone is not to be transferred.
func (s *zoneSerial) isShut() bool {
	st := s.state.Load()
	return st != nil && st.Shut
}

// set takes over what was read in a life of the registry, unless something newer is known:
// two commits may be told in another order than they were made in. A serial compares as
// RFC 1982 has it. In another life the numbers of changes begin elsewhere.
func (s *zoneSerial) set(now stele.ZoneState, life uint64) {
	for {
		before := s.state.Load()
		newer := before != nil && (before.life > life ||
			before.life == life && (before.At > now.At || stele.SerialAfter(before.Serial(), now.Serial())))
		if newer || s.state.CompareAndSwap(before, &readState{now, life}) {
			return
		}
	}
}

// zoneSerials know the serials of all zones that there are or were.
type zoneSerials struct {
	mu    sync.Mutex
	zones map[string]*zoneSerial
}

// of returns the serial of a zone.
func (s *zoneSerials) of(zone string) *zoneSerial {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.zones == nil {
		s.zones = make(map[string]*zoneSerial)
	}
	one := s.zones[zone]
	if one == nil {
		one = new(zoneSerial)
		s.zones[zone] = one
	}
	return one
}

// serialTimeout is how long a commit waits to learn its serials.
const serialTimeout = 2 * time.Second

// refreshSerials reads the serials of the zones that records are in; of all zones if the
// set is nil. If the store does not answer, they are asked for with the next answer. They
// are never guessed: other servers of the same registry have the same serials for the same
// state.
func (z *Zones) refreshSerials(set *zoneSet, records []*stele.Record) {
	ctx, cancel := context.WithTimeout(z.life, serialTimeout)
	defer cancel()
	life := z.lives.Load()
	if set == nil {
		z.stale.Store(true)
		return
	}
	var zones []string
	for _, r := range records {
		for _, zone := range set.published.OfRecord(r) {
			if !slices.Contains(zones, zone) {
				zones = append(zones, zone)
			}
		}
	}
	for _, zone := range zones {
		st, err := z.store.ZoneState(ctx, zone)
		if err != nil {
			z.stale.Store(true)
			return
		}
		z.serials.of(zone).set(st, life)
	}
}

// readSerials reads the serials of all zones of a set, and notes that they are known.
func (z *Zones) readSerials(ctx context.Context, set *zoneSet) error {
	// What is invalidated while they are read is read again.
	z.stale.Store(false)
	life := z.lives.Load()
	kept := make(map[string]bool)
	for st, err := range z.store.ZoneStates(ctx) {
		if err != nil {
			z.stale.Store(true)
			return err
		}
		kept[st.Zone] = true
		z.serials.of(st.Zone).set(st, life)
	}
	for _, zone := range set.order {
		if kept[zone] {
			continue
		}
		st, err := z.store.ZoneState(ctx, zone)
		if err != nil {
			z.stale.Store(true)
			return err
		}
		z.serials.of(zone).set(st, life)
	}
	return nil
}

// serialWait is how long an answer waits for serials that may have grown. It is a small
// part of the time that a client gives a query: while a database fails over, what is left
// is needed to read the answer itself from another server.
const serialWait = 250 * time.Millisecond

// renewSerials asks for the serials if they may have grown. As long as the store does not
// answer, the zones have those that they had, and so do their answers: they are of that
// state, since nothing newer can be read. One caller at a time waits for the store.
func (z *Zones) renewSerials(ctx context.Context, set *zoneSet) error {
	if !z.stale.Load() {
		return nil
	}
	if slices.ContainsFunc(set.order, func(zone string) bool { return set.zones[zone].serial.state.Load() == nil }) {
		return z.readSerials(ctx, set)
	}
	if !z.asking.CompareAndSwap(false, true) {
		return nil
	}
	defer z.asking.Store(false)
	ctx, cancel := context.WithTimeout(ctx, serialWait)
	defer cancel()
	_ = z.readSerials(ctx, set) // they stay stale, and are asked for again
	return nil
}
