package dnsd

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
)

// formerly is what a link of a chain was before some changes.
type formerly struct {
	exists bool
	types  []uint16
}

// formerNSEC3Chain is a chain as it was: as it is now, but for some links.
type formerNSEC3Chain struct {
	now  *nsec3Chain
	was  map[nameHash]formerly // of the links that were not there, or otherwise
	gone []nameHash            // those that are no more, in order
}

// compareNSEC3 notes which links have changed: those of the names that came, went or
// have other types now, those of the empty names above them, and those in front of what
// came or went.
//
// The chain goes on with the registry meanwhile. So the one before and the one after are
// both made of it as it is when it is read, and of what is known of the names that have
// changed until then.
func (z *zoneSnapshot) compareNSEC3(ctx context.Context, d *delta) error {
	if err := z.links.await(ctx); err != nil {
		return err
	}
	before, after := maps.Clone(d.before), maps.Clone(d.after)
	if err := z.addEarlier(ctx, d.from, before, after); err != nil {
		return err
	}
	if err := z.addLater(ctx, before, after); err != nil { // most of it, while nobody waits
		return err
	}
	links, err := z.changedLinks(ctx, before, after)
	if err != nil {
		return err
	}
	soa, _ := z.apex()
	ttl := denialTTL(soa)
	for _, l := range links {
		if l.was != nil {
			d.removed = append(d.removed, &changedSet{[]dns.RR{z.signer.nsec3Record(l.was, ttl)}, true})
		}
		if l.is != nil {
			d.added = append(d.added, &changedSet{[]dns.RR{z.signer.nsec3Record(l.is, ttl)}, true})
		}
	}
	return nil
}

// addEarlier adds the types at the names that had changed before, but of which the chain
// may not know yet.
func (z *zoneSnapshot) addEarlier(ctx context.Context, from uint64, before, after map[string][]uint16) error {
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
			return &stele.Error{Op: "compare", Kind: stele.Unavailable, Err: fmt.Errorf("what has changed in %s is still being taken in; try again", z.name)}
		case c.ID.IsValid():
			if err := z.addTypes(ctx, c.ID, before, after); err != nil {
				return err
			}
		}
	}
	return nil
}

// addLater adds the types at the names that have changed since the zone was: the chain
// may know of that.
func (z *zoneSnapshot) addLater(ctx context.Context, before, after map[string][]uint16) error {
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
func (z *zoneSnapshot) addTypes(ctx context.Context, id stele.ID, before, after map[string][]uint16) error {
	if z.mapping == nil {
		return nil // nothing of records is in it
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
		types := typesAt(z.ownerAt(z.static, owner, list).records)
		before[owner], after[owner] = types, types
	}
	return nil
}

// changedLink is a link that was another one, or not there, or is no more.
type changedLink struct{ was, is *proof }

// changedLinks returns the links that differ between two states of the zone, of which
// the types at all names are known that are not as in the chain.
func (z *zoneSnapshot) changedLinks(ctx context.Context, before, after map[string][]uint16) (list []changedLink, err error) {
	c := z.links
	// What is in the chain now was committed before this moment. What comes while that
	// is read is undone: nobody waits for the store with the chain in hand.
	since := c.watch()
	defer c.unwatch(since)
	if err := z.addLater(ctx, before, after); err != nil {
		return nil, err
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	was, is := c.former(z.name, since.with(before)), c.former(z.name, since.with(after))
	touched := make(map[nameHash]bool)
	for _, one := range []*formerNSEC3Chain{was, is} {
		for h := range one.was {
			touched[h] = true
			for _, f := range []*formerNSEC3Chain{was, is} {
				if front, ok := f.neighbour(h, true); ok {
					touched[front] = true
				}
			}
		}
	}
	for _, h := range slices.SortedFunc(maps.Keys(touched), compareHashes) {
		l := changedLink{was.proof(h), is.proof(h)}
		if l.was == nil || l.is == nil || l.was.next != l.is.next || !slices.Equal(l.was.types, l.is.types) {
			list = append(list, l)
		}
	}
	return list, nil
}

func compareHashes(a, b nameHash) int { return bytes.Compare(a[:], b[:]) }

// watch is since when the changes of a chain are noted: the types that links had then, at
// the names that were set since.
type watch struct{ was map[string][]uint16 }

// watch begins to note what changes.
func (c *nsec3Chain) watch() *watch {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &watch{make(map[string][]uint16)}
	c.watches = append(c.watches, w)
	return w
}

// unwatch ends that.
func (c *nsec3Chain) unwatch(w *watch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watches = slices.DeleteFunc(c.watches, func(other *watch) bool { return other == w })
}

// with returns the types of links at names with these types, and at those that were set
// since. The caller holds the lock of the chain.
func (w *watch) with(then map[string][]uint16) map[string][]uint16 {
	all := maps.Clone(w.was)
	for name, types := range then {
		all[name] = linkTypes(types)
	}
	return all
}

// former returns the chain of a zone as it was when links had these types at some names,
// and at the others what they have. The caller holds the lock.
func (c *nsec3Chain) former(zone string, then map[string][]uint16) *formerNSEC3Chain {
	f := &formerNSEC3Chain{now: c, was: make(map[nameHash]formerly)}
	fewer := make(map[string]int64) // names that were below a name, and are not counted now
	for owner, types := range then {
		came := 0
		if l, _ := c.linkOf(owner); l.kind != 0 {
			came++
		}
		if len(types) > 0 {
			came--
		}
		fewer[owner] += 0
		for above := owner; above != zone && came != 0; {
			_, above, _ = strings.Cut(above, ".")
			fewer[above] += int64(came)
		}
	}
	for name, n := range fewer {
		l, exists := c.linkOf(name)
		types, ok := then[name]
		if !ok {
			types = c.kinds[l.kind]
		}
		was := formerly{len(types) > 0 || int64(l.below)-n > 0, types}
		if was.exists == exists && slices.Equal(types, c.kinds[l.kind]) {
			continue
		}
		h := hashName(name)
		f.was[h] = was
		if !exists {
			f.gone = append(f.gone, h)
		}
	}
	slices.SortFunc(f.gone, compareHashes)
	return f
}

// linkOf returns the link of a name; one with nothing if it does not exist. The caller
// holds the lock.
func (c *nsec3Chain) linkOf(name string) (l link, exists bool) {
	h := hashName(name)
	page, i, found := c.place(&h)
	if !found {
		return l, false
	}
	return c.pages[page][i], true
}

// proof returns the link of a hash; nil if there was none.
func (f *formerNSEC3Chain) proof(h nameHash) *proof {
	was, differs := f.was[h]
	if !differs {
		page, i, exists := f.now.place(&h)
		if !exists {
			return nil
		}
		was = formerly{true, f.now.kinds[f.now.pages[page][i].kind]}
	}
	if !was.exists {
		return nil
	}
	next, ok := f.neighbour(h, false)
	if !ok {
		next = h
	}
	return &proof{h, next, was.types}
}

// neighbour returns the link that followed a hash, or was in front of it.
func (f *formerNSEC3Chain) neighbour(h nameHash, back bool) (nameHash, bool) {
	var found nameHash
	have := false
	if f.now.count > 0 {
		at := h
		for range f.now.count {
			at = f.now.follow(&at, back).hash
			if was, ok := f.was[at]; !ok || was.exists {
				found, have = at, true
				break
			}
		}
	}
	if len(f.gone) == 0 {
		return found, have
	}
	other := f.goneBeside(h, back)
	if !have || isNearer(h, other, found, back) {
		return other, true
	}
	return found, true
}

// goneBeside is neighbour among those that are no more.
func (f *formerNSEC3Chain) goneBeside(h nameHash, back bool) nameHash {
	i, found := slices.BinarySearchFunc(f.gone, h, compareHashes)
	n := len(f.gone)
	switch {
	case back:
		return f.gone[(i+n-1)%n]
	case found:
		i++
	}
	return f.gone[i%n]
}

// isNearer reports whether a comes before b on the way from h around the chain.
func isNearer(h, a, b nameHash, back bool) bool {
	if back {
		h, a, b = flipped(h), flipped(a), flipped(b)
	}
	x, y := compareHashes(a, h) > 0, compareHashes(b, h) > 0
	if x != y {
		return x
	}
	return compareHashes(a, b) < 0
}

// flipped turns the order of hashes round.
func flipped(h nameHash) nameHash {
	for i := range h {
		h[i] = ^h[i]
	}
	return h
}
