package postgres

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/refusal"
)

// What a group reads before it decides. What it will replace is locked, in order, so that
// it does not change and deadlocks are rare. A name that is free can't be locked: if
// another transaction takes it meanwhile the insert fails, and the group begins again.
const (
	sqlBegin          = `BEGIN TRANSACTION ISOLATION LEVEL READ COMMITTED`
	sqlState          = `SELECT version, seal, spaces, (SELECT value FROM cells WHERE name = $1) FROM registry WHERE id = 1`
	sqlLockNames      = `SELECT key, record, version, body FROM names WHERE key = ANY($1) ORDER BY key FOR UPDATE`
	sqlFindNames      = `SELECT key, record, version FROM names WHERE key = ANY($1)`
	sqlLockNamespaces = `SELECT key, version, body FROM namespaces WHERE key = ANY($1) ORDER BY key FOR UPDATE`
	sqlLockMinter     = `SELECT key, state FROM minters WHERE key = ANY($1) ORDER BY key FOR UPDATE`
	sqlLockCells      = `SELECT name, value FROM cells WHERE name = ANY($1) ORDER BY name FOR UPDATE`
	sqlLockCounts     = `SELECT key, n FROM counts WHERE key = ANY($1) ORDER BY key FOR UPDATE`
)

// wanted are the keys of what a group is concerned with.
type wanted struct {
	names      map[string]bool // those that are true are replaced
	namespaces map[string]bool
	minters    map[string]bool
	cells      map[string]bool
	counts     map[string]bool
}

func (g *group) wanted() *wanted {
	w := &wanted{
		names: make(map[string]bool), namespaces: make(map[string]bool), minters: make(map[string]bool),
		cells: make(map[string]bool), counts: make(map[string]bool),
	}
	for _, q := range g.requests {
		for _, e := range q.records {
			if e != nil {
				w.addRecord(e)
			}
		}
		for _, seen := range q.seen { // they are locked until the commit, as those that are written
			w.names[newLabel(seen.ID).key] = true
		}
		for _, n := range q.namespaces {
			w.namespaces[n.key] = true
		}
		for _, m := range q.minters {
			w.minters[m.key] = true
		}
		for _, c := range q.cells {
			w.cells[c.key] = true
		}
	}
	return w
}

func (w *wanted) addRecord(e *entry) {
	w.names[e.key] = w.names[e.key] || e.version > 1
	for _, alias := range e.aliases {
		if !w.names[alias.key] {
			w.names[alias.key] = false
		}
	}
	// Without a quota it does not matter how many there are.
	if e.counted.Quota > 0 {
		w.counts[string(key(namespaceName(e.counted.Namespace)))] = true
	}
	for _, c := range e.aliasCounts {
		if c.Quota > 0 {
			w.counts[string(key(namespaceName(c.Namespace)))] = true
		}
	}
}

// keysOf returns the keys that have the value, in order.
func keysOf(set map[string]bool, value bool) [][]byte {
	var list [][]byte
	for _, key := range slices.Sorted(maps.Keys(set)) {
		if set[key] == value {
			list = append(list, []byte(key))
		}
	}
	return list
}

// load begins the transaction and reads what the group is concerned with, in one round
// trip.
func (g *group) load(ctx context.Context, conn *pgxpool.Conn) error {
	g.have.clear()
	clear(g.locked)
	w := g.wanted()
	b := &pgx.Batch{}
	b.Queue(sqlBegin)
	var version, namespaceVersions int64
	var seal []byte
	b.Queue(sqlState, []byte(stele.NamespaceFence)).QueryRow(func(row pgx.Row) error { return row.Scan(&version, &seal, &namespaceVersions, &g.fence) })
	g.queueNames(b, w)
	g.queueKept(b, w)
	if err := conn.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	g.sealed, g.namespaceVersions = sealedError("commit", seal), uint64(namespaceVersions)
	return g.store.o.judgeReadable(version)
}

func (g *group) queueNames(b *pgx.Batch, w *wanted) {
	var under, record, body []byte
	var version *int64
	row := func() error {
		n := &named{owner: string(under), body: body}
		if record != nil {
			n.owner = string(record)
		}
		if version != nil {
			n.version = uint64(*version)
		}
		g.have.names[string(under)] = n
		body, version = nil, nil
		return nil
	}
	if keys := keysOf(w.names, true); keys != nil {
		b.Queue(sqlLockNames, keys).Query(func(rows pgx.Rows) error {
			_, err := pgx.ForEachRow(rows, []any{&under, &record, &version, &body}, row)
			return err
		})
	}
	if keys := keysOf(w.names, false); keys != nil && !g.blind {
		b.Queue(sqlFindNames, keys).Query(func(rows pgx.Rows) error {
			_, err := pgx.ForEachRow(rows, []any{&under, &record, &version}, row)
			return err
		})
	}
}

func (g *group) queueKept(b *pgx.Batch, w *wanted) {
	var under, value []byte
	var number int64
	each := func(sql string, set map[string]bool, into any, keep func()) {
		keys := keysOf(set, true)
		if keys == nil {
			return
		}
		b.Queue(sql, keys).Query(func(rows pgx.Rows) error {
			_, err := pgx.ForEachRow(rows, []any{&under, into}, func() error { keep(); return nil })
			return err
		})
	}
	if keys := keysOf(w.namespaces, true); keys != nil {
		b.Queue(sqlLockNamespaces, keys).Query(func(rows pgx.Rows) error {
			_, err := pgx.ForEachRow(rows, []any{&under, &number, &value}, func() error {
				g.have.namespaces[string(under)], value = &namespaceEntry{version: uint64(number), body: value}, nil
				return nil
			})
			return err
		})
	}
	each(sqlLockMinter, w.minters, &value, func() { g.have.minters[string(under)], value = &swap{after: value}, nil })
	each(sqlLockCells, w.cells, &value, func() { g.have.cells[string(under)], value = &swap{after: value}, nil })
	each(sqlLockCounts, w.counts, &number, func() { g.have.counts[string(under)] = uint64(number) })
	for key := range w.counts {
		g.locked[key] = true
	}
}

// sealedError is the error of a write to a sealed registry; nil if it is not sealed.
func sealedError(op string, seal []byte) error {
	if len(seal) == 0 {
		return nil
	}
	return refusal.Sealed(op, string(seal))
}

// sorted returns the entries of a map in the order of its keys.
func sorted[K cmp.Ordered, V any](m map[K]V) func(yield func(K, V) bool) {
	return func(yield func(K, V) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}
