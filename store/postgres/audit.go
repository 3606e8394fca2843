package postgres

import (
	"context"
	"iter"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/binary"
	"github.com/stele-id/stele/store/refusal"
)

// Statements of the audit trail. The row of the registry has the number and the time of its
// last entry: the transaction that appends holds that row, so that numbers have no gaps and times never
// go back, whatever the clocks of several servers say.
const (
	sqlInsertAudit = `INSERT INTO audit (number, at, body)
		SELECT r.audit - $1 + u.i, coalesce(u.at, r.auditat), u.body
		FROM registry AS r, unnest($2::bigint[], $3::timestamptz[], $4::bytea[]) AS u(i, at, body)
		WHERE r.id = 1`
	sqlTrimAudit = `WITH gone AS (DELETE FROM audit WHERE number <= $1 RETURNING number)
		SELECT (SELECT min(number) FROM audit), (SELECT count(*) FROM gone)` // both see the trail as it was before
	sqlAudit      = `SELECT number, at, body FROM audit WHERE number > $1 ORDER BY number LIMIT $2`
	sqlAuditRange = `SELECT coalesce(min(number), 0), coalesce(max(number), 0) FROM audit WHERE number > $1`
)

// auditRow is an entry of the audit trail before it has a number.
type auditRow struct {
	number uint64 // that it must get; 0 for the next one
	at     *time.Time
	body   []byte
}

// encodeAudit encodes entries that were checked.
func encodeAudit(list []*stele.AuditEntry) (rows []auditRow, err error) {
	for _, e := range list {
		row := auditRow{number: e.Number}
		if e.Number != 0 {
			at := e.At.UTC().Truncate(time.Microsecond)
			row.at = &at
		}
		row.body = binary.MarshalAudit(e)
		rows = append(rows, row)
	}
	return rows, nil
}

// isAlone reports whether the request must not share a transaction with others: its
// numbers are given, or it trims, or it raises zones.
func (q *request) isAlone() bool {
	return q.replay != nil || q.trim > 0 || len(q.zones.raises) > 0 || len(q.audit) > 0 && q.audit[0].number != 0
}

// ingestAudit makes the entries of an ingest, once it is known what is refused.
func (q *request) ingestAudit() error {
	counts := make(map[stele.NamespaceKey]uint64)
	for i, e := range q.records {
		if e != nil && q.refused[i] == nil {
			counts[e.counted.Namespace]++
		}
	}
	var err error
	q.audit, err = encodeAudit(stele.AuditByNamespace(q.models, counts))
	return err
}

// auditArgs returns what sqlNumber needs to know: how many entries there are, when, and
// after which number they must come, if that is given.
func (g *group) auditArgs() (n int, at time.Time, base *int64) {
	at = g.store.o.Now().UTC().Truncate(time.Microsecond)
	if n = len(g.audit); n > 0 && g.audit[0].number != 0 {
		first := signed(g.audit[0].number) - 1
		return n, *g.audit[n-1].at, &first
	}
	return n, at, nil
}

// queueAudit trims the trail and appends the entries of the group, after they got their
// numbers.
func (g *group) queueAudit(b *batch) {
	if g.trim > 0 {
		b.Queue(sqlTrimAudit, signed(g.trim)).QueryRow(func(row pgx.Row) error {
			var first *int64
			var gone int64
			if err := row.Scan(&first, &gone); err != nil {
				return err
			}
			begin := g.lastAudit + 1
			if first != nil {
				begin = uint64(*first)
			}
			if gone == 0 || g.trim > g.lastAudit {
				b.wrong = firstOf(b.wrong, refusal.AuditTrim(g.trim, begin, g.lastAudit))
			}
			return nil
		})
	}
	rows := g.audit
	index := make([]int64, len(rows))
	for i := range index {
		index[i] = int64(i) + 1
	}
	b.add(len(rows), sqlInsertAudit, len(rows), index,
		column(rows, func(r *auditRow) *time.Time { return r.at }), column(rows, func(r *auditRow) []byte { return r.body }))
}

// numberAudit checks that the group may have its numbers in the audit trail, the last of
// which is given.
func (g *group) numberAudit(last uint64) error {
	n := uint64(len(g.audit))
	g.lastAudit = last - n
	if n > 0 && g.audit[0].number != 0 && g.audit[n-1].number != last {
		return refusal.AuditOrder(g.audit[0].number, g.lastAudit)
	}
	return nil
}

// Audit implements [stele.Store].
func (s *Store) Audit(ctx context.Context, after uint64) iter.Seq2[*stele.AuditEntry, error] {
	return list(ctx, s, "read audit trail", func() source[*stele.AuditEntry] { return &auditSource{after: after} })
}

// auditSource reads the trail.
type auditSource struct {
	after  uint64
	isDone bool
}

func (a *auditSource) next(limit int) (string, []any) {
	if a.isDone {
		return "", nil
	}
	return sqlAudit, []any{signed(a.after), limit}
}

func (a *auditSource) take(rows pgx.Rows) (e *stele.AuditEntry, size int, ok bool, err error) {
	var number int64
	var at time.Time
	var body []byte
	if err := rows.Scan(&number, &at, &body); err != nil {
		return nil, 0, false, err
	}
	e = &stele.AuditEntry{Number: uint64(number), At: at.UTC()}
	if err := binary.UnmarshalAudit(body, e); err != nil {
		return nil, 0, false, damaged("read audit trail", stele.ID{}, err)
	}
	a.after = e.Number
	return e, len(body) + 64, true, nil
}

func (a *auditSource) ended() { a.isDone = true }

// AuditRange implements [stele.Store].
func (s *Store) AuditRange(ctx context.Context) (first, last uint64, err error) {
	var low, high int64
	err = s.ask(ctx, "read audit trail", stele.ID{}, func(ctx context.Context, conn *pgxpool.Conn) (bool, error) {
		return false, conn.QueryRow(ctx, sqlAuditRange, 0).Scan(&low, &high)
	})
	return uint64(low), uint64(high), err
}

// audit checks that the trail has no gaps, that each entry can be read, and that an entry
// says what was trimmed.
func (c *checker) audit() error {
	var number, first, last, trimmed, registered int64
	var at, before time.Time
	var body []byte
	err := c.long(`SELECT number, at, body FROM audit ORDER BY number`, []any{&number, &at, &body}, func() {
		var e stele.AuditEntry
		switch err := binary.UnmarshalAudit(body, &e); {
		case err != nil:
			c.problem("verify.audit-entry-damaged-in-table", "entry {number} of the audit trail is damaged: {cause}", number, err)
		case last != 0 && number != last+1:
			c.problem("verify.audit-entry-out-of-order-in-table", "entry {number} of the audit trail follows entry {before}", number, last)
		case at.Before(before):
			c.problem("verify.audit-entry-earlier-in-table", "entry {number} of the audit trail is earlier than the one before it", number)
		}
		if first == 0 {
			first = number
		}
		last, before, trimmed = number, at, max(trimmed, int64(min(e.Trimmed, math.MaxInt64)))
	})
	if err != nil {
		return err
	}
	if first > 1 && trimmed < first-1 {
		c.problem("verify.audit-beginning-missing-in-table", "the audit trail begins with entry {first}, and no entry says that those before were trimmed", first)
	}
	err = c.long(`SELECT audit FROM registry WHERE id = 1`, []any{&registered}, func() {})
	if err == nil && registered != last {
		c.problem("verify.audit-end-differs", "the audit trail ends with entry {last}, and the registry says {expected}", last, registered)
	}
	return err
}
