package pebble

import (
	"context"
	"errors"
	"fmt"

	pebbledb "github.com/cockroachdb/pebble/v2"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/refusal"
)

// firstGeneration gives a store its first generation, unless it has one.
func (s *Store) firstGeneration(h *opening) error {
	_, closer, err := h.db.Get(metaGenerations)
	if err == nil {
		return closer.Close()
	} else if !errors.Is(err, pebbledb.ErrNotFound) {
		return h.damage("open", stele.ID{}, err)
	}
	text, err := stele.FirstGeneration(s.now()).MarshalText()
	if err != nil {
		return err
	}
	return s.setMeta(h, map[string][]byte{string(metaGenerations): text})
}

// readGenerations reads the list from a state of Pebble.
func readGenerations(db pebbledb.Reader) (list stele.Generations, err error) {
	value, closer, err := db.Get(metaGenerations)
	if errors.Is(err, pebbledb.ErrNotFound) {
		return nil, list.UnmarshalText(nil) // which says that it is damaged
	} else if err != nil {
		return nil, err
	}
	defer closer.Close()
	return list, list.UnmarshalText(value)
}

// readGeneration reads the present generation when Pebble was opened.
func readGeneration(db *pebbledb.DB) (stele.GenerationID, error) {
	list, err := readGenerations(db)
	return list.Last().ID, err
}

// Position implements [stele.Store].
func (s *Store) Position(ctx context.Context) (p stele.Position, err error) {
	err = s.read(ctx, "changes", func(v *view) error {
		p = stele.Position{Generation: v.generation, Change: v.seq}
		return nil
	})
	return p, err
}

// Generations implements [stele.Store].
func (s *Store) Generations(ctx context.Context) (list stele.Generations, err error) {
	err = s.read(ctx, "generations", func(v *view) error {
		if list, err = readGenerations(v.snap); err != nil {
			return v.opening.damage("generations", stele.ID{}, err)
		}
		return nil
	})
	return list, err
}

// generationChange is another list of generations on its way to the committer.
type generationChange struct {
	present stele.GenerationID
	next    stele.GenerationID
	text    []byte
}

// SetGenerations implements [stele.Store]. The committer writes the list between two
// groups, as it does with a seal.
func (s *Store) SetGenerations(ctx context.Context, present stele.GenerationID, list stele.Generations) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	text, err := list.MarshalText()
	if err != nil {
		return err
	}
	change := &generationChange{present, list.Last().ID, text}
	return s.submit(ctx, "set generations", &request{done: make(chan error, 1), generations: change})
}

// finishGenerations is the committer's part. It returns the new state.
func (s *Store) finishGenerations(change *generationChange) (v *view, err error) {
	const op = "set generations"
	if err := s.writable(op, 0); err != nil {
		return nil, err
	}
	h := s.current.Load()
	if !h.begin() {
		return nil, s.stopped(op) // another opening is replacing this one
	}
	defer h.end()
	if err := h.sealed(op); err != nil {
		return nil, err
	}
	if h.generation != change.present {
		return nil, refusal.GenerationDiffers(op, h.generation, change.present)
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
		if err != nil {
			h.failstop.freeze(err)
			v, err = nil, refuse(op, stele.ID{}, stele.Unavailable, "store.generation-outcome-unknown", "it is unknown whether the generation was kept ({cause}); look before you try again", err)
		}
	}()
	err = h.db.Set(metaGenerations, change.text, pebbledb.Sync)
	if err == nil {
		err = h.failstop.broken()
	}
	if err != nil {
		return nil, err
	}
	h.generation = change.next
	return h.newView(h.seq), nil
}
