package pebble

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	pebbledb "github.com/cockroachdb/pebble/v2"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/refusal"
)

// What the family of zones has, by the second byte of a key.
const (
	zoneState = 0x01
	zoneRun   = 0x02
)

func zoneStateKey(zone string) []byte { return append([]byte{familyZone, zoneState}, zone...) }

// zoneRunKey is the key of a run of changes: by zone, and then by the last of them.
func zoneRunKey(zone string, last uint64) []byte {
	b := append(append([]byte{familyZone, zoneRun}, zone...), 0)
	return binary.BigEndian.AppendUint64(b, last)
}

// Flags of a zone's state.
const zoneShut = 0x01

func appendZoneState(b []byte, z *stele.ZoneState) []byte {
	b = binary.AppendUvarint(b, uint64(z.Base))
	b = binary.AppendUvarint(b, z.Last)
	b = binary.AppendUvarint(b, z.Since)
	flags := byte(0)
	if z.Shut {
		flags |= zoneShut
	}
	return append(b, flags)
}

var errZone = stele.Messagef("zone.state-damaged", "the state of a zone is damaged")

// parseZoneState reads the state of a zone; known is false if there is none.
func parseZoneState(zone string, value []byte) (z stele.ZoneState, known bool, err error) {
	z.Zone = zone
	if value == nil {
		return z, false, nil
	}
	base, rest, err1 := cutUvarint(value)
	last, rest, err2 := cutUvarint(rest)
	since, rest, err3 := cutUvarint(rest)
	if errors.Join(err1, err2, err3) != nil || base > 1<<32-1 || len(rest) != 1 || rest[0]&^zoneShut != 0 {
		return z, false, fmt.Errorf("%w: %w", errKey, errZone)
	}
	z.Base, z.Last, z.Since, z.Shut = uint32(base), last, since, rest[0]&zoneShut != 0
	return z, true, nil
}

// zoneEntry is what a commit or an ingest says about zones.
type zoneEntry struct {
	touch             bool       // something is known
	namespaceVersions uint64     // sum of versions of the namespaces that the caller knew
	records           [][]string // zones of each record, in their order; nil in an ingest
	zones             []string   // of the namespaces
	raises            []stele.ZoneRaise
}

// encodeZones notes what a commit says about zones.
func (q *request) encodeZones(c *stele.Commit) error {
	q.zones = zoneEntry{raises: slices.Clone(c.Zones)}
	if c.Touch == nil {
		return nil
	}
	q.zones.touch, q.zones.namespaceVersions, q.zones.zones = true, c.Touch.NamespaceVersions, c.Touch.Namespaces
	q.zones.records = c.Touch.RecordZones(c.Records)
	for _, list := range q.zones.records {
		if err := stele.CheckZoneNames(list); err != nil {
			return err
		}
	}
	return nil
}

// checkNamespaces refuses namespaces from a caller that does not know all present ones.
func (g *group) checkNamespaces(q *request) error {
	if q.zones.touch && len(q.namespaces) > 0 && q.replay == nil && q.zones.namespaceVersions != g.namespaceVersions {
		return refusal.NamespaceChanged()
	}
	return nil
}

// checkFence refuses records that were judged before a namespace was sealed. A caller that knows the present namespaces
// costs no look-up.
func (t *tx) checkFence(q *request) error {
	if !q.zones.touch || len(q.records)+len(q.seen) == 0 || q.replay != nil || q.zones.namespaceVersions == t.g.namespaceVersions {
		return nil
	}
	fence, err := t.find(stele.ID{}, cellKey(stele.NamespaceFence))
	if err == nil && stele.IsFenced(fence, q.zones.namespaceVersions) {
		err = refusal.Fenced("commit")
	}
	return err
}

// checkFence does so for the records of an ingest.
func (in *ingest) checkFence(h *opening) error {
	if !in.zones.touch || in.zones.namespaceVersions == h.namespaceVersions {
		return nil
	}
	f, err := newFinder(h.db)
	if err != nil {
		return err
	}
	defer f.close()
	fence, err := f.find(cellKey(stele.NamespaceFence))
	if err == nil && stele.IsFenced(fence, in.zones.namespaceVersions) {
		err = refusal.Fenced("ingest")
	}
	return err
}

// putZones notes which zones a commit touches, and gives zones another base. The changes
// of the commit follow those that the group has so far.
func (t *tx) putZones(q *request) error {
	g := t.g
	clear(t.runs)
	if q.zones.touch || q.replay == nil {
		every := !q.zones.touch || q.zones.namespaceVersions != g.namespaceVersions
		records := q.zones.records
		if records == nil && every {
			records = make([][]string, len(q.records))
		}
		t.runs.AddCommit(g.seq+1, records, q.zones.zones, len(q.namespaces), every)
	}
	for _, zone := range slices.Sorted(maps.Keys(t.runs)) {
		list := t.runs[zone]
		z, known, err := t.zone(zone)
		if err != nil {
			return err
		}
		if z.Last = list[len(list)-1].Last; !known {
			z.Since = z.Last
		}
		t.setLate(zoneStateKey(zone), appendZoneState(nil, &z))
	}
	for i := range q.zones.raises {
		if err := t.raise(&q.zones.raises[i], g.seq+uint64(len(t.changes))); err != nil {
			return err
		}
	}
	return nil
}

// zone reads the state of a zone.
func (t *tx) zone(zone string) (stele.ZoneState, bool, error) {
	value, err := t.find(stele.ID{}, zoneStateKey(zone))
	if err != nil {
		return stele.ZoneState{}, false, err
	}
	z, known, err := parseZoneState(zone, value)
	if err != nil {
		err = &readFault{stele.ID{}, err}
	}
	return z, known, err
}

// raise gives a zone another base. The number of the last change is given.
func (t *tx) raise(r *stele.ZoneRaise, last uint64) error {
	z, known, err := t.zone(r.Zone)
	if err != nil {
		return err
	}
	if z.Base != r.Before {
		return refusal.ZoneBase(r.Zone, z.Base, r.Before)
	}
	if r.Last > last {
		return refusal.ZoneChange(r.Zone, r.Last, last)
	}
	if known {
		every, _, err := t.zone(stele.EveryZone)
		if err != nil {
			return err
		}
		last = max(z.Last, every.Last)
	}
	if r.Last > 0 {
		last = r.Last
	}
	z = stele.ZoneState{Zone: r.Zone, Base: r.Base, Last: last, Since: last, Shut: r.Shut}
	t.setLate(zoneStateKey(r.Zone), appendZoneState(nil, &z))
	return nil
}

// acceptZones adds the runs of a commit to those of the group.
func (g *group) acceptZones(runs stele.ZoneRuns) {
	for zone, list := range runs {
		have := g.runs[zone]
		if n := len(have); n > 0 && have[n-1].Last+1 == list[0].First {
			have[n-1].Last = list[0].Last
			list = list[1:]
		}
		g.runs[zone] = append(have, list...)
	}
}

// writeRuns writes the runs of the group.
func (g *group) writeRuns() {
	for zone, list := range g.runs {
		for _, run := range list {
			g.note(g.batch.Set(zoneRunKey(zone, run.Last), binary.AppendUvarint(nil, run.First), nil))
		}
	}
}

// zoneKeys returns what an ingest sets about zones, by key. Its changes follow the one
// with number seq, and the store's namespaces have versions with a sum.
func (in *ingest) zoneKeys(db pebbledb.Reader, seq, namespaceVersions uint64) (map[string][]byte, error) {
	runs := make(stele.ZoneRuns)
	every := !in.zones.touch || in.zones.namespaceVersions != namespaceVersions
	for i := range in.entries {
		if in.refused[i] != nil {
			continue
		}
		seq++
		if every {
			runs.Add(stele.EveryZone, seq)
			continue
		}
		for _, zone := range in.entries[i].zones {
			runs.Add(zone, seq)
		}
	}
	set := make(map[string][]byte)
	for zone, list := range runs {
		z, known, err := readZone(db, zone)
		if err != nil {
			return nil, err
		}
		if z.Last = list[len(list)-1].Last; !known {
			z.Since = z.Last
		}
		set[string(zoneStateKey(zone))] = appendZoneState(nil, &z)
		for _, run := range list {
			set[string(zoneRunKey(zone, run.Last))] = binary.AppendUvarint(nil, run.First)
		}
	}
	return set, nil
}

// readZone reads the state of a zone.
func readZone(db pebbledb.Reader, zone string) (stele.ZoneState, bool, error) {
	value, closer, err := db.Get(zoneStateKey(zone))
	if errors.Is(err, pebbledb.ErrNotFound) {
		return stele.ZoneState{Zone: zone}, false, nil
	} else if err != nil {
		return stele.ZoneState{}, false, err
	}
	defer closer.Close()
	return parseZoneState(zone, value)
}

// ZoneState implements [stele.Store].
func (s *Store) ZoneState(ctx context.Context, zone string) (z stele.ZoneState, err error) {
	err = s.read(ctx, "get zone", func(v *view) error {
		var known bool
		if z, known, err = readZone(v.snap, zone); err != nil {
			return v.opening.damage("get zone", stele.ID{}, err)
		}
		if z.At = v.seq; !known {
			z.Last, z.Since = v.seq, v.seq
			return nil
		}
		every, _, err := readZone(v.snap, stele.EveryZone)
		if err != nil {
			return v.opening.damage("get zone", stele.ID{}, err)
		}
		z.Last = max(z.Last, every.Last)
		return nil
	})
	return z, err
}

// ZoneStates implements [stele.Store].
func (s *Store) ZoneStates(ctx context.Context) iter.Seq2[stele.ZoneState, error] {
	return func(yield func(stele.ZoneState, error) bool) {
		v, err := s.look(ctx, "list zones")
		if err != nil {
			yield(stele.ZoneState{}, err)
			return
		}
		defer v.unpin()
		every, first := uint64(0), []byte{familyZone, zoneState}
		scan(ctx, s, v, "list zones", first, []byte{familyZone, zoneRun}, func(key, value []byte) (stele.ZoneState, bool, error) {
			z, _, err := parseZoneState(string(key[2:]), value)
			if z.Zone == stele.EveryZone { // it comes first
				every = z.Last
			}
			z.Last, z.At = max(z.Last, every), v.seq
			return z, z.Zone != stele.EveryZone, err
		}, yield)
	}
}

// ZoneChanges implements [stele.Store].
func (s *Store) ZoneChanges(ctx context.Context, zone string, cursor uint64) iter.Seq2[stele.Change, error] {
	const op = "zone changes"
	return func(yield func(stele.Change, error) bool) {
		v, err := s.look(ctx, op)
		if err != nil {
			yield(stele.Change{}, err)
			return
		}
		defer v.unpin()
		runs := s.zoneRuns(ctx, v, zone, cursor)
		if zone != stele.EveryZone {
			runs = stele.MergeZoneRuns(runs, s.zoneRuns(ctx, v, stele.EveryZone, cursor))
		}
		read := cursor // up to which change entries has them
		var entries []feedEntry
		for run, err := range runs {
			if err != nil {
				yield(stele.Change{}, err)
				return
			}
			for n := max(run.First, cursor+1); n <= run.Last; n++ {
				if n > read {
					if entries, err = s.chunkWith(ctx, v, n); err != nil {
						yield(stele.Change{}, err)
						return
					}
					read = entries[len(entries)-1].Seq
				}
				e := entries[n-entries[0].Seq]
				if err := ctx.Err(); err != nil {
					yield(stele.Change{}, err)
					return
				}
				if !yield(e.Change, nil) {
					return
				}
			}
		}
	}
}

// chunkWith reads the part of the change feed that has a change.
func (s *Store) chunkWith(ctx context.Context, v *view, n uint64) (entries []feedEntry, err error) {
	_, err = readPage(ctx, s, v, "zone changes", appendChangeKey(nil, n), []byte{familyChange + 1}, 1, func(key, value []byte) error {
		entries, err = parseChunk(key, value)
		return err
	})
	if err == nil {
		err = ctx.Err()
	}
	if err == nil && (len(entries) == 0 || entries[0].Seq > n) {
		err = refuse("zone changes", stele.ID{}, stele.Internal, "store.change-missing", "change {change} is missing; run verify", n)
	}
	return entries, err
}

// zoneRuns yields the runs of a zone that end after a change.
func (s *Store) zoneRuns(ctx context.Context, v *view, zone string, cursor uint64) iter.Seq2[stele.ZoneRun, error] {
	return func(yield func(stele.ZoneRun, error) bool) {
		from, end := zoneRunKey(zone, cursor+1), upper(zoneRunKey(zone, 0)[:len(zone)+3])
		scan(ctx, s, v, "zone changes", from, end, func(key, value []byte) (stele.ZoneRun, bool, error) {
			_, run, err := parseZoneRun(key, value)
			return run, true, err
		}, yield)
	}
}

// parseZoneRun reads a run of changes and its zone.
func parseZoneRun(key, value []byte) (zone string, run stele.ZoneRun, err error) {
	rest := key[2:]
	if len(rest) < 9 || rest[len(rest)-9] != 0 {
		return "", run, fmt.Errorf("%w: %w", errKey, errZone)
	}
	run.Last = binary.BigEndian.Uint64(rest[len(rest)-8:])
	if run.First, err = parseUvarint(value); err != nil || run.First == 0 || run.First > run.Last {
		err = fmt.Errorf("%w: %w: %v", errKey, errZone, err)
	}
	return string(rest[:len(rest)-9]), run, err
}

// countNamespaces returns the sum of the versions of all namespaces.
func countNamespaces(db pebbledb.Reader, each func(*stele.Namespace)) (sum uint64, err error) {
	it, err := db.NewIter(&pebbledb.IterOptions{LowerBound: []byte{familyNamespace}, UpperBound: []byte{familyNamespace + 1}})
	if err != nil {
		return 0, err
	}
	for ok := it.First(); ok; ok = it.Next() {
		n, err := decodeNamespace(it.Value())
		if err != nil {
			continue // Verify names it
		}
		sum += n.Version
		if each != nil {
			each(n)
		}
	}
	return sum, it.Close()
}

// addZoneStates gives the zones of a store from before zones had a state one: until then
// the serial of every zone was the number of the last change.
func addZoneStates(db *pebbledb.DB, b *pebbledb.Batch, seq uint64) error {
	var fault error
	_, err := countNamespaces(db, func(n *stele.Namespace) {
		zone := n.Publication.Zone
		if stele.CheckZoneNames([]string{zone}) != nil {
			return
		}
		if _, known, err := readZone(db, zone); known || err != nil {
			fault = errors.Join(fault, err)
			return
		}
		z := stele.ZoneState{Zone: zone, Last: seq, Since: seq}
		fault = errors.Join(fault, b.Set(zoneStateKey(zone), appendZoneState(nil, &z), nil))
	})
	return errors.Join(err, fault)
}

// firstZones gives the zones of a store from before zones had a state one.
func (s *Store) firstZones(h *opening) error {
	seq, err := lastChange(h.db)
	if err != nil {
		return h.damage("open", stele.ID{}, err)
	}
	b := h.db.NewBatch()
	defer b.Close()
	if err := addZoneStates(h.db, b, seq); err != nil {
		return h.damage("open", stele.ID{}, err)
	}
	if err := errors.Join(b.Commit(pebbledb.Sync), h.failstop.broken()); err != nil {
		return refuse("open", stele.ID{}, stele.Unavailable, "store.not-written", "the store can't be written: {cause}", err)
	}
	return nil
}

// zones checks that states and runs of zones agree with each other.
func (c *checker) zones() error {
	states, ends := make(map[string]stele.ZoneState), make(map[string]uint64)
	err := c.walk([]byte{familyZone}, []byte{familyZone + 1}, func(key, value []byte) {
		switch {
		case bytes.HasPrefix(key, []byte{familyZone, zoneState}):
			z, _, err := parseZoneState(string(key[2:]), value)
			if err != nil || z.Since > z.Last || z.Last > c.v.seq {
				c.problem("verify.zone-state-damaged", "{key} is damaged, or is about a change that there is not: {cause}.", describeKey(key), err)
			}
			states[z.Zone] = z
		case bytes.HasPrefix(key, []byte{familyZone, zoneRun}):
			zone, run, err := parseZoneRun(key, value)
			z, known := states[zone]
			if err != nil || !known || run.First <= ends[zone] || run.Last > z.Last {
				c.problem("verify.zone-changes-impossible", "{key} says that changes {first} to {last} touched a zone, which can't be: {cause}.", describeKey(key), run.First, run.Last, err)
			}
			ends[zone] = run.Last
		default:
			c.problem("verify.key-unknown", "{key} is none that the store writes.", describeKey(key))
		}
	})
	if err != nil {
		return err
	}
	for zone, z := range states {
		if z.Last > z.Since && ends[zone] != z.Last && !c.damaged {
			c.problem("verify.zone-index-end-differs", `the zone "{zone}" was touched by change {last} last, and its index ends with {end}.`, zone, z.Last, ends[zone])
		}
	}
	return nil
}
