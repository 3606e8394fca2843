package postgres

import (
	"context"
	"iter"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/binary"
	"github.com/stele-id/stele/store/refusal"
)

// What is written about zones comes after the numbers of the changes are taken: the row
// of the registry is locked then, so that no other transaction writes about zones at the same time
// and no other lock is waited for.
const (
	sqlInsertRuns = `INSERT INTO zone_runs (zone, last, first)
		SELECT u.zone, r.last - $1 + u.last, r.last - $1 + u.first
		FROM registry AS r, unnest($2::bytea[], $3::bigint[], $4::bigint[]) AS u(zone, last, first) WHERE r.id = 1`
	sqlTouchZones = `INSERT INTO zones (zone, base, last, since, shut)
		SELECT u.zone, 0, r.last - $1 + u.last, r.last - $1 + u.last, false
		FROM registry AS r, unnest($2::bytea[], $3::bigint[]) AS u(zone, last) WHERE r.id = 1
		ON CONFLICT (zone) DO UPDATE SET last = excluded.last`
	sqlRaiseZones = `INSERT INTO zones (zone, base, last, since, shut)
		SELECT x.zone, x.base, x.n, x.n, x.shut FROM (
			SELECT u.zone, u.base, u.shut, CASE WHEN u.last > 0 THEN u.last WHEN z.zone IS NULL THEN r.last
				ELSE greatest(z.last, coalesce(e.last, 0)) END AS n
			FROM unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::boolean[], $5::bigint[]) AS u(zone, before, base, shut, last)
			JOIN registry AS r ON r.id = 1
			LEFT JOIN zones AS z ON z.zone = u.zone LEFT JOIN zones AS e ON e.zone = ''
			WHERE coalesce(z.base, 0) = u.before AND u.last <= r.last) AS x
		ON CONFLICT (zone) DO UPDATE SET base = excluded.base, last = excluded.last, since = excluded.since, shut = excluded.shut RETURNING zone`
	sqlRaised = `SELECT coalesce(z.base, 0), r.last FROM registry AS r LEFT JOIN zones AS z ON z.zone = $1 WHERE r.id = 1`
)

// zoneEntry is what a commit or an ingest says about zones.
type zoneEntry struct {
	touch             bool     // something is known
	namespaceVersions uint64   // sum of versions of the namespaces that the caller knew
	zones             []string // of the namespaces
	raises            []stele.ZoneRaise
}

// encodeZones notes what a commit says about zones.
func (q *request) encodeZones(touch *stele.Touch, records []*stele.Record) error {
	if touch == nil {
		return nil
	}
	q.zones.touch, q.zones.namespaceVersions, q.zones.zones = true, touch.NamespaceVersions, touch.Namespaces
	if touch.Record == nil {
		return nil
	}
	for i, e := range q.records {
		if e == nil {
			continue
		}
		e.zones = touch.Record(records[i])
		if err := stele.CheckZoneNames(e.zones); err != nil {
			if !q.ingest {
				return err
			}
			q.records[i], q.invalid[i] = nil, err
		}
	}
	return nil
}

// checkNamespaces refuses namespaces from a caller that does not know all present ones, and records that were judged before
// a namespace was sealed.
func (g *group) checkNamespaces(q *request) error {
	if q.zones.touch && len(q.namespaces) > 0 && q.replay == nil && q.zones.namespaceVersions != g.namespaceVersions+g.newNamespaceVersions {
		return refusal.NamespaceChanged()
	}
	if q.zones.touch && len(q.records)+len(q.seen) > 0 && q.replay == nil && stele.IsFenced(g.fenceNow(), q.zones.namespaceVersions) {
		return refusal.Fenced("commit")
	}
	return nil
}

// fenceNow returns the fence of the namespaces ([stele.NamespaceFence]) with what a request of the group before makes of it.
func (g *group) fenceNow() []byte {
	if c := g.set.cells[stele.NamespaceFence]; c != nil {
		return c.after
	}
	return g.fence
}

// addZones notes which zones the changes of a request touch, which follow those that the
// group has.
func (g *group) addZones(q *request, changes []feedRow) {
	defer func() { g.newNamespaceVersions += uint64(len(q.namespaces)) }()
	if !q.zones.touch && q.replay != nil {
		return
	}
	every := !q.zones.touch || q.zones.namespaceVersions != g.namespaceVersions+g.newNamespaceVersions
	first := uint64(len(g.rows)) + 1
	for i := range changes {
		zones := changes[i].zones
		switch {
		case every:
			zones = []string{stele.EveryZone}
		case changes[i].space:
			zones = q.zones.zones
		}
		for _, zone := range zones {
			g.runs.Add(zone, first+uint64(i))
		}
	}
}

// queueZones adds what is written about zones.
func (g *group) queueZones(b *batch) {
	var zones, runs [][]byte
	var lasts, firsts, ends []int64
	for zone, list := range sorted(g.runs) {
		for _, run := range list {
			runs, firsts, ends = append(runs, []byte(zone)), append(firsts, signed(run.First)), append(ends, signed(run.Last))
		}
		zones, lasts = append(zones, []byte(zone)), append(lasts, signed(list[len(list)-1].Last))
	}
	b.add(len(runs), sqlInsertRuns, len(g.rows), runs, ends, firsts)
	b.add(len(zones), sqlTouchZones, len(g.rows), zones, lasts)
	raises := g.requests[0].zones.raises // a request that raises is alone in its group
	if len(raises) == 0 || g.answers[0] != nil {
		return
	}
	b.Queue(sqlRaiseZones, column(raises, func(r *stele.ZoneRaise) []byte { return []byte(r.Zone) }),
		column(raises, func(r *stele.ZoneRaise) int64 { return int64(r.Before) }), column(raises, func(r *stele.ZoneRaise) int64 { return int64(r.Base) }),
		column(raises, func(r *stele.ZoneRaise) bool { return r.Shut }), column(raises, func(r *stele.ZoneRaise) int64 { return signed(r.Last) }),
	).Query(func(rows pgx.Rows) error {
		raised, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
		i := slices.IndexFunc(raises, func(r stele.ZoneRaise) bool {
			return !slices.ContainsFunc(raised, func(zone []byte) bool { return string(zone) == r.Zone })
		})
		if i >= 0 {
			b.why = func(ctx context.Context, conn *pgxpool.Conn) error { return notRaised(ctx, conn, raises[i]) }
		}
		return err
	})
}

// notRaised reads why a zone did not get another base.
func notRaised(ctx context.Context, conn *pgxpool.Conn, r stele.ZoneRaise) error {
	var base, last int64
	if err := conn.QueryRow(ctx, sqlRaised, []byte(r.Zone)).Scan(&base, &last); err != nil {
		return err
	}
	if uint32(base) != r.Before {
		return refusal.ZoneBase(r.Zone, uint32(base), r.Before)
	}
	return refusal.ZoneChange(r.Zone, r.Last, uint64(last))
}

const sqlZone = `SELECT r.last, z.base, z.last, z.since, z.shut, e.last FROM registry AS r
	LEFT JOIN zones AS z ON z.zone = $1 LEFT JOIN zones AS e ON e.zone = '' WHERE r.id = 1`

// ZoneState implements [stele.Store].
func (s *Store) ZoneState(ctx context.Context, zone string) (stele.ZoneState, error) {
	z := stele.ZoneState{Zone: zone}
	var at int64
	var base, last, since, every *int64
	var shut *bool
	found, err := s.one(ctx, "get zone", stele.ID{}, sqlZone, []byte(zone), &at, &base, &last, &since, &shut, &every)
	if err != nil {
		return z, err
	}
	if !found {
		return z, damaged("get zone", stele.ID{}, stele.Messagef("verify.last-change-missing", "the registry has no number of its last change"))
	}
	if z.At = uint64(at); base == nil {
		z.Last, z.Since = z.At, z.At
		return z, nil
	}
	z.Base, z.Last, z.Since, z.Shut = uint32(*base), uint64(*last), uint64(*since), *shut
	if every != nil {
		z.Last = max(z.Last, uint64(*every))
	}
	return z, nil
}

const sqlZones = `SELECT z.zone, z.base, greatest(z.last, coalesce(e.last, 0)), z.since, z.shut, r.last FROM zones AS z
	JOIN registry AS r ON r.id = 1 LEFT JOIN zones AS e ON e.zone = '' WHERE z.zone > $1 ORDER BY z.zone LIMIT $2`

// zoneList is the source of the states of zones.
type zoneList struct {
	after  []byte
	isDone bool
}

// ZoneStates implements [stele.Store].
func (s *Store) ZoneStates(ctx context.Context) iter.Seq2[stele.ZoneState, error] {
	return list(ctx, s, "list zones", func() source[stele.ZoneState] { return &zoneList{after: []byte{}} })
}

func (l *zoneList) next(limit int) (string, []any) {
	if l.isDone {
		return "", nil
	}
	return sqlZones, []any{l.after, limit}
}

func (l *zoneList) take(rows pgx.Rows) (z stele.ZoneState, size int, ok bool, err error) {
	var base, last, since, at int64
	if err := rows.Scan(&l.after, &base, &last, &since, &z.Shut, &at); err != nil {
		return z, 0, false, err
	}
	z.Zone, z.Base, z.Last, z.Since, z.At = string(l.after), uint32(base), uint64(last), uint64(since), uint64(at)
	return z, len(l.after) + 64, true, nil
}

func (l *zoneList) ended() { l.isDone = true }

// sqlZoneChanges reads the runs of a zone first, and no changes but theirs.
const sqlZoneChanges = `SELECT c.seq, c.at, c.name, c.space, c.version, c.counted FROM (
		(SELECT first, last FROM zone_runs WHERE zone = $1 AND last > $2 ORDER BY last LIMIT $3)
		UNION ALL (SELECT first, last FROM zone_runs WHERE zone = '' AND $1 <> ''::bytea AND last > $2 ORDER BY last LIMIT $3)) AS u
	JOIN LATERAL (SELECT * FROM changes WHERE seq > $2 AND seq >= u.first AND seq <= u.last ORDER BY seq LIMIT $3) AS c ON true
	ORDER BY c.seq LIMIT $3`

// zoneFeed is the source of the changes of a zone.
type zoneFeed struct {
	feed
	zone []byte
}

// ZoneChanges implements [stele.Store].
func (s *Store) ZoneChanges(ctx context.Context, zone string, after uint64) iter.Seq2[stele.Change, error] {
	return list(ctx, s, "zone changes", func() source[stele.Change] {
		return &zoneFeed{feed{after: signed(after)}, []byte(zone)}
	})
}

func (f *zoneFeed) next(limit int) (string, []any) {
	if f.isDone {
		return "", nil
	}
	return sqlZoneChanges, []any{f.zone, f.after, limit}
}

// addZones brings tables from before zones had a state up to date: until then the serial
// of every zone was the number of the last change. It takes a transaction that has the row
// of the registry for itself.
func addZones(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, `UPDATE registry SET spaces = (SELECT coalesce(sum(version), 0)::bigint FROM namespaces) WHERE id = 1`); err != nil {
		return err
	}
	var bodies [][]byte
	rows, err := tx.Query(ctx, `SELECT body FROM namespaces`)
	if err == nil {
		bodies, err = pgx.CollectRows(rows, pgx.RowTo[[]byte])
	}
	if err != nil {
		return err
	}
	var zones [][]byte
	for _, body := range bodies {
		var n stele.Namespace
		if binary.UnmarshalNamespace(body, &n) != nil || stele.CheckZoneNames([]string{n.Publication.Zone}) != nil {
			continue // it has no zone, or Verify names it
		}
		zones = append(zones, []byte(n.Publication.Zone))
	}
	slices.SortFunc(zones, slices.Compare)
	zones = slices.CompactFunc(zones, slices.Equal)
	_, err = tx.Exec(ctx, `INSERT INTO zones (zone, base, last, since, shut) SELECT u.zone, 0, r.last, r.last, false
		FROM registry AS r, unnest($1::bytea[]) AS u(zone) WHERE r.id = 1 ON CONFLICT (zone) DO NOTHING`, zones)
	return err
}

// upgradeZones gives the zones of an earlier program their states, in one transaction.
func upgradeZones(ctx context.Context, conn *pgx.Conn) error {
	for pause := (pause{}); ; {
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			var version int64
			err := tx.QueryRow(ctx, `SELECT coalesce(written, version) FROM registry WHERE id = 1 FOR UPDATE`).Scan(&version)
			if err != nil || version >= laterVersion {
				return err
			}
			return addZones(ctx, tx)
		})
		if err == nil || !isAgain(err) || pause.tries > 20 {
			return err
		}
		if !pause.sleep(ctx) {
			return ctx.Err()
		}
	}
}

// What can be wrong with zones.
const (
	sqlWrongZones = `SELECT z.zone, z.last FROM zones AS z JOIN registry AS r ON r.id = 1
		LEFT JOIN (SELECT zone, max(last) AS last FROM zone_runs GROUP BY zone) AS u ON u.zone = z.zone
		WHERE z.since > z.last OR z.last > r.last OR z.base < 0 OR z.base > 4294967295 OR z.last > z.since AND u.last IS DISTINCT FROM z.last`
	sqlWrongRuns = `SELECT u.zone, u.last FROM zone_runs AS u LEFT JOIN zones AS z ON z.zone = u.zone
		WHERE u.first < 1 OR u.first > u.last OR z.zone IS NULL OR u.last > z.last
			OR EXISTS (SELECT 1 FROM zone_runs AS v WHERE v.zone = u.zone AND v.last < u.last AND v.last >= u.first)`
	sqlWrongNamespaces = `SELECT ''::bytea, r.spaces FROM registry AS r WHERE r.spaces <> (SELECT coalesce(sum(version), 0) FROM namespaces)`
)

// zones checks that states and runs of zones agree with each other.
func (c *checker) zones() error {
	var zone []byte
	var last int64
	for _, q := range []struct {
		sql  string
		says func() *stele.Message
	}{
		{sqlWrongZones, func() *stele.Message {
			return stele.Messagef("verify.zone-index-differs", `the zone "{zone}" was touched by change {number} last, which its index does not say`, zone, last)
		}},
		{sqlWrongRuns, func() *stele.Message {
			return stele.Messagef("verify.zone-index-impossible", `the index of the zone "{zone}" has changes up to {number} that can't have touched it`, zone, last)
		}},
		{sqlWrongNamespaces, func() *stele.Message {
			return stele.Messagef("verify.namespace-versions-differ", "the versions of namespaces were counted as {counted}, and are others", last)
		}},
	} {
		if err := c.long(q.sql, []any{&zone, &last}, func() { c.report(q.says()) }); err != nil {
			return err
		}
	}
	return nil
}
