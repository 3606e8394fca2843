package pebble

import (
	"bytes"
	"context"
	"iter"

	pebbledb "github.com/cockroachdb/pebble/v2"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/refusal"
)

// Cell implements [stele.Store].
func (s *Store) Cell(ctx context.Context, name string) (kept []byte, err error) {
	err = s.lookUp(ctx, "get cell", cellKey(name), func(value []byte) error {
		kept = bytes.Clone(value)
		return nil
	})
	return kept, err
}

// CutCell implements [stele.CellCutter].
func (s *Store) CutCell(ctx context.Context, name string, from, count int) (part []byte, length int, err error) {
	err = s.lookUp(ctx, "get cell", cellKey(name), func(value []byte) error {
		if length = len(value); value == nil {
			length = -1
		}
		rest := value[min(from, len(value)):]
		part = bytes.Clone(rest[:min(count, len(rest))])
		return nil
	})
	return part, length, err
}

// GatherCells implements [stele.CellGatherer]: one iterator finds all names.
func (s *Store) GatherCells(ctx context.Context, names []string) (list [][]byte, err error) {
	err = s.read(ctx, "get cell", func(v *view) error {
		it, err := v.snap.NewIter(&pebbledb.IterOptions{LowerBound: []byte{familyCell}, UpperBound: []byte{familyCell + 1}, UseL6Filters: true})
		if err != nil {
			return v.opening.damage("get cell", stele.ID{}, err)
		}
		f := finder{it}
		defer f.close()
		list = make([][]byte, len(names))
		var key []byte
		for i, name := range names {
			if err := ctx.Err(); err != nil {
				return err
			}
			key = append(append(key[:0], familyCell), name...)
			value, err := f.find(key)
			if err != nil {
				return v.opening.damage("get cell", stele.ID{}, err)
			}
			list[i] = bytes.Clone(value)
		}
		return nil
	})
	return list, err
}

// Cells implements [stele.Store].
func (s *Store) Cells(ctx context.Context, prefix, cursor string) iter.Seq2[stele.Cell, error] {
	from := cellKey(prefix)
	end := upper(from)
	if cursor >= prefix {
		from = after(cellKey(cursor))
	}
	return items(ctx, s, "list cells", true, from, end, func(key, value []byte) (stele.Cell, bool, error) {
		return stele.Cell{Name: string(key[1:]), Value: append([]byte{}, value...)}, true, nil
	})
}

// cellEntry is a change of a cell on its way to the committer.
type cellEntry struct {
	key           []byte
	name          string
	before, after []byte // nil for none
}

// newCellEntries copies changes. All bytes share one allocation: a commit may change a thousand cells of a few bytes each.
func newCellEntries(changes []stele.CellChange) []cellEntry {
	if len(changes) == 0 {
		return nil
	}
	size := 0
	for i := range changes {
		c := &changes[i]
		size += 1 + len(c.Name) + len(c.Before) + len(c.After)
	}
	room := make([]byte, 0, size)
	kept := func(from int) []byte { return room[from:len(room):len(room)] }
	keep := func(value []byte) []byte {
		if value == nil {
			return nil // no value is another thing than an empty one
		}
		from := len(room)
		room = append(room, value...)
		return kept(from)
	}
	list := make([]cellEntry, len(changes))
	for i := range changes {
		c, from := &changes[i], len(room)
		room = append(append(room, familyCell), c.Name...)
		list[i] = cellEntry{key: kept(from), name: c.Name}
		list[i].before, list[i].after = keep(c.Before), keep(c.After)
	}
	return list
}

// putCell checks and sets, or removes, a cell. An unchanged value is not written: it is
// only a condition of the commit.
func (t *tx) putCell(c *cellEntry) error {
	have, err := t.find(stele.ID{}, c.key)
	if err != nil {
		return err
	}
	if (have == nil) != (c.before == nil) || !bytes.Equal(have, c.before) {
		return refusal.CellChanged(c.name)
	}
	if (have == nil) != (c.after == nil) || !bytes.Equal(have, c.after) {
		t.set(c.key, c.after)
	}
	return nil
}

// cells checks that each cell is one that could have been committed.
func (c *checker) cells() error {
	return c.walk([]byte{familyCell}, []byte{familyCell + 1}, func(key, value []byte) {
		if name := key[1:]; len(name) == 0 || len(name) > stele.MaxCellName || len(value) > stele.MaxCell {
			c.problem("verify.cell-wrong", "{key}, with a name of {name-bytes} bytes and a value of {value-bytes}, is not what a cell can be.", describeKey(key), len(name), len(value))
		}
	})
}
