package postgres

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/refusal"
)

// Position implements [stele.Store].
func (s *Store) Position(ctx context.Context) (stele.Position, error) {
	var last int64
	var text []byte
	_, err := s.one(ctx, "changes", stele.ID{}, `SELECT last, generations FROM registry WHERE id = $1`, 1, &last, &text)
	if err != nil {
		return stele.Position{}, err
	}
	var list stele.Generations
	if err := list.UnmarshalText(text); err != nil {
		return stele.Position{}, damaged("changes", stele.ID{}, err)
	}
	return stele.Position{Generation: list.Last().ID, Change: uint64(last)}, nil
}

// Generations implements [stele.Store].
func (s *Store) Generations(ctx context.Context) (list stele.Generations, err error) {
	var text []byte
	if _, err := s.one(ctx, "generations", stele.ID{}, `SELECT generations FROM registry WHERE id = $1`, 1, &text); err != nil {
		return nil, err
	}
	if err := list.UnmarshalText(text); err != nil {
		return nil, damaged("generations", stele.ID{}, err)
	}
	return list, nil
}

// SetGenerations implements [stele.Store]. Every transaction that writes updates the row
// that has the list.
func (s *Store) SetGenerations(ctx context.Context, present stele.GenerationID, list stele.Generations) error {
	const op = "set generations"
	if err := ctx.Err(); err != nil {
		return err
	}
	next, err := list.MarshalText()
	if err != nil {
		return err
	}
	have, err := s.Generations(ctx)
	if err != nil {
		return err
	}
	before, err := have.MarshalText()
	if err != nil {
		return err
	}
	if have.Last().ID != present {
		return otherGeneration(op, have.Last().ID, present)
	}
	done := false
	err = s.tell(ctx, op, func(ctx context.Context, conn *pgxpool.Conn) error {
		tag, err := conn.Exec(ctx, `UPDATE registry SET generations = $1 WHERE id = 1 AND seal = '' AND generations IN ($1, $2)`, next, before)
		done = tag.RowsAffected() == 1
		return err
	})
	if err != nil || done {
		return err
	}
	if err := s.Ready(ctx); err != nil {
		return err
	}
	if have, err = s.Generations(ctx); err != nil {
		return err
	}
	return otherGeneration(op, have.Last().ID, present)
}

func otherGeneration(op string, have, present stele.GenerationID) error {
	return refusal.GenerationDiffers(op, have, present)
}
