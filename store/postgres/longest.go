package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/refusal"
)

// manyCuts is how many prefixes of a name one statement looks up.
const manyCuts = 64

// sqlFloor finds the last name that is not after another one, of the same scheme.
const sqlFloor = `SELECT key FROM names WHERE key <= $1 AND key > $2 ORDER BY key DESC LIMIT 1`

// sqlRun finds the names in a run that another name begins with, the longest first.
const sqlRun = `SELECT length(n."full"), coalesce(r.body, n.body) FROM names AS n LEFT JOIN names AS r ON r.key = n.record
	WHERE n.key > $1 AND n.key < $2 AND n."full" = substring($3::bytea FROM 1 FOR length(n."full")) ORDER BY 1 DESC`

// Longest implements [stele.Store]. Most names have few prefixes, which are looked up with
// one statement. Of a name with many, the last name before it in order is asked for first,
// which rules out all prefixes longer than what both begin with.
func (s *Store) Longest(ctx context.Context, name stele.ID, cuts func(n int) bool) (*stele.Record, stele.Prefix, error) {
	l := longest{name: nameOf(name), head: len(name.Scheme()) + 1, cuts: cuts}
	err := s.ask(ctx, "get", name, func(ctx context.Context, conn *pgxpool.Conn) (bool, error) {
		l.n, l.body = 0, nil
		list, rest := l.prefixes(len(l.name) - 1)
		if rest == 0 {
			return false, l.lookUp(ctx, conn, list)
		}
		// Several statements see one state.
		return false, pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			return l.search(ctx, tx)
		})
	})
	switch {
	case err != nil:
		return nil, stele.Prefix{}, err
	case l.n == 0:
		return nil, stele.Prefix{}, refusal.NoPartRegistered(name)
	}
	r, err := decode(name, l.body)
	return r, name.Prefix(l.n - l.head), err
}

// longest is a Longest under way. Lengths are those of names with their scheme.
type longest struct {
	name []byte
	head int // where the text begins
	cuts func(n int) bool

	n    int // length of what was found; 0 if nothing was
	body []byte
}

type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// last returns the longest prefix up to n at which the name may be cut, or 0.
func (l *longest) last(n int) int {
	for ; n > l.head; n-- {
		if l.cuts(n - l.head) {
			return n
		}
	}
	return 0
}

// prefixes returns the lengths of the longest prefixes up to n, and that of the next
// shorter one; 0 if these are all.
func (l *longest) prefixes(n int) (list []int, rest int) {
	for n = l.last(n); n > 0 && len(list) < manyCuts; n = l.last(n - 1) {
		list = append(list, n)
	}
	return list, n
}

// lookUp looks for the longest of some prefixes.
func (l *longest) lookUp(ctx context.Context, q querier, list []int) error {
	if len(list) == 0 {
		return nil
	}
	keys, lengths := make([][]byte, len(list)), make(map[string]int, len(list))
	for i, n := range list {
		keys[i] = key(l.name[:n:n])
		lengths[string(keys[i])] = n
	}
	rows, err := q.Query(ctx, sqlFirst, keys)
	if err != nil {
		return err
	}
	var under, body []byte
	_, err = pgx.ForEachRow(rows, []any{&under, &body}, func() error {
		if n := lengths[string(under)]; n > l.n {
			l.n, l.body = n, body
		}
		body = nil
		return nil
	})
	return err
}

// search looks for the longest of many prefixes.
func (l *longest) search(ctx context.Context, q querier) error {
	n := l.last(len(l.name) - 1)
	if n > maxKey {
		if err := l.run(ctx, q, n); err != nil || l.n > 0 {
			return err
		}
		n = l.last(maxKey)
	}
	for n > 0 && l.n == 0 {
		var found []byte
		err := q.QueryRow(ctx, sqlFloor, l.name[:n:n], l.name[:l.head:l.head]).Scan(&found)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		list, rest := l.prefixes(stele.CommonPrefix(found, l.name[:n]))
		if err := l.lookUp(ctx, q, list); err != nil {
			return err
		}
		n = rest
	}
	return nil
}

// run looks for the longest prefix up to n whose key has not all of it.
func (l *longest) run(ctx context.Context, q querier, n int) error {
	begin := l.name[:maxKey:maxKey]
	rows, err := q.Query(ctx, sqlRun, begin, append(begin, bytes.Repeat([]byte{0xff}, sha256.Size+1)...), l.name)
	if err != nil {
		return err
	}
	var length int
	var body []byte
	_, err = pgx.ForEachRow(rows, []any{&length, &body}, func() error {
		if l.n == 0 && length <= n && l.cuts(length-l.head) {
			l.n, l.body = length, body
		}
		body = nil
		return nil
	})
	return err
}
