package resolver

import (
	"context"

	"github.com/stele-id/stele"
)

// loadPage is how many records are read with one look at the store. What somebody
// writes meanwhile, and names that fall on the same tickets, are not kept of them.
const loadPage = 1 << 12

// Load reads the registry from one end to the other and keeps of each name where it
// leads, as far as there is room ([Options.LeadBytes]), so that answers to requests
// that are Brief need not ask the store. It is of use when a server begins, and may
// be called beside everything else.
func (r *Resolver) Load(ctx context.Context) error {
	c := r.records
	if c.leads == nil {
		return nil
	}
	for s := range r.schemes.All() {
		for after, more := "", true; more; {
			var err error
			if after, more, err = c.load(ctx, s.Name(), after); err != nil {
				return err
			}
		}
	}
	return nil
}

// load keeps the leads of some records of a scheme, those that come after a text. It
// returns the last one's, and whether it is worth while to go on from there.
func (c *cache) load(ctx context.Context, scheme, after string) (last string, more bool, err error) {
	var forgotten [numShards]uint64
	for i := range c.shards {
		forgotten[i] = c.shards[i].state()
	}
	lag, count, refused := c.lag(), 0, 0
	for record, err := range c.store.Scan(ctx, scheme, "", after) {
		if err != nil {
			return after, false, err
		}
		after = record.ID.String()
		for name := range names(record) {
			t := c.ticket(name)
			t.lag, t.forgotten = lag, forgotten[t.hash%numShards]
			if !c.keepLead(t, name, record) {
				refused++
			}
		}
		if count++; count == loadPage {
			return after, refused < loadPage/2, nil
		}
	}
	return after, false, nil
}

// names yields all names of a record.
func names(r *stele.Record) func(yield func(stele.ID) bool) {
	return func(yield func(stele.ID) bool) {
		if !yield(r.ID) {
			return
		}
		for _, alias := range r.Aliases {
			if !yield(alias) {
				return
			}
		}
	}
}
