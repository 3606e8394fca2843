package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stele-id/stele"
)

// If a connection breaks during a commit, it is unknown whether the transaction was
// committed. So each transaction signs: it counts up the row of its writer, of which each
// committer has one under a random name. The store asks for the row afterwards, on a new
// connection and in order to write it. It waits until the old transaction is over, in case
// it is still under way, and then knows by the number. The answer is itself committed, and
// so it is not given before the old transaction is as durable, on a synchronous standby
// for example, as any other.
const (
	sqlSign = `INSERT INTO writers (id, done, at) VALUES ($1, $2, $3)
		ON CONFLICT (id) DO UPDATE SET done = excluded.done, at = excluded.at`
	sqlFindOut = `INSERT INTO writers (id, done, at) VALUES ($1, $2, $3)
		ON CONFLICT (id) DO UPDATE SET at = excluded.at RETURNING done`
	sqlLeave = `DELETE FROM writers WHERE id = ANY($1) OR at < $2`
)

// writer commits transactions, one after the other.
type writer struct {
	id   []byte
	done int64 // how many were committed
	wary int   // ingests to come that look which names are taken
}

func newWriter() *writer { return &writer{id: []byte(rand.Text())} }

// errUnknown says that a transaction may have been committed.
var errUnknown = stele.Messagef("commit.connection-lost", "the connection was lost while the database committed")

// finish commits the transaction.
func (g *group) finish(ctx context.Context, conn *pgxpool.Conn) error {
	tag, err := conn.Exec(ctx, `COMMIT`)
	switch code := codeOf(err); {
	case err != nil && (code == "" || isAway(err) || code == "40003"): // 40003: the server does not know either
		_ = conn.Conn().Close(ctx)
		return errors.Join(errUnknown, err)
	case err != nil:
		return g.abort(conn, err)
	case tag.String() != "COMMIT":
		return errAgain // it was rolled back
	case takeDoubt(conn.Conn()):
		return errUnknown
	}
	g.writer.done++
	g.store.apply(g.last)
	return nil
}

// findOut finds out whether the last transaction was committed. The error is of kind
// Unavailable if the database does not answer that.
func (g *group) findOut(cause error) (committed bool, err error) {
	s, w := g.store, g.writer
	ctx, cancel := context.WithTimeout(context.Background(), s.o.Wait)
	defer cancel()
	for pause := (pause{}); pause.sleep(ctx); {
		done, err := s.askWriter(ctx, w)
		if err == nil && done > w.done {
			w.done++
			s.apply(g.last)
			return true, nil
		} else if err == nil {
			return false, nil
		}
		cause = err
	}
	// Whatever became of it, the store never asks for it by this name again.
	*w = *newWriter()
	return false, refuse("commit", stele.ID{}, stele.Unavailable, "commit.database-lost", "the database was lost while it committed, and it is unknown whether it did; look before you try again: {cause}", plain(errors.Join(errUnknown, cause)))
}

func (s *Store) askWriter(ctx context.Context, w *writer) (done int64, err error) {
	conn, err := s.writes.Acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Release()
	err = conn.QueryRow(ctx, sqlFindOut, w.id, w.done, s.o.Now()).Scan(&done)
	if err == nil && takeDoubt(conn.Conn()) {
		err = errUnknown
	}
	if err != nil && isAway(err) {
		_ = conn.Conn().Close(ctx)
	}
	return done, err
}

// oldWriter is after how long the row of a writer whose process died is removed.
const oldWriter = 30 * 24 * time.Hour

// leave removes the rows of this store's writers, and of those that died long ago. They
// are small: it does not matter if that fails.
func (s *Store) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), s.o.Wait/4)
	defer cancel()
	var ids [][]byte
	for _, w := range s.writers {
		ids = append(ids, w.id)
	}
	for range ingesters {
		ids = append(ids, (<-s.ingesting).id)
	}
	if s.applied.Load() == 0 {
		return // most likely none of them ever wrote
	}
	_, _ = s.writes.Exec(ctx, sqlLeave, ids, s.o.Now().Add(-oldWriter))
}
