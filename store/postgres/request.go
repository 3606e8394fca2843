package postgres

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/refusal"
)

// request is a commit, or an ingest, on its way into the database.
type request struct {
	state atomic.Int32
	done  chan error
	life  context.Context // ends when the request has waited for so long as it may
	size  int

	records    []*entry // nil in an ingest for what can be none
	seen       []stele.SeenRecord
	namespaces []*namespaceEntry
	minters    []*swap
	cells      []*swap
	zones      zoneEntry
	replay     []stele.Change
	audit      []auditRow
	trim       uint64              // of the audit trail; see stele.Commit
	models     []*stele.AuditEntry // of an ingest

	// An ingest is committed without the records that are refused, each by itself.
	ingest  bool
	invalid []error // by record, whatever the store has
	refused []error // by record, with what the store refuses
}

// What became of a request.
const (
	requestWaits = iota
	requestTaken // it will be committed, or refused
	requestLeft  // its caller gave up before: it has no effect
)

// Apply implements [stele.Store].
func (s *Store) Apply(ctx context.Context, c *stele.Commit) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	q, err := newRequest(c)
	if err != nil {
		return err
	}
	return s.submit(ctx, q)
}

// newRequest encodes a commit, and refuses what can't be right whatever the store has.
func newRequest(c *stele.Commit) (*request, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	q := &request{done: make(chan error, 1), seen: slices.Clone(c.Seen), replay: c.Replay}
	if err := q.encodeNamed(c); err != nil {
		return nil, err
	}
	q.zones.raises = slices.Clone(c.Zones)
	if err := q.encodeZones(c.Touch, c.Records); err != nil {
		return nil, err
	}
	q.encodeKept(c)
	var err error
	if q.audit, err = encodeAudit(c.Audit); err != nil {
		return nil, err
	}
	for i := range q.audit {
		q.size += len(q.audit[i].body)
	}
	q.trim = c.TrimAudit
	if q.size > maxCommit {
		return nil, refusal.CommitTooLarge(q.size, maxCommit)
	}
	return q, nil
}

// encodeNamed encodes the records and namespaces of a commit.
func (q *request) encodeNamed(c *stele.Commit) error {
	for i, r := range c.Records {
		e, err := newEntry(r, c.Counter)
		if err != nil {
			return err
		}
		if c.Replay != nil {
			e.countAs(&c.Replay[i])
		}
		q.records = append(q.records, e)
		q.size += 2*len(e.body) + 100*(len(e.aliases)+len(e.places))
	}
	for _, n := range c.Namespaces {
		e := newNamespaceEntry(n)
		q.namespaces = append(q.namespaces, e)
		q.size += len(e.body)
	}
	return nil
}

// encodeKept encodes the minters and cells of a commit.
func (q *request) encodeKept(c *stele.Commit) {
	for i := range c.Minters {
		m := newMinter(&c.Minters[i])
		q.minters = append(q.minters, m)
		q.size += len(m.after)
	}
	for i := range c.Cells {
		e := newCell(&c.Cells[i])
		q.cells = append(q.cells, e)
		q.size += len(e.after)
	}
}

// newIngest encodes the records of an ingest, on all processors.
func newIngest(records []*stele.Record, count stele.NamespaceCounter, touch *stele.Touch, state *stele.MinterState) (*request, error) {
	q := &request{ingest: true, done: make(chan error, 1), records: make([]*entry, len(records)), invalid: make([]error, len(records))}
	if state != nil {
		if err := state.Check(); err != nil {
			return nil, err
		}
		q.minters = []*swap{newMinter(state)}
	}
	workers := max(1, min(runtime.GOMAXPROCS(0), len(records)/1000))
	var all sync.WaitGroup
	for w := range workers {
		first, end := w*len(records)/workers, (w+1)*len(records)/workers
		all.Go(func() {
			for i := first; i < end; i++ {
				if q.invalid[i] = records[i].CheckFirst(); q.invalid[i] == nil {
					q.records[i], q.invalid[i] = newEntry(records[i], count)
				}
			}
		})
	}
	all.Wait()
	if err := q.encodeZones(touch, records); err != nil {
		return nil, err
	}
	for _, e := range q.records {
		if e != nil {
			q.size += 2*len(e.body) + 100*(len(e.aliases)+len(e.places))
		}
	}
	return q, nil
}

// submit hands a request to the committers and waits for what becomes of it: in the queue
// no longer than for a database that is unavailable.
func (s *Store) submit(ctx context.Context, q *request) error {
	life, cancel := context.WithTimeout(context.Background(), s.o.Wait)
	defer cancel()
	q.life = life
	if err := s.enqueue(ctx, q); err != nil {
		return err
	}
	select {
	case err := <-q.done:
		return err
	case <-ctx.Done():
		if q.state.CompareAndSwap(requestWaits, requestLeft) {
			return ctx.Err()
		}
	case <-life.Done():
		if q.state.CompareAndSwap(requestWaits, requestLeft) {
			return s.away("commit", errQueue)
		}
	}
	select {
	case err := <-q.done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-q.done:
		return err
	default:
		return refuse("commit", stele.ID{}, stele.Unavailable, "commit.on-its-way-to-database", "it is on its way to the database, and unknown whether it will be kept; look before you try again: {cause}", ctx.Err())
	}
}

func (s *Store) enqueue(ctx context.Context, q *request) error {
	if s.isClosed() {
		return closed("commit")
	}
	s.queueing.RLock()
	defer s.queueing.RUnlock()
	if s.isClosed() {
		return closed("commit")
	}
	select {
	case s.queue <- q:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-q.life.Done():
		return s.away("commit", errQueue)
	case <-s.closing.Done():
		return closed("commit")
	}
}
