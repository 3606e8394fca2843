package postgres

import (
	"context"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/binary"
)

// The statements that list what has a name. $1 and $2 are the first name and the one
// after the last, $3 how many; in a run $4 is what all keys begin with, and $5 follows
// them all.
const (
	sqlScan = `SELECT key, "full", body FROM names
		WHERE key >= $1 AND key < $2 AND record IS NULL ORDER BY key LIMIT $3`
	sqlScanRun = `SELECT key, "full", body FROM names
		WHERE key > $4 AND key < $5 AND record IS NULL AND "full" >= $1 AND ($2::bytea IS NULL OR "full" < $2)
		ORDER BY "full" LIMIT $3`
	sqlPointing = `SELECT record, "full", NULL::bytea FROM places
		WHERE place = $4 AND record >= $1 AND record < $2 ORDER BY record LIMIT $3`
	sqlPointingRun = `SELECT record, "full", NULL::bytea FROM places
		WHERE place = $6 AND record > $4 AND record < $5 AND "full" >= $1 AND ($2::bytea IS NULL OR "full" < $2)
		ORDER BY "full" LIMIT $3`
	sqlNamespaces = `SELECT key, "full", body FROM namespaces
		WHERE key >= $1 AND key < $2 ORDER BY key LIMIT $3`
	sqlNamespacesRun = `SELECT key, "full", body FROM namespaces
		WHERE key > $4 AND key < $5 AND "full" >= $1 AND ($2::bytea IS NULL OR "full" < $2) ORDER BY "full" LIMIT $3`
	sqlMinters = `SELECT key, "full", state FROM minters
		WHERE key >= $1 AND key < $2 ORDER BY key LIMIT $3`
	sqlMintersRun = `SELECT key, "full", state FROM minters
		WHERE key > $4 AND key < $5 AND "full" >= $1 AND ($2::bytea IS NULL OR "full" < $2) ORDER BY "full" LIMIT $3`
	sqlCells = `SELECT name, NULL::bytea, value FROM cells
		WHERE name >= $1 AND name < $2 ORDER BY name LIMIT $3`
)

// Scan implements [stele.Store].
func (s *Store) Scan(ctx context.Context, scheme, prefix, cursor string) iter.Seq2[*stele.Record, error] {
	lo, hi := schemed(scheme, prefix), upper(schemed(scheme, prefix))
	if cursor >= prefix {
		lo = after(schemed(scheme, cursor))
	}
	return list(ctx, s, "scan", func() source[*stele.Record] {
		return &ranged[*stele.Record]{op: "scan", page: sqlScan, run: sqlScanRun, lo: lo, hi: hi,
			item: func(_, body []byte) (*stele.Record, error) { return decode(stele.ID{}, body) }}
	})
}

// Pointing implements [stele.Store].
func (s *Store) Pointing(ctx context.Context, at stele.Location, cursor stele.ID) iter.Seq2[stele.ID, error] {
	lo := []byte{}
	if cursor.IsValid() {
		lo = after(nameOf(cursor))
	}
	return list(ctx, s, "look up", func() source[stele.ID] {
		return &ranged[stele.ID]{op: "look up", page: sqlPointing, run: sqlPointingRun,
			lo: lo, args: []any{key(placeOf(at))},
			item: func(name, _ []byte) (stele.ID, error) { return cutID(name) }}
	})
}

// Namespaces implements [stele.Store].
func (s *Store) Namespaces(ctx context.Context) iter.Seq2[*stele.Namespace, error] {
	return list(ctx, s, "list namespaces", func() source[*stele.Namespace] {
		return &ranged[*stele.Namespace]{op: "list namespaces",
			page: sqlNamespaces, run: sqlNamespacesRun, lo: []byte{},
			item: func(_, body []byte) (*stele.Namespace, error) {
				n := new(stele.Namespace)
				return n, binary.UnmarshalNamespace(body, n)
			}}
	})
}

// MinterStates implements [stele.Store].
func (s *Store) MinterStates(ctx context.Context) iter.Seq2[stele.MinterState, error] {
	return list(ctx, s, "list minters", func() source[stele.MinterState] {
		return &ranged[stele.MinterState]{op: "list minters",
			page: sqlMinters, run: sqlMintersRun, lo: []byte{},
			item: func(name, state []byte) (stele.MinterState, error) {
				return stele.MinterState{Name: string(name), After: state}, nil
			}}
	})
}

// Cells implements [stele.Store].
func (s *Store) Cells(ctx context.Context, prefix, cursor string) iter.Seq2[stele.Cell, error] {
	lo, hi := []byte(prefix), upper([]byte(prefix))
	if cursor >= prefix {
		lo = after([]byte(cursor))
	}
	return list(ctx, s, "list cells", func() source[stele.Cell] {
		return &ranged[stele.Cell]{op: "list cells", page: sqlCells, lo: lo, hi: hi,
			item: func(name, value []byte) (stele.Cell, error) {
				return stele.Cell{Name: string(name), Value: value}, nil
			}}
	})
}

const sqlChanges = `SELECT seq, at, name, space, version, counted FROM changes WHERE seq > $1 ORDER BY seq LIMIT $2`

// feed is the source of the change feed.
type feed struct {
	after  int64
	isDone bool
}

// Changes implements [stele.Store].
func (s *Store) Changes(ctx context.Context, after uint64) iter.Seq2[stele.Change, error] {
	return list(ctx, s, "changes", func() source[stele.Change] { return &feed{after: signed(after)} })
}

func (f *feed) next(limit int) (string, []any) {
	if f.isDone {
		return "", nil
	}
	return sqlChanges, []any{f.after, limit}
}

func (f *feed) take(rows pgx.Rows) (c stele.Change, size int, ok bool, err error) {
	var seq, version int64
	var at time.Time
	var name, counted []byte
	var space bool
	if err := rows.Scan(&seq, &at, &name, &space, &version, &counted); err != nil {
		return c, 0, false, err
	}
	c = stele.Change{Seq: uint64(seq), Version: uint64(version), At: at.UTC()}
	if space {
		c.Namespace, err = cutNamespace(name)
	} else {
		c.ID, err = cutID(name)
	}
	if err == nil && counted != nil {
		c.Counted, c.CountedAliases, err = cutCounted(counted)
	}
	if err != nil {
		return c, 0, false, damaged("changes", stele.ID{}, err)
	}
	f.after = seq
	return c, len(name) + 64, true, nil
}

func (f *feed) ended() { f.isDone = true }
