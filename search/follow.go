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

	// maxArena and maxFound bound the memory of a part, about: bytes of words, and words of
	// documents.
	maxArena = 64 << 20
	maxFound = 16 << 20

	wholeBlocks = 4 // that are indexed before KeepUp looks whether it should end

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

// catchUp indexes all changes, or those of some whole blocks, which it finishes when the context ends.
func (x *Index) catchUp(ctx context.Context, whole bool) error {
	if err := x.take(ctx); err != nil {
		return err
	}
	defer func() { <-x.turn }()
	if whole { // it is little, and what an import offered would have to be read from the store otherwise
		ctx = context.WithoutCancel(ctx)
		if x.builders == nil {
			x.builders = new(spare)
		}
	} else {
		defer func() { x.builders = nil }() // the import is over, and this was the rest of it
	}
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
	x.offers.Forget()
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
	x.offers.Forget() // it may be what was erased
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

// lagging is for Options.Lagging.
func (x *Index) lagging() (since time.Time, yes bool) {
	if x.o.Lagging == nil {
		return time.Time{}, false
	}
	return x.o.Lagging()
}

// follow reads the feed from the position of the index on, as far as it goes or up to the end of
// the last whole block.
func (x *Index) follow(ctx context.Context, whole bool, progress func(Status)) error {
	for range 3 {
		x.offers.Take()
		now, err := x.o.Source.Position(ctx)
		if err != nil {
			return err
		}
		_, lags := x.lagging()
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
			x.offers.Drop() // all of it came too late
			return nil
		}
		if reason == "" {
			x.last.Store(now.Change)
			last := now.Change
			if whole {
				if last = (last+1)/blockSize*blockSize - 1; last+1 == 0 || last <= at.mark.Seq {
					return nil
				}
				last = min(last, at.mark.Seq/blockSize*blockSize+(wholeBlocks+1)*blockSize-1)
			}
			if err := x.index(ctx, last, progress); !errors.Is(err, errOtherFeed) {
				// Records of changes that are not indexed were used if it failed, and those that were
				// offered after their change was indexed are left.
				if err != nil || x.offers.Left() > now.Change-last {
					x.offers.Drop()
				} else {
					x.offers.Settle()
				}
				return err
			} else if lags {
				return nil
			}
			reason = "the registry has other changes than it had"
		}
		x.offers.Forget()
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
	changes []change
	end     stele.Change // the last one
	space   stele.NamespaceKey
	spaces  *prefixes
	spare   *spare

	parts []part
	err   error
	done  chan struct{} // closed when it is built
}

// change is a change of a record: what the index needs of it. A block has tens of thousands.
type change struct {
	id           stele.ID
	seq, version uint64
	micros       int64         // of the time
	given        *stele.Record // that it made; nil if it was not offered
}

// whole returns the change as far as the position of the index has it.
func (c *change) whole() stele.Change {
	return stele.Change{Seq: c.seq, ID: c.id, Version: c.version, At: time.UnixMicro(c.micros).UTC()}
}

// part is what is committed together: all of a job, if it is not too much.
type part struct {
	built *builder // nil if there are no documents
	end   stele.Change
}

// index indexes the changes up to last. One goroutine reads the feed, some build parts of
// blocks, and the caller commits these in their order.
func (x *Index) index(ctx context.Context, last uint64, progress func(Status)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	jobs := make(chan *job, min(runtime.GOMAXPROCS(0), 4)-1)
	builders := x.builders
	if builders == nil {
		builders = new(spare)
	}
	var planned error
	var work sync.WaitGroup
	work.Go(func() {
		defer close(jobs)
		planned = x.plan(ctx, last, func(j *job) bool {
			j.spare = builders
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
	for j := range jobs {
		<-j.done
		if err == nil {
			err = j.err
		}
		for i := 0; i < len(j.parts) && err == nil; i++ {
			err = x.commit(j, j.parts[i])
			builders.put(j.parts[i].built)
		}
		if err != nil {
			cancel() // the others end soon
			continue
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
			if now.changes == nil {
				now.changes = make([]change, 0, min(last-c.Seq+1, blockSize-c.Seq%blockSize))
			}
			now.changes = append(now.changes, change{c.ID, c.Seq, c.Version, c.At.UnixMicro(), x.offers.Of(&c)})
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
		records, err := x.read(ctx, changes)
		if err != nil {
			j.err = err
			return
		}
		if now == nil {
			now = j.spare.builder(uint32(changes[0].seq>>blockBits), j.spaces, len(j.changes))
		}
		bytes := 1
		for i, r := range records {
			c := &changes[i]
			if c.given == nil { // it was read
				bytes += r.StoredSize()
				if r.ID != c.id || r.Version < c.version {
					j.err = errEarlier
					return
				}
			}
			if r.Version == c.version {
				now.add(c.seq, r)
			}
			c.given = nil // it need not wait until the block is written
		}
		if now.isFull() {
			j.parts = append(j.parts, part{now, changes[len(changes)-1].whole()})
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
func lastOfEach(changes []change) []change {
	if !slices.ContainsFunc(changes, func(c change) bool { return c.version > 1 }) {
		return changes // each is the first of its record
	}
	last := make(map[stele.ID]uint64, len(changes))
	for i := range changes {
		last[changes[i].id] = changes[i].seq
	}
	if len(last) == len(changes) {
		return changes
	}
	return slices.DeleteFunc(slices.Clone(changes), func(c change) bool { return last[c.id] != c.seq })
}

// read returns the records of some changes as they are now, or as a change made them if that
// was offered. It reads them in the order of their names, so that neighbours are found together.
func (x *Index) read(ctx context.Context, changes []change) ([]*stele.Record, error) {
	records := make([]*stele.Record, len(changes))
	var order []int
	for i := range changes {
		if records[i] = changes[i].given; records[i] == nil {
			order = append(order, i)
		}
	}
	if len(order) == 0 {
		return records, nil
	}
	slices.SortFunc(order, func(a, b int) int {
		return strings.Compare(changes[a].id.String(), changes[b].id.String())
	})
	if g, ok := x.o.Source.(stele.Gatherer); ok {
		names := make([]stele.ID, len(order))
		for i, at := range order {
			names[i] = changes[at].id
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
				if records[i], errs[w] = x.o.Source.Record(ctx, changes[i].id); errs[w] != nil {
					return
				}
			}
		})
	}
	work.Wait()
	return records, errors.Join(errs...)
}
