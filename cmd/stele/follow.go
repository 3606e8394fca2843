package main

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
)

const (
	// followFar is how many changes may be told one by one. Who is further behind
	// forgets everything instead, which is sooner done.
	followFar = 10_000

	followPage    = 1000 // changes that are read at a time
	followReaders = 8    // records that are read at once

	// awaitLongest is how long a request waits for a state that it asks for.
	awaitLongest = 5 * time.Second
	awaitAgain   = 20 * time.Millisecond

	// cutOff is after how long without an answer of the database a server is cut off:
	// others may do better.
	cutOff = 10 * time.Second
)

// follower learns from the change feed what other processes write to the same store, and
// tells those of this process who keep something in memory. What it says of a change is
// what a writer here would: so the rules by which nothing old is kept are the same.
//
// It begins before anything is kept. It forgets nothing because the store does not
// answer: what is kept is as good as anything that can be had then. When the store
// answers again it hears of all that it missed.
type follower struct {
	registry *registry
	now      func() time.Time
	log      *slog.Logger

	turn      chan struct{} // holds one value while somebody catches up
	position  atomic.Uint64 // all changes up to this one are told
	seen      atomic.Uint64 // the last change there was when somebody looked
	heard     atomic.Int64  // when the store answered last, Unix nanoseconds
	forgotten chan struct{} // holds one value when everything was forgotten

	// For who has the turn.
	mark   stele.Change // the change at position; zero if it is not known
	lagged time.Time    // the last lag of the store that was dealt with
	silent bool         // the store did not answer last time
}

// newFollower begins to follow. It must be called before anything is read that is kept.
func newFollower(ctx context.Context, r *registry, now func() time.Time, log *slog.Logger) (*follower, error) {
	f := &follower{registry: r, now: now, log: log, turn: make(chan struct{}, 1), forgotten: make(chan struct{}, 1)}
	f.lagged, _ = r.lagging()
	last, err := r.store.LastChange(ctx)
	if err != nil {
		return nil, err
	}
	f.position.Store(last)
	f.seen.Store(last)
	f.heard.Store(now().UnixNano())
	return f, nil
}

// run looks for changes every so often, until the context ends.
func (f *follower) run(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		// What is wrong is told there, and looked at again with the next tick.
		_ = f.catchUp(ctx)
	}
}

// catchUp returns when all is told that was committed before it was called.
func (f *follower) catchUp(ctx context.Context) error {
	select {
	case f.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-f.turn }()
	err := f.advance(ctx)
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

// advance is catchUp for who has the turn.
func (f *follower) advance(ctx context.Context) error {
	since, behind := f.registry.lagging()
	last, err := f.registry.store.LastChange(ctx)
	if err != nil {
		return err
	}
	f.heard.Store(f.now().UnixNano())
	f.seen.Store(last)
	if !behind && !since.Equal(f.lagged) {
		if err := f.afterLag(ctx, last, since); err != nil {
			return err
		}
	}
	at := f.position.Load()
	switch {
	case last < at && behind:
		return nil // a copy, which has not all of it yet
	case last < at:
		f.log.Error("the database has fewer changes than it had: some that were acknowledged are lost", "had", at, "has", last)
		return f.forgetAll(ctx, last)
	case last-at > followFar:
		return f.forgetAll(ctx, last)
	}
	for f.position.Load() < last {
		if err := f.page(ctx, last); err != nil {
			return err
		}
	}
	return nil
}

// afterLag deals with what was read from a copy, since the store could do no better: of
// records nothing was kept, of namespaces all was. If the changes are not those that they
// were, everything is forgotten.
func (f *follower) afterLag(ctx context.Context, last uint64, since time.Time) error {
	same := true
	if at := f.mark; at.Seq > 0 && at.Seq <= last {
		for c, err := range f.registry.store.Changes(ctx, at.Seq-1) {
			if err != nil {
				return err
			}
			same = c.Seq == at.Seq && c.ID == at.ID && c.Namespace == at.Namespace && c.Version == at.Version && c.At.Equal(at.At)
			break
		}
	}
	if !same {
		f.log.Error("the database has other changes than it had: some that were acknowledged are lost", "change", f.mark.Seq)
		if err := f.forgetAll(ctx, last); err != nil {
			return err
		}
	}
	if err := f.registry.registrar.Reload(ctx); err != nil {
		return err
	}
	f.registry.namespaceCommitted()
	if f.registry.published != nil {
		f.registry.published.InvalidateAll()
	}
	f.lagged = since
	return nil
}

// forgetAll forgets everything that is kept. What is read from then on has all changes
// up to the last.
func (f *follower) forgetAll(ctx context.Context, last uint64) error {
	r := f.registry
	if err := r.registrar.Reload(ctx); err != nil {
		return err
	}
	r.resolver.InvalidateAll()
	r.directory.Forget()
	if r.published != nil {
		r.published.InvalidateAll()
	}
	f.position.Store(last)
	f.mark = stele.Change{}
	select {
	case f.forgotten <- struct{}{}:
	default:
	}
	f.log.Info("everything that was kept in memory is read again", "change", last)
	return nil
}

// news is what some changes are about.
type news struct {
	end        stele.Change        // the last of them
	fresh      bool                // there are new records
	namespaces bool                // namespaces have changed
	records    map[stele.ID]uint64 // the records that have to be read, with the version that they have at least
}

// page tells some changes.
func (f *follower) page(ctx context.Context, last uint64) error {
	n, err := f.read(ctx)
	if err != nil {
		return err
	}
	r := f.registry
	if n.namespaces {
		if err := r.registrar.Reload(ctx); err != nil {
			return err
		}
		r.namespaceCommitted()
	}
	records, whole, err := f.find(ctx, n.records)
	if err != nil {
		return err
	}
	if !whole { // what the feed has is not there: it was another server's
		return f.forgetAll(ctx, min(last, n.end.Seq))
	}
	if n.fresh {
		r.resolver.InvalidateUnknown()
	}
	if len(records) > 0 {
		r.committed(records...)
	}
	f.mark = n.end
	f.position.Store(n.end.Seq)
	return nil
}

// read reads a page of changes. Of a new record nothing can be kept but that nobody has
// its names; so it is read only for those who publish it.
func (f *follower) read(ctx context.Context) (*news, error) {
	n := &news{records: make(map[stele.ID]uint64)}
	count := 0
	for c, err := range f.registry.store.Changes(ctx, f.position.Load()) {
		if err != nil {
			return nil, err
		}
		n.end = c
		switch {
		case !c.ID.IsValid():
			n.namespaces = true
		case c.Version == 1 && f.registry.published == nil:
			n.fresh = true
		default:
			n.fresh = n.fresh || c.Version == 1
			n.records[c.ID] = max(n.records[c.ID], c.Version)
		}
		if count++; count == followPage {
			break
		}
	}
	if count == 0 {
		return nil, refuse("follow", stele.Unavailable, "the change feed ends before the last change; trying again")
	}
	return n, nil
}

// find reads records, by several at once: all their names have to be known, and the
// newest version has them all. Whole is false if one is not there, or is older than it
// was.
func (f *follower) find(ctx context.Context, wanted map[stele.ID]uint64) (list []*stele.Record, whole bool, err error) {
	ids := make(chan stele.ID)
	var mu sync.Mutex
	whole = true
	var readers sync.WaitGroup
	for range min(followReaders, len(wanted)) {
		readers.Go(func() {
			for id := range ids {
				rec, rerr := f.registry.store.Record(ctx, id)
				mu.Lock()
				switch {
				case rerr == nil && rec.Version >= wanted[id]:
					list = append(list, rec)
				case rerr == nil || stele.KindOf(rerr) == stele.NotFound:
					whole = false
				default:
					err = rerr
				}
				mu.Unlock()
			}
		})
	}
	for id := range wanted {
		ids <- id
	}
	close(ids)
	readers.Wait()
	return list, whole, err
}
