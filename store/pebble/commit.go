package pebble

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	pebbledb "github.com/cockroachdb/pebble/v2"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/refusal"
)

// How much is committed as one group.
const (
	maxGroup      = 512
	maxGroupBytes = 8 << 20
)

// commit is the committer: the one goroutine that writes. It ends when the queue is
// closed and empty.
func (s *Store) commit() {
	g := &group{store: s, pending: make(map[string][]byte), runs: make(stele.ZoneRuns)}
	var held *request // one that ended a group
	for {
		q := held
		if held = nil; q == nil {
			var ok bool
			if q, ok = <-s.queue; !ok {
				return
			}
		}
		if q.isAlone() {
			if q.state.CompareAndSwap(requestWaits, requestTaken) {
				began := s.now()
				v, err := s.finishAlone(q)
				if v != nil {
					s.publish(v)
				}
				if q.ingest != nil {
					s.tally.Group(s.now().Sub(began))
					s.tally.Commit(err)
				}
				q.done <- err
			}
			continue
		}
		if held = g.collect(q); len(g.requests) > 0 {
			g.commit()
		}
	}
}

// finishAlone commits a request that must not be in a group. It returns the new state,
// nil if nothing changed.
func (s *Store) finishAlone(q *request) (*view, error) {
	if q.seal != nil {
		return s.finishSeal(*q.seal)
	}
	if q.renew != nil {
		return nil, s.finishRenewal(q.renew)
	}
	if q.generations != nil {
		return s.finishGenerations(q.generations)
	}
	return s.finishIngest(q.ingest)
}

// group is what is committed with one sync of the disk.
type group struct {
	store             *Store
	opening           *opening
	seq               uint64 // the last change, with those of the group
	namespaceVersions uint64 // sum of the versions of all namespaces, with those of the group
	at                time.Time
	requests          []*request
	answers           []error

	batch   *pebbledb.Batch
	finder  finder            // looks everywhere
	tables  finder            // looks in tables only
	pending map[string][]byte // what the group has set so far, of what is looked up
	late    [][]byte          // keys of which the last value counts: counts and minters
	taken   [][]byte          // names that were free before
	feed    []byte            // entries of the change feed that are in no chunk yet
	changes int               // how many those are
	trail   trail             // with the entries of the group
	runs    stele.ZoneRuns    // which changes touch which zones
	fault   error             // the batch is spoilt
	tx      tx
}

// collect takes requests from the queue: the first, and what is there without
// waiting. It returns a request that it found and that must not be in a group. A request
// that erases is a group by itself: it reads the history, which a group does not see as
// it writes it.
func (g *group) collect(q *request) (alone *request) {
	g.requests = g.requests[:0]
	size, yielded := 0, false
	for {
		if q.isAlone() || q.erases && len(g.requests) > 0 {
			return q
		}
		if q.state.CompareAndSwap(requestWaits, requestTaken) {
			g.requests = append(g.requests, q)
			size += q.size
		}
		if q.erases || len(g.requests) >= maxGroup || size >= maxGroupBytes {
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
func (g *group) commit() {
	g.answers = g.answers[:0]
	began := g.store.now()
	err := g.store.writable("commit", 0)
	if err == nil {
		var v *view
		if v, err = g.write(); v != nil {
			g.store.publish(v, g.taken...)
		}
	}
	g.store.tally.Group(g.store.now().Sub(began))
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

// write checks and writes the requests. Each has its answer then, unless there is an
// error, which is the answer to all: since one may have been refused because of
// another that is not durable now. It returns the new state, nil if nothing changed.
func (g *group) write() (v *view, err error) {
	if g.opening = g.store.current.Load(); !g.opening.begin() {
		return nil, g.store.stopped("commit") // another opening is replacing this one
	}
	defer g.opening.end()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
		if err != nil {
			g.opening.failstop.freeze(err)
			v, err = nil, refuse("commit", stele.ID{}, stele.Unavailable, "commit.outcome-unknown", "it is unknown whether the commit was kept ({cause}); look before you try again", err)
		}
	}()
	if err = g.start(); err != nil {
		return nil, err
	}
	for _, q := range g.requests {
		answer := g.add(q)
		if fault, ok := errors.AsType[*readFault](answer); ok {
			answer = g.opening.damage("commit", fault.id, fault.err)
		}
		g.answers = append(g.answers, answer)
	}
	g.finder.close()
	g.tables.close()
	return g.flush()
}

// start readies the group.
func (g *group) start() (err error) {
	if err := g.store.recent.begin(g.opening); err != nil {
		return err
	}
	g.seq, g.trail, g.namespaceVersions = g.opening.seq, g.opening.trail, g.opening.namespaceVersions
	clear(g.runs)
	g.at = g.store.now()
	clear(g.pending)
	g.late, g.taken, g.fault = g.late[:0], nil, nil
	g.feed, g.changes = g.feed[:0], 0
	g.batch = g.opening.db.NewBatch()
	if g.finder, err = newFinder(g.opening.db); err != nil {
		return err
	}
	g.tables, err = newTableFinder(g.opening.db)
	return err
}

// flush writes the batch, if there is something in it.
func (g *group) flush() (*view, error) {
	g.writeChunk()
	g.writeRuns()
	for _, key := range g.late {
		g.note(g.batch.Set(key, g.pending[string(key)], nil))
	}
	if g.fault != nil || g.batch.Empty() {
		// The values that were looked up may differ from what is on the disk.
		return nil, errors.Join(g.fault, g.batch.Close(), g.opening.failstop.broken())
	}
	if err := g.opening.db.Apply(g.batch, pebbledb.Sync); err != nil {
		return nil, err
	}
	if err := g.opening.failstop.broken(); err != nil {
		return nil, err
	}
	g.opening.seq, g.opening.trail, g.opening.namespaceVersions = g.seq, g.trail, g.namespaceVersions
	return g.opening.newView(g.seq), g.batch.Close()
}

// add adds a commit to the group: all of it or, with an error, nothing.
func (g *group) add(q *request) error {
	if err := g.opening.sealed("commit"); err != nil {
		return err
	}
	if len(q.replay) > 0 && q.replay[0].Seq != g.seq+1 {
		return refusal.ReplayOutOfOrder(q.replay[0].Seq, g.seq)
	}
	if err := g.checkNamespaces(q); err != nil {
		return err
	}
	t := &g.tx
	t.reset(g)
	if err := t.checkFence(q); err != nil {
		return err
	}
	for _, seen := range q.seen {
		if err := t.checkSeen(seen); err != nil {
			return err
		}
	}
	for i := range q.records {
		if err := t.putRecord(&q.records[i]); err != nil {
			return err
		}
	}
	if len(q.records) > fewWrites {
		t.sortChanges(q.records)
	}
	for i := range q.namespaces {
		if err := t.putNamespace(&q.namespaces[i]); err != nil {
			return err
		}
	}
	for i := range q.minters {
		if err := t.putMinter(&q.minters[i]); err != nil {
			return err
		}
	}
	for i := range q.cells {
		if err := t.putCell(&q.cells[i]); err != nil {
			return err
		}
	}
	if err := g.trail.check(&q.audit); err != nil {
		return err
	}
	if err := t.putZones(q); err != nil {
		return err
	}
	t.repeats = q.repeats
	t.accept(q.replay)
	g.putAudit(&q.audit)
	g.namespaceVersions += uint64(len(q.namespaces))
	return nil
}

// writeChunk writes the changes since the last chunk.
func (g *group) writeChunk() {
	if g.changes == 0 {
		return
	}
	value := appendChunk(make([]byte, 0, len(g.feed)+20), g.at, g.changes, g.feed)
	g.note(g.batch.Set(appendChangeKey(nil, g.seq), value, nil))
	g.feed, g.changes = g.feed[:0], 0
}

// note remembers that the batch failed. That does not happen: a batch is in memory.
func (g *group) note(err error) {
	if g.fault == nil {
		g.fault = err
	}
}
