package mem

import (
	"context"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/refusal"
)

const opSeal = "seal"

// Seal implements [stele.Store].
func (s *Store) Seal(ctx context.Context, reason string) error {
	if len(reason) > stele.MaxSeal {
		return refusal.SealReasonTooLong(opSeal, len(reason))
	}
	return s.write(ctx, opSeal, func(st *state, _ time.Time) error {
		st.seal = reason
		return ctx.Err()
	})
}

// Sealed implements [stele.Store].
func (s *Store) Sealed(ctx context.Context) (string, error) {
	st, err := s.view(ctx, opSeal)
	if err != nil {
		return "", err
	}
	return st.seal, nil
}

// checkSeal refuses writes to a store that is sealed.
func (st *state) checkSeal(op string) error {
	if st.seal == "" {
		return nil
	}
	return refusal.Sealed(op, st.seal)
}
