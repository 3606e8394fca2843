package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/refusal"
)

// Seal implements [stele.Store]. Every transaction that writes updates the row that has
// the seal, so those that did so before are over when the seal is there, and those that
// come after see it.
func (s *Store) Seal(ctx context.Context, reason string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(reason) > stele.MaxSeal {
		return refusal.SealReasonTooLong("seal", len(reason))
	}
	return s.tell(ctx, "seal", func(ctx context.Context, conn *pgxpool.Conn) error {
		_, err := conn.Exec(ctx, `UPDATE registry SET seal = $1 WHERE id = 1`, []byte(reason))
		return err
	})
}

// Ready implements [stele.Store].
func (s *Store) Ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var seal []byte
	err := s.tell(ctx, "ready", func(ctx context.Context, conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, `SELECT seal FROM registry WHERE id = 1`).Scan(&seal)
	})
	if err != nil {
		return err
	}
	return sealedError("ready", seal)
}

// tell does something on the primary that may be done twice, for as long as Wait allows.
func (s *Store) tell(ctx context.Context, op string, do func(context.Context, *pgxpool.Conn) error) error {
	if s.isClosed() {
		return closed(op)
	}
	whole, cancel := context.WithTimeout(ctx, s.o.Wait)
	defer cancel()
	defer context.AfterFunc(s.closing, cancel)()
	for pause := (pause{}); ; {
		err := s.tellOnce(whole, do)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case s.isClosed():
			return closed(op)
		case !isAgain(err) && !isAway(err):
			return sick(op, stele.ID{}, err)
		case !pause.sleep(whole):
			return refuse(op, stele.ID{}, stele.Unavailable, "store.primary-silent", "the primary database did not answer within {wait} ({cause}); writes wait for it, and fail until it is back", s.o.Wait, plain(err))
		}
	}
}

func (s *Store) tellOnce(ctx context.Context, do func(context.Context, *pgxpool.Conn) error) error {
	conn, err := s.writes.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	err = do(ctx, conn)
	if err == nil && takeDoubt(conn.Conn()) {
		err = errors.Join(errAgain, errUnknown)
	}
	if err != nil && isAway(err) {
		_ = conn.Conn().Close(ctx)
	}
	return err
}
