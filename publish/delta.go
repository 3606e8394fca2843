package publish

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/naptr"
	"github.com/stele-id/stele/publish/zonesign"
)

// maxDelta is how many records may have changed for a delta to be made. Past
// that the whole zone is sooner sent.
const maxDelta = 20_000

// delta is what has changed in a zone since a change of the registry: the sets that
// are gone, with their signatures, and those that are new. A set that changed is in
// both. The SOA records are not among them.
type delta struct {
	from    uint64
	removed []*changedSet
	added   []*changedSet

	before, after map[string][]uint16 // types at the names that changed
}

// changedSet is a set that is gone, or new.
type changedSet struct {
	records []dns.RR
	mine    bool // it is signed, if the zone is
}

// delta returns what has changed since the change with a number; nil if that can't be told:
// the form of the zone or its keys have changed, so everything may have, or too many
// records have, or the earlier state is not known. It takes as long as there are changes,
// however large the zone is.
//
// Signatures are not kept, and those that are gone are made again: they depend on the keys
// and on the time of signing only, and with those the whole zone changes.
func (z *ZoneSnapshot) delta(ctx context.Context, from uint64) (*delta, error) {
	if from > z.store.zone.Last {
		return nil, nil
	}
	d := &delta{from: from, before: make(map[string][]uint16), after: make(map[string][]uint16)}
	changed, was, err := z.changedSince(ctx, d)
	if was == nil || err != nil {
		return nil, err
	}
	owners, err := z.ownersOf(ctx, changed)
	if owners == nil || err != nil {
		return nil, err
	}
	for name := range z.differing(was) {
		if _, ok := owners[name]; !ok {
			owners[name] = nil // the records registered there have not changed
		}
	}
	for _, owner := range slices.Sorted(maps.Keys(owners)) {
		if err := z.compare(ctx, d, was, owner, owners[owner], changed); err != nil {
			return nil, err
		}
	}
	if z.links != nil {
		if z.store.old {
			return nil, nil // the chain may have changes that the lagging store lacks
		}
		if err := z.compareNSEC3(ctx, d); err != nil {
			return nil, err
		}
	}
	if err := z.store.catchUp(ctx); err != nil {
		return nil, err
	}
	return d, d.sign(z.signer)
}

// changedRecord is a record before and after some changes.
type changedRecord struct {
	version uint64        // before; 0 if there was none
	was, is *stele.Record // nil if it was not there, or not read yet
}

// changedSince returns the records that have changed, and what the zone was beside them;
// nil if the delta can't be made. It reads the changes of this zone only, however
// many there were elsewhere.
func (z *ZoneSnapshot) changedSince(ctx context.Context, d *delta) (map[stele.ID]*changedRecord, *staticRecords, error) {
	changed := make(map[stele.ID]*changedRecord)
	was := z.static
	for c, err := range z.store.ZoneChanges(ctx, z.Name, d.from) {
		if err != nil {
			return nil, nil, err
		}
		// In the layout rules there is no more than one name anyway.
		if len(changed) > maxDelta || z.ns.Publication.Layout == stele.LayoutRules {
			return nil, nil, nil
		}
		switch {
		case c.ID.IsValid() && changed[c.ID] == nil:
			changed[c.ID] = &changedRecord{version: c.Version - 1}
		case !c.ID.IsValid() && was == z.static:
			if was = z.live.generations.at(z.Name, d.from, c.Seq); was == nil || was.form != z.static.form {
				return nil, nil, nil
			}
		}
	}
	return changed, was, nil
}

// differing yields the names at which there is something else than there was, whatever
// is registered.
func (z *ZoneSnapshot) differing(was *staticRecords) map[string]bool {
	names := make(map[string]bool)
	if was == z.static || was.text == z.static.text {
		return names
	}
	for name, p := range z.static.owners {
		if q := was.owners[name]; q == nil || q.Delegated != p.Delegated || q.Glue != p.Glue || !sameSet(p.Records, q.Records) {
			names[name] = true
		}
	}
	for name := range was.owners {
		if z.static.owners[name] == nil {
			names[name] = true
		}
	}
	return names
}

// ownersOf returns the owner names at which records are, with the names of those
// records there. It reads the records, as they are and were; nil if one was erased since,
// so that what stood in the zone is not known.
func (z *ZoneSnapshot) ownersOf(ctx context.Context, changed map[stele.ID]*changedRecord) (map[string][]namedChange, error) {
	owners := make(map[string][]namedChange)
	if z.mapping == nil {
		return owners, nil // the zone has no owner names of identifiers; see changedSince
	}
	for id, c := range changed {
		var err error
		if c.is, err = z.store.Record(ctx, id); err != nil {
			return nil, err
		}
		read := false
		for _, name := range c.is.Names() {
			owner, ok := z.ownerOf(name)
			if !ok {
				continue
			}
			if !read {
				if c.version > 0 && c.is.Withheld.Erased >= c.version {
					return nil, nil
				}
				if c.was, err = versionOf(ctx, z.store.Store, id, c.version); err != nil {
					return nil, err
				}
			}
			read = true
			owners[owner] = append(owners[owner], namedChange{name, c})
		}
	}
	return owners, nil
}

// namedChange is a name of a record that changed.
type namedChange struct {
	name stele.ID
	*changedRecord
}

// ownerOf returns the owner name of an identifier; ok is false if it has none in the
// zone.
func (z *Zone) ownerOf(id stele.ID) (owner string, ok bool) {
	if z.set.zoneOf(id) != z {
		return "", false
	}
	owner, reason := z.mapping.Owner(id.String())
	return owner, reason == nil && z.set.find(owner) == z
}

// compare notes what has changed at an owner name. names are those there whose records
// have changed.
func (z *ZoneSnapshot) compare(ctx context.Context, d *delta, then *staticRecords, owner string, names []namedChange, changed map[stele.ID]*changedRecord) error {
	before, after, err := z.besides(ctx, owner, len(names) == 0, changed)
	if err != nil {
		return err
	}
	for _, n := range names {
		before, after = z.appendVersion(before, n.name, n.was), z.appendVersion(after, n.name, n.is)
	}
	x, y := z.ownerAt(then, owner, before), z.ownerAt(z.static, owner, after)
	d.compareSets(x, y)
	if x.Glue || y.Glue {
		return nil
	}
	var more []uint16
	if owner == z.Name {
		more = []uint16{dns.TypeSOA}
	}
	d.before[owner], d.after[owner] = zonesign.TypesAt(x.Records, more...), zonesign.TypesAt(y.Records, slices.Clone(more)...)
	return nil
}

// besides returns the identifiers at an owner name whose records have not changed, both as
// before and as after. There are some only where case counts, or if no record at the name
// has changed. A name that another zone hides has none.
func (z *ZoneSnapshot) besides(ctx context.Context, owner string, alone bool, changed map[stele.ID]*changedRecord) (before, after []naptr.Named, err error) {
	if z.mapping == nil || z.mapping.Casing != naptr.CaseCounts && !alone || z.set.find(owner) != z.Zone {
		return nil, nil, nil
	}
	list, err := z.at(ctx, owner)
	for _, n := range list {
		if changed[n.Record.ID] == nil {
			before, after = append(before, n), append(after, n)
		}
	}
	return before, after, err
}

// appendVersion appends a version of a record under a name, if it had the name and was
// public.
func (z *ZoneSnapshot) appendVersion(list []naptr.Named, name stele.ID, r *stele.Record) []naptr.Named {
	if r == nil || !isVisible(r) || !slices.Contains(r.Names(), name) {
		return list
	}
	return append(list, naptr.Named{ID: name, Record: r, Namespace: z.set.namespaceOf(name)})
}

// ownerAt returns what stands at an owner name with some identifiers.
func (z *ZoneSnapshot) ownerAt(s *staticRecords, owner string, list []naptr.Named) *OwnerRecords {
	p := OwnerRecords{Name: owner}
	if fixed := s.owners[owner]; fixed != nil {
		p = *fixed
	}
	if len(list) == 0 {
		return &p
	}
	slices.SortFunc(list, func(a, b naptr.Named) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	if p.yields {
		p.Records = giveWay(p.Records)
	}
	out := z.compiler().Compile(list)
	p.Records = append(p.Records[:len(p.Records):len(p.Records)], out.Records(owner)...)
	return &p
}

// compareSets notes which sets at a name are not the same.
func (d *delta) compareSets(before, after *OwnerRecords) {
	x, y := before.sets(), after.sets()
	for _, set := range x {
		if !slices.ContainsFunc(y, set.equals) {
			d.removed = append(d.removed, set)
		}
	}
	for _, set := range y {
		if !slices.ContainsFunc(x, set.equals) {
			d.added = append(d.added, set)
		}
	}
}

// sets divides what stands at a name by type.
func (p *OwnerRecords) sets() (list []*changedSet) {
	for _, set := range zonesign.RRsets(p.Records) {
		mine := !p.Glue && (!p.Delegated || set[0].Header().Rrtype == dns.TypeDS)
		list = append(list, &changedSet{zonesign.EvenTTL(set), mine})
	}
	return list
}

func (s *changedSet) equals(other *changedSet) bool {
	return s.mine == other.mine && sameSet(s.records, other.records)
}

// sign adds the signatures of all sets, on all processors.
func (d *delta) sign(s *zonesign.Signer) error {
	if s == nil {
		return nil
	}
	all := slices.Concat(d.removed, d.added)
	workers := runtime.GOMAXPROCS(0)
	failed := make([]error, workers)
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for i := w; i < len(all) && failed[w] == nil; i += workers {
				failed[w] = all[i].sign(s)
			}
		})
	}
	group.Wait()
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *changedSet) sign(by *zonesign.Signer) error {
	if !s.mine {
		return nil
	}
	signatures, err := by.Sign(s.records)
	s.records = append(s.records[:len(s.records):len(s.records)], signatures...)
	return err
}

// sameSet reports whether two sets have the same records.
func sameSet(a, b []dns.RR) bool {
	return slices.EqualFunc(a, b, func(x, y dns.RR) bool { return x.String() == y.String() })
}

// IXFR returns the answer to a client that has a zone with a serial: its SOA record alone
// if that is the present one, or what has changed since (RFC 1995, section 4), all changes
// in one. It returns nil if the whole zone has to be sent.
func (z *Zone) IXFR(ctx context.Context, serial uint32) ([]dns.RR, error) {
	still, err := z.zones.Snapshot(ctx, z.Name)
	if err != nil {
		return nil, err
	}
	soa, _ := still.Apex()
	if int32(soa.Serial-serial) <= 0 && serial-soa.Serial != 1<<31 {
		return []dns.RR{soa}, nil
	}
	from, ok := still.store.zone.Change(serial)
	if !ok {
		return nil, nil
	}
	d, err := still.delta(ctx, from)
	if d == nil || err != nil {
		return nil, err
	}
	large, err := z.isLarge(ctx, d)
	if large || err != nil {
		return nil, err
	}
	return still.ixfrOf(d, soa, serial)
}

// smallDelta is up to how many sets a delta is sent whatever the size of the
// zone.
const smallDelta = 500

// isLarge reports whether a delta is more than half of the zone.
func (z *Zone) isLarge(ctx context.Context, d *delta) (bool, error) {
	n := len(d.added) + len(d.removed)
	if n <= smallDelta {
		return false, nil
	}
	count, err := z.zones.store.Count(ctx, z.ns.Key())
	return uint64(n) > 2*count, err // a name has some sets, and a change is two of them
}

// ixfrOf returns a delta as it is sent (RFC 1995, section 4).
func (z *ZoneSnapshot) ixfrOf(d *delta, soa *dns.SOA, since uint32) ([]dns.RR, error) {
	before, after := *soa, *soa
	before.Serial = since
	list := []dns.RR{&after}
	for _, half := range []struct {
		soa  *dns.SOA
		sets []*changedSet
	}{{&before, d.removed}, {&after, d.added}} {
		list = append(list, half.soa)
		if z.signer != nil {
			signatures, err := z.signer.Sign([]dns.RR{half.soa})
			if err != nil {
				return nil, err
			}
			list = append(list, signatures...)
		}
		for _, set := range half.sets {
			list = append(list, set.records...)
		}
	}
	return append(list, &after), nil
}
