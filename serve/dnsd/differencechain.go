package dnsd

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// errBehind says that the chain of a zone does not know yet of what is committed.
var errBehind = errors.New("the chain is behind")

// formerly is what a link of a chain was before some changes.
type formerly struct {
	exists bool
	types  []uint16
}

// formerChain is a chain as it was: as it is now, but for some links.
type formerChain struct {
	now  *chain
	was  map[nameHash]formerly // of the links that were not there, or otherwise
	gone []nameHash            // those that are no more, in order
}

// compareChain notes which links have changed: those of the names that came, went or
// have other types now, those of the empty names above them, and those in front of what
// came or went.
func (z *zone) compareChain(d *difference) error {
	c := z.seals.links
	c.mu.RLock()
	defer c.mu.RUnlock()
	if err := c.check(z.name); err != nil {
		return err
	}
	f, err := z.former(d)
	if err != nil {
		return err
	}
	touched := make(map[nameHash]bool)
	for h := range f.was {
		touched[h] = true
		if len(c.pages) > 0 {
			touched[c.follow(&h, true).hash] = true
		}
		if before, ok := f.neighbour(h, true); ok {
			touched[before] = true
		}
	}
	soa, _ := z.apex()
	for _, h := range slices.SortedFunc(maps.Keys(touched), compareHashes) {
		if err := z.compareLink(d, f, h, denialTTL(soa)); err != nil {
			return err
		}
	}
	return nil
}

func compareHashes(a, b nameHash) int { return bytes.Compare(a[:], b[:]) }

// former returns the chain as it was before a difference.
func (z *zone) former(d *difference) (*formerChain, error) {
	c := z.seals.links
	f := &formerChain{now: c, was: make(map[nameHash]formerly)}
	fewer := make(map[string]int64) // names that were below a name, and are not counted now
	for owner, types := range d.after {
		if !slices.Equal(c.typesOf(owner), linkTypes(types)) {
			return nil, errBehind
		}
		came := 0
		if len(types) > 0 {
			came++
		}
		if len(d.before[owner]) > 0 {
			came--
		}
		fewer[owner] += 0
		for above := owner; above != z.name && came != 0; {
			_, above, _ = strings.Cut(above, ".")
			fewer[above] += int64(came)
		}
	}
	for name, n := range fewer {
		l, exists := c.linkOf(name)
		types, ok := d.before[name]
		if types = linkTypes(types); !ok {
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
	return f, nil
}

// linkOf returns the link of a name; one with nothing if it does not exist. The caller
// holds the lock.
func (c *chain) linkOf(name string) (l link, exists bool) {
	h := hashName(name)
	page, i, found := c.place(&h)
	if !found {
		return l, false
	}
	return c.pages[page][i], true
}

// typesOf returns the types of a link. The caller holds the lock.
func (c *chain) typesOf(name string) []uint16 {
	l, _ := c.linkOf(name)
	return c.kinds[l.kind]
}

// neighbour returns the link that followed a hash, or was in front of it.
func (f *formerChain) neighbour(h nameHash, back bool) (nameHash, bool) {
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
func (f *formerChain) goneBeside(h nameHash, back bool) nameHash {
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

// compareLink notes the link of a hash as it was and as it is, if they differ.
func (z *zone) compareLink(d *difference, f *formerChain, h nameHash, ttl uint32) error {
	var before, after []dns.RR
	page, i, exists := f.now.place(&h)
	if exists {
		p := f.now.proof(page, i)
		after = []dns.RR{z.seals.nsec3(&p, ttl)}
	}
	was, differs := f.was[h]
	if !differs && exists {
		was = formerly{true, f.now.kinds[f.now.pages[page][i].kind]}
	}
	if was.exists {
		next, ok := f.neighbour(h, false)
		if !ok {
			next = h
		}
		before = []dns.RR{z.seals.nsec3(&proof{h, next, was.types}, ttl)}
	}
	return d.compareLinkSets(z, before, after)
}

// compareLinkSets notes two sets of which either may be empty.
func (d *difference) compareLinkSets(z *zone, before, after []dns.RR) error {
	if len(before) > 0 && len(after) > 0 && sameSet(before, after) {
		return nil
	}
	if len(before) > 0 {
		if err := d.add(z, &d.removed, before); err != nil {
			return err
		}
	}
	if len(after) > 0 {
		return d.add(z, &d.added, after)
	}
	return nil
}
