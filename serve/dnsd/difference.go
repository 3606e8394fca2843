package dnsd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
)

// maxDifference is how many records may have changed for a difference to be told. Past
// that the whole zone is sooner sent.
const maxDifference = 20_000

// difference is what has changed in a zone since a change of the registry: the sets that
// are gone, with their signatures, and those that are new. A set that changed is in
// both. The SOA records are not among them.
type difference struct {
	from, to      uint64
	removed       [][]dns.RR
	added         [][]dns.RR
	before, after map[string][]uint16 // types at the names that changed
}

// since returns what has changed since the change with a number; nil if that can't be
// told: the zone's settings or keys have changed, so everything may have, or too many
// records have. It takes as long as there are changes, however large the zone is.
//
// Signatures are not kept, and those that are gone are made again: they depend on the
// keys and on the time of signing only, and with those the whole zone changes.
func (z *zone) since(ctx context.Context, from uint64) (*difference, error) {
	for range 5 {
		d, err := z.tryDifference(ctx, from)
		if errors.Is(err, errBehind) {
			continue
		}
		if d == nil || err != nil {
			return nil, err
		}
		// Nothing may have changed meanwhile: the chain would have it, and the records not.
		last, err := z.zones.store.LastChange(ctx)
		if err != nil {
			return nil, err
		}
		switch {
		case last == d.to:
			return d, nil
		case last < from:
			return nil, nil // nobody knows what that was
		}
	}
	return nil, &stele.Error{Op: "compare", Kind: stele.Unavailable, Err: fmt.Errorf("%s changes too fast; try again", z.name)}
}

func (z *zone) tryDifference(ctx context.Context, from uint64) (*difference, error) {
	d := &difference{from: from, before: make(map[string][]uint16), after: make(map[string][]uint16)}
	changed, err := z.changedSince(ctx, d)
	if changed == nil || err != nil {
		return nil, err
	}
	owners, err := z.ownersOf(ctx, changed)
	if err != nil {
		return nil, err
	}
	for _, owner := range slices.Sorted(maps.Keys(owners)) {
		if err := z.compare(ctx, d, owner, owners[owner], changed); err != nil {
			return nil, err
		}
	}
	if z.seals != nil && z.seals.links != nil {
		return d, z.compareChain(d)
	}
	return d, nil
}

// versions are those of a record before and after some changes; 0 if there was none.
type versions struct{ before, after uint64 }

// changedSince returns the records that have changed, and notes up to when; nil if the
// difference can't be told.
func (z *zone) changedSince(ctx context.Context, d *difference) (map[stele.ID]versions, error) {
	d.to = d.from
	changed := make(map[stele.ID]versions)
	for c, err := range z.zones.store.Changes(ctx, d.from) {
		if err != nil {
			return nil, err
		}
		// In the layout rules there is no more than one name anyway.
		if d.to++; c.Seq != d.to || !c.ID.IsValid() || len(changed) > maxDifference || z.ns.Publication.Layout == stele.LayoutRules {
			return nil, nil
		}
		v, ok := changed[c.ID]
		if !ok {
			v.before = c.Version - 1
		}
		v.after = c.Version
		changed[c.ID] = v
	}
	return changed, nil
}

// ownersOf returns the owner names at which records are, with the names of those
// records there.
func (z *zone) ownersOf(ctx context.Context, changed map[stele.ID]versions) (map[string][]stele.ID, error) {
	owners := make(map[string][]stele.ID)
	if z.cut == nil {
		return owners, nil // nothing of records is in it; see changedSince
	}
	for id, v := range changed {
		r, err := z.version(ctx, id, v.after)
		if err != nil {
			return nil, err
		}
		for _, name := range r.Names() {
			if z.set.zoneOf(name) != z {
				continue
			}
			if owner, reason := z.cut.owner(name.String()); reason == "" && z.set.find(owner) == z {
				owners[owner] = append(owners[owner], name)
			}
		}
	}
	return owners, nil
}

// version returns a version of a record; nil for 0.
func (z *zone) version(ctx context.Context, id stele.ID, n uint64) (*stele.Record, error) {
	return versionOf(ctx, z.zones.store, id, n)
}

// compare notes what has changed at an owner name. names are those there whose records
// have changed.
func (z *zone) compare(ctx context.Context, d *difference, owner string, names []stele.ID, changed map[stele.ID]versions) error {
	others, err := z.at(ctx, owner) // which shared the name all the time, if any
	if err != nil {
		return err
	}
	var before, after []named
	for _, n := range others {
		if _, ok := changed[n.record.ID]; !ok {
			before, after = append(before, n), append(after, n)
		}
	}
	for _, name := range names {
		current, err := z.zones.store.Record(ctx, name)
		if err != nil {
			return err
		}
		v := changed[current.ID]
		if before, err = z.appendVersion(ctx, before, name, current.ID, v.before); err != nil {
			return err
		}
		if after, err = z.appendVersion(ctx, after, name, current.ID, v.after); err != nil {
			return err
		}
	}
	return d.compareSets(z, owner, z.recordsOf(owner, before), z.recordsOf(owner, after))
}

// appendVersion appends a version of a record under a name, if it had the name and was
// public.
func (z *zone) appendVersion(ctx context.Context, list []named, name, id stele.ID, version uint64) ([]named, error) {
	r, err := z.version(ctx, id, version)
	if r == nil || err != nil || !isVisible(r) || !slices.Contains(r.Names(), name) {
		return list, err
	}
	return append(list, named{name, r, z.set.namespaceOf(name)}), nil
}

// recordsOf returns what stands at an owner name with some identifiers.
func (z *zone) recordsOf(owner string, list []named) []dns.RR {
	records := z.fixed[owner]
	if len(list) == 0 {
		return records
	}
	slices.SortFunc(list, func(a, b named) int { return strings.Compare(a.id.String(), b.id.String()) })
	out := z.compiler().compile(list)
	return append(records[:len(records):len(records)], out.records(owner)...)
}

// compareSets notes which sets at an owner name are not the same.
func (d *difference) compareSets(z *zone, owner string, before, after []dns.RR) error {
	x, y := setsOf(before), setsOf(after)
	for _, set := range x {
		if !slices.ContainsFunc(y, func(other []dns.RR) bool { return sameSet(set, other) }) {
			if err := d.add(z, &d.removed, set); err != nil {
				return err
			}
		}
	}
	for _, set := range y {
		if !slices.ContainsFunc(x, func(other []dns.RR) bool { return sameSet(set, other) }) {
			if err := d.add(z, &d.added, set); err != nil {
				return err
			}
		}
	}
	if a, b := typesAt(before), typesAt(after); !slices.Equal(a, b) {
		d.before[owner], d.after[owner] = a, b
	}
	return nil
}

// add adds a set, with its signatures if the zone's go out.
func (d *difference) add(z *zone, to *[][]dns.RR, set []dns.RR) error {
	set = evenTTL(set)
	if z.seals != nil && z.seals.links != nil {
		signatures, err := z.seals.sign(set)
		if err != nil {
			return err
		}
		set = append(set[:len(set):len(set)], signatures...)
	}
	*to = append(*to, set)
	return nil
}

// sameSet reports whether two sets have the same records.
func sameSet(a, b []dns.RR) bool {
	return slices.EqualFunc(a, b, func(x, y dns.RR) bool { return x.String() == y.String() })
}
