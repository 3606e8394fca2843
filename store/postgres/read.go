package postgres

import (
	"context"
	"errors"
	"iter"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/binary"
	"github.com/stele-id/stele/store/refusal"
)

// one asks for a single row. It reports whether there is one.
func (s *Store) one(ctx context.Context, op string, id stele.ID, sql string, arg any, into ...any) (bool, error) {
	err := s.ask(ctx, op, id, func(ctx context.Context, conn *pgxpool.Conn) (bool, error) {
		return false, conn.QueryRow(ctx, sql, arg).Scan(into...)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// sqlRecord finds a record by any of its names.
const sqlRecord = `SELECT coalesce(r.body, n.body) FROM names AS n LEFT JOIN names AS r ON r.key = n.record WHERE n.key = $1`

// Record implements [stele.Store].
func (s *Store) Record(ctx context.Context, name stele.ID) (*stele.Record, error) {
	var body []byte
	found, err := s.one(ctx, "get", name, sqlRecord, key(nameOf(name)), &body)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, refusal.NotRegistered(name)
	}
	return decode(name, body)
}

// gathered is how many names one statement looks up.
const gathered = 1000

// Gather implements [stele.Gatherer]: one statement reads many records, where each would take a round trip.
func (s *Store) Gather(ctx context.Context, names []stele.ID) ([]*stele.Record, error) {
	list := make([]*stele.Record, 0, len(names))
	for some := range slices.Chunk(names, gathered) {
		bodies := make(map[string][]byte, len(some)) // by key; nil if the name is known and its record is not there
		keys := make([][]byte, len(some))
		for i, name := range some {
			keys[i] = key(nameOf(name))
		}
		err := s.ask(ctx, "get", stele.ID{}, func(ctx context.Context, conn *pgxpool.Conn) (bool, error) {
			clear(bodies)
			rows, err := conn.Query(ctx, sqlFirst, keys)
			if err != nil {
				return false, err
			}
			var under, body []byte
			_, err = pgx.ForEachRow(rows, []any{&under, &body}, func() error {
				bodies[string(under)], body = body, nil
				return nil
			})
			return false, err
		})
		if err != nil {
			return nil, err
		}
		for i, name := range some {
			var record *stele.Record
			if body, known := bodies[string(keys[i])]; known {
				if record, err = decode(name, body); err != nil {
					return nil, err
				}
			}
			list = append(list, record)
		}
	}
	return list, nil
}

// decode reads a record as it is kept.
func decode(name stele.ID, body []byte) (*stele.Record, error) {
	if body == nil {
		return nil, damaged("get", name, stele.Messagef("store.record-of-name-missing", "the name is known and its record is not there"))
	}
	r := new(stele.Record)
	if err := binary.UnmarshalRecord(body, r); err != nil {
		return nil, damaged("get", name, err)
	}
	return r, nil
}

func damaged(op string, id stele.ID, err error) error {
	return refuse(op, id, stele.Internal, "store.content-damaged", "what is kept is damaged ({cause}); verify the store", err)
}

// sqlFirst is sqlRecord for several names.
const sqlFirst = `SELECT n.key, coalesce(r.body, n.body) FROM names AS n LEFT JOIN names AS r ON r.key = n.record WHERE n.key = ANY($1)`

// guesses is how many parents of a name are looked up with it, and fewDrawn is how many
// candidates are drawn one by one: no more than are needed, as long as that is cheap.
const (
	guesses  = 32
	fewDrawn = 16
)

// First implements [stele.Store]. The candidates after the first are nearly always names
// that it begins with, cut where something ends. They are looked up with it, so that one
// statement answers. If there are many others, they are gathered, more and more at a time.
// They are asked for together with all that were drawn before: those are of one state then.
func (s *Store) First(ctx context.Context, candidates iter.Seq[stele.Prefix]) (*stele.Record, stele.Prefix, error) {
	var none stele.Prefix
	if err := ctx.Err(); err != nil {
		return nil, none, err
	}
	f := firsts{store: s, enough: 1}
	for p := range candidates {
		f.drawn = append(f.drawn, p)
		body, known := f.found[keyOfPrefix(p)]
		switch {
		case known && !f.waiting && body != nil:
			r, err := decode(stele.ID{}, body)
			return r, p, err
		case known && !f.waiting:
			continue
		}
		if f.waiting = len(f.drawn) < f.enough; f.waiting {
			continue
		}
		if r, found, err := f.look(ctx); r != nil || err != nil {
			return r, found, err
		}
	}
	if f.waiting {
		if r, found, err := f.look(ctx); r != nil || err != nil {
			return r, found, err
		}
	}
	if len(f.drawn) == 0 && s.isClosed() {
		return nil, none, closed("get")
	}
	return nil, none, refusal.NeitherRegistered()
}

// firsts is the state of First.
type firsts struct {
	store   *Store
	drawn   []stele.Prefix
	found   map[string][]byte // bodies by key of what was asked for; nil for none
	enough  int               // how many are drawn before the database is asked again
	waiting bool              // some that were drawn were not asked for
}

// look asks for all that were drawn, and returns the first that there is.
func (f *firsts) look(ctx context.Context) (r *stele.Record, _ stele.Prefix, err error) {
	if f.found, err = f.store.lookUp(ctx, f.drawn); err != nil {
		return nil, stele.Prefix{}, err
	}
	f.waiting, f.enough = false, len(f.drawn)+1
	if len(f.drawn) >= fewDrawn {
		f.enough = 2 * len(f.drawn)
	}
	for _, p := range f.drawn {
		if body := f.found[keyOfPrefix(p)]; body != nil {
			r, err = decode(stele.ID{}, body)
			return r, p, err
		}
	}
	return nil, stele.Prefix{}, nil
}

func keyOfPrefix(p stele.Prefix) string { return string(key(schemed(p.Scheme(), p.String()))) }

// lookUp looks up candidates, and what the last of them begins with.
func (s *Store) lookUp(ctx context.Context, drawn []stele.Prefix) (map[string][]byte, error) {
	found := make(map[string][]byte)
	for _, p := range drawn {
		found[keyOfPrefix(p)] = nil
	}
	last := drawn[len(drawn)-1]
	text, more := last.String(), guesses
	for i := len(text) - 1; i > 0 && more > 0; i-- {
		if isWord(text[i]) && isWord(text[i-1]) {
			continue
		}
		found[string(key(schemed(last.Scheme(), text[:i])))] = nil
		more--
	}
	keys := make([][]byte, 0, len(found))
	for k := range found {
		keys = append(keys, []byte(k))
	}
	err := s.ask(ctx, "get", stele.ID{}, func(ctx context.Context, conn *pgxpool.Conn) (bool, error) {
		rows, err := conn.Query(ctx, sqlFirst, keys)
		if err != nil {
			return false, err
		}
		var under, body []byte
		_, err = pgx.ForEachRow(rows, []any{&under, &body}, func() error {
			found[string(under)], body = body, nil
			return nil
		})
		return false, err
	})
	return found, err
}

// isWord reports whether a byte is one at which a name is rarely cut.
func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80
}

// LastChange implements [stele.Store].
func (s *Store) LastChange(ctx context.Context) (uint64, error) {
	var last int64
	_, err := s.one(ctx, "changes", stele.ID{}, `SELECT last FROM registry WHERE id = $1`, 1, &last)
	return uint64(last), err
}

// Namespace implements [stele.Store].
func (s *Store) Namespace(ctx context.Context, k stele.NamespaceKey) (*stele.Namespace, error) {
	var body []byte
	found, err := s.one(ctx, "get namespace", stele.ID{}, `SELECT body FROM namespaces WHERE key = $1`, key(namespaceName(k)), &body)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, refusal.NamespaceMissing(k)
	}
	n := new(stele.Namespace)
	if err := binary.UnmarshalNamespace(body, n); err != nil {
		return nil, damaged("get namespace", stele.ID{}, err)
	}
	return n, nil
}

// MinterState implements [stele.Store].
func (s *Store) MinterState(ctx context.Context, name string) (kept []byte, err error) {
	_, err = s.one(ctx, "get minter", stele.ID{}, `SELECT state FROM minters WHERE key = $1`, key([]byte(name)), &kept)
	return kept, err
}

// Cell implements [stele.Store].
func (s *Store) Cell(ctx context.Context, name string) (kept []byte, err error) {
	_, err = s.one(ctx, "get cell", stele.ID{}, `SELECT value FROM cells WHERE name = $1`, []byte(name), &kept)
	return kept, err
}

// CutCell implements [stele.CellCutter].
func (s *Store) CutCell(ctx context.Context, name string, from, count int) (part []byte, length int, err error) {
	const sql = `SELECT substring(value FROM $2 FOR $3), length(value) FROM cells WHERE name = $1`
	err = s.ask(ctx, "get cell", stele.ID{}, func(ctx context.Context, conn *pgxpool.Conn) (bool, error) {
		return false, conn.QueryRow(ctx, sql, []byte(name), from+1, count).Scan(&part, &length)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, -1, nil
	}
	return part, length, err
}

// GatherCells implements [stele.CellGatherer]: one statement reads many cells, where each would take a round trip.
func (s *Store) GatherCells(ctx context.Context, names []string) ([][]byte, error) {
	list := make([][]byte, 0, len(names))
	for some := range slices.Chunk(names, gathered) {
		values := make(map[string][]byte, len(some))
		keys := make([][]byte, len(some))
		for i, name := range some {
			keys[i] = []byte(name)
		}
		err := s.ask(ctx, "get cell", stele.ID{}, func(ctx context.Context, conn *pgxpool.Conn) (bool, error) {
			clear(values)
			rows, err := conn.Query(ctx, `SELECT name, value FROM cells WHERE name = ANY($1)`, keys)
			if err != nil {
				return false, err
			}
			var under, value []byte
			_, err = pgx.ForEachRow(rows, []any{&under, &value}, func() error {
				values[string(under)], value = value, nil
				return nil
			})
			return false, err
		})
		if err != nil {
			return nil, err
		}
		for _, name := range some {
			list = append(list, values[name])
		}
	}
	return list, nil
}

// Count implements [stele.Store].
func (s *Store) Count(ctx context.Context, k stele.NamespaceKey) (uint64, error) {
	var n int64
	_, err := s.one(ctx, "count", stele.ID{}, `SELECT n FROM counts WHERE key = $1`, key(namespaceName(k)), &n)
	return uint64(n), err
}

// Sealed implements [stele.Store].
func (s *Store) Sealed(ctx context.Context) (string, error) {
	var reason []byte
	_, err := s.one(ctx, "seal", stele.ID{}, `SELECT seal FROM registry WHERE id = $1`, 1, &reason)
	return string(reason), err
}

// signed makes a bigint of a number. No number that is kept is greater than the
// greatest bigint.
func signed(n uint64) int64 { return int64(min(n, math.MaxInt64)) }
