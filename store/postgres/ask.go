package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stele-id/stele"
)

// pause is the time between attempts: none at first, then longer and longer, and
// random, so that two waiting callers do not retry together.
type pause struct{ tries int }

const (
	shortPause = 10 * time.Millisecond
	longPause  = 250 * time.Millisecond
)

// sleep waits. It reports whether the context has not ended.
func (p *pause) sleep(ctx context.Context) bool {
	p.tries++
	if p.tries == 1 {
		return ctx.Err() == nil
	}
	d := min(longPause, shortPause<<min(p.tries-2, 10))
	t := time.NewTimer(d/2 + rand.N(d))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// lag is since when the primary is unavailable.
type lag struct {
	mu    sync.Mutex
	yes   bool
	since time.Time
}

// Lagging reports whether the primary is unavailable, and since when: reads come from a
// standby then, which may lag, or fail.
func (s *Store) Lagging() (since time.Time, yes bool) {
	s.lag.mu.Lock()
	defer s.lag.mu.Unlock()
	return s.lag.since, s.lag.yes
}

// lose notes that the primary is unavailable, and probes it until it is back.
func (s *Store) lose(cause error) {
	s.lag.mu.Lock()
	defer s.lag.mu.Unlock()
	if s.lag.yes || s.isClosed() {
		return
	}
	s.lag.yes, s.lag.since = true, s.o.Now()
	s.o.Log.Warn("the primary database is away; reads come from a standby if there is one", "err", plain(cause))
	s.workers.Go(s.watch)
}

// watch asks the primary again and again.
func (s *Store) watch() {
	for pause := (pause{tries: 1}); pause.sleep(s.closing); {
		ctx, cancel := context.WithTimeout(s.closing, s.o.Wait)
		err := checkVersion(ctx, s.o, s.reads)
		cancel()
		if _, own := asOwn(err); err != nil && !own {
			continue
		}
		s.lag.mu.Lock()
		s.lag.yes = false
		s.lag.mu.Unlock()
		s.o.Log.Info("the primary database is back")
		return
	}
}

// asOwn returns the error of this program in err's chain.
func asOwn(err error) (*stele.Error, bool) { return errors.AsType[*stele.Error](err) }

// question is something that is asked of the database. It may keep the connection, which
// it then has to release, if there is no error.
type question func(ctx context.Context, conn *pgxpool.Conn) (keep bool, err error)

// ask asks the primary, or another server while the primary is unavailable, for as long
// as Wait allows. Nearly always the first attempt is the only one.
func (s *Store) ask(ctx context.Context, op string, id stele.ID, q question) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.isClosed() {
		return closed(op)
	}
	err := s.attempt(ctx, s.server(), q)
	if err = s.settle(ctx, op, id, err); !isPassing(err) {
		return err
	}
	whole, cancel := context.WithTimeout(ctx, s.o.Wait*2/3)
	defer cancel()
	defer context.AfterFunc(s.closing, cancel)()
	for pause := (pause{}); pause.sleep(whole); {
		next := s.settle(ctx, op, id, s.attempt(whole, s.server(), q))
		if !isPassing(next) {
			return next
		}
		if whole.Err() == nil {
			err = next
		}
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case s.isClosed():
		return closed(op)
	case errors.Is(err, errBusy):
		return busy(op, int(s.reads.Config().MaxConns), s.o.Wait)
	}
	return refuse(op, id, stele.Unavailable, "store.database-silent", "the database did not answer within {wait} ({cause}); try again", s.o.Wait, plain(err))
}

// passing is an error after which another attempt may succeed.
type passing struct{ error }

func (p passing) Unwrap() error { return p.error }

func isPassing(err error) bool {
	_, ok := errors.AsType[passing](err)
	return ok
}

// settle decides what the error of an attempt means.
func (s *Store) settle(ctx context.Context, op string, id stele.ID, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if _, own := asOwn(err); own || errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	if isAway(err) || isAgain(err) || codeOf(err) == codeCanceled {
		return passing{err}
	}
	return sick(op, id, err)
}

// server is the pool to be asked.
func (s *Store) server() *pgxpool.Pool {
	if _, yes := s.Lagging(); yes {
		return s.others
	}
	return s.reads
}

// attempt asks one server. One that takes a third of the time is taken to hang.
func (s *Store) attempt(ctx context.Context, pool *pgxpool.Pool, q question) error {
	part, cancel := context.WithTimeout(ctx, s.o.Wait/3)
	defer cancel()
	conn, err := pool.Acquire(part)
	if err != nil {
		if part.Err() != nil && pool.Stat().AcquiredConns() >= pool.Config().MaxConns {
			return errBusy
		}
		if pool == s.reads && isAway(err) && ctx.Err() == nil && codeOf(err) != codeTooMany {
			s.lose(err)
		}
		return err
	}
	keep, err := q(part, conn)
	if err == nil && keep {
		return nil
	}
	if err != nil && isAway(err) {
		if _, own := asOwn(err); !own && !errors.Is(err, pgx.ErrNoRows) {
			s.drop(ctx, part, pool, conn, err)
			return err
		}
	}
	conn.Release()
	return err
}

// drop closes a connection that broke, and all others of its pool, which lead to the
// same server.
func (s *Store) drop(ctx, part context.Context, pool *pgxpool.Pool, conn *pgxpool.Conn, cause error) {
	closeNow(conn)
	if ctx.Err() != nil {
		return // the caller gave up; the server may be well
	}
	if pool == s.reads && part.Err() != nil {
		s.lose(cause) // it hangs
	}
	pool.Reset()
}

// closeNow ends a connection that must not be used again.
func closeNow(conn *pgxpool.Conn) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // without a message to a server that may hang
	_ = conn.Conn().Close(ctx)
	conn.Release()
}
