package nsec3

import (
	"bytes"
	"maps"
	"slices"
	"strings"
)

// Watch notes which names of a chain change, with the types that their links had when it
// began.
type Watch struct {
	chain *Chain
	was   map[string][]uint16
}

// Watch begins to note what changes. The caller ends it with [Watch.Stop].
func (c *Chain) Watch() *Watch {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &Watch{c, make(map[string][]uint16)}
	c.watches = append(c.watches, w)
	return w
}

// Stop ends the watch.
func (w *Watch) Stop() {
	c := w.chain
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watches = slices.DeleteFunc(c.watches, func(other *Watch) bool { return other == w })
}

// Watches returns how many watches of the chain are under way.
func (c *Chain) Watches() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.watches)
}

// Change is a link that differs between two states of a chain: nil where there is none.
type Change struct{ Before, After *Link }

// Delta returns the links that differ between two states of a zone, in order. before and
// after have the types of the records at all names at which one of the states is not as the
// chain was when the watch began. What changed since then is undone for both.
func (w *Watch) Delta(zone string, before, after map[string][]uint16) (list []Change) {
	c := w.chain
	c.mu.RLock()
	defer c.mu.RUnlock()
	was, is := c.former(zone, w.with(before)), c.former(zone, w.with(after))
	touched := make(map[Hash]bool)
	for _, one := range []*formerChain{was, is} {
		for h := range one.was {
			touched[h] = true
			for _, f := range []*formerChain{was, is} {
				if front, ok := f.neighbour(h, true); ok {
					touched[front] = true
				}
			}
		}
	}
	for _, h := range slices.SortedFunc(maps.Keys(touched), compareHashes) {
		l := Change{was.link(h), is.link(h)}
		if l.Before == nil || l.After == nil || l.Before.Next != l.After.Next || !slices.Equal(l.Before.Types, l.After.Types) {
			list = append(list, l)
		}
	}
	return list
}

// with returns the types of links at names with these types, and at those that were set
// since the watch began. The caller holds the lock of the chain.
func (w *Watch) with(then map[string][]uint16) map[string][]uint16 {
	all := maps.Clone(w.was)
	for name, types := range then {
		all[name] = Types(types)
	}
	return all
}

// formerly is what an entry of a chain was before some changes.
type formerly struct {
	exists bool
	types  []uint16
}

// formerChain is a chain as it was: as it is now, except for some entries.
type formerChain struct {
	now  *Chain
	was  map[Hash]formerly // of the entries that were not there, or were different
	gone []Hash            // those that no longer exist, in order
}

func compareHashes(a, b Hash) int { return bytes.Compare(a[:], b[:]) }

// former returns the chain of a zone as it was when links had these types at some names,
// and at the others those that they have now. The caller holds the lock.
func (c *Chain) former(zone string, then map[string][]uint16) *formerChain {
	f := &formerChain{now: c, was: make(map[Hash]formerly)}
	fewer := make(map[string]int64) // names that were below a name, and are not counted now
	for owner, types := range then {
		came := 0
		if l, _ := c.entryOf(owner); l.kind != 0 {
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
		l, exists := c.entryOf(name)
		types, ok := then[name]
		if !ok {
			types = c.kinds[l.kind]
		}
		was := formerly{len(types) > 0 || int64(l.below)-n > 0, types}
		if was.exists == exists && slices.Equal(types, c.kinds[l.kind]) {
			continue
		}
		h := HashName(name)
		f.was[h] = was
		if !exists {
			f.gone = append(f.gone, h)
		}
	}
	slices.SortFunc(f.gone, compareHashes)
	return f
}

// entryOf returns the entry of a name; an empty one if the name does not exist. The caller
// holds the lock.
func (c *Chain) entryOf(name string) (l entry, exists bool) {
	h := HashName(name)
	page, i, found := c.place(&h)
	if !found {
		return l, false
	}
	return c.pages[page][i], true
}

// link returns the link of a hash; nil if there was none.
func (f *formerChain) link(h Hash) *Link {
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
	return &Link{h, next, was.types}
}

// neighbour returns the hash that followed another one, or with back was before it.
func (f *formerChain) neighbour(h Hash, back bool) (Hash, bool) {
	var found Hash
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

// goneBeside is neighbour among those that no longer exist.
func (f *formerChain) goneBeside(h Hash, back bool) Hash {
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
func isNearer(h, a, b Hash, back bool) bool {
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
func flipped(h Hash) Hash {
	for i := range h {
		h[i] = ^h[i]
	}
	return h
}
