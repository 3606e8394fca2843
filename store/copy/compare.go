package copy

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/stele-id/stele"
)

// Tallies counts what two stores have in common.
type Tallies struct {
	Changes    uint64 `json:"changes"`
	Records    uint64 `json:"records"`
	Namespaces uint64 `json:"namespaces"`
	Minters    uint64 `json:"minters"`
	Cells      uint64 `json:"cells"`
	Audit      uint64 `json:"audit"` // entries of the audit trail
}

// differs is the error of two stores that are not the same.
func (c *Copier) differs(code, text string, args ...any) error {
	return fail(stele.Internal, "copy.differs", "{copy} is not what {source} is: {cause}; it can't be opened, so copy into an empty place, and report this fault", c.ToPlace, c.FromPlace, stele.Messagef(code, text, args...))
}

// compare reads both stores from the beginning to the end, and returns the first
// difference as an error.
func (c *Copier) compare(ctx context.Context) (t Tallies, err error) {
	if err := c.stillSealed(ctx); err != nil {
		return t, err
	}
	schemes := make(map[string]bool)
	counted := make(map[stele.NamespaceKey]bool)
	err = c.compareFeeds(ctx, c.last, func(change stele.Change) {
		schemes[change.ID.Scheme()] = true
		counted[change.Counted] = true
		for _, space := range change.CountedAliases {
			counted[space] = true
		}
	})
	if err != nil {
		return t, err
	}
	t.Changes = c.last
	delete(schemes, "") // of namespaces
	delete(counted, stele.NamespaceKey{})
	c.done.Store(0)
	bar := c.follow("compare", "records", int64(c.last))
	defer bar.End()
	for _, scheme := range slices.Sorted(maps.Keys(schemes)) {
		if err := c.compareRecords(ctx, scheme, &t, bar); err != nil {
			return t, err
		}
	}
	if err := c.compareNamespaces(ctx, &t, counted); err != nil {
		return t, err
	}
	if err := c.compareKept(ctx, &t); err != nil {
		return t, err
	}
	if err := c.compareTrail(ctx, &t); err != nil {
		return t, err
	}
	var wrong error
	err = c.To.Verify(ctx, func(problem *stele.Message) {
		if wrong == nil {
			wrong = c.differs("", "{problem}", problem)
		}
	})
	return t, errors.Join(wrong, err)
}

// stillSealed makes sure that nothing was written to the source since it was sealed.
func (c *Copier) stillSealed(ctx context.Context) error {
	reason, err := c.From.Sealed(ctx)
	if err != nil {
		return err
	}
	last, err := c.From.LastChange(ctx)
	if err != nil {
		return err
	}
	if reason != c.seal || last != c.last {
		return fail(stele.Conflict, "copy.seal-removed", "the seal of {source} was removed meanwhile; run this again", c.FromPlace)
	}
	return nil
}

// compareFeeds compares the list of changes up to a number, and that the copy has no more.
func (c *Copier) compareFeeds(ctx context.Context, last uint64, visit func(stele.Change)) error {
	n := uint64(0)
	err := pairs(c.From.Changes(ctx, 0), c.To.Changes(ctx, 0), func(a, b stele.Change) int { return cmp.Compare(a.Seq, b.Seq) }, func(have, copied *stele.Change) error {
		if copied == nil && have.Seq > last {
			return errEnough
		}
		if have == nil || copied == nil || !have.EqualStored(*copied) {
			return c.differs("copy.change-differs", "change {change} differs", n+1)
		}
		n++
		visit(*have)
		return nil
	})
	if err != nil && err != errEnough {
		return err
	}
	if n != last {
		return c.differs("copy.changes-missing", "it has {count} changes of {expected}", n, last)
	}
	return nil
}

// compareRecords compares the records of a scheme, in all their versions.
func (c *Copier) compareRecords(ctx context.Context, scheme string, t *Tallies, bar Progress) error {
	text := func(a, b *stele.Record) int { return cmp.Compare(a.ID.String(), b.ID.String()) }
	return pairs(c.From.Scan(ctx, scheme, "", ""), c.To.Scan(ctx, scheme, "", ""), text, func(have, copied **stele.Record) error {
		if have == nil || copied == nil {
			return c.differs("copy.record-missing", "one of both lacks a record of the scheme {scheme}", scheme)
		}
		equal := (*have).Equal(*copied)
		if equal && (*have).Version > 1 {
			var err error
			if equal, err = c.sameHistory(ctx, (*have).ID); err != nil {
				return err
			}
		}
		if !equal {
			return c.differs("copy.record-differs", "{id} differs", (*have).ID)
		}
		t.Records++
		c.done.Add(int64((*have).Version))
		bar.Add(1)
		return nil
	})
}

// sameHistory compares all versions of a record.
func (c *Copier) sameHistory(ctx context.Context, id stele.ID) (bool, error) {
	equal := true
	// The newest comes first.
	back := func(a, b *stele.Record) int { return cmp.Compare(b.Version, a.Version) }
	err := pairs(c.From.History(ctx, id), c.To.History(ctx, id), back, func(have, copied **stele.Record) error {
		if have == nil || copied == nil {
			equal = false
		} else if equal {
			equal = (*have).Equal(*copied)
		}
		return nil
	})
	return equal, err
}

// sameNamespaceHistory compares all versions of a namespace. The copy has an entry also for one
// that was not kept; see unkept.
func (c *Copier) sameNamespaceHistory(ctx context.Context, key stele.NamespaceKey) (bool, error) {
	equal := true
	back := func(a, b *stele.Namespace) int { return cmp.Compare(b.Version, a.Version) }
	err := pairs(c.From.NamespaceHistory(ctx, key), c.To.NamespaceHistory(ctx, key), back, func(have, copied **stele.Namespace) error {
		switch {
		case have == nil:
			equal = equal && (*copied).Title == unkeptTitle
		case copied == nil:
			equal = false
		case equal:
			equal = (*have).Equal(*copied)
		}
		return nil
	})
	return equal, err
}

// compareNamespaces compares namespaces, and how many records count for each.
func (c *Copier) compareNamespaces(ctx context.Context, t *Tallies, counted map[stele.NamespaceKey]bool) error {
	name := func(a, b *stele.Namespace) int {
		return cmp.Or(cmp.Compare(a.Scheme, b.Scheme), cmp.Compare(a.Prefix, b.Prefix))
	}
	err := pairs(c.From.Namespaces(ctx), c.To.Namespaces(ctx), name, func(have, copied **stele.Namespace) error {
		if have == nil || copied == nil {
			return c.differs("copy.namespace-missing", "one of both lacks a namespace")
		}
		equal := (*have).Equal(*copied)
		if equal {
			var err error
			if equal, err = c.sameNamespaceHistory(ctx, (*have).Key()); err != nil {
				return err
			}
		}
		if !equal {
			return c.differs("copy.namespace-differs", "the namespace {namespace} differs", (*have).Key())
		}
		t.Namespaces++
		counted[(*have).Key()] = true
		return nil
	})
	if err != nil {
		return err
	}
	for key := range counted {
		have, err := c.From.Count(ctx, key)
		if err != nil {
			return err
		}
		copied, err := c.To.Count(ctx, key)
		if err != nil {
			return err
		}
		if have != copied {
			return c.differs("copy.count-differs", "the namespace {namespace} counts {count} records, not {expected}", key, copied, have)
		}
	}
	return nil
}

// compareKept compares generations, zones, minters, and cells except for the mark.
func (c *Copier) compareKept(ctx context.Context, t *Tallies) error {
	from, err := c.From.Generations(ctx)
	if err != nil {
		return err
	}
	to, err := c.To.Generations(ctx)
	if err != nil {
		return err
	}
	if !slices.Equal(from, to) {
		return c.differs("copy.generations-differ", "the generations differ")
	}
	err = pairs(c.From.ZoneStates(ctx), c.To.ZoneStates(ctx), byZone, func(have, copied *stele.ZoneState) error {
		if have == nil || copied == nil || !sameZone(*have, *copied) {
			return c.differs("copy.zone-serial-differs", "the serial of a zone differs")
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = pairs(c.From.MinterStates(ctx), c.To.MinterStates(ctx), byMinter, func(have, copied *stele.MinterState) error {
		if have == nil || copied == nil || !bytes.Equal(have.After, copied.After) {
			return c.differs("copy.minter-differs", "a minter differs")
		}
		t.Minters++
		return nil
	})
	if err != nil {
		return err
	}
	return pairs(c.From.Cells(ctx, "", ""), c.To.Cells(ctx, "", ""), byCell, func(have, copied *stele.Cell) error {
		if have == nil && copied.Name == MarkCell {
			return nil
		}
		if have == nil || copied == nil || !bytes.Equal(have.Value, copied.Value) {
			return c.differs("copy.cell-differs", "a cell differs")
		}
		t.Cells++
		return nil
	})
}
