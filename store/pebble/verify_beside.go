package pebble

import (
	"bytes"
	"cmp"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/fault"
)

// told is what the checkers of all parts share.
type told struct {
	mu       sync.Mutex
	report   func(*stele.Message)
	progress func(float64)

	entries, walked atomic.Uint64 // that the tables have, and that were looked at
}

// problem reports one.
func (t *told) problem(m *stele.Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report(m)
}

// advance tells which part is done.
func (t *told) advance(done float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.progress(done)
}

// beside calls functions beside each other, as many as there are processors, each with a checker of its own, and then adds up what
// these have found. When the context has ended it calls no more, and returns the context's error; else it returns the first error of a
// function. A panic of one is an error.
func (c *checker) beside(parts ...func(c *checker) error) error {
	forks, errs := make([]*checker, len(parts)), make([]error, len(parts))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(parts)) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(parts)) && c.ctx.Err() == nil; i = next.Add(1) - 1 {
				forks[i] = &checker{ctx: c.ctx, s: c.s, v: c.v, told: c.told, seed: c.seed, damaged: c.damaged}
				errs[i] = forks[i].try(parts[i])
			}
		})
	}
	workers.Wait()
	for _, f := range forks {
		if f != nil {
			c.add(f)
		}
	}
	if err := c.ctx.Err(); err != nil {
		return err
	}
	return cmp.Or(errs...)
}

// try calls a function. If it panics, it is as if it had returned an error.
func (c *checker) try(part func(c *checker) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.Error("verify", p)
		}
	}()
	return part(c)
}

// add adds what another checker has found.
func (c *checker) add(f *checker) {
	c.damaged = c.damaged || f.damaged
	for _, pair := range [][2]*balance{{&c.aliases, &f.aliases}, {&c.pointers, &f.pointers}, {&c.versions, &f.versions}, {&c.marked, &f.marked}} {
		pair[0].must += pair[1].must
		pair[0].have += pair[1].have
		pair[0].n += pair[1].n
	}
	if f.counts != nil {
		if c.counts == nil {
			c.counts = make(map[stele.NamespaceKey]uint64)
		}
		maps.Copy(c.counts, f.counts) // one part counts
	}
}

// nameParts is into how many parts the names are cut at most. Parts are not equally large, so there are more than processors.
const nameParts = 32

// nameRanges cuts the keys of names into ranges, about where tables begin: each ends where the next one begins.
func (c *checker) nameRanges() (ends [][]byte) {
	last := []byte{familyName + 1}
	if !c.v.begin() {
		return [][]byte{last} // to read it fails, too
	}
	defer c.v.end()
	levels, err := c.v.opening.db.SSTables()
	if err != nil {
		return [][]byte{last} // a table is missing, as was said
	}
	for _, t := range slices.Concat(levels...) {
		key := t.Smallest.UserKey
		if len(key) == 0 || key[0] != familyName {
			continue
		}
		if _, _, err := cutSchemed(key[1:]); err == nil {
			ends = append(ends, bytes.Clone(key))
		}
	}
	slices.SortFunc(ends, bytes.Compare)
	ends = slices.CompactFunc(ends, bytes.Equal)
	if every := (len(ends) + nameParts - 1) / nameParts; every > 1 {
		some := ends[:0]
		for i := 0; i < len(ends); i += every {
			some = append(some, ends[i])
		}
		ends = some
	}
	return append(ends, last)
}

// historyEnd returns where the history begins of the names from a key on, which nameRanges returned.
func historyEnd(key []byte) []byte {
	scheme, text, err := cutSchemed(key[1:])
	if err != nil {
		return []byte{familyHistory + 1} // it is the end of all names
	}
	return appendEnded(append(append([]byte{familyHistory}, scheme...), 0), text)
}
