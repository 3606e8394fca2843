package mem

import (
	"context"
	"slices"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/refusal"
)

// Position implements [stele.Store].
func (s *Store) Position(ctx context.Context) (stele.Position, error) {
	st, err := s.view(ctx, "changes")
	if err != nil {
		return stele.Position{}, err
	}
	return stele.Position{Generation: st.generations.Last().ID, Change: uint64(len(st.journal))}, nil
}

// Generations implements [stele.Store].
func (s *Store) Generations(ctx context.Context) (stele.Generations, error) {
	st, err := s.view(ctx, "generations")
	if err != nil {
		return nil, err
	}
	return slices.Clone(st.generations), nil
}

// SetGenerations implements [stele.Store].
func (s *Store) SetGenerations(ctx context.Context, present stele.GenerationID, list stele.Generations) error {
	const op = "set generations"
	if err := list.Check(); err != nil {
		return err
	}
	return s.write(ctx, op, func(st *state, _ time.Time) error {
		if have := st.generations.Last().ID; have != present {
			return refusal.GenerationDiffers(op, have, present)
		}
		st.generations = slices.Clone(list)
		for i := range st.generations {
			g := &st.generations[i]
			g.Began = g.Began.Truncate(time.Microsecond).UTC()
		}
		return ctx.Err()
	})
}
