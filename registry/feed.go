package registry

import (
	"context"
	"sync"

	"github.com/stele-id/stele"
)

// news is what some changes are about.
type news struct {
	end        stele.Change        // the last of them; the mark if there are none
	other      bool                // the feed is not the one that the mark was in
	fresh      bool                // there are new records
	namespaces bool                // namespaces have changed
	records    map[stele.ID]uint64 // the records that have to be read, with the version that they have at least
}

// page tells some changes, if there are any, and checks that those before them are
// unchanged.
func (f *Follower) page(ctx context.Context, s state) error {
	n, err := f.read(ctx)
	switch {
	case err != nil:
		return err
	case n.other:
		if s.copied || f.lagsSince(s) {
			return mixedFeed()
		}
		f.log.Error("the database has other changes than it had: some that were acknowledged are lost", "change", f.mark.Seq)
		return f.forgetAll(ctx, s.last)
	case n.end.Seq == f.mark.Seq && s.last > f.mark.Seq:
		return shortFeed()
	}
	r := f.registry
	records, whole, err := f.find(ctx, n.records)
	switch {
	case err != nil:
		return err
	case !whole && (s.copied || f.lagsSince(s)):
		return mixedFeed() // what is kept is better than what can be read
	case !whole: // a record of the feed is missing: another database server answered
		return f.forgetAll(ctx, min(s.last, n.end.Seq))
	}
	if n.fresh {
		r.Resolver.InvalidateUnknown()
	}
	if n.namespaces {
		// What they had before they changed is forgotten first: while names of an adopted namespace are still unknown
		// here, this server writes nothing in that namespace, and shows no client that it was adopted.
		r.Resolver.Invalidate(records...)
		if err := r.Registrar.Reload(ctx); err != nil {
			return err
		}
		r.NamespacesCommitted()
	}
	if len(records) > 0 {
		r.Committed(records...)
	}
	f.mark, f.compared = n.end, f.now()
	f.position.Store(n.end.Seq)
	return nil
}

func shortFeed() error {
	return failf("follow", stele.Unavailable, "feed.ends-before-last-change", "the change feed ends before the last change; trying again")
}

func mixedFeed() error {
	return failf("follow", stele.Unavailable, "feed.of-copy-differs", "the primary database is away, and a copy has other changes than it had; trying again")
}

// changeAt returns the change with a number; zero if there is none.
func (f *Follower) changeAt(ctx context.Context, seq uint64) (stele.Change, error) {
	if seq == 0 {
		return stele.Change{}, nil
	}
	for c, err := range f.registry.Store.Changes(ctx, seq-1) {
		return c, err
	}
	return stele.Change{}, nil
}

// read reads a page of changes, and before them the one at the mark. Of a new record
// nothing can be cached except that its names are unknown; so it is read only if zones
// are published.
func (f *Follower) read(ctx context.Context) (*news, error) {
	n := &news{end: f.mark, records: make(map[stele.ID]uint64)}
	count, marked := 0, f.mark.Seq == 0
	for c, err := range f.registry.Store.Changes(ctx, max(f.mark.Seq, 1)-1) {
		switch {
		case err != nil:
			return nil, err
		case !marked:
			if n.other = !c.EqualStored(f.mark); n.other {
				return n, nil
			}
			marked = true
			continue
		}
		n.add(c, f.registry.Published != nil)
		if count++; count == followPage {
			break
		}
	}
	if !marked {
		return nil, shortFeed()
	}
	return n, nil
}

// add adds a change.
func (n *news) add(c stele.Change, published bool) {
	n.end = c
	switch {
	case !c.ID.IsValid():
		n.namespaces = true
	case c.Version == 1 && !published:
		n.fresh = true
	default:
		n.fresh = n.fresh || c.Version == 1
		n.records[c.ID] = max(n.records[c.ID], c.Version)
	}
}

// find reads records, by several at once: all their names have to be known, and the
// newest version has them all. Whole is false if one is not there, or is older than it
// was.
func (f *Follower) find(ctx context.Context, wanted map[stele.ID]uint64) (list []*stele.Record, whole bool, err error) {
	ids := make(chan stele.ID)
	var mu sync.Mutex
	whole = true
	var readers sync.WaitGroup
	for range min(followReaders, len(wanted)) {
		readers.Go(func() {
			for id := range ids {
				rec, rerr := f.registry.Store.Record(ctx, id)
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
