package mem

import (
	"context"
	"time"

	"github.com/stele-id/stele"
)

// These stores are broken in how they keep generations.

// usurping replaces the list of generations for every caller.
type usurping struct{ stele.Store }

func (b usurping) SetGenerations(ctx context.Context, _ stele.GenerationID, list stele.Generations) error {
	have, err := b.Store.Generations(ctx)
	if err != nil {
		return err
	}
	return b.Store.SetGenerations(ctx, have.Last().ID, list)
}

// newborn gives what it opens a generation of its own.
func newborn(s stele.Store) stele.Store {
	ctx := context.Background()
	list, err := s.Generations(ctx)
	if err != nil {
		panic(err)
	}
	if err := s.SetGenerations(ctx, list.Last().ID, stele.FirstGeneration(time.Now())); err != nil {
		panic(err)
	}
	return s
}

// absent does not say with the position which generation it is of.
type absent struct{ stele.Store }

func (b absent) Position(ctx context.Context) (stele.Position, error) {
	p, err := b.Store.Position(ctx)
	return stele.Position{Change: p.Change}, err
}
