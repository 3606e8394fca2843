package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stele-id/stele/store/refusal"
)

// What a group writes. Columns come as arrays, so that a statement takes any number of
// rows and is prepared once.
const (
	sqlInsertNames = `INSERT INTO names (key, "full", record, version, body)
		SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::bigint[], $5::bytea[])`
	sqlUpdateNames = `UPDATE names AS n SET version = u.version, body = u.body
		FROM unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::bytea[]) AS u(key, seen, version, body)
		WHERE n.key = u.key AND n.version = u.seen`
	sqlInsertHistory = `INSERT INTO history (key, version, body, at)
		SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bytea[], $4::bytea[])`
	sqlInsertPlaces = `INSERT INTO places (place, record, "full") SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bytea[])`
	sqlDeletePlaces = `DELETE FROM places AS p USING unnest($1::bytea[], $2::bytea[]) AS u(place, record)
		WHERE p.place = u.place AND p.record = u.record`

	sqlInsertNamespaces = `INSERT INTO namespaces (key, "full", version, body)
		SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bytea[])`
	sqlUpdateNamespaces = `UPDATE namespaces AS n SET version = u.version, body = u.body
		FROM unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::bytea[]) AS u(key, seen, version, body)
		WHERE n.key = u.key AND n.version = u.seen`

	sqlInsertNamespaceHistory = `INSERT INTO spacehistory (key, version, body) SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bytea[])`

	sqlInsertMinters = `INSERT INTO minters (key, "full", state) SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bytea[])`
	sqlUpdateMinters = `UPDATE minters AS m SET state = u.state
		FROM unnest($1::bytea[], $2::bytea[], $3::bytea[]) AS u(key, seen, state) WHERE m.key = u.key AND m.state = u.seen`
	sqlInsertCells = `INSERT INTO cells (name, value) SELECT * FROM unnest($1::bytea[], $2::bytea[])`
	sqlUpdateCells = `UPDATE cells AS c SET value = u.value
		FROM unnest($1::bytea[], $2::bytea[], $3::bytea[]) AS u(name, seen, value) WHERE c.name = u.name AND c.value = u.seen`
	sqlDeleteCells = `DELETE FROM cells AS c USING unnest($1::bytea[], $2::bytea[]) AS u(name, seen)
		WHERE c.name = u.name AND c.value = u.seen`

	sqlAddCounts = `INSERT INTO counts (key, n) SELECT * FROM unnest($1::bytea[], $2::bigint[])
		ON CONFLICT (key) DO UPDATE SET n = counts.n + excluded.n RETURNING key, n`
	sqlNumber = `UPDATE registry SET last = last + $1, spaces = spaces + $5::bigint,
			audit = CASE WHEN audit = 0 AND $4::bigint IS NOT NULL THEN $4::bigint ELSE audit END + $2::bigint,
			auditat = CASE WHEN $2::bigint = 0 THEN auditat ELSE greatest(auditat, $3::timestamptz) END
		WHERE id = 1 RETURNING last, version, seal, audit, spaces`
	sqlInsertChanges = `INSERT INTO changes (seq, at, name, space, version, counted)
		SELECT r.last - $1 + u.i, u.at, u.name, u.space, u.version, u.counted
		FROM registry AS r, unnest($2::bigint[], $3::timestamptz[], $4::bytea[], $5::boolean[], $6::bigint[], $7::bytea[])
			AS u(i, at, name, space, version, counted)
		WHERE r.id = 1`
)

// batch is the statements of a group on their way.
type batch struct {
	pgx.Batch
	wrong error
	why   func(context.Context, *pgxpool.Conn) error // reads why a statement did not do what it should
}

// send sends the statements, and returns what was wrong with them.
func (b *batch) send(ctx context.Context, conn *pgxpool.Conn) error {
	if err := conn.SendBatch(ctx, &b.Batch).Close(); err != nil {
		return err
	}
	if b.wrong == nil && b.why != nil {
		return b.why(ctx, conn)
	}
	return b.wrong
}

// add adds a statement that must concern n rows, if there are any.
func (b *batch) add(n int, sql string, args ...any) {
	if n == 0 {
		return
	}
	b.Queue(sql, args...).Exec(func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() != int64(n) {
			return errAgain
		}
		return nil
	})
}

// write writes the group, in one round trip, or by COPY where it is large.
func (g *group) write(ctx context.Context, conn *pgxpool.Conn) error {
	if err := g.readErased(ctx, conn); err != nil {
		return err
	}
	n, err := g.nameRows()
	if err != nil {
		return err
	}
	if len(n.insert) > copyRows {
		return g.copyRows(ctx, conn, n)
	}
	b := &batch{}
	n.queue(b)
	g.queueRest(b)
	g.queueNumber(b)
	if len(g.rows) > 0 {
		g.queueChanges(b)
	}
	g.queueAudit(b)
	g.queueZones(b)
	return b.send(ctx, conn)
}

// nameRows are the rows of records that a group writes.
type nameRows struct {
	insert []nameRow
	update []nameRow
	seen   []int64 // versions of what is updated
	past   []past
	come   []placeRow
	gone   []placeRow
}

type nameRow struct {
	key, full, record []byte // record is nil for an identifier
	version           *int64 // nil for an alias
	body              []byte
}

type placeRow struct{ place, record, full []byte }

// nameRows compares what the group sets with what the database has.
func (g *group) nameRows() (*nameRows, error) {
	n := &nameRows{past: g.past}
	for key, set := range sorted(g.set.names) {
		row := nameRow{key: []byte(key), full: set.full}
		if set.entry == nil {
			row.record = []byte(set.owner)
			n.insert = append(n.insert, row)
			continue
		}
		version := signed(set.version)
		row.version, row.body = &version, set.body
		var before []string
		if have := g.have.names[key]; have == nil {
			n.insert = append(n.insert, row)
		} else {
			var err error
			if before, err = have.places(); err != nil {
				return nil, damaged("commit", set.entry.id, err)
			}
			n.update, n.seen = append(n.update, row), append(n.seen, signed(have.version))
		}
		n.move(&row, before, set.entry.places)
	}
	return n, nil
}

// move notes which places a record comes to and which it leaves. Both lists are in order.
func (n *nameRows) move(row *nameRow, before, now []string) {
	for _, place := range now {
		if _, found := slices.BinarySearch(before, place); !found {
			n.come = append(n.come, placeRow{[]byte(place), row.key, row.full})
		}
	}
	for _, place := range before {
		if _, found := slices.BinarySearch(now, place); !found {
			n.gone = append(n.gone, placeRow{[]byte(place), row.key, nil})
		}
	}
}

// column makes an array of something of each row.
func column[R, C any](rows []R, of func(*R) C) []C {
	list := make([]C, len(rows))
	for i := range rows {
		list[i] = of(&rows[i])
	}
	return list
}

func (n *nameRows) queue(b *batch) {
	under := func(r *nameRow) []byte { return r.key }
	body := func(r *nameRow) []byte { return r.body }
	version := func(r *nameRow) *int64 { return r.version }
	b.add(len(n.insert), sqlInsertNames, column(n.insert, under), column(n.insert, func(r *nameRow) []byte { return r.full }),
		column(n.insert, func(r *nameRow) []byte { return r.record }), column(n.insert, version), column(n.insert, body))
	b.add(len(n.update), sqlUpdateNames, column(n.update, under), n.seen, column(n.update, version), column(n.update, body))
	b.add(len(n.past), sqlInsertHistory, column(n.past, func(p *past) []byte { return []byte(p.key) }),
		column(n.past, func(p *past) int64 { return signed(p.version) }), column(n.past, func(p *past) []byte { return p.body }),
		column(n.past, func(p *past) []byte { return p.at }))
	place := func(p *placeRow) []byte { return p.place }
	record := func(p *placeRow) []byte { return p.record }
	b.add(len(n.gone), sqlDeletePlaces, column(n.gone, place), column(n.gone, record))
	b.add(len(n.come), sqlInsertPlaces, column(n.come, place), column(n.come, record), column(n.come, func(p *placeRow) []byte { return p.full }))
}

// queueRest adds the statements that are not about records.
func (g *group) queueRest(b *batch) {
	g.queueNamespaces(b)
	g.queueWithheld(b)
	insert, update, _ := g.swaps(g.set.minters, g.have.minters) // none is ever removed
	b.add(len(insert), sqlInsertMinters, column(insert, keyOf), column(insert, func(s *swap) []byte { return full(s.name) }), column(insert, afterOf))
	b.add(len(update), sqlUpdateMinters, column(update, keyOf), column(update, beforeOf), column(update, afterOf))
	insert, update, gone := g.swaps(g.set.cells, g.have.cells)
	b.add(len(insert), sqlInsertCells, column(insert, keyOf), column(insert, afterOf))
	b.add(len(update), sqlUpdateCells, column(update, keyOf), column(update, beforeOf), column(update, afterOf))
	b.add(len(gone), sqlDeleteCells, column(gone, keyOf), column(gone, beforeOf))
	g.queueCounts(b)
}

func keyOf(s *swap) []byte    { return []byte(s.key) }
func beforeOf(s *swap) []byte { return s.before }
func afterOf(s *swap) []byte  { return s.after }

// swaps tells minters or cells that are new from those that change and those that go.
func (g *group) swaps(set, have map[string]*swap) (insert, update, gone []swap) {
	for key, s := range sorted(set) {
		row := swap{label: s.label, after: s.after}
		if old := have[key]; old != nil {
			row.before = old.after
		}
		switch {
		case row.before == nil && row.after == nil:
		case row.before == nil:
			insert = append(insert, row)
		case row.after == nil:
			gone = append(gone, row)
		default:
			update = append(update, row)
		}
	}
	return insert, update, gone
}

func (g *group) queueNamespaces(b *batch) {
	var insert, update []namespaceEntry
	var seen []int64
	for key, n := range sorted(g.set.namespaces) {
		if have := g.have.namespaces[key]; have != nil {
			update, seen = append(update, *n), append(seen, signed(have.version))
		} else {
			insert = append(insert, *n)
		}
	}
	under := func(n *namespaceEntry) []byte { return []byte(n.key) }
	version := func(n *namespaceEntry) int64 { return signed(n.version) }
	body := func(n *namespaceEntry) []byte { return n.body }
	b.add(len(insert), sqlInsertNamespaces, column(insert, under), column(insert, func(n *namespaceEntry) []byte { return full(n.name) }),
		column(insert, version), column(insert, body))
	b.add(len(g.pastNamespaces), sqlInsertNamespaceHistory, column(g.pastNamespaces, func(p *past) []byte { return []byte(p.key) }),
		column(g.pastNamespaces, func(p *past) int64 { return signed(p.version) }), column(g.pastNamespaces, func(p *past) []byte { return p.body }))
	b.add(len(update), sqlUpdateNamespaces, column(update, under), seen, column(update, version), column(update, body))
}

// queueCounts adds to the counts. One that a quota was held against must be what it was:
// a count that was not there could not be locked.
func (g *group) queueCounts(b *batch) {
	var keys [][]byte
	var more []int64
	for key, n := range sorted(g.set.counts) {
		keys, more = append(keys, []byte(key)), append(more, signed(n))
	}
	if keys == nil {
		return
	}
	b.Queue(sqlAddCounts, keys, more).Query(func(rows pgx.Rows) error {
		var key []byte
		var n int64
		_, err := pgx.ForEachRow(rows, []any{&key, &n}, func() error {
			if g.locked[string(key)] && uint64(n) != g.have.counts[string(key)]+g.set.counts[string(key)] {
				b.wrong = errAgain
			}
			return nil
		})
		return err
	})
}

// queueNumber takes the numbers of the changes, and counts up the writer's row; see
// outcome.go.
func (g *group) queueNumber(b *batch) {
	b.add(1, sqlSign, g.writer.id, g.writer.done+1, g.store.o.Now())
	entries, at, base := g.auditArgs()
	b.Queue(sqlNumber, len(g.rows), entries, at, base, signed(g.newNamespaceVersions)).QueryRow(func(row pgx.Row) error {
		var last, version, audit, namespaceVersions int64
		var seal []byte
		if err := row.Scan(&last, &version, &seal, &audit, &namespaceVersions); err != nil {
			return err
		}
		if uint64(namespaceVersions) != g.namespaceVersions+g.newNamespaceVersions {
			b.wrong = firstOf(b.wrong, errAgain) // which zones are touched may be wrong
		}
		b.wrong = firstOf(b.wrong, g.number(uint64(last), version, seal), g.numberAudit(uint64(audit)))
		return nil
	})
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// number checks that the group may have its numbers, the last of which is given.
func (g *group) number(last uint64, version int64, seal []byte) error {
	if len(seal) > 0 {
		return errAgain // it is refused when it is read again
	}
	if err := g.store.o.judgeReadable(version); err != nil {
		return err
	}
	if q := g.requests[0]; q.replay != nil && len(g.rows) > 0 {
		if next := last - uint64(len(g.rows)) + 1; q.replay[0].Seq != next {
			return refusal.ReplayOutOfOrder(q.replay[0].Seq, next-1)
		}
	}
	g.last = last
	return nil
}

func (g *group) queueChanges(b *batch) {
	rows := g.rows
	index := make([]int64, len(rows))
	for i := range index {
		index[i] = int64(i) + 1
	}
	b.add(len(rows), sqlInsertChanges, len(rows), index,
		column(rows, func(r *feedRow) time.Time { return r.At }), column(rows, func(r *feedRow) []byte { return r.name }),
		column(rows, func(r *feedRow) bool { return r.space }), column(rows, func(r *feedRow) int64 { return signed(r.Version) }),
		column(rows, func(r *feedRow) []byte { return r.counted }))
}
