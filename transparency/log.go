package transparency

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/stele-id/stele"
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

// New returns the log of a registry. It reads nothing yet.
func New(o Options) *Log {
	o.Cells = asServer{o.Cells}
	return &Log{o: o, index: index{o.Cells}, wake: make(chan struct{}, 1), turn: make(chan struct{}, 1), names: newNameKeys()}
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
	return l.advance(ctx, progress)
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
	p, err := l.read(ctx)
	if err != nil || p.edge != nil {
		return p, err
	}
	if p.edge, err = loadEdge(ctx, l.o.Cells, p.Size); err != nil {
		return nil, err
	}
	p.tail = []place{}
	first := p.Indexed * blockLeaves
	if p.Size > first {
		for c, err := range l.o.Source.Changes(ctx, first) {
			if err != nil {
				return nil, err
			}
			if c.Seq > p.Size {
				break
			}
			kind, name := subject(&c)
			p.tail = append(p.tail, place{placeHash(kind, name, c.Version), c.Seq - 1})
		}
		if uint64(len(p.tail)) != p.Size-first {
			return nil, otherFeed()
		}
	}
	l.remember(p)
	return p, nil
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

// advance is CatchUp for the goroutine that has the turn.
func (l *Log) advance(ctx context.Context, progress func(Status)) error {
	if l.o.Lagging != nil {
		if _, lags := l.o.Lagging(); lags {
			return nil
		}
	}
	now, err := l.o.Source.Position(ctx)
	if err != nil {
		return err
	}
	for tries := 0; ; tries++ {
		p, err := l.load(ctx)
		if err != nil {
			return err
		}
		if progress != nil {
			progress(Status{p.Size, now.Change, p.Eras})
		}
		done, err := l.step(ctx, p, now)
		switch {
		case err == nil && done:
			return nil
		case err == nil, l.overtaken(ctx, p): // another server was faster, and the log goes on from where it is
			tries = 0
		case stele.KindOf(err) == stele.Conflict && tries < maxTries: // an erasure changed a tile
			l.remember(nil)
		default:
			l.remember(nil)
			return err
		}
	}
}

// overtaken reports whether the log has another state than the one that a caller worked with: what the caller wrote was refused
// for it, or what it wanted to read is elsewhere.
func (l *Log) overtaken(ctx context.Context, p *position) bool {
	cell, err := l.o.Cells.LogCell(ctx, stateCell)
	return err == nil && !bytes.Equal(cell, p.cell)
}

// step adds a batch of changes, or does what else there is to do.
func (l *Log) step(ctx context.Context, p *position, now stele.Position) (done bool, err error) {
	if len(p.Merged) > 0 {
		return false, l.sweep(ctx, p)
	}
	if len(p.Eras) == 0 || p.Eras[len(p.Eras)-1].Generation != now.Generation {
		return false, l.begin(ctx, p)
	}
	if len(p.tail) >= blockLeaves {
		return false, l.addBlocks(ctx, p)
	}
	switch {
	case p.Size > now.Change: // another server may have logged what was committed since
		later, err := l.o.Source.Position(ctx)
		if err == nil && p.Size > later.Change {
			err = otherFeed()
		}
		return true, err
	case p.Size == now.Change:
		return true, nil
	}
	return false, l.append(ctx, p, now.Change)
}

// sweep removes the cells of runs that were merged.
func (l *Log) sweep(ctx context.Context, p *position) error {
	for _, r := range p.Merged {
		if err := l.index.remove(ctx, r); err != nil {
			return err
		}
	}
	next := *p
	next.Merged = nil
	return l.commit(ctx, p, &next, nil)
}

// addBlocks adds full blocks to the index.
func (l *Log) addBlocks(ctx context.Context, p *position) error {
	next := *p
	for len(next.tail) >= blockLeaves {
		merged, err := l.index.addBlock(ctx, next.Indexed, next.tail[:blockLeaves])
		if err != nil {
			return err
		}
		next.tail = next.tail[blockLeaves:]
		next.Indexed++
		if next.Merged = merged; len(merged) > 0 {
			break
		}
	}
	return l.commit(ctx, p, &next, nil)
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
