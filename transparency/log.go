package transparency

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/offered"
)

// Source is the registry that the log follows: a store.
type Source interface {
	stele.Records
	stele.Versions
	stele.Namespaces
	stele.Changes
}

// Options of a log.
type Options struct {
	Source Source
	Cells  Keeper

	// Listed returns which names stand in the log: those of listed namespaces. Other names are blinded.
	Listed func(ctx context.Context) (Listed, error)

	// Lagging reports whether reads may be older than what was read before; see [stele.Replicated]. It may be nil.
	Lagging func() (since time.Time, yes bool)

	Random io.Reader // for seeds: crypto/rand.Reader
	Now    func() time.Time
	Log    *slog.Logger
}

// Listed says which names all may list.
type Listed interface {
	ListsID(id stele.ID) bool
	ListsNamespace(key stele.NamespaceKey) bool
}

// Log is the log of one registry. Its methods may be called by several goroutines, and several servers may have one over the
// same registry.
type Log struct {
	o     Options
	index index
	wake  chan struct{}

	turn chan struct{} // held by the one goroutine that follows

	generation stele.GenerationID // that the goroutine with the turn saw last

	following atomic.Int32 // goroutines in Run and KeepUp
	keeping   atomic.Int32 // those in KeepUp
	offers    *offered.Offers
	makers    sync.Pool // of *maker
	trees     tileTrees

	disclosed uint64 // leaves that are disclosed by one pass over the feed, in tests; 0: disclosingPart

	checkpoint atomic.Pointer[readCheckpoint] // that was read last; nil if none was

	mu    sync.RWMutex
	known *position // what was read or written last; nil if nothing is known
	names nameKeys
}

// position is a state of the log, and the cells by which it is changed.
type position struct {
	state
	cell []byte // of the state; nil if there is none
	edge *edge
	tail []place // of the leaves after the indexed blocks, in the order of leaves; nil if they are not known
}

// era returns the generation that the log is in; the zero one if it has not begun.
func (p *position) era() (id stele.GenerationID) {
	if n := len(p.Eras); n > 0 {
		id = p.Eras[n-1].Generation
	}
	return id
}

// New returns the log of a registry. It reads nothing yet.
func New(o Options) *Log {
	o.Cells = asServer{o.Cells}
	return &Log{
		o: o, index: newIndex(o.Cells), trees: newTileTrees(), wake: make(chan struct{}, 1), turn: make(chan struct{}, 1), names: newNameKeys(),
		offers: offered.New(maxOffered), makers: sync.Pool{New: func() any { return new(maker) }},
	}
}

// Notify says that something was committed. It never waits.
func (l *Log) Notify() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Status is how far the log is.
type Status struct {
	Size    uint64 // leaves
	Changes uint64 // of the feed
	Eras    []Era
}

// Status returns how far the log is.
func (l *Log) Status(ctx context.Context) (Status, error) {
	p, err := l.read(ctx)
	if err != nil {
		return Status{}, err
	}
	last, err := l.o.Source.LastChange(ctx)
	return Status{p.Size, last, p.Eras}, err
}

// CatchUp adds all changes to the log that were committed before it was called. progress is called now and then, and may be nil.
func (l *Log) CatchUp(ctx context.Context, progress func(Status)) error {
	if err := l.take(ctx); err != nil {
		return err
	}
	defer func() { <-l.turn }()
	return l.advance(ctx, math.MaxUint64, progress)
}

// Offer gives the log records that an import has written, in the order of their changes. They must be as the store has them, and must not be
// changed any more. The log reads from the store what it was not offered, or has no room for. If neither Run nor KeepUp
// follows, nothing is kept.
//
// While KeepUp follows, Offer waits a while for room. The import then ends when the log has caught up, so it loses nothing,
// and reading the records again would take longer.
func (l *Log) Offer(records []*stele.Record) {
	if l.following.Load() == 0 || l.offers.Offer(records) {
		return
	}
	for range int(offerPatience / offerPause) {
		if l.keeping.Load() == 0 {
			return
		}
		l.Notify()
		time.Sleep(offerPause)
		if l.offers.Offer(records) {
			return
		}
	}
}

const (
	offerPatience = 5 * time.Second
	offerPause    = 20 * time.Millisecond
)

// KeepUp logs whole blocks of what is committed, whenever Notify is called, until the context ends. It is for an import: what
// is written of a block at once is not written again. CatchUp logs the rest.
func (l *Log) KeepUp(ctx context.Context) error {
	l.following.Add(1)
	defer l.following.Add(-1)
	l.keeping.Add(1)
	defer l.keeping.Add(-1)
	seen := uint64(0) // what was committed when it was notified before. All of that was offered: a commit is seen before
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.wake:
		}
		now, err := l.o.Source.LastChange(ctx)
		if err == nil {
			err = l.keepUp(ctx, seen/blockLeaves*blockLeaves)
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		seen = now
	}
}

// keepUp logs changes up to one. When the context ends it finishes the batches that are under way, so that what was offered
// is not read again.
func (l *Log) keepUp(ctx context.Context, last uint64) error {
	if err := l.take(ctx); err != nil {
		return err
	}
	defer func() { <-l.turn }()
	work := context.WithoutCancel(ctx)
	for size := uint64(math.MaxUint64); ctx.Err() == nil; {
		p, err := l.load(work)
		if err != nil || p.Size >= last || p.Size == size {
			return err
		}
		size = p.Size
		if err := l.advance(work, min(last, size+4*batchLeaves), nil); err != nil {
			return err
		}
	}
	return nil
}

func (l *Log) take(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// read returns the state of the log, as it is in the registry.
func (l *Log) read(ctx context.Context) (*position, error) {
	cell, err := l.o.Cells.LogCell(ctx, stateCell)
	if err != nil {
		return nil, err
	}
	return l.positionOf(cell)
}

// positionOf returns the state that is in a cell.
func (l *Log) positionOf(cell []byte) (*position, error) {
	l.mu.RLock()
	known := l.known
	l.mu.RUnlock()
	if known != nil && string(known.cell) == string(cell) && (cell == nil) == (known.cell == nil) {
		return known, nil
	}
	p := &position{cell: cell}
	if cell != nil {
		s, err := decodeState(cell)
		if err != nil {
			return nil, err
		}
		p.state = *s
	}
	return p, nil
}

// load returns the state of the log with its edge and its tail, to add leaves.
func (l *Log) load(ctx context.Context) (*position, error) {
	for {
		p, err := l.read(ctx)
		if err != nil || p.edge != nil {
			return p, err
		}
		if err = l.complete(ctx, p); err == nil {
			l.remember(p)
			return p, nil
		}
		if !l.overtaken(ctx, p) { // else another server added leaves after the state was read, and the last tile has more of them
			return nil, err
		}
	}
}

// complete reads the edge and the tail of a state.
func (l *Log) complete(ctx context.Context, p *position) (err error) {
	if p.edge, err = loadEdge(ctx, l.o.Cells, p.Size); err != nil {
		return err
	}
	p.tail = []place{}
	first := p.Indexed * blockLeaves
	if p.Size <= first {
		return nil
	}
	for c, err := range l.o.Source.Changes(ctx, first) {
		if err != nil {
			return err
		}
		if c.Seq > p.Size {
			break
		}
		kind, name := subject(&c)
		p.tail = append(p.tail, place{placeHash(kind, name, c.Version), c.Seq - 1})
	}
	if uint64(len(p.tail)) != p.Size-first {
		return otherFeed()
	}
	return nil
}

func (l *Log) remember(p *position) {
	l.mu.Lock()
	l.known = p
	l.mu.Unlock()
}

func otherFeed() error {
	return &stele.Error{Op: opLog, Kind: stele.Internal, Err: stele.Messagef("log.feed-differs", "the log does not belong to this change feed: the registry has other changes than were logged; 'stele verify' tells where")}
}

// maxTries is how often a commit is made anew that other servers get ahead of.
const maxTries = 10

// advance is CatchUp for the goroutine that has the turn, up to a change.
func (l *Log) advance(ctx context.Context, last uint64, progress func(Status)) error {
	if l.o.Lagging != nil {
		if _, lags := l.o.Lagging(); lags {
			return nil
		}
	}
	l.offers.Take()
	now, err := l.o.Source.Position(ctx)
	if err != nil {
		return err
	}
	if now.Generation != l.generation { // what was offered may be of the one before
		if l.generation != (stele.GenerationID{}) {
			l.offers.Forget()
		}
		l.generation = now.Generation
	}
	last = min(last, now.Change)
	err = l.follow(ctx, now, last, func(p *position) {
		if progress != nil {
			progress(Status{p.Size, now.Change, p.Eras})
		}
	})
	// Records that were offered after their changes were logged are left over; so are those of changes that were not logged.
	if err != nil || l.offers.Left() > now.Change-last {
		l.offers.Drop()
	} else {
		l.offers.Settle()
	}
	return err
}

// follow logs the changes up to one, of a feed that has come to a position.
func (l *Log) follow(ctx context.Context, now stele.Position, last uint64, progress func(*position)) error {
	for tries := 0; ; tries++ {
		p, err := l.load(ctx)
		if err != nil {
			return err
		}
		progress(p)
		done, err := l.step(ctx, p, now, last, progress)
		switch {
		case err == nil && done:
			return nil
		case err == nil, l.overtaken(ctx, l.latest(p)): // another server was faster, and the log goes on from where it is
			tries = 0
		case stele.KindOf(err) == stele.Conflict && tries < maxTries: // an erasure changed a tile
			l.remember(nil)
		default:
			l.remember(nil)
			return err
		}
	}
}

// latest returns the state that this server has written last, since it read one.
func (l *Log) latest(p *position) *position {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.known != nil {
		return l.known
	}
	return p
}

// overtaken reports whether the log has another state than the one that a caller worked with: what the caller wrote was refused
// for it, or what it wanted to read is elsewhere.
func (l *Log) overtaken(ctx context.Context, p *position) bool {
	cell, err := l.o.Cells.LogCell(ctx, stateCell)
	return err == nil && !bytes.Equal(cell, p.cell)
}

// step adds changes up to one, or does what else there is to do.
func (l *Log) step(ctx context.Context, p *position, now stele.Position, last uint64, progress func(*position)) (done bool, err error) {
	if len(p.Eras) == 0 || p.Eras[len(p.Eras)-1].Generation != now.Generation {
		return false, l.begin(ctx, p)
	}
	if p, err = l.tidy(ctx, p); err != nil {
		return false, err
	}
	switch {
	case p.Size > now.Change: // another server may have logged what was committed since
		later, err := l.o.Source.Position(ctx)
		if err == nil && p.Size > later.Change {
			err = otherFeed()
		}
		return true, err
	case p.Size >= last:
		return true, nil
	}
	return false, l.append(ctx, p, last, progress)
}

// tidy adds full blocks to the index, and removes what was merged.
func (l *Log) tidy(ctx context.Context, p *position) (*position, error) {
	for {
		var err error
		switch {
		case len(p.Merged) > 0:
			p, err = l.sweep(ctx, p)
		case len(p.tail) >= blockLeaves:
			p, err = l.addBlocks(ctx, p)
		default:
			return p, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// sweep removes the cells of runs that were merged.
func (l *Log) sweep(ctx context.Context, p *position) (*position, error) {
	if err := l.index.remove(ctx, p.Merged); err != nil {
		return nil, err
	}
	next := *p
	next.Merged = nil
	return &next, l.commit(ctx, p, &next, nil)
}

// addRuns takes full blocks from the tail and returns the cells of their runs, up to one with which runs are merged.
func (l *Log) addRuns(ctx context.Context, next *position) (changes []stele.CellChange, err error) {
	for len(next.tail) >= blockLeaves && !completes(next.Indexed) {
		run, err := l.index.block(ctx, next.Indexed, next.tail[:blockLeaves])
		if err != nil {
			return nil, err
		}
		changes = append(changes, run...)
		next.tail = next.tail[blockLeaves:]
		next.Indexed++
	}
	return changes, nil
}

// addBlocks adds full blocks to the index, until runs are merged.
func (l *Log) addBlocks(ctx context.Context, p *position) (*position, error) {
	next := *p
	changes, err := l.addRuns(ctx, &next)
	if err != nil {
		return nil, err
	}
	if next.Indexed == p.Indexed { // the next block completes runs
		if next.Merged, err = l.index.addBlock(ctx, next.Indexed, next.tail[:blockLeaves]); err != nil {
			return nil, err
		}
		next.tail = next.tail[blockLeaves:]
		next.Indexed++
	}
	return &next, l.commit(ctx, p, &next, changes)
}

// begin begins an era: the log is new, or the registry was restored. It finds out whether the feed is still the one that was logged.
func (l *Log) begin(ctx context.Context, p *position) error {
	list, err := l.o.Source.Generations(ctx)
	if err != nil {
		return err
	}
	if p.Size > 0 {
		if err := l.checkMark(ctx, p); err != nil {
			return err
		}
	}
	g := list.Last()
	next := *p
	next.Eras = append(p.Eras[:len(p.Eras):len(p.Eras)], Era{Generation: g.ID, Number: g.Number, Size: p.Size, Began: g.Began})
	return l.commit(ctx, p, &next, nil)
}

// checkMark makes sure that the feed has the change that the log ends with.
func (l *Log) checkMark(ctx context.Context, p *position) error {
	for c, err := range l.o.Source.Changes(ctx, p.Size-1) {
		if err != nil {
			return err
		}
		if markOf(&c) == p.Mark {
			return nil
		}
		break
	}
	return otherFeed()
}

// commit replaces the state of the log, with other cells.
func (l *Log) commit(ctx context.Context, p, next *position, changes []stele.CellChange) error {
	after, err := next.encode()
	if err != nil {
		return err
	}
	err = l.o.Cells.KeepLog(ctx, append(changes, stele.CellChange{Name: stateCell, Before: p.cell, After: after})...)
	if err != nil {
		return err
	}
	next.cell = after
	l.remember(next)
	return nil
}
