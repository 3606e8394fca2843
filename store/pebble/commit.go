package pebble

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"sync/atomic"
	"time"

	pebbledb "github.com/cockroachdb/pebble/v2"

	"github.com/stele-id/stele"
)

// How much is committed as one group.
const (
	maxGroup      = 512
	maxGroupBytes = 8 << 20
)

// request is a commit, or an ingest, on its way to the committer.
type request struct {
	state  atomic.Int32
	done   chan error
	size   int
	ingest *ingest // instead of all below

	records []entry
	spaces  []spaceEntry
	minters []minterEntry
}

// What became of a request.
const (
	requestWaits = iota
	requestTaken // it will be committed, or refused
	requestLeft  // its caller gave up before: it has no effect
)

type spaceEntry struct {
	key     []byte
	value   []byte
	name    stele.NamespaceKey
	version uint64
}

type minterEntry struct {
	key           []byte
	name          string
	before, after []byte // before is nil if there must be none
}

// Apply implements [stele.Store].
func (s *Store) Apply(ctx context.Context, c *stele.Commit) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	q, err := newRequest(c)
	if err != nil {
		return err
	}
	return s.submit(ctx, "commit", q)
}

// newRequest encodes a commit, and refuses what can't be right whatever the store
// has.
func newRequest(c *stele.Commit) (*request, error) {
	q := &request{done: make(chan error, 1)}
	var e encoder
	var seen map[string]bool // keys that must not come twice
	once := func(key []byte) bool {
		if len(c.Records)+len(c.Namespaces)+len(c.Minters) < 2 {
			return true
		}
		if seen == nil {
			seen = make(map[string]bool)
		}
		if seen[string(key)] {
			return false
		}
		seen[string(key)] = true
		return true
	}
	q.records = make([]entry, 0, len(c.Records))
	for _, r := range c.Records {
		n, err := e.encode(r, c.Counter)
		if err != nil {
			return nil, err
		}
		if !once(n.key) {
			return nil, refuse("commit", r.ID, stele.Invalid, "the record is in the commit twice; commit one version after the other")
		}
		q.records = append(q.records, n)
		q.size += 2*len(n.value) + 100*(len(n.aliases)+len(n.places))
	}
	for _, n := range c.Namespaces {
		e, err := newSpaceEntry(n)
		if err != nil {
			return nil, err
		}
		if !once(e.key) {
			return nil, refuse("commit", stele.ID{}, stele.Invalid, "namespace %q is in the commit twice; commit one version after the other", e.name)
		}
		q.spaces = append(q.spaces, e)
		q.size += len(e.value)
	}
	for i := range c.Minters {
		e, err := newMinterEntry(&c.Minters[i])
		if err != nil {
			return nil, err
		}
		if !once(e.key) {
			return nil, refuse("commit", stele.ID{}, stele.Invalid, "minter %q is in the commit twice; commit its last state", e.name)
		}
		q.minters = append(q.minters, e)
		q.size += len(e.after)
	}
	if q.size > 4*maxRecord {
		return nil, refuse("commit", stele.ID{}, stele.Invalid, "the commit has %d bytes; at most %d are committed at once", q.size, 4*maxRecord)
	}
	return q, nil
}

func newSpaceEntry(n *stele.Namespace) (e spaceEntry, err error) {
	if n == nil || n.Scheme == "" {
		return e, refuse("commit", stele.ID{}, stele.Invalid, "a namespace has no scheme; name one")
	}
	if err := checkSpace(n.Key()); err != nil {
		return e, err
	}
	if n.Version == 0 {
		return e, refuse("commit", stele.ID{}, stele.Invalid, "namespace %q has the version 0; the first is 1", n.Key())
	}
	e = spaceEntry{key: namespaceKey(n.Key()), name: n.Key(), version: n.Version}
	e.value, err = n.MarshalBinary()
	return e, err
}

func newMinterEntry(m *stele.MinterState) (e minterEntry, err error) {
	if m.After == nil {
		return e, refuse("commit", stele.ID{}, stele.Invalid, "minter %.100q has no new state; a state is replaced, never removed", m.Name)
	}
	if len(m.Name) > maxKey || len(m.After) > maxRecord {
		return e, refuse("commit", stele.ID{}, stele.Invalid, "minter %.100q has a name of more than %d bytes, or a state of more than %d", m.Name, maxKey, maxRecord)
	}
	return minterEntry{key: minterKey(m.Name), name: m.Name, before: bytes.Clone(m.Before), after: bytes.Clone(m.After)}, nil
}

// submit hands a request to the committer and waits for what becomes of it.
func (s *Store) submit(ctx context.Context, op string, q *request) error {
	if err := s.enqueue(ctx, op, q); err != nil {
		return err
	}
	select {
	case err := <-q.done:
		return err
	case <-ctx.Done():
	}
	if q.state.CompareAndSwap(requestWaits, requestLeft) {
		return ctx.Err()
	}
	if q.ingest != nil {
		return <-q.done // the committer has its tables
	}
	select {
	case err := <-q.done:
		return err
	default:
		return refuse(op, stele.ID{}, stele.Unavailable, "it is on its way to the disk, and unknown whether it will be kept; look before you try again: %w", ctx.Err())
	}
}

func (s *Store) enqueue(ctx context.Context, op string, q *request) error {
	s.gate.RLock()
	defer s.gate.RUnlock()
	select {
	case <-s.closing:
		return closed(op)
	default:
	}
	select {
	case s.queue <- q:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closing:
		return closed(op)
	}
}

// commit is the committer: the one goroutine that writes. It ends when the queue is
// closed and empty.
func (s *Store) commit() {
	g := &group{store: s, pending: make(map[string][]byte)}
	var held *request // an ingest that ended a group
	for {
		q := held
		if held = nil; q == nil {
			var ok bool
			if q, ok = <-s.queue; !ok {
				return
			}
		}
		if q.ingest != nil {
			if q.state.CompareAndSwap(requestWaits, requestTaken) {
				v, err := s.finishIngest(q.ingest)
				if v != nil {
					s.publish(v)
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

// group is what is committed with one sync of the disk.
type group struct {
	store    *Store
	opening  *opening
	seq      uint64 // the last change, with those of the group
	at       time.Time
	requests []*request
	answers  []error

	batch   *pebbledb.Batch
	finder  finder            // looks everywhere
	tables  finder            // looks in tables only
	pending map[string][]byte // what the group has set so far, of what is looked up
	late    [][]byte          // keys of which the last value counts: counts and minters
	taken   [][]byte          // names that were free before
	feed    []byte            // entries of the change feed that are in no chunk yet
	changes int               // how many those are
	fault   error             // the batch is spoilt
	tx      tx
}

// collect takes requests from the queue: the first, and what is there without
// waiting. It returns an ingest that it came upon.
func (g *group) collect(q *request) (ingest *request) {
	g.requests = g.requests[:0]
	size, yielded := 0, false
	for {
		if q.ingest != nil {
			return q
		}
		if q.state.CompareAndSwap(requestWaits, requestTaken) {
			g.requests = append(g.requests, q)
			size += q.size
		}
		if len(g.requests) >= maxGroup || size >= maxGroupBytes {
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
	err := g.store.writable("commit", 0)
	if err == nil {
		var v *view
		if v, err = g.write(); v != nil {
			g.store.publish(v, g.taken...)
		}
	}
	for i, q := range g.requests {
		answer := err
		if err == nil {
			answer = g.answers[i]
		}
		q.done <- answer
		g.requests[i] = nil
	}
}

// write checks and writes the requests. Each has its answer then, unless there is an
// error, which is the answer to all: since one may have been refused because of
// another that is not durable now. It returns the new state, nil if nothing changed.
func (g *group) write() (v *view, err error) {
	if g.opening = g.store.current.Load(); !g.opening.begin() {
		return nil, g.store.stopped("commit") // another one takes its place just now
	}
	defer g.opening.end()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
		if err != nil {
			g.opening.fence.freeze(err)
			v, err = nil, refuse("commit", stele.ID{}, stele.Unavailable, "it is unknown whether the commit was kept (%w); look before you try again", err)
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
	g.seq = g.opening.seq
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
	for _, key := range g.late {
		g.note(g.batch.Set(key, g.pending[string(key)], nil))
	}
	if g.fault != nil || g.batch.Empty() {
		// What was looked up may not be what is there.
		return nil, errors.Join(g.fault, g.batch.Close(), g.opening.fence.broken())
	}
	if err := g.opening.db.Apply(g.batch, pebbledb.Sync); err != nil {
		return nil, err
	}
	if err := g.opening.fence.broken(); err != nil {
		return nil, err
	}
	g.opening.seq = g.seq
	return g.opening.newView(g.seq), g.batch.Close()
}

// add adds a commit to the group: all of it or, with an error, nothing.
func (g *group) add(q *request) error {
	t := &g.tx
	t.reset(g)
	for i := range q.records {
		if err := t.putRecord(&q.records[i]); err != nil {
			return err
		}
	}
	for i := range q.spaces {
		if err := t.putSpace(&q.spaces[i]); err != nil {
			return err
		}
	}
	for i := range q.minters {
		if err := t.putMinter(&q.minters[i]); err != nil {
			return err
		}
	}
	t.accept()
	return nil
}

// readFault is a failed read of the committer's.
type readFault struct {
	id  stele.ID
	err error
}

func (f *readFault) Error() string { return f.err.Error() }

// tx is one commit while its conditions are checked.
type tx struct {
	g       *group
	pending map[string][]byte // what the commit has set so far, of what is looked up
	writes  []keyValue        // in order; a nil value deletes
	late    [][]byte
	taken   [][]byte
	feed    []byte // entries of the change feed
	changes []int  // where each ends
}

type keyValue struct{ key, value []byte }

func (t *tx) reset(g *group) {
	if t.g == nil {
		t.g, t.pending = g, make(map[string][]byte)
	}
	clear(t.pending)
	t.writes, t.late, t.taken, t.feed, t.changes = t.writes[:0], t.late[:0], t.taken[:0], t.feed[:0], t.changes[:0]
}

// find returns what is kept under a key, with what group and commit have set; nil if
// nothing is. It is valid until the next call.
func (t *tx) find(id stele.ID, key []byte) ([]byte, error) {
	if value, ok := t.pending[string(key)]; ok {
		return value, nil
	}
	if value, ok := t.g.pending[string(key)]; ok {
		return value, nil
	}
	f := t.g.finder
	if key[0] == familyName && !t.g.store.recent.mayHave(key) {
		f = t.g.tables
	}
	value, err := f.find(key)
	if err == nil && value != nil && len(value) == 0 && key[0] == familyName {
		err = errKey
	}
	if err != nil {
		return nil, &readFault{id, err}
	}
	return value, nil
}

// set sets a key that is looked up.
func (t *tx) set(key, value []byte) {
	t.pending[string(key)] = value
	t.writes = append(t.writes, keyValue{key, value})
}

// setLate sets a key of which only the last value in the group is written.
func (t *tx) setLate(key, value []byte) {
	t.pending[string(key)] = value
	t.late = append(t.late, key)
}

// change adds to the change feed.
func (t *tx) change(e *feedEntry) {
	t.feed = appendChange(t.feed, e)
	t.changes = append(t.changes, len(t.feed))
}

// accept makes the commit a part of the group.
func (t *tx) accept() {
	g := t.g
	for _, w := range t.writes {
		if w.value == nil {
			g.note(g.batch.Delete(w.key, nil))
		} else {
			g.note(g.batch.Set(w.key, w.value, nil))
		}
		if w.key[0] == familyName {
			g.store.recent.add(w.key)
		}
	}
	begin := 0
	for _, end := range t.changes {
		g.seq++
		g.changes++
		g.feed = append(g.feed, t.feed[begin:end]...)
		if begin = end; g.changes == maxChunk {
			g.writeChunk()
		}
	}
	for _, key := range t.late {
		if _, ok := g.pending[string(key)]; !ok {
			g.late = append(g.late, key)
		}
	}
	maps.Copy(g.pending, t.pending)
	g.taken = append(g.taken, t.taken...)
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

// note remembers that the batch is spoilt. It does not happen: a batch is memory.
func (g *group) note(err error) {
	if g.fault == nil {
		g.fault = err
	}
}

// putMinter checks and sets the state of a minter.
func (t *tx) putMinter(m *minterEntry) error {
	have, err := t.find(stele.ID{}, m.key)
	if err != nil {
		return err
	}
	if (have == nil) != (m.before == nil) || !bytes.Equal(have, m.before) {
		return refuse("commit", stele.ID{}, stele.Conflict, "minter %.100q has another state by now; read it again", m.name)
	}
	t.setLate(m.key, m.after)
	return nil
}

// putSpace checks and sets a version of a namespace.
func (t *tx) putSpace(n *spaceEntry) error {
	value, err := t.find(stele.ID{}, n.key)
	if err != nil {
		return err
	}
	var have uint64
	if value != nil {
		var old stele.Namespace
		if err := old.UnmarshalBinary(value); err != nil {
			return err
		}
		have = old.Version
	}
	if n.version != have+1 {
		return refuse("commit", stele.ID{}, stele.Conflict, "version %d of namespace %.100q was to be committed, but the store has version %d; read it again", n.version, n.name, have)
	}
	t.set(n.key, n.value)
	t.change(&feedEntry{Change: stele.Change{Namespace: n.name, Version: n.version}})
	return nil
}

// count counts one more record for a namespace, the zero one being none.
func (t *tx) count(id stele.ID, key stele.NamespaceKey, quota uint64) error {
	if key == (stele.NamespaceKey{}) {
		return nil
	}
	under := countKey(key)
	value, err := t.find(id, under)
	if err != nil {
		return err
	}
	n, err := parseCount(value)
	if err != nil {
		return &readFault{id, err}
	}
	if quota > 0 && n >= quota {
		return exhausted(id, key, quota)
	}
	t.setLate(under, binary.AppendUvarint(nil, n+1))
	return nil
}

func exhausted(id stele.ID, key stele.NamespaceKey, quota uint64) error {
	return refuse("commit", id, stele.Exhausted, "namespace %.100q has its quota of %d records; ask for a greater one", key, quota)
}

// parseCount reads a count; nothing is 0.
func parseCount(value []byte) (uint64, error) {
	if value == nil {
		return 0, nil
	}
	n, err := parseUvarint(value)
	if err != nil {
		return 0, fmt.Errorf("%w: a count: %w", errKey, err)
	}
	return n, nil
}
