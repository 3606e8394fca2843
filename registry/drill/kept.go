package drill

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"iter"
	"slices"

	"github.com/stele-id/stele"
)

// A value is a minter's state, a cell, or the base of a zone's serials. It has no versions: what
// has changed since the backup can only be compared with sums from before.
type value struct {
	name string
	data []byte
}

func byName(a, b *value) int { return cmp.Compare(a.name, b.name) }

// minters yields the states of the minters of a store.
func minters(ctx context.Context, s stele.Store) iter.Seq2[*value, error] {
	return func(yield func(*value, error) bool) {
		for m, err := range s.MinterStates(ctx) {
			if !yield(&value{m.Name, m.After}, err) {
				return
			}
		}
	}
}

// cells yields the cells of a store.
func cells(ctx context.Context, s stele.Store) iter.Seq2[*value, error] {
	return func(yield func(*value, error) bool) {
		for c, err := range s.Cells(ctx, "", "") {
			if !yield(&value{c.Name, c.Value}, err) {
				return
			}
		}
	}
}

// zones yields the bases of the serials of a store's zones.
func zones(ctx context.Context, s stele.Store) iter.Seq2[*value, error] {
	return func(yield func(*value, error) bool) {
		for z, err := range s.ZoneStates(ctx) {
			if !yield(&value{z.Zone, fmt.Appendf(nil, "%d %t", z.Base, z.Shut)}, err) {
				return
			}
		}
	}
}

// kinds are the kinds of values, and where they are in a store.
var kinds = []struct {
	name  string
	of    func(context.Context, stele.Store) iter.Seq2[*value, error]
	count func(*Compared) *uint64
}{
	{"minter", minters, func(c *Compared) *uint64 { return &c.Minters }},
	{"cell", cells, func(c *Compared) *uint64 { return &c.Cells }},
	{"zone", zones, func(c *Compared) *uint64 { return &c.Zones }},
}

// sums are the sums of the values of each kind that a store had at a time, by the sums of their
// names: 16 bytes a value, since a registry may have millions of cells.
type sums struct {
	seed   maphash.Seed
	values map[string]map[uint64]uint64 // by kind
}

// of returns the sum of a value; 0 if there is none.
func (s *sums) of(v *value) uint64 {
	if v == nil {
		return 0
	}
	return max(1, maphash.Bytes(s.seed, v.data))
}

// sum reads the values of a store.
func sum(ctx context.Context, store stele.Store) (*sums, error) {
	s := &sums{seed: maphash.MakeSeed(), values: make(map[string]map[uint64]uint64)}
	for _, kind := range kinds {
		list := make(map[uint64]uint64)
		for v, err := range kind.of(ctx, store) {
			if err != nil {
				return nil, err
			}
			list[maphash.String(s.seed, v.name)] = s.of(v)
		}
		s.values[kind.name] = list
	}
	return s, nil
}

// kept compares the rest of two stores: generations, the feed of changes, minters, cells, zones
// and the audit trail.
func (c *comparison) kept(ctx context.Context, last uint64) error {
	if err := c.generations(ctx); err != nil {
		return err
	}
	if err := c.feed(ctx, last); err != nil {
		return err
	}
	for _, kind := range kinds {
		if err := c.values(kind.name, kind.of(ctx, c.Store), kind.of(ctx, c.copy.Store), kind.count(&c.report.Compared)); err != nil {
			return err
		}
	}
	return c.trail(ctx)
}

// values compares values. One that differs must be what it was before the backup was made, or it
// has changed meanwhile; what is now as it was before must be so in the backup.
func (c *comparison) values(kind string, have, copied iter.Seq2[*value, error], count *uint64) error {
	return pairs(have, copied, byName, func(have, copied *value) error {
		if have != nil && copied != nil && bytes.Equal(have.data, copied.data) {
			*count++
			return nil
		}
		if c.before == nil { // the backup is an earlier one
			c.report.Moved++
			return nil
		}
		name := cmp.Or(have, copied).name
		was := c.before.values[kind][maphash.String(c.before.seed, name)]
		if was == c.before.of(have) {
			c.differs("drill.value-differs", "the {kind} {name} is another one in the backup", kind, name)
			return nil
		}
		c.report.Moved++
		return nil
	})
}

// generations compares the generations.
func (c *comparison) generations(ctx context.Context) error {
	have, err := c.Store.Generations(ctx)
	if err != nil {
		return err
	}
	copied, err := c.copy.Store.Generations(ctx)
	if err == nil && !slices.Equal(have, copied) {
		c.differs("drill.generations-differ", "the list of generations is another one in the backup")
	}
	return err
}

// feed compares the feeds of changes, up to the last change of the backup.
func (c *comparison) feed(ctx context.Context, last uint64) error {
	next, stop := iter.Pull2(c.Store.Changes(ctx, 0))
	defer stop()
	for copied, err := range c.copy.Store.Changes(ctx, 0) {
		if err != nil {
			return err
		}
		have, err, ok := next()
		if err != nil {
			return err
		}
		if !ok || !have.EqualStored(copied) {
			c.differs("drill.change-differs", "change {change} is another one in the backup", copied.Seq)
			return nil
		}
		last--
	}
	if last != 0 {
		c.differs("drill.changes-missing", "the list of changes in the backup lacks {count}", last)
	}
	return nil
}

// trail compares the audit trails: the registry's may have lost its beginning since, and has gone
// on.
func (c *comparison) trail(ctx context.Context) error {
	first, _, err := c.Store.AuditRange(ctx)
	if err != nil {
		return err
	}
	number := func(a, b *stele.AuditEntry) int { return cmp.Compare(a.Number, b.Number) }
	_, end, err := c.copy.Store.AuditRange(ctx)
	if err != nil {
		return err
	}
	return pairs(c.Store.Audit(ctx, 0), c.copy.Store.Audit(ctx, 0), number, func(have, copied *stele.AuditEntry) error {
		switch {
		case have == nil && copied.Number < first, copied == nil && have.Number > end:
		case have == nil || copied == nil:
			c.differs("drill.audit-entry-missing", "entry {number} of the audit trail is missing in the backup or in the registry", cmp.Or(have, copied).Number)
		case !have.Equal(copied):
			c.differs("drill.audit-entry-differs", "entry {number} of the audit trail is another one in the backup", have.Number)
		default:
			c.report.Audit++
		}
		return nil
	})
}
