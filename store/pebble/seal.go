package pebble

import (
	"context"
	"fmt"

	pebbledb "github.com/cockroachdb/pebble/v2"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/refusal"
)

// Seal implements [stele.Store]. The committer seals between two groups, when nothing
// is under way.
func (s *Store) Seal(ctx context.Context, reason string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(reason) > stele.MaxSeal {
		return refusal.SealReasonTooLong("seal", len(reason))
	}
	return s.submit(ctx, "seal", &request{done: make(chan error, 1), seal: &reason})
}

// finishSeal is the committer's part. It returns the new state.
func (s *Store) finishSeal(reason string) (v *view, err error) {
	if err := s.writable("seal", 0); err != nil {
		return nil, err
	}
	h := s.current.Load()
	if !h.begin() {
		return nil, s.stopped("seal") // another opening is replacing this one
	}
	defer h.end()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
		if err != nil {
			h.failstop.freeze(err)
			v, err = nil, refuse("seal", stele.ID{}, stele.Unavailable, "store.seal-outcome-unknown", "it is unknown whether the store is sealed now ({cause}); look before you try again", err)
		}
	}()
	if reason == "" {
		err = h.db.Delete(metaSeal, pebbledb.Sync)
	} else {
		err = h.db.Set(metaSeal, []byte(reason), pebbledb.Sync)
	}
	if err == nil {
		err = h.failstop.broken()
	}
	if err != nil {
		return nil, err
	}
	h.seal = reason
	return h.newView(h.seq), nil
}

// Sealed implements [stele.Store].
func (s *Store) Sealed(ctx context.Context) (reason string, err error) {
	err = s.lookUp(ctx, "look at the seal", metaSeal, func(value []byte) error {
		reason = string(value)
		return nil
	})
	return reason, err
}

// readSeal reads the seal when Pebble was opened.
func readSeal(db *pebbledb.DB) (string, error) {
	f, err := newFinder(db)
	if err != nil {
		return "", err
	}
	defer f.close()
	value, err := f.find(metaSeal)
	return string(value), err
}

// sealed refuses writes if there is a seal.
func (h *opening) sealed(op string) error { return sealedFor(op, h.seal) }

func sealedFor(op, reason string) error {
	if reason == "" {
		return nil
	}
	return refusal.Sealed(op, reason)
}
