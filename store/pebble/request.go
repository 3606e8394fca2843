package pebble

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/binary"
	"github.com/stele-id/stele/store/refusal"
)

// request is a commit, an ingest, a seal, a renewal, or a list of generations on its way to
// the committer.
type request struct {
	state  atomic.Int32
	done   chan error
	size   int
	ingest *ingest  // instead of all below
	seal   *string  // the same
	renew  *renewal // the same

	generations *generationChange // the same

	repeats    bool    // a record in it comes with several versions
	erases     bool    // a version in it erases earlier ones; see erase.go
	records    []entry // in the order of their keys if they are many
	seen       []stele.SeenRecord
	namespaces []namespaceEntry
	minters    []minterEntry
	cells      []cellEntry
	audit      auditPart
	zones      zoneEntry
	replay     []stele.Change // as in a commit
}

// isAlone reports whether the request is committed in no group.
func (q *request) isAlone() bool {
	return q.ingest != nil || q.seal != nil || q.renew != nil || q.generations != nil
}

// What became of a request.
const (
	requestWaits = iota
	requestTaken // it will be committed, or refused
	requestLeft  // its caller gave up before: it has no effect
)

type namespaceEntry struct {
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
	if err := c.Check(); err != nil {
		return nil, err
	}
	q := &request{done: make(chan error, 1), seen: slices.Clone(c.Seen), replay: c.Replay}
	if err := q.encodeNamed(c); err != nil {
		return nil, err
	}
	if err := q.encodeZones(c); err != nil {
		return nil, err
	}
	q.encodeKept(c)
	var size int
	var err error
	if q.audit, size, err = newAuditPart(c.Audit, c.TrimAudit); err != nil {
		return nil, err
	}
	q.size += size
	if q.size > maxCommit {
		return nil, refusal.CommitTooLarge(q.size, maxCommit)
	}
	return q, nil
}

// encodeNamed encodes the records and namespaces of a commit.
func (q *request) encodeNamed(c *stele.Commit) error {
	var e encoder
	if len(c.Records) > fewWrites {
		e.arena = new(arena)
	}
	q.records = make([]entry, 0, len(c.Records))
	for i, r := range c.Records {
		n, err := e.encode(r, c.Counter)
		if err != nil {
			return err
		}
		if c.Replay != nil {
			n.countAs(&c.Replay[i])
		}
		n.turn = i
		q.erases = q.erases || r.Withheld.Erased > 0
		q.records = append(q.records, n)
		q.size += 2*len(n.value) + 100*(len(n.aliases)+len(n.places))
	}
	if len(q.records) > fewWrites { // in order they are looked up and written faster
		// Versions of one record stay in their order.
		slices.SortFunc(q.records, func(a, b entry) int { return cmp.Or(bytes.Compare(a.key, b.key), a.turn-b.turn) })
	}
	for i := 1; i < len(q.records) && !q.repeats; i++ {
		q.repeats = bytes.Equal(q.records[i-1].key, q.records[i].key)
	}
	for _, n := range c.Namespaces {
		e := newNamespaceEntry(n)
		q.namespaces = append(q.namespaces, e)
		q.size += len(e.value)
	}
	return nil
}

// encodeKept encodes what a commit keeps beside them: minters and cells.
func (q *request) encodeKept(c *stele.Commit) {
	for i := range c.Minters {
		e := newMinterEntry(&c.Minters[i])
		q.minters = append(q.minters, e)
		q.size += len(e.after)
	}
	q.cells = newCellEntries(c.Cells)
	for i := range q.cells {
		q.size += len(q.cells[i].key) + len(q.cells[i].after)
	}
}

func newNamespaceEntry(n *stele.Namespace) namespaceEntry {
	return namespaceEntry{key: namespaceKey(n.Key()), name: n.Key(), version: n.Version, value: binary.MarshalNamespace(n)}
}

func newMinterEntry(m *stele.MinterState) minterEntry {
	return minterEntry{key: minterKey(m.Name), name: m.Name, before: bytes.Clone(m.Before), after: bytes.Clone(m.After)}
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
	// The committer has it. A caller that left now would have what is kept in memory forgotten before the commit can be read: a reader in
	// between would keep what was there before. Only a disk that hangs takes longer than this.
	select {
	case err := <-q.done:
		return err
	case <-time.After(leavePatience):
		return refuse(op, stele.ID{}, stele.Unavailable, "commit.on-its-way-to-disk", "it is on its way to the disk, and unknown whether it will be kept; look before you try again: {cause}", ctx.Err())
	}
}

// leavePatience is how long a caller whose context has ended waits for a commit that is being written.
const leavePatience = 2 * time.Second

func (s *Store) enqueue(ctx context.Context, op string, q *request) error {
	s.queueing.RLock()
	defer s.queueing.RUnlock()
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
