package postgres

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/maphash"

	"github.com/jackc/pgx/v5"

	"github.com/stele-id/stele"
	stored "github.com/stele-id/stele/store/binary"
)

// Verify implements [stele.Store]. It looks at one state of the store, and decodes all
// that is kept:
//
//   - each record stands under its identifier, and its history has every version;
//   - what the records say makes exactly the aliases and places that there are: each is
//     looked up, and there are no more of them;
//   - the change feed has each version once, and no number is left out;
//   - counts are what the feed says;
//   - minters and cells have names and sizes that they may have;
//   - the audit trail has no gaps, and says what was trimmed.
//
// Whether the database's own files are sound is for its own checksums and pg_amcheck.
func (s *Store) Verify(ctx context.Context, report func(problem *stele.Message)) error {
	return s.VerifyProgress(ctx, report, func(float64) {})
}

// VerifyProgress is Verify for a caller that shows progress: progress is called now and
// then with the part of the work that is done, from 0 to 1, which is estimated.
func (s *Store) VerifyProgress(ctx context.Context, report func(problem *stele.Message), progress func(done float64)) error {
	v, err := s.look(ctx, "verify")
	if err != nil {
		return err
	}
	defer v.end(ctx)
	c := &checker{ctx: ctx, v: v, report: report, progress: progress, counts: make(map[string]int64), seed: maphash.MakeSeed(),
		withholding: make(map[string]uint64), namespaceVersions: make(map[string]int64)}
	for _, part := range []func() error{c.registry, c.plan, c.records, c.totals, c.history, c.withheld, c.namespaces, c.namespaceHistory, c.feed, c.feedVersions, c.tallies, c.kept, c.audit, c.zones} {
		if err := part(); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// checker is a Verify under way.
type checker struct {
	ctx    context.Context
	v      *view
	report func(*stele.Message)

	progress func(float64)
	rows     int64 // that were read

	last              int64             // number of the last change
	aliases, places   int64             // that the records say
	withholding       map[string]uint64 // by key: records that withhold something, and up to where they are erased
	namespaceVersions map[string]int64  // by key
	counts            map[string]int64  // by key of the namespace, as the feed says

	// The sum of all versions that there are, less those in the feed. The order of what
	// is added does not matter; that it is 0 by chance does not happen.
	seed    maphash.Seed
	balance uint64
}

// version is what a version of something counts for in the balance.
func (c *checker) version(name []byte, space bool, version uint64) uint64 {
	var h maphash.Hash
	h.SetSeed(c.seed)
	kind := byte(0)
	if space {
		kind = 1
	}
	_ = h.WriteByte(kind) // it never fails
	_, _ = h.Write(binary.BigEndian.AppendUint64(nil, version))
	_, _ = h.Write(name)
	return h.Sum64()
}

// exist notes that there are the versions up to one. There are no more of them than
// changes.
func (c *checker) exist(name []byte, space bool, last int64) {
	for v := int64(1); v <= min(last, c.last); v++ {
		c.balance += c.version(name, space, uint64(v))
	}
}

func (c *checker) problem(code, text string, args ...any) {
	c.report(stele.Messagef(code, text, args...))
}

// verifyPage is how many rows are looked at at once.
const verifyPage = 512

// each reads rows of a statement.
func (c *checker) each(sql string, args []any, into []any, row func()) error {
	return c.v.query(c.ctx, sql, args, func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, into, func() error { c.count(); row(); return nil })
		return err
	})
}

// count counts a row for the progress. There is about a record, a version and an entry of
// the feed for each change.
func (c *checker) count() {
	if c.rows++; c.rows%verifyPage == 0 {
		c.progress(min(1, float64(c.rows)/float64(3*max(1, c.last))))
	}
}

// long is each for a statement that reads whole tables.
func (c *checker) long(sql string, into []any, row func()) error {
	return c.v.stream(c.ctx, sql, func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, into, func() error { c.count(); row(); return nil })
		return err
	})
}

// registry looks at the one row that there must be.
func (c *checker) registry() error {
	n := 0
	err := c.each(`SELECT last FROM registry WHERE id = $1`, []any{1}, []any{&c.last}, func() { n++ })
	if err == nil && n != 1 {
		c.problem("verify.last-change-missing", "the registry has no number of its last change")
	}
	if err != nil {
		return err
	}
	var text []byte
	return c.each(`SELECT generations FROM registry WHERE id = $1`, []any{1}, []any{&text}, func() {
		if err := new(stele.Generations).UnmarshalText(text); err != nil {
			c.problem("verify.generations-unreadable-in-table", "the generations can't be read: {cause}", err)
		}
	})
}

// plan takes back what keeps the database from reading whole tables, for this transaction.
func (c *checker) plan() error {
	for _, sql := range []string{`SET LOCAL enable_seqscan = on`, `SET LOCAL enable_hashjoin = on`, `SET LOCAL enable_mergejoin = on`} {
		if err := c.long(sql, nil, func() {}); err != nil {
			return err
		}
	}
	return nil
}

// record is a row of an identifier.
type record struct {
	key, full, body []byte
	version         int64
}

const (
	sqlVerifyRecords = `SELECT key, "full", coalesce(version, 0), coalesce(body, '') FROM names
		WHERE key > $1 AND record IS NULL ORDER BY key LIMIT $2`
	sqlVerifyHistory = `SELECT key, count(*), min(version), max(version) FROM history WHERE key = ANY($1) GROUP BY key`
	sqlMissingNames  = `SELECT u.key FROM unnest($1::bytea[], $2::bytea[]) AS u(key, record)
		LEFT JOIN names AS n ON n.key = u.key AND n.record = u.record WHERE n.key IS NULL`
	sqlMissingPlaces = `SELECT u.place, u.record FROM unnest($1::bytea[], $2::bytea[]) AS u(place, record)
		LEFT JOIN places AS p ON p.place = u.place AND p.record = u.record WHERE p.place IS NULL`
)

// records looks at all records, and looks up what they say.
func (c *checker) records() error {
	for cursor := []byte{}; ; {
		var list []record
		var r record
		err := c.each(sqlVerifyRecords, []any{cursor, verifyPage}, []any{&r.key, &r.full, &r.version, &r.body}, func() {
			list = append(list, r)
			r = record{}
		})
		if err != nil || len(list) == 0 {
			return err
		}
		if err := c.recordPage(list); err != nil {
			return err
		}
		cursor = list[len(list)-1].key
	}
}

func (c *checker) recordPage(list []record) error {
	var aliases, aliasOf, places, placeOf, keys [][]byte
	for _, row := range list {
		keys = append(keys, row.key)
		r, ok := c.decode("the record", row)
		if !ok {
			continue
		}
		if !r.Withheld.IsZero() {
			c.withholding[string(row.key)] = r.Withheld.Erased
		}
		for _, alias := range labels(r) {
			aliases, aliasOf = append(aliases, []byte(alias.key)), append(aliasOf, row.key)
		}
		for _, place := range placesOf(r) {
			places, placeOf = append(places, []byte(place)), append(placeOf, row.key)
		}
	}
	c.aliases += int64(len(aliases))
	c.places += int64(len(places))
	var a, b []byte
	if aliases != nil {
		err := c.each(sqlMissingNames, []any{aliases, aliasOf}, []any{&a}, func() {
			c.problem("verify.alias-not-leading-to-record-in-table", `the alias "{alias}" does not lead to its record`, a)
		})
		if err != nil {
			return err
		}
	}
	if places != nil {
		err := c.each(sqlMissingPlaces, []any{places, placeOf}, []any{&a, &b}, func() {
			c.problem("verify.record-not-found-by-place", `the record "{id}" is not found by its place "{place}"`, b, a)
		})
		if err != nil {
			return err
		}
	}
	return c.versions(list, keys)
}

// decode looks at a row of names or history by itself.
func (c *checker) decode(what string, row record) (*stele.Record, bool) {
	r := new(stele.Record)
	if err := stored.UnmarshalRecord(row.body, r); err != nil {
		c.problem("verify.row-damaged", `{what} "{key}", version {version}, is damaged: {cause}`, what, row.key, row.version, err)
		return nil, false
	}
	name := nameOf(r.ID)
	if !bytes.Equal(key(name), row.key) || r.Version != uint64(row.version) {
		c.problem("verify.row-has-other-content", `{what} "{key}", version {version}, has the content of "{id}", version {content-version}`, what, row.key, row.version, r.ID, r.Version)
		return nil, false
	}
	return r, true
}

// versions checks that the history has every version before the present ones.
func (c *checker) versions(list []record, keys [][]byte) error {
	have := make(map[string][3]int64)
	var under []byte
	var n, first, last int64
	err := c.each(sqlVerifyHistory, []any{keys}, []any{&under, &n, &first, &last}, func() {
		have[string(under)] = [3]int64{n, first, last}
	})
	if err != nil {
		return err
	}
	for _, row := range list {
		if !same(full(fullName(row)), row.full) {
			c.problem("verify.long-name-wrong", `the name "{name}" has the long form "{long-name}", which is not its own`, row.key, row.full)
		}
		want := [3]int64{row.version - 1, 1, row.version - 1}
		if row.version == 1 {
			want = [3]int64{}
		}
		if got := have[string(row.key)]; got != want {
			c.problem("verify.history-incomplete", `the record "{id}" is at version {version}, and its history has {count}, from {first} to {last}`, row.key, row.version, got[0], got[1], got[2])
		}
		c.exist(fullName(row), false, row.version)
	}
	return nil
}

// fullName is the whole name of a row.
func fullName(row record) []byte {
	if len(row.key) > maxKey {
		return row.full
	}
	return row.key
}

// What there is and should not be, if there are more than the records say. Aliases and
// places are compared with the records in turn; the first are enough.
const (
	sqlCountAliases = `SELECT count(*) FROM names WHERE record IS NOT NULL`
	sqlCountPlaces  = `SELECT count(*) FROM places`
	sqlAliases      = `SELECT a.key, a.record, r.body FROM names AS a
		LEFT JOIN names AS r ON r.key = a.record AND r.record IS NULL WHERE a.record IS NOT NULL ORDER BY a.key`
	sqlPlaces = `SELECT p.place, p.record, r.body FROM places AS p
		LEFT JOIN names AS r ON r.key = p.record AND r.record IS NULL ORDER BY p.place, p.record`
	sqlLostHistory = `SELECT h.key, h.version FROM history AS h LEFT JOIN names AS n ON n.key = h.key AND n.record IS NULL
		WHERE n.key IS NULL OR h.version >= n.version OR h.version < 1`
)

// totals checks that there are no aliases and places but those that records say.
func (c *checker) totals() error {
	var n int64
	for _, t := range []struct {
		what, count, list string
		want              int64
		has               func(r *stele.Record, key string) bool
	}{
		{"alias", sqlCountAliases, sqlAliases, c.aliases, hasAlias},
		{"place", sqlCountPlaces, sqlPlaces, c.places, hasPlace},
	} {
		if err := c.long(t.count, []any{&n}, func() {}); err != nil {
			return err
		}
		if n == t.want {
			continue
		}
		c.problem("verify.table-count-differs", "the records have {expected} of what the table has {count} of: {what}", t.want, n, t.what)
		var under, owner, body []byte
		err := c.long(t.list, []any{&under, &owner, &body}, func() {
			var r stele.Record
			if stored.UnmarshalRecord(body, &r) != nil || !t.has(&r, string(under)) {
				c.problem("verify.row-not-of-record", `the {what} "{name}" is kept for "{id}", which does not have it`, t.what, under, owner)
			}
			body = nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func hasAlias(r *stele.Record, key string) bool {
	for _, alias := range labels(r) {
		if alias.key == key {
			return true
		}
	}
	return false
}

func hasPlace(r *stele.Record, key string) bool {
	for _, place := range placesOf(r) {
		if place == key {
			return true
		}
	}
	return false
}
