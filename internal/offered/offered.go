// Package offered holds records that an import has committed a moment ago, so that what follows the change feed need not read
// them from the store again: the search index and the transparency log.
package offered

import (
	"slices"
	"sync"

	"github.com/stele-id/stele"
)

// maxLists is how many lists are looked at for the record of a change: imports that run at the same
// time take turns.
const maxLists = 8

// Offers are records in the order of their changes. Offer may be called by any goroutine, the other methods by the one that
// follows the feed.
type Offers struct {
	most int // bytes of records, as a store has them

	mu    sync.Mutex
	lists []offered
	size  int // of all that were not used yet

	given []offered // for the goroutine that follows
	used  int       // the size of the lists that were used up since they were given
}

// offered are the records of one commit, in the order of their changes.
type offered struct {
	records []*stele.Record // that are not used yet
	size    int             // of all that there were
	late    bool            // some of their changes may be after the position that was read
	aligned bool            // the first record is not one that was used before
}

// New returns offers of at most so many bytes of records, as a store has them. In memory they take some times as much.
func New(most int) *Offers { return &Offers{most: most} }

// Offer adds records that a commit wrote, in the order of their changes. They must be as the store has them, and must not be
// changed any more. What there is no room for is left out; false says that there would be room later. It never waits.
func (o *Offers) Offer(records []*stele.Record) bool {
	if len(records) == 0 {
		return true
	}
	size := 0
	for _, r := range records {
		size += r.StoredSize()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.size+size > o.most {
		return size > o.most
	}
	o.size += size
	o.lists = append(o.lists, offered{records: records, size: size})
	return true
}

// Take gives all records that were offered to the goroutine that follows. It is called before the
// position of the source is read, which then is after all of their changes.
func (o *Offers) Take() {
	o.takeLate()
	for i := range o.given {
		o.given[i].late, o.given[i].aligned = false, false
	}
}

// takeLate gives records of commits some of which may be after the position that was read. It
// returns false if there are none.
func (o *Offers) takeLate() bool {
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

// Of returns the record that a change made, and does not return it again; nil if it was not
// offered. Changes are asked for in their order.
func (o *Offers) Of(c *stele.Change) *stele.Record {
	if r := o.first(c); r != nil {
		return r
	}
	if !o.align(c) && !(o.takeLate() && o.align(c)) {
		return nil
	}
	return o.first(c)
}

// first returns the record of a change if it is the first one of a list.
func (o *Offers) first(c *stele.Change) *stele.Record {
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
func (o *Offers) align(c *stele.Change) bool {
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

// Left returns how many records are left of those whose changes are all up to the position.
func (o *Offers) Left() (n uint64) {
	for i := range o.given {
		if !o.given[i].late {
			n += uint64(len(o.given[i].records))
		}
	}
	return n
}

// Settle makes room for as much as was used up.
func (o *Offers) Settle() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.size -= o.used
	o.used = 0
}

// Drop forgets what was taken.
func (o *Offers) Drop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.given, o.used, o.size = nil, 0, 0
	for i := range o.lists {
		o.size += o.lists[i].size
	}
}

// Forget forgets all that was offered until now.
func (o *Offers) Forget() {
	o.Take()
	o.Drop()
}

// Size returns how many bytes of records are held, as a store has them.
func (o *Offers) Size() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.size
}
