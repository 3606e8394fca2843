package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stele-id/stele"
)

// copyRows is how many names are inserted by COPY rather than by a statement.
const copyRows = 256

// Ingest implements [stele.Store]. A record beyond its namespace's quota is refused by
// itself, as one whose name is taken is. A few records share a transaction with others;
// many have one of their own.
func (s *Store) Ingest(ctx context.Context, records []*stele.Record, count stele.NamespaceCounter, touch *stele.Touch, state *stele.MinterState, models ...*stele.AuditEntry) ([]error, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := stele.CheckModels(models); err != nil {
		return nil, err
	}
	q, err := newIngest(records, count, touch, state)
	if err != nil {
		return nil, err
	}
	q.models = models
	if len(records) <= copyRows/4 && q.size < maxGroupBytes/4 {
		err = s.submit(ctx, q)
	} else {
		err = s.ingest(ctx, q)
	}
	if err != nil {
		return nil, err
	}
	return q.refused, nil
}

// waryIngests is how many ingests look which names are taken, after one that did not has
// met a name that was. Most imports are of new names, and to look for them takes a fifth
// of the time; but one that is done again is all of old ones.
const waryIngests = 32

// longestIngest is how long an ingest may take. A server that hangs would keep the store
// from being closed.
const longestIngest = 10 * time.Minute

// ingest commits an ingest as a group of its own, in the caller's goroutine.
func (s *Store) ingest(ctx context.Context, q *request) error {
	s.queueing.RLock()
	defer s.queueing.RUnlock()
	if s.isClosed() {
		return closed("ingest")
	}
	var w *writer
	select {
	case w = <-s.ingesting:
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closing.Done():
		return closed("ingest")
	}
	defer func() { s.ingesting <- w }()
	g := newGroup(s, w)
	g.requests = []*request{q}
	if g.blind = w.wary == 0; !g.blind {
		w.wary--
	}
	bounded, cancel := context.WithTimeout(ctx, longestIngest)
	defer cancel()
	began := s.o.Now()
	err := g.run(bounded)
	s.tally.Group(s.o.Now().Sub(began))
	if err == nil {
		s.tally.Commit(g.answers[0])
		return g.answers[0]
	}
	s.tally.Commit(err)
	if ctxErr := ctx.Err(); ctxErr != nil && !errors.Is(err, errUnknown) {
		return ctxErr
	}
	return err
}

// copyRows writes the group by COPY.
func (g *group) copyRows(ctx context.Context, conn *pgxpool.Conn, n *nameRows) error {
	err := copyInto(ctx, conn, "names", []string{"key", "full", "record", "version", "body"}, n.insert, func(r *nameRow, row []any) {
		row[0], row[1], row[2], row[3], row[4] = r.key, r.full, r.record, r.version, r.body
	})
	if err != nil {
		return err
	}
	n.insert = nil
	err = copyInto(ctx, conn, "places", []string{"place", "record", "full"}, n.come, func(r *placeRow, row []any) {
		row[0], row[1], row[2] = r.place, r.record, r.full
	})
	if err != nil {
		return err
	}
	n.come = nil
	b := &batch{}
	n.queue(b)
	g.queueRest(b)
	g.queueNumber(b)
	g.queueAudit(b)
	g.queueZones(b)
	if err := b.send(ctx, conn); err != nil {
		return err
	}
	seq := signed(g.last) - int64(len(g.rows))
	return copyInto(ctx, conn, "changes", []string{"seq", "at", "name", "space", "version", "counted"}, g.rows, func(r *feedRow, row []any) {
		seq++
		row[0], row[1], row[2], row[3], row[4], row[5] = seq, r.At, r.name, r.space, signed(r.Version), r.counted
	})
}

// copyInto copies rows into a table.
func copyInto[R any](ctx context.Context, conn *pgxpool.Conn, table string, columns []string, rows []R, fill func(r *R, row []any)) error {
	if len(rows) == 0 {
		return nil
	}
	row, i := make([]any, len(columns)), 0
	_, err := conn.CopyFrom(ctx, pgx.Identifier{table}, columns, pgx.CopyFromFunc(func() ([]any, error) {
		if i == len(rows) {
			return nil, nil
		}
		fill(&rows[i], row)
		i++
		return row, nil
	}))
	return err
}
