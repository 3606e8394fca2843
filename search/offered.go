package search

import (
	"context"
	"slices"
	"sync"

	"github.com/stele-id/stele"
)

// maxOffered bounds the records that wait to be indexed, in bytes as a store has them. In
// memory they take some times as much.
const maxOffered = 96 << 20

// maxLists is how many lists are looked at for the record of a change: imports that run at the same
// time take turns.
const maxLists = 8

// offers are records that were committed a moment ago, so that the index need not read
// them again.
type offers struct {
	mu    sync.Mutex
	lists []offered
	size  int // of all that were not indexed yet

	given []offered // for the goroutine that has the turn
	used  int       // the size of the lists that were used up since they were given
}

// offered are the records of one commit, in the order of their changes.
type offered struct {
	records []*stele.Record // that are not used yet
	size    int             // of all that there were
	late    bool            // some of their changes may be after the position that was read
	aligned bool            // the first record is not one that was indexed before
}

// Offer gives the index records that a commit wrote, in the order of their changes. They must be as
// the store has them, and must not be changed any more. The index reads from the store what it was
// not offered, or has no room for. It never waits.
func (x *Index) Offer(records []*stele.Record) {
	if len(records) == 0 {
		return
	}
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
	o.lists = append(o.lists, offered{records: records, size: size})
}

// take gives all records that were offered to the goroutine that has the turn. It is called before the
// position of the source is read, which then is after all of their changes.
func (o *offers) take() {
	o.takeLate()
	for i := range o.given {
		o.given[i].late, o.given[i].aligned = false, false
	}
}

// takeLate gives records of commits some of which may be after the position that was read. It
// returns false if there are none.
func (o *offers) takeLate() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(o.given)
	o.given = append(o.given, o.lists...)
	o.lists = nil
	for i := range o.given[n:] {
		o.given[n+i].late = true
	}
	return len(o.given) > n
}

// of returns the record that a change made, and does not return it again; nil if it was not
// offered. Changes are asked for in their order.
func (o *offers) of(c *stele.Change) *stele.Record {
	if r := o.first(c); r != nil {
		return r
	}
	if !o.align(c) && !(o.takeLate() && o.align(c)) {
		return nil
	}
	return o.first(c)
}

// first returns the record of a change if it is the first one of a list.
func (o *offers) first(c *stele.Change) *stele.Record {
	for i := range o.given[:min(len(o.given), maxLists)] {
		list := &o.given[i]
		r := list.records[0]
		if r.Version != c.Version || r.ID != c.ID {
			continue
		}
		if list.records = list.records[1:]; len(list.records) == 0 {
			o.used += list.size
			o.given = slices.Delete(o.given, i, i+1)
		}
		return r
	}
	return nil
}

// align looks for the record of a change in all lists, once in each, and drops the records before it: a
// commit is seen before it is offered, so those may have been read from the store. It returns false
// if it is in none.
func (o *offers) align(c *stele.Change) bool {
	for i := range o.given[:min(len(o.given), maxLists)] {
		list := &o.given[i]
		if list.aligned {
			continue
		}
		list.aligned = true
		n := slices.IndexFunc(list.records, func(r *stele.Record) bool { return r.Version == c.Version && r.ID == c.ID })
		if n >= 0 {
			list.records = list.records[n:]
			return true
		}
	}
	return false
}

// left returns how many records are left of those whose changes are all up to the position.
func (o *offers) left() (n uint64) {
	for i := range o.given {
		if !o.given[i].late {
			n += uint64(len(o.given[i].records))
		}
	}
	return n
}

// settle makes room for as much as was used up.
func (o *offers) settle() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.size -= o.used
	o.used = 0
}

// drop forgets what was taken.
func (o *offers) drop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.given, o.used, o.size = nil, 0, 0
	for i := range o.lists {
		o.size += o.lists[i].size
	}
}

// forget forgets all that was offered until now.
func (o *offers) forget() {
	o.take()
	o.drop()
}

// KeepUp indexes whole blocks of what is committed, whenever Notify is called, until the context
// ends; it finishes the blocks that are under way. It is for an import: a block that is written at
// once is never merged with other parts. CatchUp indexes the rest.
func (x *Index) KeepUp(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-x.wake:
		}
		for more := true; more && ctx.Err() == nil; {
			before := x.at.Load()
			if err := x.catchUp(ctx, true); err != nil && ctx.Err() == nil {
				return err
			}
			more = x.at.Load() != before
		}
	}
}
