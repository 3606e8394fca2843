package dnsd

import (
	"context"
	"sync"

	"github.com/stele-id/stele"
)

// lookEvery is how many records are noted before it is looked how far all are.
const lookEvery = 1024

// applied knows up to which change chains of names have everything. A change is in the
// feed a moment before those who committed it say so, and who comes in between must not
// take a chain for one of now.
type applied struct {
	mu    sync.Mutex
	on    bool
	upTo  uint64
	done  map[stele.ID]uint64 // versions behind that of which the chains know
	since int                 // records since it was looked
}

// begin begins to keep track, if nobody did. Whatever is committed from now on has to be
// noted.
func (a *applied) begin(ctx context.Context, store stele.Store) (last uint64, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	begun := a.on
	a.on = true
	if last, err = store.LastChange(ctx); err != nil {
		a.on = begun
		return 0, err
	}
	if !begun {
		a.upTo, a.done = last, make(map[stele.ID]uint64)
	}
	return last, nil
}

// note notes that chains know of a record in a version, and reports whether somebody
// should look.
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
func (a *applied) look(ctx context.Context, store stele.Store) (uint64, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.since = 0
	if !a.on {
		return 0, nil
	}
	for c, err := range store.Changes(ctx, a.upTo) {
		if err != nil {
			return 0, err
		}
		if c.ID.IsValid() {
			known := a.done[c.ID]
			if known < c.Version {
				break
			}
			if known == c.Version {
				delete(a.done, c.ID)
			}
		}
		a.upTo = c.Seq
	}
	return a.upTo, nil
}
