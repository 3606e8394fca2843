package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stele-id/stele"
)

// tallies is how much two stores have that are the same.
type tallies struct {
	Changes    uint64 `json:"changes"`
	Records    uint64 `json:"records"`
	Namespaces uint64 `json:"namespaces"`
	Minters    uint64 `json:"minters"`
	Cells      uint64 `json:"cells"`
	Audit      uint64 `json:"audit"` // entries of the audit trail
}

// differs is the error of two stores that are not the same.
func (c *copier) differs(format string, args ...any) error {
	return refuse("copy", stele.Internal, "%s is not what %s is: %s; nobody can use it, so copy into an empty place, and tell whoever makes this program", c.toPlace, c.fromPlace, fmt.Sprintf(format, args...))
}

// compare reads both stores from the beginning to the end, and returns the first
// difference as an error.
func (c *copier) compare(ctx context.Context) (t tallies, err error) {
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
	bar := c.follow("compare", "records", int64(c.last), c.done.Load)
	defer bar.end()
	for _, scheme := range slices.Sorted(maps.Keys(schemes)) {
		if err := c.compareRecords(ctx, scheme, &t, bar); err != nil {
			return t, err
		}
	}
	if err := c.compareSpaces(ctx, &t, counted); err != nil {
		return t, err
	}
	if err := c.compareKept(ctx, &t); err != nil {
		return t, err
	}
	if err := c.compareTrail(ctx, &t); err != nil {
		return t, err
	}
	var wrong error
	err = c.to.Verify(ctx, func(problem string) {
		if wrong == nil {
			wrong = c.differs("%s", problem)
		}
	})
	return t, errors.Join(wrong, err)
}

// stillSealed makes sure that nothing has come to the source since it was sealed.
func (c *copier) stillSealed(ctx context.Context) error {
	reason, err := c.from.Sealed(ctx)
	if err != nil {
		return err
	}
	last, err := c.from.LastChange(ctx)
	if err != nil {
		return err
	}
	if reason != c.seal || last != c.last {
		return refuse("copy", stele.Conflict, "somebody has taken away the seal of %s meanwhile; run this again", c.fromPlace)
	}
	return nil
}

// compareFeeds compares the list of changes up to a number, and that the copy has no more.
func (c *copier) compareFeeds(ctx context.Context, last uint64, visit func(stele.Change)) error {
	n := uint64(0)
	err := pairs(c.from.Changes(ctx, 0), c.to.Changes(ctx, 0), func(a, b stele.Change) int { return cmp.Compare(a.Seq, b.Seq) }, func(have, copied *stele.Change) error {
		if copied == nil && have.Seq > last {
			return errEnough
		}
		if have == nil || copied == nil || !sameChange(*have, *copied) {
			return c.differs("change %d differs", n+1)
		}
		n++
		visit(*have)
		return nil
	})
	if err != nil && err != errEnough {
		return err
	}
	if n != last {
		return c.differs("it has %d changes of %d", n, last)
	}
	return nil
}

// sameChange compares changes. Their times are kept to the microsecond.
func sameChange(a, b stele.Change) bool {
	if !a.At.Truncate(time.Microsecond).Equal(b.At.Truncate(time.Microsecond)) {
		return false
	}
	a.At, b.At = time.Time{}, time.Time{}
	return a.Equal(b)
}

// same reports whether two things have one binary form.
func same(a, b encoding.BinaryMarshaler) (bool, error) {
	x, err := a.MarshalBinary()
	if err != nil {
		return false, err
	}
	y, err := b.MarshalBinary()
	return err == nil && bytes.Equal(x, y), err
}

// compareRecords compares the records of a scheme, in all their versions.
func (c *copier) compareRecords(ctx context.Context, scheme string, t *tallies, bar *progress) error {
	text := func(a, b *stele.Record) int { return cmp.Compare(a.ID.String(), b.ID.String()) }
	return pairs(c.from.Scan(ctx, scheme, "", ""), c.to.Scan(ctx, scheme, "", ""), text, func(have, copied **stele.Record) error {
		if have == nil || copied == nil {
			return c.differs("one of both lacks a record of the scheme %s", scheme)
		}
		equal, err := same(*have, *copied)
		if err == nil && equal && (*have).Version > 1 {
			equal, err = c.sameHistory(ctx, (*have).ID)
		}
		if err != nil {
			return err
		}
		if !equal {
			return c.differs("%s differs", (*have).ID)
		}
		t.Records++
		c.done.Add(int64((*have).Version))
		bar.add(1)
		return nil
	})
}

// sameHistory compares all versions of a record.
func (c *copier) sameHistory(ctx context.Context, id stele.ID) (bool, error) {
	equal := true
	// The newest comes first.
	back := func(a, b *stele.Record) int { return cmp.Compare(b.Version, a.Version) }
	err := pairs(c.from.History(ctx, id), c.to.History(ctx, id), back, func(have, copied **stele.Record) (err error) {
		if have == nil || copied == nil {
			equal = false
		} else if equal {
			equal, err = same(*have, *copied)
		}
		return err
	})
	return equal, err
}

// sameSpaceHistory compares all versions of a namespace. The copy has an entry also for one
// that was not kept; see unkept.
func (c *copier) sameSpaceHistory(ctx context.Context, key stele.NamespaceKey) (bool, error) {
	equal := true
	back := func(a, b *stele.Namespace) int { return cmp.Compare(b.Version, a.Version) }
	err := pairs(c.from.NamespaceHistory(ctx, key), c.to.NamespaceHistory(ctx, key), back, func(have, copied **stele.Namespace) (err error) {
		switch {
		case have == nil:
			equal = equal && (*copied).Title == unkeptTitle
		case copied == nil:
			equal = false
		case equal:
			equal, err = same(*have, *copied)
		}
		return err
	})
	return equal, err
}

// compareSpaces compares namespaces, and how many records count for each.
func (c *copier) compareSpaces(ctx context.Context, t *tallies, counted map[stele.NamespaceKey]bool) error {
	name := func(a, b *stele.Namespace) int {
		return cmp.Or(cmp.Compare(a.Scheme, b.Scheme), cmp.Compare(a.Prefix, b.Prefix))
	}
	err := pairs(c.from.Namespaces(ctx), c.to.Namespaces(ctx), name, func(have, copied **stele.Namespace) error {
		if have == nil || copied == nil {
			return c.differs("one of both lacks a namespace")
		}
		equal, err := same(*have, *copied)
		if err == nil && equal {
			equal, err = c.sameSpaceHistory(ctx, (*have).Key())
		}
		if err != nil {
			return err
		}
		if !equal {
			return c.differs("the namespace %s differs", (*have).Key())
		}
		t.Namespaces++
		counted[(*have).Key()] = true
		return nil
	})
	if err != nil {
		return err
	}
	for key := range counted {
		have, err := c.from.Count(ctx, key)
		if err != nil {
			return err
		}
		copied, err := c.to.Count(ctx, key)
		if err != nil {
			return err
		}
		if have != copied {
			return c.differs("the namespace %s counts %d records, not %d", key, copied, have)
		}
	}
	return nil
}

// compareKept compares generations, zones, minters, and cells except for the mark.
func (c *copier) compareKept(ctx context.Context, t *tallies) error {
	from, err := c.from.Generations(ctx)
	if err != nil {
		return err
	}
	to, err := c.to.Generations(ctx)
	if err != nil {
		return err
	}
	if !slices.Equal(from, to) {
		return c.differs("the generations differ")
	}
	err = pairs(c.from.ZoneStates(ctx), c.to.ZoneStates(ctx), byZone, func(have, copied *stele.ZoneState) error {
		if have == nil || copied == nil || !sameZone(*have, *copied) {
			return c.differs("the serial of a zone differs")
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = pairs(c.from.MinterStates(ctx), c.to.MinterStates(ctx), byMinter, func(have, copied *stele.MinterState) error {
		if have == nil || copied == nil || !bytes.Equal(have.After, copied.After) {
			return c.differs("a minter differs")
		}
		t.Minters++
		return nil
	})
	if err != nil {
		return err
	}
	return pairs(c.from.Cells(ctx, "", ""), c.to.Cells(ctx, "", ""), byCell, func(have, copied *stele.Cell) error {
		if have == nil && copied.Name == markCell {
			return nil
		}
		if have == nil || copied == nil || !bytes.Equal(have.Value, copied.Value) {
			return c.differs("a cell differs")
		}
		t.Cells++
		return nil
	})
}
