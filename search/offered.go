package search

import (
	"context"
	"sync"

	"github.com/stele-id/stele"
)

// maxOffered bounds the records that wait to be indexed, in bytes as a store has them. In
// memory they take some times as much.
const maxOffered = 96 << 20

// offers are records that were committed a moment ago, so that the index need not read
// them again.
type offers struct {
	mu    sync.Mutex
	lists [][]*stele.Record
	size  int // of all that were not indexed yet

	given map[stele.ID]*stele.Record // for the goroutine that has the turn
}

// Offer gives the index records that a commit wrote. They must be as the store has them, and
// must not be changed any more. The index reads from the store what it was not offered, or has no
// room for. It never waits.
func (x *Index) Offer(records []*stele.Record) {
	size := 0
	for _, r := range records {
		size += r.StoredSize()
	}
	o := &x.offers
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.size+size > maxOffered {
		return
	}
	o.size += size
	o.lists = append(o.lists, records)
}

// take returns all records that were offered, and are not indexed yet. It is called before the
// position of the source is read, which then is after all of their changes.
func (o *offers) take() map[stele.ID]*stele.Record {
	o.mu.Lock()
	lists := o.lists
	o.lists = nil
	o.mu.Unlock()
	for _, list := range lists {
		if o.given == nil {
			o.given = make(map[stele.ID]*stele.Record, len(list))
		}
		for _, r := range list {
			o.given[r.ID] = r
		}
	}
	return o.given
}

// drop forgets what was taken.
func (o *offers) drop() {
	o.given = nil
	o.mu.Lock()
	defer o.mu.Unlock()
	o.size = 0
	for _, list := range o.lists {
		for _, r := range list {
			o.size += r.StoredSize()
		}
	}
}

// forget forgets all that was offered until now.
func (o *offers) forget() {
	o.take()
	o.drop()
}

// dropChanges forgets the records of changes that were indexed.
func (o *offers) dropChanges(changes []stele.Change) {
	size := 0
	for i := range changes {
		if r := o.given[changes[i].ID]; r != nil && r.Version <= changes[i].Version {
			size += r.StoredSize()
			delete(o.given, r.ID)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.size -= size
}

// KeepUp indexes whole blocks of what is committed, whenever Notify is called, until the context
// ends. It is for an import: a block that is written at once is never merged with other
// parts. CatchUp indexes the rest.
func (x *Index) KeepUp(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-x.wake:
		}
		if err := x.catchUp(ctx, true); err != nil && ctx.Err() == nil {
			return err
		}
	}
}
