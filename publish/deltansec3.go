package publish

import (
	"context"
	"maps"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/nsec3"
	"github.com/stele-id/stele/publish/zonesign"
)

// compareNSEC3 notes which links have changed: those of the names that came, went or have
// other types now, those of the empty names above them, and those in front of what came or
// went.
//
// The chain goes on with the registry meanwhile. So compareNSEC3 makes both the chain
// before and the chain after from the chain as it is when it is read, and from what is
// known of the names that have changed until then.
func (z *ZoneSnapshot) compareNSEC3(ctx context.Context, d *delta) error {
	if err := z.links.await(ctx); err != nil {
		return err
	}
	before, after := maps.Clone(d.before), maps.Clone(d.after)
	if err := z.addEarlier(ctx, d.from, before, after); err != nil {
		return err
	}
	if err := z.addLater(ctx, before, after); err != nil { // most of it, before changedLinks watches the chain
		return err
	}
	links, err := z.changedLinks(ctx, before, after)
	if err != nil {
		return err
	}
	soa, _ := z.Apex()
	ttl := zonesign.NegativeTTL(soa)
	for _, l := range links {
		if l.Before != nil {
			d.removed = append(d.removed, &changedSet{[]dns.RR{l.Before.Record(z.Name, ttl)}, true})
		}
		if l.After != nil {
			d.added = append(d.added, &changedSet{[]dns.RR{l.After.Record(z.Name, ttl)}, true})
		}
	}
	return nil
}

// addEarlier adds the types at the names that had changed before, of which the chain may
// not know yet.
func (z *ZoneSnapshot) addEarlier(ctx context.Context, from uint64, before, after map[string][]uint16) error {
	complete, err := z.live.completeUpTo(ctx, z.links)
	if err != nil || complete >= from {
		return err
	}
	for c, err := range z.store.Changes(ctx, complete) {
		switch {
		case err != nil:
			return err
		case c.Seq > from:
			return nil
		case c.Seq-complete > maxDelta:
			return &stele.Error{Op: "compare", Kind: stele.Unavailable, Err: stele.Messagef("zone.changes-pending", "what has changed in {zone} is still being taken in; try again", z.Name)}
		case c.ID.IsValid():
			if err := z.addTypes(ctx, c.ID, before, after); err != nil {
				return err
			}
		}
	}
	return nil
}

// addLater adds the types at the names that have changed since the snapshot: the chain may
// have those changes already.
func (z *ZoneSnapshot) addLater(ctx context.Context, before, after map[string][]uint16) error {
	if err := z.store.catchUp(ctx); err != nil {
		return err
	}
	for _, id := range z.store.meanwhile(z.later) {
		z.later++
		if err := z.addTypes(ctx, id, before, after); err != nil {
			return err
		}
	}
	return nil
}

// addTypes adds the types at the names of a record that has not changed in between: they
// were the same before and after.
func (z *ZoneSnapshot) addTypes(ctx context.Context, id stele.ID, before, after map[string][]uint16) error {
	if z.mapping == nil {
		return nil // the zone has no owner names of identifiers
	}
	r, err := z.store.Store.Record(ctx, id)
	if err != nil {
		return err
	}
	for _, name := range r.Names() {
		owner, ok := z.ownerOf(name)
		if _, known := after[owner]; !ok || known {
			continue
		}
		list, err := z.at(ctx, owner)
		if err != nil {
			return err
		}
		types := zonesign.TypesAt(z.ownerAt(z.static, owner, list).Records)
		before[owner], after[owner] = types, types
	}
	return nil
}

// changedLinks returns the links that differ between two states of the zone, of which
// the types at all names are known that are not as in the chain.
func (z *ZoneSnapshot) changedLinks(ctx context.Context, before, after map[string][]uint16) ([]nsec3.Change, error) {
	// The chain has only what was committed before this moment. Delta undoes what comes while
	// that is read: the chain is not locked while the store is read, so no writer waits.
	since := z.links.Watch()
	defer since.Stop()
	if err := z.addLater(ctx, before, after); err != nil {
		return nil, err
	}
	return since.Delta(z.Name, before, after), nil
}
