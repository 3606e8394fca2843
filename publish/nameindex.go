package publish

import (
	"context"
	"fmt"
	"hash/maphash"
	"strings"
	"sync"

	"github.com/stele-id/stele"
)

// maxIndex is how many entries the index of a zone has: some 200 MB at worst.
const maxIndex = 4 << 20

// nameIndex knows what can't be looked up in a store in time: which names of a zone have
// something below them only because of aliases or of dots in the last part of a
// name, and the aliases in namespaces where case counts. The reader fills it from the
// whole registry once, and every commit is added after that. It forgets nothing: a name
// under which everything has become invisible since is answered as an empty one.
//
// It takes 8 bytes or so for a name, and stops at 4 million; then all names that are
// not known otherwise count as empty ones.
type nameIndex struct {
	shape string // what it was made for; see indexShape
	seed  maphash.Seed
	ready chan struct{} // closed when all of the registry is in it

	mu      sync.RWMutex
	above   map[uint64]struct{}   // hashes of names with something below them
	aliases map[uint64][]stele.ID // by hashes of owner names
	full    bool
}

// newNameIndex makes the index of a zone. A zone without owner names of identifiers
// needs nothing in it.
func newNameIndex(z *Zone) *nameIndex {
	x := &nameIndex{shape: z.indexShape(), seed: maphash.MakeSeed(), ready: make(chan struct{}), above: make(map[uint64]struct{}), aliases: make(map[uint64][]stele.ID)}
	if z.mapping == nil {
		close(x.ready)
	}
	return x
}

// indexShape is all that the index of a zone depends on beside the records of the
// registry: how names are cut, and which of them are in the zone.
func (z *Zone) indexShape() string {
	var b strings.Builder
	fmt.Fprintln(&b, z.Name, z.ns.Scheme, z.ns.Prefix)
	if z.mapping == nil {
		return b.String()
	}
	for _, ns := range z.set.under(z.ns) {
		p := &ns.Publication
		fmt.Fprintf(&b, "%q %t %q %s %q %d\n", ns.Prefix, hasDestination(ns), p.Zone, p.Layout, p.Separator, p.Parts)
	}
	return b.String()
}

func (x *nameIndex) hash(name string) uint64 { return maphash.String(x.seed, name) }

// isReady reports whether all of the registry is in the index.
func (x *nameIndex) isReady() bool { return isClosed(x.ready) }

// await waits until all of the registry is in the index.
func (x *nameIndex) await(ctx context.Context) error { return await(ctx, x.ready) }

// isClosed reports whether a channel on which nothing is sent is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// await waits until a channel is closed. Unavailable if ctx ends first.
func await(ctx context.Context, c <-chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return &stele.Error{Op: "look up", Kind: stele.Unavailable, Err: stele.Messagef("zone.names-being-read", "the names of the registry are being read; try again in a minute: {cause}", ctx.Err())}
	}
}

// isAbove reports whether a name has something below it.
func (x *nameIndex) isAbove(name string) bool {
	h := x.hash(name)
	x.mu.RLock()
	defer x.mu.RUnlock()
	_, ok := x.above[h]
	return ok || x.full
}

// aliasesAt returns the aliases whose owner name it is.
func (x *nameIndex) aliasesAt(name string) []stele.ID {
	h := x.hash(name)
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.aliases[h]
}

// addToIndexes adds what is to be known of a record to the indexes of its zones.
func (s *zoneSet) addToIndexes(r *stele.Record) {
	if !isVisible(r) {
		return
	}
	for i, id := range r.Names() {
		z := s.zoneOf(id)
		if z == nil || z.mapping == nil {
			continue
		}
		owner, reason := z.mapping.Owner(id.String())
		if reason == nil {
			z.index.addName(z, owner, id, i > 0)
		}
	}
}

// addName takes up an owner name.
func (x *nameIndex) addName(z *Zone, owner string, id stele.ID, alias bool) {
	labels := strings.Count(owner, ".") - strings.Count(z.Name, ".")
	levels := labels - z.mapping.Parts // those that dots make
	if alias {
		levels = labels - 1
	}
	keep := alias && z.mapping.Tells(id.String())
	if levels == 0 && !keep {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.above)+len(x.aliases) >= maxIndex {
		x.full = true
		return
	}
	if keep {
		x.addAlias(owner, id)
	}
	for range levels {
		_, owner, _ = strings.Cut(owner, ".")
		x.above[x.hash(owner)] = struct{}{}
	}
}

func (x *nameIndex) addAlias(owner string, id stele.ID) {
	h := x.hash(owner)
	list := x.aliases[h]
	for _, have := range list {
		if have == id {
			return
		}
	}
	// A new list: the old one may be in use.
	x.aliases[h] = append(list[:len(list):len(list)], id)
}
