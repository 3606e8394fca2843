package dnsd

import (
	"context"
	"errors"
	"hash/maphash"
	"strings"
	"sync"
	"time"

	"github.com/stele-id/stele"
)

// Bounds of the index.
const (
	maxIndex    = 4 << 20 // entries: some 200 MB at worst
	indexAtOnce = 5000    // records that are read before the first answer; more are read beside it
	indexAgain  = 10 * time.Second
)

// nameIndex knows what can't be looked up in a store in time: which names have
// something below them only because of aliases or of dots in the last part of a
// name, and the aliases in namespaces where case counts. It is read from the whole
// registry once, and told of every change after that. It forgets nothing: a name
// under which everything has become invisible since is answered as an empty one.
//
// It takes 8 bytes or so for a name, and stops at 4 million; then all names that are
// not known otherwise count as empty ones.
type nameIndex struct {
	seed maphash.Seed

	mu      sync.RWMutex
	above   map[uint64]struct{}   // hashes of names with something below them
	aliases map[uint64][]stele.ID // by hashes of owner names
	ready   bool
	full    bool
}

func newNameIndex() *nameIndex {
	return &nameIndex{seed: maphash.MakeSeed(), above: make(map[uint64]struct{}), aliases: make(map[uint64][]stele.ID)}
}

func (x *nameIndex) hash(name string) uint64 { return maphash.String(x.seed, name) }

// isReady reports whether all of the registry is in the index.
func (x *nameIndex) isReady() bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.ready
}

func (x *nameIndex) setReady() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ready = true
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

// add takes up what is to be known of a record.
func (x *nameIndex) add(set *zoneSet, r *stele.Record) {
	if !isVisible(r) {
		return
	}
	for i, id := range r.Names() {
		z := set.zoneOf(id)
		if z == nil || z.cut == nil {
			continue
		}
		owner, reason := z.cut.owner(id.String())
		if reason == "" {
			x.addName(z, owner, id, i > 0)
		}
	}
}

// addName takes up an owner name.
func (x *nameIndex) addName(z *zone, owner string, id stele.ID, alias bool) {
	labels := strings.Count(owner, ".") - strings.Count(z.name, ".")
	levels := labels - z.cut.parts // those that dots make
	if alias {
		levels = labels - 1
	}
	keep := alias && z.cut.tells(id.String())
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

// errEnough says that more records are left.
var errEnough = errors.New("enough")

// read takes up all records, or so many at most if that is not 0: then errEnough may
// be the answer.
func (x *nameIndex) read(ctx context.Context, z *Zones, set *zoneSet, most int) error {
	n := 0
	for scheme := range z.schemes.All() {
		for r, err := range z.store.Scan(ctx, scheme.Name(), "", "") {
			if err != nil {
				return err
			}
			if n++; most > 0 && n > most {
				return errEnough
			}
			x.add(set, r)
		}
	}
	x.setReady()
	return nil
}

// fill reads the index of a set: at once if the registry is small, otherwise while
// answers are given already.
func (z *Zones) fill(ctx context.Context, set *zoneSet) error {
	err := set.index.read(ctx, z, set, indexAtOnce)
	if err == nil {
		z.complete()
	}
	if err != errEnough {
		return err
	}
	z.beside(func(ctx context.Context) error { return set.index.read(ctx, z, set, 0) })
	return nil
}

// fillChain is fill for the chain of a zone.
func (z *Zones) fillChain(ctx context.Context, one *zone) error {
	err := one.fillChain(ctx, indexAtOnce)
	if err != errEnough {
		return err
	}
	z.beside(func(ctx context.Context) error { return one.fillChain(ctx, 0) })
	return nil
}

// beside reads names while answers are given, until it has read them all.
func (z *Zones) beside(read func(ctx context.Context) error) {
	z.work.Go(func() {
		for {
			err := read(z.life)
			if err == nil {
				z.complete()
				return
			}
			if z.life.Err() == nil {
				z.log.Warn("names could not be read; trying again", "error", err)
			}
			select {
			case <-z.life.Done():
				return
			case <-time.After(indexAgain):
			}
		}
	})
}

// complete says that the index is complete: who was told before that a name is empty
// may have been told wrongly.
func (z *Zones) complete() {
	z.changed.Add(1)
	z.tell(nil)
}
