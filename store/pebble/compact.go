package pebble

import (
	"context"

	pebbledb "github.com/cockroachdb/pebble/v2"

	"github.com/stele-id/stele"
)

// Compact rewrites the cells, so that values of cells that were replaced or removed before
// the call are in no file of the store any more. It takes as long as it takes to write the
// cells; commits and reads continue meanwhile. Values that a read still sees that began
// before the last commit stay until it ends and Compact is called again.
func (s *Store) Compact(ctx context.Context) error {
	return s.scrub(ctx, "compact", []byte{familyCell}, []byte{familyCell + 1})
}

// scrub rewrites the tables of a range of keys, and wipes the logs that Pebble keeps for
// reuse.
func (s *Store) scrub(ctx context.Context, op string, from, to []byte) error {
	if err := s.takeTurn(ctx, s.moving, op); err != nil {
		return err
	}
	defer func() { <-s.moving }()
	return s.read(ctx, op, func(v *view) error {
		h := v.opening
		h.failstop.setWiping(true)
		defer h.failstop.setWiping(false)
		err := h.scrub(ctx, from, to)
		if cause := h.failstop.broken(); cause != nil {
			return refuse(op, stele.ID{}, stele.Unavailable, "store.write-failed-meanwhile", "a write failed meanwhile ({cause}); try again later", cause)
		}
		if err != nil && ctx.Err() == nil {
			return refuse(op, stele.ID{}, stele.Unavailable, "store.not-rewritten", "the store can't be rewritten: {cause}", err)
		}
		return err
	})
}

// scrub does it with Pebble. Each flush begins another log, for which Pebble takes one that
// it does not need any more, and the failstop wipes that. There are at most as many as Pebble
// keeps for reuse, and those of memtables that wait to be written.
func (h *opening) scrub(ctx context.Context, from, to []byte) error {
	defer h.merging().ask()()
	if err := h.db.Flush(); err != nil {
		return err
	}
	if err := h.db.Compact(ctx, from, to, false); err != nil {
		return err
	}
	for range 2 * (h.options.MemTableStopWritesThreshold + 1) {
		if err := ctx.Err(); err != nil {
			return err
		}
		// Even a flush of nothing begins another log, if something was written to this one.
		if err := h.db.LogData(nil, pebbledb.Sync); err != nil {
			return err
		}
		if err := h.db.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// setWiping says whether logs are wiped before Pebble uses them again.
func (f *failstop) setWiping(wiping bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wiping = wiping
}
