package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/binary"
)

// erasure says that of some versions of a record only entries are to be left.
type erasure struct {
	key      string
	after    uint64 // versions up to this one were erased before
	upTo     uint64
	keys     [][]byte // with versions and bodies: what is written
	versions []int64
	bodies   [][]byte
}

const (
	sqlToErase = `SELECT version, body FROM history WHERE key = $1 AND version > $2 AND version <= $3`
	sqlErase   = `UPDATE history AS h SET body = u.body
		FROM unnest($1::bytea[], $2::bigint[], $3::bytea[]) AS u(key, version, body)
		WHERE h.key = u.key AND h.version = u.version`
	sqlInsertWithheld = `INSERT INTO withheld (key, "full") SELECT * FROM unnest($1::bytea[], $2::bytea[])`
)

// withhold notes what the withheld versions of a record need.
func (t *tx) withhold(e *entry, old *stele.Record) {
	if e.record.Withheld.IsZero() {
		return
	}
	if old.Withheld.IsZero() {
		t.withheld = append(t.withheld, label{e.name, e.key})
	}
	if upTo := e.record.Withheld.Erased; upTo > old.Withheld.Erased {
		t.erased = append(t.erased, erasure{key: e.key, after: old.Withheld.Erased, upTo: upTo})
	}
}

// readErased reads the versions that the group erases and makes entries of them: of those
// in the database, which no other transaction changes while the name of the record is locked, and
// of those that the group itself is about to write.
func (g *group) readErased(ctx context.Context, conn *pgxpool.Conn) error {
	for i := range g.erased {
		x := &g.erased[i]
		rows, err := conn.Query(ctx, sqlToErase, []byte(x.key), signed(x.after), signed(x.upTo))
		if err != nil {
			return err
		}
		var version int64
		var body []byte
		_, err = pgx.ForEachRow(rows, []any{&version, &body}, func() error {
			entry, err := entryOf(body)
			x.keys, x.versions, x.bodies = append(x.keys, []byte(x.key)), append(x.versions, version), append(x.bodies, entry)
			return err
		})
		if err != nil {
			return err
		}
		for j := range g.past {
			if p := &g.past[j]; p.key == x.key && p.version <= x.upTo {
				if p.body, err = entryOf(p.body); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// entryOf makes the entry of a version, both in binary form.
func entryOf(body []byte) ([]byte, error) {
	r, err := decode(stele.ID{}, body)
	if err != nil {
		return nil, err
	}
	return binary.MarshalRecord(r.Entry())
}

// queueWithheld adds what is withheld from now on.
func (g *group) queueWithheld(b *batch) {
	b.add(len(g.withheld), sqlInsertWithheld, column(g.withheld, func(l *label) []byte { return []byte(l.key) }),
		column(g.withheld, func(l *label) []byte { return full(l.name) }))
	for _, x := range g.erased {
		b.add(len(x.keys), sqlErase, x.keys, x.versions, x.bodies)
	}
}

// Purge implements [stele.Store]. VACUUM alone frees the space of what was replaced, and
// leaves the bytes in it; VACUUM FULL writes tables and indexes anew, and needs them for
// itself meanwhile. What the database has in its log, and in archives of it, is not
// touched.
func (s *Store) Purge(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.isClosed() {
		return closed("purge")
	}
	whole, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.closing, cancel)()
	for _, table := range []string{"history", "names", "places", "cells"} {
		err := s.tellOnce(whole, func(ctx context.Context, conn *pgxpool.Conn) error {
			_, err := conn.Exec(ctx, `VACUUM (FULL) `+table)
			return err
		})
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return ctx.Err()
		case s.isClosed():
			return closed("purge")
		case codeOf(err) == codeSyntax || codeOf(err) == codeUnsupported:
			return refuse("purge", stele.ID{}, stele.Invalid, "store.vacuum-not-possible", "this database has no VACUUM FULL ({cause}); it removes old versions of rows by itself, as its manual says", plain(err))
		default:
			return refuse("purge", stele.ID{}, stele.Unavailable, "store.table-not-rewritten", "the table {table} can't be rewritten ({cause}); try again", table, plain(err))
		}
	}
	return nil
}
