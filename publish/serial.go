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

// lateTimeout is how long the serials of all zones may take that are read beside answers.
const lateTimeout = time.Minute

// serialNews counts the reasons to read the serials of the zones, and those that were seen
// to. What an answer says of a serial is kept until Changed grows, so no caller may take
// the serial from before a change for the one after it: the serials count as read when
// they are there, and not when the reading begins.
type serialNews struct {
	reasons, seen atomic.Uint64
	one           chan struct{} // holds a value while a caller reads
	late          atomic.Bool   // a caller went on with serials from before the last reason
}

func newSerialNews() *serialNews { return &serialNews{one: make(chan struct{}, 1)} }

// add notes that serials may have grown.
func (n *serialNews) add() { n.reasons.Add(1) }

// areSeen reports whether the serials were read since they last may have grown.
func (n *serialNews) areSeen() bool { return n.seen.Load() == n.reasons.Load() }

// see notes that the serials were read after so many reasons.
func (n *serialNews) see(reasons uint64) {
	for {
		before := n.seen.Load()
		if before >= reasons || n.seen.CompareAndSwap(before, reasons) {
			return
		}
	}
}

// refreshSerials reads the serials of the zones that records are in; of all zones if the
// set is nil. If the store does not answer, they are asked for with the next answer. They
// are never guessed: other servers of the same registry have the same serials for the same
// state.
func (z *Zones) refreshSerials(set *zoneSet, records []*stele.Record) {
	ctx, cancel := context.WithTimeout(z.life, serialTimeout)
	defer cancel()
	life := z.lives.Load()
	if set == nil {
		z.news.add()
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
			z.news.add()
			return
		}
		z.serials.of(zone).set(st, life)
	}
}

// readSerials reads the serials of all zones of a set, and notes that they are known.
func (z *Zones) readSerials(ctx context.Context, set *zoneSet) error {
	// What may have grown while they are read is read again.
	reasons := z.news.reasons.Load()
	life := z.lives.Load()
	kept := make(map[string]bool)
	for st, err := range z.store.ZoneStates(ctx) {
		if err != nil {
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
			return err
		}
		z.serials.of(zone).set(st, life)
	}
	z.news.see(reasons)
	return nil
}

// serialWait is how long an answer waits for serials that may have grown. It is a small
// part of the time that a client gives a query: while a database fails over, what is left
// is needed to read the answer itself from another server.
const serialWait = 250 * time.Millisecond

// renewSerials asks for the serials if they may have grown. One caller asks, and the others
// wait for it. As long as the store does not answer, the zones have those that they had, and
// so do their answers: they are of that state, since nothing newer can be read. Then one
// caller at a time waits for the store.
func (z *Zones) renewSerials(ctx context.Context, set *zoneSet) error {
	if z.news.areSeen() {
		return nil
	}
	if slices.ContainsFunc(set.order, func(zone string) bool { return set.zones[zone].serial.state.Load() == nil }) {
		return z.readSerials(ctx, set)
	}
	ctx, cancel := context.WithTimeout(ctx, serialWait)
	defer cancel()
	begun, inTime := z.news.begin(ctx)
	if begun {
		defer func() { <-z.news.one }()
		inTime = z.news.areSeen() || z.readSerials(ctx, set) == nil
	}
	if !inTime && !z.news.late.Swap(true) {
		z.catchUp()
	}
	return nil
}

// begin waits until the caller may read the serials. It reports in time = false if another
// caller has not read them in time, and does not wait if one has not before.
func (n *serialNews) begin(ctx context.Context) (begun, inTime bool) {
	select {
	case n.one <- struct{}{}:
		return true, true
	default:
	}
	if n.late.Load() {
		return false, true
	}
	select {
	case n.one <- struct{}{}:
		return true, true
	case <-ctx.Done():
		return false, false
	}
}

// catchUp reads the serials beside the answers, until the store answers. What answers and
// notices have said meanwhile may be out of date then, so that counts as a change.
func (z *Zones) catchUp() {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.life.Err() != nil {
		return
	}
	z.work.Go(func() {
		for z.isLate() {
			select {
			case <-z.life.Done():
				return
			case <-time.After(z.again):
			}
		}
		z.changed.Add(1)
		z.tell(nil)
	})
}

// isLate reads the serials, and reports whether that has to be done once more.
func (z *Zones) isLate() bool {
	ctx, cancel := context.WithTimeout(z.life, lateTimeout)
	defer cancel()
	set, err := z.latest(ctx)
	if err != nil || z.readSerials(ctx, set) != nil {
		return true
	}
	z.news.late.Store(false)
	// What grew meanwhile, and was not read by a caller who saw that all are late, is read
	// here, or by the next one who is late.
	return !z.news.areSeen() && !z.news.late.Swap(true)
}
