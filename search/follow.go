package search

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/stele-id/stele"
)

const (
	readAtOnce = 16_384 // records that are read before their words are added, at most
	readFirst  = 64     // of a job, before it is known how large records are
	readBytes  = 16 << 20
	readers    = 8 // goroutines that read them

	// tablesFrom is from how many documents on sorted tables are written, past the memtable.
	tablesFrom = 10_000

	// maxArena and maxPairs bound the memory of a part, about: bytes of words, and words of
	// documents.
	maxArena = 64 << 20
	maxPairs = 8 << 20

	lookEvery  = time.Second // for changes that the index was not told of
	flushAfter = 30          // looks without changes
	tellFrom   = 200_000     // changes behind from which on progress is logged
)

// Notify says that something was committed. It never waits.
func (x *Index) Notify() {
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// Run keeps the index up to date until the context ends.
func (x *Index) Run(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	failed, quiet := false, 0
	for ctx.Err() == nil {
		before := x.at.Load()
		err := x.CatchUp(ctx)
		if ctx.Err() != nil {
			return
		}
		if (err != nil) != failed {
			failed = err != nil
			if failed {
				x.o.Log.Warn("the search index can't follow the registry; it is tried again", "error", err.Error())
			} else {
				x.o.Log.Info("the search index follows the registry again", "change", x.Status().Change)
			}
		}
		if quiet++; x.at.Load() != before {
			quiet = 0
		} else if quiet == flushAfter {
			x.flush()
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-x.wake:
			if err != nil { // not at once again
				select {
				case <-tick.C:
				case <-ctx.Done():
				}
			}
		}
	}
}

// flush writes to the disk what is in memory, so that a crash does not make it be indexed
// again.
func (x *Index) flush() {
	x.turn <- struct{}{}
	defer func() { <-x.turn }()
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.unflushed && x.db != nil && x.broken.Load() == nil {
		if _, err := x.db.AsyncFlush(); err == nil {
			x.unflushed = false
		}
	}
}

// CatchUp indexes all changes that were committed before it was called.
func (x *Index) CatchUp(ctx context.Context) error { return x.catchUp(ctx, false) }

// catchUp indexes all changes, or those of whole blocks.
func (x *Index) catchUp(ctx context.Context, whole bool) error {
	if err := x.take(ctx); err != nil {
		return err
	}
	defer func() { <-x.turn }()
	err := x.advance(ctx, whole)
	if errors.Is(err, errDamaged) || pebble.IsCorruptionError(err) {
		x.breakOff(err)
	}
	if x.broken.Load() != nil && ctx.Err() == nil { // once more, from the beginning
		err = x.advance(ctx, whole)
	}
	return err
}

func (x *Index) take(ctx context.Context) error {
	select {
	case x.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Rebuild makes the index anew. It returns when all changes are indexed that were committed
// before it was called.
func (x *Index) Rebuild(ctx context.Context, progress func(Status)) error {
	if err := x.take(ctx); err != nil {
		return err
	}
	defer func() { <-x.turn }()
	x.offers.forget()
	if err := x.replace(ctx); err != nil {
		return err
	}
	return x.follow(ctx, false, progress)
}

// Erase deletes all that the index has: no file holds what erased records said. It is made anew
// by the next search, or in the background.
func (x *Index) Erase(ctx context.Context) error {
	if err := x.take(ctx); err != nil {
		return err
	}
	defer func() { <-x.turn }()
	defer x.Notify()
	x.offers.forget() // it may be what was erased
	return x.replace(ctx)
}

// advance is CatchUp for the goroutine that has the turn.
func (x *Index) advance(ctx context.Context, whole bool) error {
	if b := x.broken.Load(); b != nil || x.at.Load() == nil {
		why := "it is empty"
		if b != nil {
			why = b.why.Error()
		}
		x.o.Log.Warn("the search index is made anew", "folder", x.o.Folder, "reason", why)
		if err := x.replace(ctx); err != nil {
			return err
		}
	}
	return x.follow(ctx, whole, nil)
}

// follow reads the feed from the position of the index on, as far as it goes or up to the end of
// the last whole block.
func (x *Index) follow(ctx context.Context, whole bool, progress func(Status)) error {
	for range 3 {
		given := x.offers.take()
		now, err := x.o.Source.Position(ctx)
		if err != nil {
			return err
		}
		lags := x.o.Lagging != nil && x.o.Lagging()
		at := x.at.Load()
		reason := ""
		switch {
		case lags && (now.Generation != at.generation || now.Change < at.mark.Seq):
			return nil // what the index has is better
		case now.Generation != at.generation:
			reason = "the registry was restored from a backup"
		case now.Change < at.mark.Seq:
			reason = "the registry has fewer changes than it had"
		case now.Change == at.mark.Seq:
			x.last.Store(now.Change)
			x.offers.drop() // all of it came too late
			return nil
		}
		if reason == "" {
			x.last.Store(now.Change)
			last := now.Change
			if whole {
				if last = (last+1)/blockSize*blockSize - 1; last+1 == 0 || last <= at.mark.Seq {
					return nil
				}
			}
			if err := x.index(ctx, last, given, progress); !errors.Is(err, errOtherFeed) {
				// Records that were offered after their change was indexed are left.
				if err == nil && uint64(len(given)) > now.Change-last {
					x.offers.drop()
				}
				return err
			} else if lags {
				return nil
			}
			reason = "the registry has other changes than it had"
		}
		x.offers.forget()
		x.o.Log.Warn("the search index is made anew", "folder", x.o.Folder, "reason", reason)
		if err := x.replace(ctx); err != nil {
			return err
		}
	}
	return refuse(stele.Unavailable, "search.registry-replaced-meanwhile", "the registry was replaced again while it was indexed; trying again")
}

var errEarlier error = &stele.Error{Op: "search", Kind: stele.Unavailable, Err: stele.Messagef("search.record-earlier-than-feed", "a record is earlier than its change; trying again")}

var errOtherFeed = stele.Messagef("search.feed-differs", "the change feed is not the one that was indexed")

// job is a part of the feed.
type job struct {
	changes []stele.Change
	end     stele.Change // the last one
	space   stele.NamespaceKey
	spaces  *prefixes
	given   map[stele.ID]*stele.Record // of the records, those that were offered

	parts []part
	err   error
	done  chan struct{} // closed when it is built
}

// part is what is committed together: all of a job, if it is not too much.
type part struct {
	built *builder // nil if there are no documents
	end   stele.Change
}

// index indexes the changes up to last. One goroutine reads the feed, some build parts of
// blocks, and the caller commits these in their order.
func (x *Index) index(ctx context.Context, last uint64, given map[stele.ID]*stele.Record, progress func(Status)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	jobs := make(chan *job, min(runtime.GOMAXPROCS(0), 4)-1)
	var planned error
	var work sync.WaitGroup
	work.Go(func() {
		defer close(jobs)
		planned = x.plan(ctx, last, func(j *job) bool {
			j.given = given
			work.Go(func() {
				defer close(j.done)
				x.build(ctx, j)
			})
			select {
			case jobs <- j:
				return true
			case <-ctx.Done():
				return false
			}
		})
	})
	begin := x.at.Load().mark.Seq
	told := begin
	var err error
	var done []stele.Change
	for j := range jobs {
		<-j.done
		if err == nil {
			err = j.err
		}
		for i := 0; i < len(j.parts) && err == nil; i++ {
			err = x.commit(j, j.parts[i])
		}
		if err != nil {
			cancel() // the others end soon
			continue
		}
		for _, c := range j.changes {
			if given[c.ID] != nil {
				done = append(done, c)
			}
		}
		if progress != nil {
			progress(x.Status())
		}
		if last-begin >= tellFrom && j.end.Seq-told >= tellFrom {
			told = j.end.Seq
			x.o.Log.Info("the search index is catching up", "change", told, "last", last)
		}
	}
	work.Wait()
	x.offers.dropChanges(done)
	if err == nil {
		err = planned
	}
	return err
}

// plan reads the feed and divides it. A part ends where a block does, and before a namespace
// whose prefix is not a term yet, which is a part of its own.
func (x *Index) plan(ctx context.Context, last uint64, add func(*job) bool) error {
	at := x.at.Load()
	spaces := x.spaces.Load()
	marked := at.mark.Seq == 0
	var now *job
	flush := func() bool {
		j := now
		now = nil
		return j == nil || add(j)
	}
	for c, err := range x.o.Source.Changes(ctx, max(at.mark.Seq, 1)-1) {
		switch {
		case err != nil:
			return err
		case !marked:
			if !at.isAt(c) {
				return errOtherFeed
			}
			marked = true
			continue
		}
		c.CountedAliases = nil
		if !c.ID.IsValid() && c.Namespace.Prefix != "" && !spaces.known[c.Namespace] {
			if !flush() {
				return ctx.Err()
			}
			spaces = spaces.clone()
			spaces.add(c.Namespace)
			now = &job{end: c, space: c.Namespace, spaces: spaces, done: make(chan struct{})}
			if !flush() {
				return ctx.Err()
			}
			if c.Seq == last {
				return nil
			}
			continue
		}
		if now == nil {
			now = &job{spaces: spaces, done: make(chan struct{})}
		}
		now.end = c
		if c.ID.IsValid() {
			now.changes = append(now.changes, c)
		}
		if c.Seq == last {
			break
		}
		if (c.Seq+1)%blockSize == 0 && !flush() {
			return ctx.Err()
		}
	}
	if !marked {
		return errOtherFeed
	}
	if !flush() {
		return ctx.Err()
	}
	return nil
}

// build reads the records of a job and gathers their words. A record that has a later version
// by now is left out: the change that made that one comes later.
func (x *Index) build(ctx context.Context, j *job) {
	var now *builder
	all, size := lastOfEach(j.changes), readFirst
	for len(all) > 0 {
		changes := all[:min(size, len(all))]
		all = all[len(changes):]
		records, err := x.read(ctx, changes, j.given)
		if err != nil {
			j.err = err
			return
		}
		if now == nil {
			now = newBuilder(uint32(changes[0].Seq>>blockBits), j.spaces, len(j.changes))
		}
		bytes := 1
		for i, r := range records {
			if r != j.given[r.ID] { // it was read
				bytes += r.StoredSize()
			}
			if r.ID != changes[i].ID || r.Version < changes[i].Version {
				j.err = errEarlier
				return
			}
			if r.Version == changes[i].Version {
				now.add(changes[i].Seq, r)
			}
		}
		if now.isFull() {
			j.parts = append(j.parts, part{now, changes[len(changes)-1]})
			now = nil
		}
		// A record may have a megabyte, so the next ones are as many as fit into readBytes if they
		// are as large as these, and not many more at once.
		size = max(1, min(size*4, readBytes/(bytes/len(changes)+1), readAtOnce))
	}
	j.parts = append(j.parts, part{now, j.end})
}

// lastOfEach returns the changes without those after which the same record changes again: they
// are left out in any case, and their records would be read for nothing.
func lastOfEach(changes []stele.Change) []stele.Change {
	last := make(map[stele.ID]uint64, len(changes))
	for _, c := range changes {
		last[c.ID] = c.Seq
	}
	if len(last) == len(changes) {
		return changes
	}
	return slices.DeleteFunc(slices.Clone(changes), func(c stele.Change) bool { return last[c.ID] != c.Seq })
}

// read returns the records of some changes as they are now, or as a change made them if that
// was offered. It reads them in the order of their names, so that neighbours are found together.
func (x *Index) read(ctx context.Context, changes []stele.Change, given map[stele.ID]*stele.Record) ([]*stele.Record, error) {
	records := make([]*stele.Record, len(changes))
	order := make([]int, 0, len(changes))
	for i := range changes {
		if r := given[changes[i].ID]; r != nil && r.Version == changes[i].Version {
			records[i] = r
		} else {
			order = append(order, i)
		}
	}
	if len(order) == 0 {
		return records, nil
	}
	slices.SortFunc(order, func(a, b int) int {
		return strings.Compare(changes[a].ID.String(), changes[b].ID.String())
	})
	if g, ok := x.o.Source.(stele.Gatherer); ok {
		names := make([]stele.ID, len(order))
		for i, at := range order {
			names[i] = changes[at].ID
		}
		list, err := g.Gather(ctx, names)
		for i, r := range list {
			if r == nil {
				return nil, errEarlier
			}
			records[order[i]] = r
		}
		return records, err
	}
	n := max(1, min(readers, len(order)/16))
	errs := make([]error, n)
	var work sync.WaitGroup
	for w := range n {
		work.Go(func() {
			for _, i := range order[w*len(order)/n : (w+1)*len(order)/n] {
				if records[i], errs[w] = x.o.Source.Record(ctx, changes[i].ID); errs[w] != nil {
					return
				}
			}
		})
	}
	work.Wait()
	return records, errors.Join(errs...)
}
