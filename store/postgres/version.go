package postgres

import (
	"context"
	"errors"
	"iter"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/binary"
	"github.com/stele-id/stele/store/refusal"
)

const (
	sqlHistory = `SELECT version, body FROM names WHERE key = $1 AND record IS NULL AND version < $2
		UNION ALL SELECT version, body FROM history WHERE key = $1 AND version < $2 ORDER BY version DESC LIMIT $3`
	sqlVersion = `SELECT n.version, CASE WHEN n.version = $2 THEN n.body ELSE h.body END FROM names AS n
		LEFT JOIN history AS h ON h.key = n.key AND h.version = $2
		WHERE n.key = $1 AND n.record IS NULL`
	sqlVersionAt = `SELECT n.body, h.body FROM names AS n
		LEFT JOIN LATERAL (SELECT body FROM history WHERE key = $1 AND at <= $2 ORDER BY at DESC, version DESC LIMIT 1) AS h ON true
		WHERE n.key = $1 AND n.record IS NULL`
	sqlWithholding = `SELECT key, "full", NULL::bytea FROM withheld
		WHERE key >= $1 AND key < $2 ORDER BY key LIMIT $3`
	sqlWithholdingRun = `SELECT key, "full", NULL::bytea FROM withheld
		WHERE key > $4 AND key < $5 AND "full" >= $1 AND ($2::bytea IS NULL OR "full" < $2) ORDER BY "full" LIMIT $3`
	sqlNamespaceHistory = `SELECT version, body FROM namespaces WHERE key = $1 AND version < $2
		UNION ALL SELECT version, body FROM spacehistory WHERE key = $1 AND version < $2 ORDER BY version DESC LIMIT $3`
)

// versions is the source of a history, of a record or a namespace.
type versions[T any] struct {
	sql    string
	key    []byte
	before int64 // the versions that were read already
	isDone bool
	decode func(body []byte) (T, error)
}

// History implements [stele.Store].
func (s *Store) History(ctx context.Context, id stele.ID) iter.Seq2[*stele.Record, error] {
	return s.HistoryBefore(ctx, id, math.MaxUint64)
}

// HistoryBefore implements [stele.Store].
func (s *Store) HistoryBefore(ctx context.Context, id stele.ID, version uint64) iter.Seq2[*stele.Record, error] {
	return list(ctx, s, "history", func() source[*stele.Record] {
		return &versions[*stele.Record]{sql: sqlHistory, key: key(nameOf(id)), before: signed(version),
			decode: func(body []byte) (*stele.Record, error) { return decode(stele.ID{}, body) }}
	})
}

// NamespaceHistory implements [stele.Store].
func (s *Store) NamespaceHistory(ctx context.Context, k stele.NamespaceKey) iter.Seq2[*stele.Namespace, error] {
	return list(ctx, s, "history of a namespace", func() source[*stele.Namespace] {
		return &versions[*stele.Namespace]{sql: sqlNamespaceHistory, key: key(namespaceName(k)), before: math.MaxInt64,
			decode: func(body []byte) (*stele.Namespace, error) {
				n := new(stele.Namespace)
				return n, binary.UnmarshalNamespace(body, n)
			}}
	})
}

func (v *versions[T]) next(limit int) (string, []any) {
	if v.isDone {
		return "", nil
	}
	return v.sql, []any{v.key, v.before, limit}
}

func (v *versions[T]) take(rows pgx.Rows) (item T, size int, ok bool, err error) {
	var body []byte
	if err := rows.Scan(&v.before, &body); err != nil {
		return item, 0, false, err
	}
	item, err = v.decode(body)
	return item, len(body), err == nil, err
}

func (v *versions[T]) ended() { v.isDone = true }

// Version implements [stele.Store], by one look-up in each of two indexes.
func (s *Store) Version(ctx context.Context, id stele.ID, version uint64) (*stele.Record, error) {
	const op = "get version"
	var body []byte
	var last int64
	err := s.ask(ctx, op, id, func(ctx context.Context, conn *pgxpool.Conn) (bool, error) {
		return false, conn.QueryRow(ctx, sqlVersion, key(nameOf(id)), signed(version)).Scan(&last, &body)
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, refusal.IdentifierUnknown(op, id)
	case err != nil:
		return nil, err
	case body == nil && version > 0 && version < uint64(last):
		return nil, damaged(op, id, stele.Messagef("store.version-lost", "version {version} is missing; run verify", version))
	case body == nil:
		return nil, refusal.VersionMissing(op, id, version, uint64(last))
	}
	return decode(id, body)
}

// VersionAt implements [stele.Store], by one look-up in each of two indexes.
func (s *Store) VersionAt(ctx context.Context, id stele.ID, at time.Time) (*stele.Record, error) {
	const op = "get version"
	var body, past []byte
	err := s.ask(ctx, op, id, func(ctx context.Context, conn *pgxpool.Conn) (bool, error) {
		return false, conn.QueryRow(ctx, sqlVersionAt, key(nameOf(id)), stele.AppendTimeKey(nil, at)).Scan(&body, &past)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, refusal.IdentifierUnknown(op, id)
	} else if err != nil {
		return nil, err
	}
	now, err := decode(id, body)
	switch {
	case err != nil || !now.Modified.After(at):
		return now, err
	case past == nil:
		return nil, refusal.NoVersionSoEarly(op, id, at)
	}
	return decode(id, past)
}

// Withholding implements [stele.Store].
func (s *Store) Withholding(ctx context.Context) iter.Seq2[stele.ID, error] {
	return list(ctx, s, "list what is withheld", func() source[stele.ID] {
		return &ranged[stele.ID]{op: "list what is withheld", page: sqlWithholding, run: sqlWithholdingRun, lo: []byte{},
			item: func(name, _ []byte) (stele.ID, error) { return cutID(name) }}
	})
}
