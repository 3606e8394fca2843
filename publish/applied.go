package publish

import (
	"context"
	"sync"

	"github.com/stele-id/stele"
)

// lookEvery is how many records are noted before the caller should call look.
const lookEvery = 1024

// applied knows up to which change chains of names have everything. A change is in the feed
// a moment before its writer calls Invalidate, and a reader in between must not take a
// chain for the current one.
type applied struct {
	mu    sync.Mutex
	on    bool
	upTo  uint64
	done  map[stele.ID]uint64 // versions of which the chains know
	older map[stele.ID]uint64 // the same, of changes up to by
	by    uint64
	since int // records noted since the last look
}

// begin begins to keep track, unless it has begun already. Whatever is committed from now
// on has to be noted.
func (a *applied) begin(ctx context.Context, store Store) (last uint64, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	begun := a.on
	a.on = true
	if last, err = store.LastChange(ctx); err != nil {
		a.on = begun
		return 0, err
	}
	if !begun {
		a.upTo, a.done, a.older, a.by = last, make(map[stele.ID]uint64), nil, last
	}
	return last, nil
}

// note notes that chains know of a record in a version, and reports whether the caller
// should call look.
func (a *applied) note(r *stele.Record) (look bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.on {
		return false
	}
	a.done[r.ID] = max(a.done[r.ID], r.Version)
	a.since++
	return a.since >= lookEvery
}

// look returns up to which change everything is known.
func (a *applied) look(ctx context.Context, store Store) (uint64, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.since = 0
	if !a.on {
		return 0, nil
	}
	last, err := store.LastChange(ctx)
	if err != nil {
		return 0, err
	}
	for c, err := range store.Changes(ctx, a.upTo) {
		if err != nil {
			return 0, err
		}
		if c.ID.IsValid() && max(a.done[c.ID], a.older[c.ID]) < c.Version {
			break
		}
		a.upTo = c.Seq
	}
	a.drop(last)
	return a.upTo, nil
}

// drop forgets the records that every chain has. A record may be noted once more when its
// change was passed already: the follower of the feed notes local writes too. So it does
// not matter when a record was met in the feed, but that it was noted before last was read:
// it is of that change at most. Where the store is a copy that lags, all is begun anew
// afterwards; see InvalidateAll.
func (a *applied) drop(last uint64) {
	if a.upTo >= a.by {
		a.older, a.by, a.done = a.done, last, make(map[stele.ID]uint64)
	}
	if a.upTo >= a.by {
		a.older = nil
	}
}

// end ends keeping track: there are no chains any more of which something is known.
func (a *applied) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.on, a.upTo, a.done, a.older, a.by, a.since = false, 0, nil, nil, 0, 0
}
