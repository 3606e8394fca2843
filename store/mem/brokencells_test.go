package mem

import (
	"context"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stele-id/stele"
)

// The stores in this file are broken too, each in what it does with cells.

// reckless replaces a cell whatever its value is.
type reckless struct {
	stele.Store
	mu sync.Mutex
}

func (b *reckless) Apply(ctx context.Context, c *stele.Commit) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := *c
	d.Cells = slices.Clone(c.Cells)
	for i := range d.Cells {
		have, err := b.Store.Cell(ctx, d.Cells[i].Name)
		if err != nil {
			return err
		}
		d.Cells[i].Before = have
	}
	return b.Store.Apply(ctx, &d)
}

// vague takes an empty value for none.
type vague struct{ stele.Store }

func (b vague) Cell(ctx context.Context, name string) ([]byte, error) {
	value, err := b.Store.Cell(ctx, name)
	if len(value) == 0 {
		value = nil
	}
	return value, err
}

// hoarding empties cells that were to be removed.
type hoarding struct{ stele.Store }

func (b hoarding) Apply(ctx context.Context, c *stele.Commit) error {
	d := *c
	d.Cells = slices.Clone(c.Cells)
	for i := range d.Cells {
		if d.Cells[i].After == nil {
			d.Cells[i].After = []byte{}
		}
	}
	return b.Store.Apply(ctx, &d)
}

// eager commits cells before the rest.
type eager struct{ stele.Store }

func (b eager) Apply(ctx context.Context, c *stele.Commit) error {
	if err := b.Store.Apply(ctx, &stele.Commit{Cells: c.Cells}); err != nil {
		return err
	}
	d := *c
	d.Cells = nil
	return b.Store.Apply(ctx, &d)
}

// cellless commits everything but cells.
type cellless struct{ stele.Store }

func (b cellless) Apply(ctx context.Context, c *stele.Commit) error {
	d := *c
	d.Cells = nil
	return b.Store.Apply(ctx, &d)
}

// repeating lists cells from the cursor, not after it.
type repeating struct{ stele.Store }

func (b repeating) Cells(ctx context.Context, prefix, after string) iter.Seq2[stele.Cell, error] {
	return func(yield func(stele.Cell, error) bool) {
		for c, err := range b.Store.Cells(ctx, prefix, "") {
			if (err != nil || c.Name >= after) && !yield(c, err) {
				return
			}
		}
	}
}

// restless lists the cells that are there at each step.
type restless struct{ stele.Store }

func (b restless) Cells(ctx context.Context, prefix, after string) iter.Seq2[stele.Cell, error] {
	return func(yield func(stele.Cell, error) bool) {
		for more := true; more; {
			more = false
			for c, err := range b.Store.Cells(ctx, prefix, after) {
				if !yield(c, err) || err != nil {
					return
				}
				more, after = true, c.Name
				break
			}
		}
	}
}

// chatty counts each commit of cells as a change.
type chatty struct {
	stele.Store
	n atomic.Uint64
}

func (b *chatty) Apply(ctx context.Context, c *stele.Commit) error {
	err := b.Store.Apply(ctx, c)
	if err == nil && len(c.Cells) > 0 {
		b.n.Add(1)
	}
	return err
}

func (b *chatty) LastChange(ctx context.Context) (uint64, error) {
	last, err := b.Store.LastChange(ctx)
	return last + b.n.Load(), err
}

// withoutCells removes all cells of a store.
func withoutCells(t testing.TB, s stele.Store) stele.Store {
	var c stele.Commit
	for cell, err := range s.Cells(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		c.Cells = append(c.Cells, stele.CellChange{Name: cell.Name, Before: cell.Value})
	}
	if err := s.Apply(t.Context(), &c); err != nil {
		t.Fatal(err)
	}
	return s
}
