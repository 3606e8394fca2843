package publish

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/zonesign"
)

// maxMeanwhile is how many records may change while a zone is sent. Their names are
// kept in memory.
const maxMeanwhile = 1_000_000

// snapshotStore is a store as it was at a change, as far as zones are read from it: records
// of which there are newer versions are given in the one of that time. It reads first, and
// then looks for later changes, so it knows of every newer version that it can have read.
type snapshotStore struct {
	Store
	at   uint64
	zone stele.ZoneState // of the zone that is read
	lag  time.Time       // when the store lagged last, before at was read
	old  bool            // it lagged then

	mu    sync.Mutex
	seen  uint64              // up to which change was is known
	was   map[stele.ID]uint64 // versions of the records that have changed; 0: there was none
	order []stele.ID          // in which they have
}

// newSnapshotStore returns a store as it is now, with the state that a zone has then.
func newSnapshotStore(ctx context.Context, store Store, zone string) (*snapshotStore, error) {
	lag, old := lagOf(store)
	state, err := store.ZoneState(ctx, zone)
	if err != nil {
		return nil, err
	}
	return &snapshotStore{Store: store, at: state.At, zone: state, lag: lag, old: old, seen: state.At, was: make(map[stele.ID]uint64)}, nil
}

// lagOf reports whether what is read from a store at present may be older than what was
// read before, and since when that was so last.
func lagOf(store Store) (since time.Time, yes bool) {
	if l, ok := store.(stele.Replicated); ok {
		return l.Lagging()
	}
	return time.Time{}, false
}

// LastChange returns the number of the change.
func (p *snapshotStore) LastChange(context.Context) (uint64, error) { return p.at, nil }

// Changes yields what was committed after a change, up to the last there is.
func (p *snapshotStore) Changes(ctx context.Context, after uint64) iter.Seq2[stele.Change, error] {
	return p.upTo(p.Store.Changes(ctx, after))
}

// ZoneChanges yields the changes of a zone after one, up to the last there is.
func (p *snapshotStore) ZoneChanges(ctx context.Context, zone string, after uint64) iter.Seq2[stele.Change, error] {
	return p.upTo(p.Store.ZoneChanges(ctx, zone, after))
}

// upTo ends with the last change there is.
func (p *snapshotStore) upTo(changes iter.Seq2[stele.Change, error]) iter.Seq2[stele.Change, error] {
	return func(yield func(stele.Change, error) bool) {
		for c, err := range changes {
			if err == nil && c.Seq > p.at || !yield(c, err) {
				return
			}
		}
	}
}

// catchUp notes what has changed. Unavailable if the store has less than it had, or had
// for a while: what was read may be older than the serial says then, and no delta
// from that serial on would ever mend it.
func (p *snapshotStore) catchUp(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, err := p.Store.LastChange(ctx)
	if err != nil {
		return err
	}
	if lag, _ := lagOf(p.Store); last < p.at || !lag.Equal(p.lag) {
		return &stele.Error{Op: "transfer", Kind: stele.Unavailable, Err: stele.Messagef("zone.database-behind", "the database may have less than the {changes} changes that it had; try again", p.at)}
	}
	if last <= p.seen {
		return nil
	}
	for c, err := range p.Store.Changes(ctx, p.seen) {
		if err != nil {
			return err
		}
		p.seen = c.Seq
		if _, ok := p.was[c.ID]; c.ID.IsValid() && !ok {
			p.was[c.ID] = c.Version - 1
			p.order = append(p.order, c.ID)
		}
		if len(p.was) > maxMeanwhile {
			return &stele.Error{Op: "transfer", Kind: stele.Unavailable, Err: stele.Messagef("zone.changes-too-many", "more than {limit} records changed meanwhile; try again", maxMeanwhile)}
		}
	}
	return nil
}

// meanwhile returns the records that are known to have changed, except the first n.
func (p *snapshotStore) meanwhile(n int) []stele.ID {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.order[n:])
}

// asItWas returns a record that was read before the last catchUp as it was; nil if it
// was not there.
func (p *snapshotStore) asItWas(ctx context.Context, r *stele.Record) (*stele.Record, error) {
	p.mu.Lock()
	n, changed := p.was[r.ID]
	p.mu.Unlock()
	if !changed {
		return r, nil
	}
	return versionOf(ctx, p.Store, r.ID, n)
}

// Record returns the record that had a name.
func (p *snapshotStore) Record(ctx context.Context, name stele.ID) (*stele.Record, error) {
	r, err := p.Store.Record(ctx, name)
	if err == nil {
		err = p.catchUp(ctx)
	}
	if err == nil {
		r, err = p.asItWas(ctx, r)
	}
	if err != nil {
		return nil, err
	}
	if r == nil || !slices.Contains(r.Names(), name) {
		return nil, &stele.Error{Op: "transfer", ID: name, Kind: stele.NotFound, Err: stele.Messagef("zone.name-not-registered-at", "it was not registered at change {change}", p.at)}
	}
	return r, nil
}

// Scan yields the records there were.
func (p *snapshotStore) Scan(ctx context.Context, scheme, prefix, after string) iter.Seq2[*stele.Record, error] {
	return func(yield func(*stele.Record, error) bool) {
		begun := false
		for r, err := range p.Store.Scan(ctx, scheme, prefix, after) {
			if err == nil && !begun { // all that the scan yields is as of now
				begun, err = true, p.catchUp(ctx)
			}
			if err == nil {
				r, err = p.asItWas(ctx, r)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if r != nil && !yield(r, nil) {
				return
			}
		}
	}
}

// versionOf returns a version of a record; nil for 0.
func versionOf(ctx context.Context, store Store, id stele.ID, n uint64) (*stele.Record, error) {
	if n == 0 {
		return nil, nil
	}
	r, err := store.Version(ctx, id, n)
	if errors.Is(err, stele.NotFound) {
		return nil, &stele.Error{Op: "compare", ID: id, Kind: stele.Internal, Err: stele.Messagef("zone.record-version-missing", "its version {version} is not there", n)}
	}
	return r, err
}

// ZoneSnapshot is a zone that stays as it was at a change, whatever is committed while it is
// read, with the serial of that time.
type ZoneSnapshot struct {
	*Zone
	store  *snapshotStore
	static *staticRecords
	live   *Zones      // that it is of
	links  *NSEC3Chain // in the mode transfer; it goes on with the registry
	later  int         // how many records that have changed meanwhile were looked at
}

// CatchUp returns Unavailable if what was read of the zone so far may not be of the time of
// the snapshot. A transfer calls it before its last record.
func (z *ZoneSnapshot) CatchUp(ctx context.Context) error { return z.store.catchUp(ctx) }

// Snapshot returns a zone that stays as it is now. In the mode online it is without
// signatures.
func (z *Zones) Snapshot(ctx context.Context, name string) (*ZoneSnapshot, error) {
	for range 10 {
		set, err := z.current(ctx)
		if err != nil {
			return nil, err
		}
		store, then, err := z.newSnapshot(ctx, set, name)
		if err != nil {
			return nil, err
		}
		if then == nil {
			z.renew(set) // the writer is about to call Invalidate
			continue
		}
		one := then.zones[name]
		if one == nil {
			return nil, ErrNoZone
		}
		if err := one.index.await(ctx); err != nil { // or aliases would not be in it
			return nil, err
		}
		one.serial = new(zoneSerial)
		one.serial.set(store.zone, 0)
		still := &ZoneSnapshot{Zone: one, store: store, live: z, links: one.handOnNSEC3()}
		still.static = z.generations.note(one, set, store.at)
		return still, nil
	}
	return nil, &stele.Error{Op: "transfer", Kind: stele.Unavailable, Err: stele.Messagef("zone.settings-change-too-fast", "the settings of {zone} change too fast; try again", name)}
}

// newSnapshot returns a set over the store as it is now; nil if the given set is not
// current.
func (z *Zones) newSnapshot(ctx context.Context, set *zoneSet, zone string) (*snapshotStore, *zoneSet, error) {
	store, err := newSnapshotStore(ctx, z.store, zone)
	if err != nil {
		return nil, nil, err
	}
	same, err := set.isCurrent(ctx, z.store)
	if !same || err != nil {
		return nil, nil, err
	}
	if err := store.catchUp(ctx); err != nil { // or the namespaces may be older
		return nil, nil, err
	}
	return store, set.over(z, store), nil
}

// noteGenerations notes the form of the zones that have secondaries, if it is not known
// yet: a secondary that has a zone from another server, or from before, can be told what
// changes from now on.
func (z *Zones) noteGenerations(ctx context.Context, set *zoneSet) error {
	z.generations.forgetOthers(set)
	unknown := slices.DeleteFunc(slices.Clone(set.order), func(name string) bool {
		return len(set.zones[name].ns.Publication.Secondaries) == 0 || z.generations.knows(name)
	})
	if len(unknown) == 0 {
		return nil
	}
	store, then, err := z.newSnapshot(ctx, set, unknown[0]) // serials are not needed here
	if then == nil || err != nil {
		return err
	}
	for _, name := range unknown {
		one := then.zones[name]
		one.handOnNSEC3()
		z.generations.note(one, set, store.at)
	}
	return nil
}

// ErrNoZone says that a zone is not published any more. It is of Kind NotFound.
var ErrNoZone = &stele.Error{Op: "transfer", Kind: stele.NotFound, Err: stele.Messagef("zone.no-longer-published", "the zone is no longer published")}

// renew has the namespaces read again, if they were not meanwhile.
func (z *Zones) renew(old *zoneSet) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.kept.Load() == old {
		z.forgotten++
		z.kept.Store(nil)
	}
}

// isCurrent reports whether no namespace has changed since the set was made. Keys are
// changed together with their namespace.
func (s *zoneSet) isCurrent(ctx context.Context, store Store) (bool, error) {
	n := 0
	for ns, err := range store.Namespaces(ctx) {
		if err != nil {
			return false, err
		}
		if known := s.byKey[ns.Key()]; known == nil || known.Version != ns.Version {
			return false, nil
		}
		n++
	}
	return n == len(s.byKey), nil
}

// over returns the same zones over a store as it was at some time.
func (s *zoneSet) over(z *Zones, store *snapshotStore) *zoneSet {
	then := &Zones{store: store, schemes: z.schemes, log: z.log, ttl: z.ttl, now: z.now, signing: z.signing}
	set := *s
	set.zones = make(map[string]*Zone, len(s.zones))
	for name, one := range s.zones {
		moved := *one
		moved.zones, moved.set = then, &set
		set.zones[name] = &moved
	}
	return &set
}

// handOnNSEC3 leaves in the zone what secondaries get: in the mode online no signatures. It
// returns the zone's NSEC3 chain, if it has one, which goes on with the registry.
func (z *Zone) handOnNSEC3() (links *NSEC3Chain) {
	switch {
	case z.signer == nil:
	case z.signer.Mode == zonesign.Transfer:
		links, z.chain = z.chain, nil
	default:
		z.signer = nil
	}
	return links
}
