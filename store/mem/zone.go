package mem

import (
	"context"
	"encoding/binary"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/refusal"
)

// runKey is the key of a run of changes that touch a zone: its last one. A zone's name
// has no zero byte.
func runKey(zone string, last uint64) string {
	return string(binary.BigEndian.AppendUint64([]byte(zone+"\x00"), last))
}

// touch notes which zones the changes of a commit touch, of which the first has a number.
func (st *state) touch(first uint64, records [][]string, t *stele.Touch, namespaces int, replayed bool) {
	if t == nil && replayed {
		return
	}
	every := t == nil || t.NamespaceVersions != st.namespaceVersions-uint64(namespaces)
	var zones []string
	if t != nil {
		zones = t.Namespaces
	}
	runs := make(stele.ZoneRuns)
	runs.AddCommit(first, records, zones, namespaces, every)
	for _, zone := range slices.Sorted(maps.Keys(runs)) {
		list := runs[zone]
		for _, run := range list {
			st.runs = st.runs.with(runKey(zone, run.Last), run.First)
		}
		z, known := st.zones.get(zone)
		z.Zone, z.Last = zone, list[len(list)-1].Last
		if !known {
			z.Since = z.Last
		}
		st.zones = st.zones.with(zone, z)
	}
}

// isFenced reports whether records were judged before a namespace was sealed.
func (st *state) isFenced(t *stele.Touch) bool {
	fence, _ := st.cells.get(stele.NamespaceFence)
	return t != nil && stele.IsFenced(fence, t.NamespaceVersions)
}

// raise gives a zone another base.
func (st *state) raise(r stele.ZoneRaise) error {
	z, known := st.zones.get(r.Zone)
	last := uint64(len(st.journal))
	if z.Base != r.Before {
		return refusal.ZoneBase(r.Zone, z.Base, r.Before)
	}
	if r.Last > last {
		return refusal.ZoneChange(r.Zone, r.Last, last)
	}
	if known {
		last = st.zoneState(r.Zone).Last
	}
	if r.Last > 0 {
		last = r.Last
	}
	st.zones = st.zones.with(r.Zone, stele.ZoneState{Zone: r.Zone, Base: r.Base, Last: last, Since: last, Shut: r.Shut})
	return nil
}

// zoneState returns the state of a zone with what touched every zone.
func (st *state) zoneState(zone string) stele.ZoneState {
	at := uint64(len(st.journal))
	z, known := st.zones.get(zone)
	if !known {
		return stele.ZoneState{Zone: zone, Last: at, Since: at, At: at}
	}
	every, _ := st.zones.get(stele.EveryZone)
	z.Last, z.At = max(z.Last, every.Last), at
	return z
}

// ZoneState implements [stele.Store].
func (s *Store) ZoneState(ctx context.Context, zone string) (stele.ZoneState, error) {
	st, err := s.view(ctx, "get zone")
	if err != nil {
		return stele.ZoneState{}, err
	}
	return st.zoneState(zone), nil
}

// ZoneStates implements [stele.Store].
func (s *Store) ZoneStates(ctx context.Context) iter.Seq2[stele.ZoneState, error] {
	return read(ctx, s, "list zones", func(st *state, yield func(stele.ZoneState, error) bool) {
		for zone := range st.zones.from("") {
			if zone != stele.EveryZone && !yield(st.zoneState(zone), nil) {
				return
			}
		}
	})
}

// ZoneChanges implements [stele.Store].
func (s *Store) ZoneChanges(ctx context.Context, zone string, after uint64) iter.Seq2[stele.Change, error] {
	return read(ctx, s, "zone changes", func(st *state, yield func(stele.Change, error) bool) {
		own := st.runsOf(zone, after)
		if zone != stele.EveryZone {
			own = stele.MergeZoneRuns(own, st.runsOf(stele.EveryZone, after))
		}
		for run := range own {
			for n := max(run.First, after+1); n <= run.Last; n++ {
				if !yield(st.journal[n-1].Change, nil) {
					return
				}
			}
		}
	})
}

// runsOf yields the runs of a zone that end after a change.
func (st *state) runsOf(zone string, after uint64) iter.Seq2[stele.ZoneRun, error] {
	return func(yield func(stele.ZoneRun, error) bool) {
		for key, first := range st.runs.from(runKey(zone, after+1)) {
			if !strings.HasPrefix(key, zone+"\x00") || len(key) != len(zone)+9 {
				return
			}
			if !yield(stele.ZoneRun{First: first, Last: binary.BigEndian.Uint64([]byte(key[len(zone)+1:]))}, nil) {
				return
			}
		}
	}
}

// verifyZones checks that states and runs of zones agree with each other and with the
// journal.
func (st *state) verifyZones(report func(*stele.Message)) {
	at := uint64(len(st.journal))
	ends := make(map[string]uint64)
	for key, first := range st.runs.from("") {
		zone, last := key[:len(key)-9], binary.BigEndian.Uint64([]byte(key[len(key)-8:]))
		z, known := st.zones.get(zone)
		if !known || first == 0 || first > last || first <= ends[zone] || last > max(z.Last, z.Since) || last > at {
			report(stele.Messagef("verify.zone-run-impossible", `the zone "{zone}" was touched by the changes {first} to {last}, which can't be`, zone, first, last))
		}
		ends[zone] = last
	}
	for zone, z := range st.zones.from("") {
		if z.Zone != zone || z.Since > z.Last || z.Last > at || z.Last > z.Since && ends[zone] != z.Last {
			report(stele.Messagef("verify.zone-index-ends-elsewhere", `the zone "{zone}" was touched by change {number} last, and its index ends with {last}`, zone, z.Last, ends[zone]))
		}
	}
}
