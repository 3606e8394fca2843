package postgres

import (
	"context"
	"errors"
	"runtime"
	"slices"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stele-id/stele"
)

// How much is committed as one group.
const (
	maxGroup      = 512
	maxGroupBytes = 8 << 20
)

// commit is a committer. It ends when the queue is closed and empty. There are several,
// and what they have in common is the queue: the database keeps their groups apart, as it
// does those of other processes.
func (s *Store) commit(w *writer) {
	g := newGroup(s, w)
	var held *request // one that must not be in a group with others
	for {
		q := held
		if held = nil; q == nil {
			var ok bool
			if q, ok = <-s.queue; !ok {
				return
			}
		}
		if held = g.collect(q); len(g.requests) == 0 {
			continue
		}
		ctx, cancel := context.WithCancel(context.Background())
		if deadline, ok := g.requests[0].life.Deadline(); ok {
			ctx, cancel = context.WithDeadline(ctx, deadline)
		}
		g.commit(ctx)
		cancel()
	}
}

// group is what is committed by one transaction.
type group struct {
	store    *Store
	writer   *writer
	requests []*request
	answers  []error
	blind    bool // new names are not looked up: the insert fails if one is taken

	have  *state // what the database has
	set   *state // what the group makes of it
	tx    tx
	past  []past
	rows  []feedRow
	audit []auditRow
	trim  uint64 // of the audit trail

	pastNamespaces []past
	withheld       []label
	erased         []erasure

	locked map[string]bool // counts that were read, and must be what they were
	sealed error
	last   uint64 // number of the last change

	lastAudit uint64 // number of the last entry of the audit trail before the group's own

	namespaceVersions    uint64 // sum of the versions of all namespaces, as the database has it
	newNamespaceVersions uint64 // what the group adds to it
	fence                []byte // what the database has in the cell stele.NamespaceFence
	runs                 stele.ZoneRuns
}

func newGroup(s *Store, w *writer) *group {
	g := &group{store: s, writer: w, have: newState(), set: newState(), locked: make(map[string]bool), runs: make(stele.ZoneRuns)}
	g.tx = tx{have: g.have, group: g.set, own: newState()}
	return g
}

// collect takes requests from the queue: the first, and what is there without waiting. A
// replay is committed by itself, since its numbers are given, and so is what raises zones; see isAlone.
func (g *group) collect(q *request) (held *request) {
	g.requests = g.requests[:0]
	size, yielded := 0, false
	for {
		if q.isAlone() && len(g.requests) > 0 {
			return q
		}
		if q.state.CompareAndSwap(requestWaits, requestTaken) {
			g.requests = append(g.requests, q)
			size += q.size
		}
		if q.isAlone() || len(g.requests) >= maxGroup || size >= maxGroupBytes {
			return nil
		}
		select {
		case next, ok := <-g.store.queue:
			if !ok {
				return nil
			}
			q = next
			continue
		default:
		}
		if yielded {
			return nil
		}
		// Callers that were answered just now may have another commit at once.
		yielded = true
		runtime.Gosched()
		select {
		case next, ok := <-g.store.queue:
			if !ok {
				return nil
			}
			q = next
		default:
			return nil
		}
	}
}

// commit commits the group and answers its requests.
func (g *group) commit(ctx context.Context) {
	began := g.store.o.Now()
	err := g.run(ctx)
	g.store.tally.Group(g.store.o.Now().Sub(began))
	if err != nil && len(g.requests) > 1 && stele.KindOf(err) == stele.Internal {
		// One of them is too large for the database. The others must not fail with it.
		all := slices.Clone(g.requests)
		for _, q := range all {
			g.requests = append(g.requests[:0], q)
			g.answer(g.run(ctx))
		}
		return
	}
	g.answer(err)
}

func (g *group) answer(err error) {
	for i, q := range g.requests {
		answer := err
		if err == nil {
			answer = g.answers[i]
		}
		g.store.tally.Commit(answer)
		q.done <- answer
		g.requests[i] = nil
	}
}

// run tries until the group is committed, refused, or the context ends, and for no longer
// than Wait after its first failure. Each request has its answer then, unless there is an
// error, which is the answer to all: since one may have been refused because of another
// that is not committed.
func (g *group) run(ctx context.Context) error {
	var patience context.Context // from the first failure
	for pause := (pause{}); ; {
		err := g.try(ctx)
		if g.blind && codeOf(err) == codeUnique {
			g.blind, g.writer.wary = false, waryIngests
			continue
		}
		if errors.Is(err, errUnknown) {
			committed, unknown := g.findOut(err)
			if unknown != nil || committed {
				return unknown // never again: it may be there already
			}
			err = errAgain
		}
		if _, own := asOwn(err); own || err == nil {
			return err
		}
		switch {
		case isAgain(err) || isAway(err):
			if patience == nil {
				var cancel context.CancelFunc
				patience, cancel = context.WithTimeout(ctx, g.store.o.Wait)
				defer cancel()
			}
			if !pause.sleep(patience) {
				return g.store.away("commit", err)
			}
		default:
			return sick("commit", stele.ID{}, err)
		}
	}
}

// try makes one transaction.
func (g *group) try(ctx context.Context) error {
	conn, err := g.store.writes.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if err := g.load(ctx, conn); err != nil {
		return g.abort(conn, err)
	}
	g.check()
	if g.isEmpty() {
		g.abort(conn, nil)
		return nil
	}
	if err := g.write(ctx, conn); err != nil {
		return g.abort(conn, err)
	}
	return g.finish(ctx, conn)
}

// abort takes back what the transaction did. A connection that leads to a server which
// can't be written to any more is closed.
func (g *group) abort(conn *pgxpool.Conn, cause error) error {
	ctx, cancel := context.WithTimeout(context.Background(), g.store.o.Wait)
	defer cancel()
	switch {
	case cause != nil && isAway(cause):
		_ = conn.Conn().Close(ctx)
	case conn.Conn().PgConn().TxStatus() != 'I':
		_, _ = conn.Exec(ctx, `ROLLBACK`) // the pool closes one that is not idle
	}
	return cause
}

// check decides which requests hold.
func (g *group) check() {
	g.set.clear()
	clear(g.runs)
	g.newNamespaceVersions = 0
	g.answers, g.past, g.rows = g.answers[:0], g.past[:0], g.rows[:0]
	g.audit, g.trim = g.audit[:0], 0
	g.pastNamespaces, g.withheld, g.erased = g.pastNamespaces[:0], g.withheld[:0], g.erased[:0]
	for _, q := range g.requests {
		if g.sealed != nil {
			g.answers = append(g.answers, g.sealed)
			continue
		}
		t := &g.tx
		t.reset()
		q.refused = slices.Clone(q.invalid)
		err := g.checkNamespaces(q)
		if err == nil {
			err = t.put(q)
		}
		if err == nil {
			t.accept()
			g.addZones(q, t.changes)
			g.past = append(g.past, t.past...)
			g.pastNamespaces = append(g.pastNamespaces, t.pastNamespaces...)
			g.withheld = append(g.withheld, t.withheld...)
			g.erased = append(g.erased, t.erased...)
			for i := range t.changes {
				row := &t.changes[i]
				if row.At = g.store.o.Now(); q.replay != nil {
					row.At = q.replay[i].At
				}
			}
			g.rows = append(g.rows, t.changes...)
			g.audit, g.trim = append(g.audit, q.audit...), q.trim
		}
		g.answers = append(g.answers, err)
	}
}

// isEmpty reports whether there is nothing to be written.
func (g *group) isEmpty() bool {
	st := g.set
	return len(g.requests[0].zones.raises) == 0 && len(st.names) == 0 && len(st.namespaces) == 0 && len(st.minters) == 0 && len(st.cells) == 0 && len(g.audit) == 0
}
