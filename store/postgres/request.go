package postgres

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/stele-id/stele"
)

// request is a commit, or an ingest, on its way into the database.
type request struct {
	state atomic.Int32
	done  chan error
	life  context.Context // ends when the request has waited for so long as it may
	size  int

	records []*entry // nil in an ingest for what can be none
	spaces  []*spaceEntry
	minters []*swap
	cells   []*swap
	replay  []stele.Change

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
	q := &request{done: make(chan error, 1), replay: c.Replay}
	if err := c.CheckReplay(); err != nil {
		return nil, err
	}
	if err := q.encodeNamed(c); err != nil {
		return nil, err
	}
	if err := q.encodeKept(c); err != nil {
		return nil, err
	}
	if q.size > maxCommit {
		return nil, refuse("commit", stele.ID{}, stele.Invalid, "the commit has %d bytes; at most %d are committed at once", q.size, maxCommit)
	}
	return q, nil
}

// once remembers keys that must not come twice in a commit. Most have one, and need no
// map.
type once struct {
	n    int // how many there will be
	seen map[string]bool
}

func (o *once) add(key string) bool {
	if o.n < 2 {
		return true
	}
	if o.seen == nil {
		o.seen = make(map[string]bool, o.n)
	}
	if o.seen[key] {
		return false
	}
	o.seen[key] = true
	return true
}

// encodeNamed encodes the records and namespaces of a commit.
func (q *request) encodeNamed(c *stele.Commit) error {
	keys := once{n: len(c.Records)}
	for i, r := range c.Records {
		count := c.Counter
		if c.Replay != nil {
			counted := c.Replay[i].Counted
			count = func(stele.ID) (stele.NamespaceKey, uint64) { return counted, 0 }
		}
		e, err := newEntry(r, count)
		if err != nil {
			return err
		}
		if !keys.add(e.key) {
			return refuse("commit", r.ID, stele.Invalid, "the record is in the commit twice; commit one version after the other")
		}
		q.records = append(q.records, e)
		q.size += 2*len(e.body) + 100*(len(e.aliases)+len(e.places))
	}
	keys = once{n: len(c.Namespaces)}
	for _, n := range c.Namespaces {
		e, err := newSpaceEntry(n)
		if err != nil {
			return err
		}
		if !keys.add(e.key) {
			return refuse("commit", stele.ID{}, stele.Invalid, "namespace %.100q is in the commit twice; commit one version after the other", n.Key())
		}
		q.spaces = append(q.spaces, e)
		q.size += len(e.body)
	}
	return nil
}

// encodeKept encodes the minters and cells of a commit.
func (q *request) encodeKept(c *stele.Commit) error {
	keys := once{n: len(c.Minters)}
	for i := range c.Minters {
		m, err := newMinter(&c.Minters[i])
		if err != nil {
			return err
		}
		if !keys.add(m.key) {
			return refuse("commit", stele.ID{}, stele.Invalid, "minter %.100q is in the commit twice; commit its last state", m.name)
		}
		q.minters = append(q.minters, m)
		q.size += len(m.after)
	}
	keys = once{n: len(c.Cells)}
	for i := range c.Cells {
		e, err := newCell(&c.Cells[i])
		if err != nil {
			return err
		}
		if !keys.add(e.key) {
			return refuse("commit", stele.ID{}, stele.Invalid, "cell %.100q is in the commit twice; commit its last value", e.name)
		}
		q.cells = append(q.cells, e)
		q.size += len(e.after)
	}
	return nil
}

// newIngest encodes the records of an ingest, on all processors.
func newIngest(records []*stele.Record, count stele.NamespaceCounter, state *stele.MinterState) (*request, error) {
	q := &request{ingest: true, done: make(chan error, 1), records: make([]*entry, len(records)), invalid: make([]error, len(records))}
	if state != nil {
		m, err := newMinter(state)
		if err != nil {
			return nil, err
		}
		q.minters = []*swap{m}
	}
	workers := max(1, min(runtime.GOMAXPROCS(0), len(records)/1000))
	var all sync.WaitGroup
	for w := range workers {
		first, end := w*len(records)/workers, (w+1)*len(records)/workers
		all.Go(func() {
			for i := first; i < end; i++ {
				if r := records[i]; r != nil && r.Version > 1 {
					q.invalid[i] = refuse("ingest", r.ID, stele.Invalid, "version %d; only new records, of version 1, are ingested", r.Version)
					continue
				}
				q.records[i], q.invalid[i] = newEntry(records[i], count)
			}
		})
	}
	all.Wait()
	for _, e := range q.records {
		if e != nil {
			q.size += 2*len(e.body) + 100*(len(e.aliases)+len(e.places))
		}
	}
	return q, nil
}

// submit hands a request to the committers and waits for what becomes of it: in the queue
// no longer than for a database that is away.
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
		return refuse("commit", stele.ID{}, stele.Unavailable, "it is on its way to the database, and unknown whether it will be kept; look before you try again: %w", ctx.Err())
	}
}

func (s *Store) enqueue(ctx context.Context, q *request) error {
	if s.isClosed() {
		return closed("commit")
	}
	s.gate.RLock()
	defer s.gate.RUnlock()
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
