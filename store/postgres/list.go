package postgres

import (
	"bytes"
	"context"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stele-id/stele"
)

// How much is read at once by an iterator: few rows at first, since many iterators are
// left early, and then more, but no more bytes than this.
const (
	firstPage = 32
	lastPage  = 1024
	pageBytes = 4 << 20
)

// source is what an iterator reads, page by page.
type source[T any] interface {
	// next returns the statement for the next page; "" if there is none.
	next(limit int) (sql string, args []any)

	// take reads a row, and how large it is. If it is not an item the page ends before it.
	take(rows pgx.Rows) (item T, size int, ok bool, err error)

	// ended is called when the last page was not full.
	ended()
}

// list makes an iterator over one state of the store. Most are short: what one statement
// gives is one state, and the connection is free again before the first item is seen. If
// that was not all it is read again, in a transaction that holds the state.
func list[T any](ctx context.Context, s *Store, op string, begin func() source[T]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		src := begin()
		items, _, err := page(ctx, s.glance(op), src, firstPage)
		if err != nil && len(items) == 0 {
			yield(none, err)
			return
		}
		if sql, _ := src.next(firstPage); sql == "" {
			give(ctx, items, err, yield)
			return
		}
		v, err := s.look(ctx, op)
		if err != nil {
			yield(none, err)
			return
		}
		defer v.end(ctx)
		src = begin()
		for limit := firstPage; ; limit = min(4*limit, lastPage) {
			items, more, err := page(ctx, v.query, src, limit)
			if !give(ctx, items, err, yield) || !more {
				return
			}
		}
	}
}

// give yields items, and then the error. It reports whether to go on.
func give[T any](ctx context.Context, items []T, err error, yield func(T, error) bool) bool {
	var none T
	for _, item := range items {
		if ctxErr := ctx.Err(); ctxErr != nil {
			yield(none, ctxErr)
			return false
		}
		if !yield(item, nil) {
			return false
		}
	}
	if err != nil {
		yield(none, err)
	}
	return err == nil
}

// asker asks the database for rows.
type asker func(ctx context.Context, sql string, args []any, read func(pgx.Rows) error) error

// glance asks for the rows of one statement.
func (s *Store) glance(op string) asker {
	return func(ctx context.Context, sql string, args []any, read func(pgx.Rows) error) error {
		return s.ask(ctx, op, stele.ID{}, func(ctx context.Context, conn *pgxpool.Conn) (bool, error) {
			rows, err := conn.Query(ctx, sql, args...)
			if err != nil {
				return false, err
			}
			return false, read(rows)
		})
	}
}

// view is one state of the store while a caller reads it.
type view struct {
	s    *Store
	op   string
	conn *pgxpool.Conn // nil before the first statement
}

// look waits for its turn to read. Long reads may not take all connections.
func (s *Store) look(ctx context.Context, op string) (*view, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.isClosed() {
		return nil, closed(op)
	}
	t := time.NewTimer(s.o.Wait)
	defer t.Stop()
	select {
	case s.listing <- struct{}{}:
		return &view{s: s, op: op}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.closing.Done():
		return nil, closed(op)
	case <-t.C:
		return nil, busy(op, cap(s.listing), s.o.Wait)
	}
}

// sqlLook begins a look at one state.
const sqlLook = `BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY`

// query asks for rows of the state. The first statement finds a server to look at; the
// state is gone if a later one fails.
func (v *view) query(ctx context.Context, sql string, args []any, read func(pgx.Rows) error) error {
	if v.conn == nil {
		return v.s.ask(ctx, v.op, stele.ID{}, func(ctx context.Context, conn *pgxpool.Conn) (bool, error) {
			b := &pgx.Batch{}
			b.Queue(sqlLook)
			b.Queue(sql, args...).Query(read)
			if err := conn.SendBatch(ctx, b).Close(); err != nil {
				return false, err
			}
			v.conn = conn
			return true, nil
		})
	}
	part, cancel := context.WithTimeout(ctx, v.s.o.Wait)
	defer cancel()
	defer context.AfterFunc(v.s.closing, cancel)()
	rows, err := v.conn.Query(part, sql, args...)
	if err == nil {
		err = read(rows)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case v.s.isClosed():
		return closed(v.op)
	}
	return sick(v.op, stele.ID{}, err)
}

// end ends the look.
func (v *view) end(ctx context.Context) {
	<-v.s.listing
	if v.conn == nil {
		return
	}
	if ctx.Err() == nil && !v.conn.Conn().IsClosed() {
		part, cancel := context.WithTimeout(ctx, v.s.o.Wait)
		defer cancel()
		_, _ = v.conn.Exec(part, `COMMIT`) // one that is not over is closed by the pool
	}
	v.conn.Release()
}

// page reads the next page, and reports whether there may be more.
func page[T any](ctx context.Context, ask asker, src source[T], limit int) (items []T, more bool, err error) {
	sql, args := src.next(limit)
	if sql == "" {
		return nil, false, nil
	}
	var damage error
	short := false // the page was left before its end
	err = ask(ctx, sql, args, func(rows pgx.Rows) error {
		items, damage, short = nil, nil, false
		defer rows.Close()
		for size := 0; rows.Next(); {
			item, n, ok, err := src.take(rows)
			if err != nil || !ok {
				damage, short = err, true
				return nil
			}
			items = append(items, item)
			if size += n; size > pageBytes {
				short = true
				return nil
			}
		}
		return rows.Err()
	})
	if err != nil {
		return nil, false, err
	}
	if damage != nil {
		return items, false, damage
	}
	if !short && len(items) < limit {
		src.ended()
	}
	return items, true, nil
}

// ranged is a source of what has a name, in order of the names: those from lo to before hi.
type ranged[T any] struct {
	op        string
	page, run string // the statements; no run if no name is ever longer than a key
	lo, hi    []byte // hi is nil for no end
	args      []any  // further arguments
	item      func(name, body []byte) (T, error)
	inRun     bool // the page is of a run
	isDone    bool
}

func (r *ranged[T]) next(limit int) (string, []any) {
	if r.isDone || r.hi != nil && bytes.Compare(r.lo, r.hi) >= 0 {
		return "", nil
	}
	// Names that are longer than their keys, and begin like lo, are in a run.
	if r.inRun = r.run != "" && len(r.lo) > maxKey; r.inRun {
		head := r.lo[:maxKey]
		return r.run, append([]any{r.lo, r.hi, limit, head, beyond(head)}, r.args...)
	}
	end := r.hi
	if end == nil || len(end) > maxKey {
		end = beyond(end)
	}
	return r.page, append([]any{r.lo, end, limit}, r.args...)
}

// beyond returns a key after all keys that begin with what name begins with.
func beyond(name []byte) []byte {
	head := name[:min(len(name), maxKey):min(len(name), maxKey)]
	return append(head, bytes.Repeat([]byte{0xff}, maxKey+64-len(head))...)
}

func (r *ranged[T]) take(rows pgx.Rows) (item T, size int, ok bool, err error) {
	var key, full, body []byte
	if err := rows.Scan(&key, &full, &body); err != nil {
		return item, 0, false, err
	}
	name := key
	if full != nil {
		if name = full; !r.inRun {
			r.lo = after(key[:maxKey])
			return item, 0, false, nil
		}
	}
	if item, err = r.item(name, body); err != nil {
		return item, 0, false, damaged(r.op, stele.ID{}, err)
	}
	r.lo = after(name)
	return item, len(name) + len(body), true, nil
}

func (r *ranged[T]) ended() {
	if !r.inRun {
		r.isDone = true
	} else if r.lo = upper(r.lo[:maxKey]); r.lo == nil {
		r.isDone = true
	}
}
