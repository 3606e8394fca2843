package registrar

import (
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// ZoneStates yields what is kept about zones, by name: those that are published, and
// those that were. Only an administrator may list them; a token for backups is enough.
func (r *Registrar) ZoneStates(ctx context.Context) iter.Seq2[stele.ZoneState, error] {
	return func(yield func(stele.ZoneState, error) bool) {
		const op = "list zones"
		if err := administrateBy(ctx, op, stele.ID{}, auth.ScopeBackup); err != nil {
			yield(stele.ZoneState{}, err)
			return
		}
		list, err := r.zoneStates(ctx)
		if err != nil {
			yield(stele.ZoneState{}, tell(op, err))
			return
		}
		for _, zone := range slices.Sorted(maps.Keys(list)) {
			if !yield(list[zone], nil) {
				return
			}
		}
	}
}

// zoneStates returns the states of all zones that the store knows, or that are published.
func (r *Registrar) zoneStates(ctx context.Context) (map[string]stele.ZoneState, error) {
	list := make(map[string]stele.ZoneState)
	for z, err := range r.store.ZoneStates(ctx) {
		if err != nil {
			return nil, err
		}
		list[z.Zone] = z
	}
	s, err := r.view(ctx)
	if err != nil {
		return nil, err
	}
	for _, sp := range s.All() {
		zone := sp.Publication.Zone
		if _, known := list[zone]; known || zone == "" {
			continue
		}
		if list[zone], err = r.store.ZoneState(ctx, zone); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// RaiseZone gives a zone a serial that is above another one, and above the one that it
// has, and opens it for transfers if it was shut. If above is nil it is above the one that
// it has; Conflict if the zone is shut then. All secondaries get the whole zone next. Only
// an administrator may.
func (r *Registrar) RaiseZone(ctx context.Context, zone string, above *uint32) (stele.ZoneState, error) {
	const op = "raise zone"
	if err := administrate(ctx, op, stele.ID{}); err != nil {
		return stele.ZoneState{}, err
	}
	if err := r.lock(ctx); err != nil {
		return stele.ZoneState{}, err
	}
	defer r.unlock()
	for attempt := 1; ; attempt++ {
		s, err := r.latest(ctx)
		if err != nil {
			return stele.ZoneState{}, err
		}
		list, err := r.zoneStates(ctx)
		if err != nil {
			return stele.ZoneState{}, tell(op, err)
		}
		z, known := list[zone]
		switch {
		case !known:
			return z, refuse(op, stele.ID{}, stele.NotFound, "zone.missing", `there is no zone "{zone}" here, and never was; 'stele zone ls' lists them`, zone)
		case z.Shut && above == nil:
			return z, refuse(op, stele.ID{}, stele.Conflict, "zone.secondary-serial-unknown", "it is not known which serial the secondaries of {zone} have; ask each for its SOA record, and name the highest serial: stele zone raise {zone} --above SERIAL", zone)
		}
		floor := z.Serial()
		if above != nil && stele.SerialAfter(*above, floor) {
			floor = *above
		}
		c, changed, err := r.raiseCommit(ctx, s, stele.ZoneRaise{Zone: zone, Before: z.Base, Base: z.Above(floor)})
		if err != nil {
			return z, err
		}
		err = r.apply(ctx, op, c)
		if err == nil {
			r.replace(s, changed)
			r.o.OnNamespaces() // the serials of all zones are read again
			z, err = r.store.ZoneState(ctx, zone)
			return z, tell(op, err)
		}
		r.replace(s, nil)
		if !r.again(ctx, err, attempt) {
			return z, err
		}
	}
}

// raiseCommit returns the commit that raises a zone. The namespace that is published in
// it gets a new version, otherwise the same: other servers of the registry learn from the
// change feed that the serial is another one, and the history names the principal that
// raised it.
func (r *Registrar) raiseCommit(ctx context.Context, s *namespaceTree, raise stele.ZoneRaise) (*stele.Commit, *namespaceTree, error) {
	c := &stele.Commit{Zones: []stele.ZoneRaise{raise}}
	owner := s.zones().OwnerOf(raise.Zone)
	if members := s.zones().Members(raise.Zone); owner == nil && len(members) > 0 { // it is a catalog
		owner = s.zones().OwnerOf(members[0])
	}
	if owner == nil {
		return c, nil, nil
	}
	next := cloneNamespace(owner)
	r.stampNamespace(ctx, owner, next)
	c.Namespaces = []*stele.Namespace{next}
	changed, err := s.with(next)
	return c, changed, err
}

// RaiseRestoredZones gives every zone of a registry that was just restored a serial that no
// secondary can have for other contents: above that of the registry it replaces, above
// those that the secondaries said they have, and above a floor that the operator gave. The
// zone is open for transfers if one of these is known: the serial of the registry that is
// replaced, the floor, or the serial of every secondary. Otherwise it is shut until an
// administrator has raised it: a secondary that did not answer may have a serial above the
// new one. The clock is not used: a serial is a number of changes.
func (r *Registrar) RaiseRestoredZones(ctx context.Context, l Legacy) error {
	const op = "restore"
	if err := administrate(ctx, op, stele.ID{}); err != nil {
		return err
	}
	states, err := r.zoneStates(ctx)
	if err != nil {
		return tell(op, err)
	}
	present := make(map[string]*stele.ZoneState)
	for _, z := range l.Zones {
		present[z.Zone] = &z
		if _, known := states[z.Zone]; !known {
			if states[z.Zone], err = r.store.ZoneState(ctx, z.Zone); err != nil {
				return tell(op, err)
			}
		}
	}
	answers := make(map[string][]stele.SecondaryAnswer)
	for _, a := range l.Answers {
		answers[a.Zone] = append(answers[a.Zone], a)
	}
	c := &stele.Commit{}
	for _, zone := range slices.Sorted(maps.Keys(states)) {
		if raise, ok := raiseRestored(states[zone], present[zone], l.SerialFloor, answers[zone]); ok {
			c.Zones = append(c.Zones, raise)
		}
	}
	if len(c.Zones) == 0 {
		return nil
	}
	if err := r.apply(ctx, op, c); err != nil {
		return err
	}
	r.o.OnNamespaces()
	return nil
}

// raiseRestored returns how a restored zone is raised above the serial of the present one,
// above a floor, each of which may be nil, and above those of its secondaries. ok is false
// if it stays as it is.
//
// The answer of a secondary counts if its serial is near to those that are known otherwise
// (see [stele.SerialNear]). One that is not would make the serial wrap around: the other
// secondaries would take the new serial for an old one.
func raiseRestored(z stele.ZoneState, present *stele.ZoneState, floor *uint32, answers []stele.SecondaryAnswer) (raise stele.ZoneRaise, ok bool) {
	raise = stele.ZoneRaise{Zone: z.Zone, Before: z.Base, Base: z.Base}
	highest, open := z.Serial(), false
	if present != nil {
		// A present zone that was shut says nothing about the secondaries.
		if highest, open = present.Serial(), !present.Shut; stele.SerialAfter(z.Serial(), highest) {
			highest = z.Serial()
		}
	}
	if floor != nil {
		if open = true; stele.SerialAfter(*floor, highest) {
			highest = *floor
		}
	}
	known, near := highest, 0
	for _, a := range answers {
		if a.HasSerial() && stele.SerialNear(a.Serial, known) {
			if near++; stele.SerialAfter(a.Serial, highest) {
				highest = a.Serial
			}
		}
	}
	raise.Shut = !open && (near == 0 || near < len(answers))
	if present == nil && floor == nil && near == 0 {
		return raise, !z.Shut
	}
	// A serial that does not count is not used for other contents either.
	for slices.ContainsFunc(answers, func(a stele.SecondaryAnswer) bool { return a.HasSerial() && a.Serial == highest+1 }) {
		highest++
	}
	raise.Base = z.Above(highest)
	return raise, true
}
