package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/binary"
)

const (
	sqlUndated = `SELECT h.key, h.version, h.body, n.body, n."full" FROM history AS h
		LEFT JOIN names AS n ON n.key = h.key AND n.record IS NULL
		WHERE h.at IS NULL AND (h.key, h.version) > ($1, $2) ORDER BY h.key, h.version LIMIT $3`
	sqlDate = `UPDATE history AS h SET at = u.at
		FROM unnest($1::bytea[], $2::bigint[], $3::bytea[]) AS u(key, version, at) WHERE h.key = u.key AND h.version = u.version`
	sqlSetWithheld = `UPDATE names SET body = $2 WHERE key = $1 AND version = $3`
	sqlMarkRecord  = `INSERT INTO withheld (key, "full") VALUES ($1, $2) ON CONFLICT (key) DO NOTHING`
)

// fillVersions gives the versions in the history, that an earlier program or a restore
// wrote, their times, and lists the records that withhold something. If an earlier program
// wrote them it computes what they withhold: such a program marked the redacted version
// alone. It may be done again, and by several at once.
func fillVersions(ctx context.Context, conn *pgx.Conn, earlier bool) error {
	for last := (record{key: []byte{}}); ; {
		var page []undated
		rows, err := conn.Query(ctx, sqlUndated, last.key, last.version, verifyPage)
		if err != nil {
			return err
		}
		var u undated
		_, err = pgx.ForEachRow(rows, []any{&u.key, &u.version, &u.body, &u.now, &u.full}, func() error {
			page = append(page, u)
			u = undated{}
			return nil
		})
		if err != nil || len(page) == 0 {
			return err
		}
		if err := fillPage(ctx, conn, page, earlier); err != nil {
			return err
		}
		last = record{key: page[len(page)-1].key, version: page[len(page)-1].version}
	}
}

// undated is a version without a time, and the current version of its record.
type undated struct {
	record
	now []byte
}

func fillPage(ctx context.Context, conn *pgx.Conn, page []undated, earlier bool) error {
	var keys, times [][]byte
	var numbers []int64
	var at *undated                     // the last of a record
	redacted := make(map[string]uint64) // by key
	for i := range page {
		u := &page[i]
		r, err := decode(stele.ID{}, u.body)
		if err != nil {
			return err
		}
		keys, numbers, times = append(keys, u.key), append(numbers, u.version), append(times, stele.AppendTimeKey(nil, r.Modified))
		if r.Redacted && earlier {
			redacted[string(u.key)] = max(redacted[string(u.key)], r.Version)
		}
		if at != nil && string(at.key) != string(u.key) {
			if err := fillRecord(ctx, conn, at, redacted[string(at.key)], earlier); err != nil {
				return err
			}
		}
		at = u
	}
	if err := fillRecord(ctx, conn, at, redacted[string(at.key)], earlier); err != nil {
		return err
	}
	// Last: a version without a time is filled in again.
	return step(ctx, conn, sqlDate, keys, numbers, times)
}

// fillRecord computes what a record withholds, given the highest redacted version of a
// part of its history.
func fillRecord(ctx context.Context, conn *pgx.Conn, u *undated, redacted uint64, earlier bool) error {
	if u.now == nil {
		return nil // damage, which Verify reports
	}
	now, err := decode(stele.ID{}, u.now)
	if err != nil {
		return err
	}
	if now.Redacted && earlier {
		redacted = now.Version
	}
	if redacted > now.Withheld.Redacted {
		now.Withheld.Redacted = redacted
		body, err := binary.MarshalRecord(now)
		if err != nil {
			return err
		}
		if err := step(ctx, conn, sqlSetWithheld, u.key, body, signed(now.Version)); err != nil {
			return err
		}
	}
	if now.Withheld.IsZero() {
		return nil
	}
	return step(ctx, conn, sqlMarkRecord, u.key, u.full)
}
