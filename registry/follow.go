package registry

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
)

const (
	// followFar is how many changes are told one by one. A follower that lags further
	// invalidates everything instead, which is faster.
	followFar = 10_000

	followPage    = 1000 // changes that are read at a time
	followReaders = 8    // records that are read at once

	// markAge is after how long without changes the follower checks that the last change
	// is still the same one. When there are changes the check costs nothing, and is always
	// done.
	markAge = 2 * time.Second

	// awaitLongest is how long a request waits for a state that it asks for.
	awaitLongest = 5 * time.Second
	awaitAgain   = 20 * time.Millisecond

	// awaitFar is how many changes a request may be ahead of the last one that there is,
	// and wait. No client can have a version token that far ahead, unless only a lagging
	// copy of the store is left, and that will not have the change soon.
	awaitFar = 1000

	// cutOff is after how long without an answer of the database a server is not ready:
	// other servers may reach it.
	cutOff = 10 * time.Second
)

// Follower learns from the change feed what other processes write to the same store, and
// tells the parts of this process that keep something in memory. It says of a change
// what a writer of this process would: so the rules by which nothing old is kept are the
// same.
//
// It begins before anything is kept. It forgets nothing because the store does not
// answer: nothing newer can be read then. When the store answers again it reads all
// changes that it missed.
type Follower struct {
	registry *Registry
	now      func() time.Time
	log      *slog.Logger

	turn      chan struct{} // holds one value while a goroutine catches up
	position  atomic.Uint64 // all changes up to this one are told
	seen      atomic.Uint64 // the last change there was at the last look
	heard     atomic.Int64  // when the store answered last, Unix nanoseconds
	forgotten chan struct{} // holds one value when everything was forgotten

	mu   sync.Mutex
	next *round // in which all is told that was committed before; nil if no caller waits for it

	// Only for the goroutine that has the turn.
	mark     stele.Change // the change at position; zero if it is not known
	compared time.Time    // when it was last seen to be the one that it was
	lost     uint64       // writes of this process up to this one may be lost, and are forgotten
	lagged   time.Time    // the last lag of the store that was dealt with
	silent   bool         // the store did not answer last time
	restored bool         // another registry replaced it, and not all is forgotten yet
}

// Behind returns how many changes there were at the last look that are not told yet.
func (f *Follower) Behind() uint64 {
	position, seen := f.position.Load(), f.seen.Load()
	return seen - min(position, seen)
}

// Heard returns when the store answered last.
func (f *Follower) Heard() time.Time { return time.Unix(0, f.heard.Load()) }

// Forgotten has a value when everything that was kept in memory was forgotten.
func (f *Follower) Forgotten() <-chan struct{} { return f.forgotten }

// round is one look for changes, for all callers that asked before it began.
type round struct {
	done chan struct{}
	err  error
	left bool // the caller that looked was cancelled: err says nothing to the others
}

// newFollower begins to follow. It must be called before anything is read that is kept.
func newFollower(ctx context.Context, r *Registry, now func() time.Time, log *slog.Logger) (*Follower, error) {
	f := &Follower{registry: r, now: now, log: log, turn: make(chan struct{}, 1), forgotten: make(chan struct{}, 1)}
	if since, lags := r.lagging(); !lags { // else it is dealt with when it ends
		f.lagged = since
	}
	last, err := r.Store.LastChange(ctx)
	if err != nil {
		return nil, err
	}
	if f.mark, err = f.changeAt(ctx, last); err != nil {
		return nil, err
	}
	f.compared = now()
	f.position.Store(last)
	f.seen.Store(last)
	f.heard.Store(now().UnixNano())
	return f, nil
}

// Run looks for changes every so often, until the context ends.
func (f *Follower) Run(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		// catchUp logs its error, and the next tick tries again.
		_ = f.catchUp(ctx)
	}
}

// catchUp returns when all is told that was committed before it was called. All callers
// that come before a look begins are served by that one look, so that a caller waits for
// at most two looks, however many callers there are.
func (f *Follower) catchUp(ctx context.Context) error {
	for ctx.Err() == nil {
		f.mu.Lock()
		r, first := f.next, f.next == nil
		if first {
			r = &round{done: make(chan struct{})}
			f.next = r
		}
		f.mu.Unlock()
		if first {
			return f.hold(ctx, r)
		}
		select {
		case <-r.done:
			if !r.left {
				return r.err
			}
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// hold holds a round.
func (f *Follower) hold(ctx context.Context, r *round) error {
	begin := func() {
		f.mu.Lock()
		f.next = nil
		f.mu.Unlock()
	}
	defer close(r.done)
	select {
	case f.turn <- struct{}{}:
	case <-ctx.Done():
		begin()
		r.left = true
		return ctx.Err()
	}
	defer func() { <-f.turn }()
	begin()
	err := f.advance(ctx)
	r.err, r.left = err, err != nil && ctx.Err() != nil
	if ctx.Err() == nil && (err != nil) != f.silent {
		f.silent = err != nil
		if f.silent {
			f.log.Warn("what other servers write can't be read; answers come from memory", "error", err.Error())
		} else {
			f.log.Info("what other servers wrote is known again", "change", f.position.Load())
		}
	}
	return err
}

// state is what the store says of itself.
type state struct {
	last   uint64 // change
	in     stele.GenerationID
	own    uint64    // change of this process that was acknowledged, and is not known to be lost
	since  time.Time // when it lagged last
	copied bool      // it may be a copy that said so
}

// look asks the store how far it is. This query may be the one that finds the primary
// unavailable, and a copy may answer it; so look checks that afterwards.
func (f *Follower) look(ctx context.Context) (s state, err error) {
	if a, ok := f.registry.Store.(stele.Shared); ok {
		if s.own = a.Applied(); s.own <= f.lost {
			s.own = 0
		}
	}
	since, lags := f.registry.lagging()
	s.since = since
	at, err := f.registry.Store.Position(ctx)
	if err != nil {
		return s, err
	}
	s.last, s.in = at.Change, at.Generation
	s.copied = lags || f.lagsSince(s)
	f.heard.Store(f.now().UnixNano())
	f.seen.Store(s.last)
	return s, nil
}

// lagsSince reports whether what was read since then may be from a copy.
func (f *Follower) lagsSince(s state) bool {
	since, lags := f.registry.lagging()
	return lags || !since.Equal(s.since)
}

// advance is catchUp for the goroutine that has the turn.
func (f *Follower) advance(ctx context.Context) error {
	s, err := f.look(ctx)
	if err != nil {
		return err
	}
	if !s.copied && !s.since.Equal(f.lagged) {
		if err := f.afterLag(ctx, s.since); err != nil {
			return err
		}
	}
	at := f.position.Load()
	switch {
	case !s.copied && (f.restored || s.in != f.registry.KnownGenerations().Last().ID):
		return f.afterRestore(ctx, s)
	case s.copied && s.last < at:
		return nil // it has not all of it yet
	case !s.copied && s.last < max(at, s.own):
		f.log.Error("the database has fewer changes than it had: some that were acknowledged are lost", "had", max(at, s.own), "has", s.last)
		if err := f.forgetAll(ctx, s.last); err != nil {
			return err
		}
		f.lost = max(f.lost, s.own)
		return nil
	case s.last-at > followFar, f.mark.Seq != at:
		return f.forgetAll(ctx, s.last)
	}
	due := f.now().Sub(f.compared).Abs() >= markAge
	for ; due || f.position.Load() < s.last; due = false {
		if err := f.page(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// afterLag deals with what was read from a copy, since the store could do no better: of
// records nothing was kept, of namespaces all was. Another server may be the primary
// now: so the follower checks that the changes are still the same.
func (f *Follower) afterLag(ctx context.Context, since time.Time) error {
	if err := f.registry.Registrar.Reload(ctx); err != nil {
		return err
	}
	f.registry.NamespacesCommitted()
	if f.registry.Published != nil {
		f.registry.Published.InvalidateAll()
	}
	f.compared = time.Time{}
	f.lagged = since
	return nil
}

// afterRestore deals with a registry that replaced the one that was followed. It has not
// ended before everything is forgotten, even if the store ceases to answer meanwhile.
func (f *Follower) afterRestore(ctx context.Context, s state) error {
	f.log.Warn("the registry was restored from a backup", "generation", s.in.String(), "change", s.last)
	f.restored = true
	if f.registry.Published != nil {
		f.registry.Published.Replace()
	}
	if err := f.forgetAll(ctx, s.last); err != nil {
		return err
	}
	// Not before: no answer from memory has a version token of the new generation.
	if err := f.registry.ReadGenerations(ctx); err != nil {
		return err
	}
	// What this process wrote was written elsewhere, with other numbers.
	f.lost = max(f.lost, s.own)
	if r, ok := f.registry.Store.(stele.Shared); ok {
		r.Rewind(s.last)
		f.lost = 0
	}
	f.restored = false
	return nil
}

// forgetAll forgets everything that is kept. What is read from then on has all changes
// up to the last. The mark is read before: if another server replaces the database
// meanwhile, the mark differs, and the follower notices that.
func (f *Follower) forgetAll(ctx context.Context, last uint64) error {
	r := f.registry
	mark, err := f.changeAt(ctx, last)
	if err != nil {
		return err
	}
	if mark.Seq != last {
		return shortFeed()
	}
	if err := r.Registrar.Reload(ctx); err != nil {
		return err
	}
	r.Resolver.InvalidateAll()
	r.Directory.Forget()
	if r.Published != nil {
		r.Published.InvalidateAll()
	}
	f.position.Store(last)
	f.mark, f.compared = mark, f.now()
	select {
	case f.forgotten <- struct{}{}:
	default:
	}
	f.log.Info("everything that was kept in memory is read again", "change", last)
	return nil
}
