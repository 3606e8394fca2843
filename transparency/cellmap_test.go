package transparency

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/stele-id/stele"
)

// cellMap is a Keeper in memory for what a test does with cells alone.
type cellMap struct {
	mu    sync.Mutex
	cells map[string][]byte
}

func newCellMap() *cellMap { return &cellMap{cells: map[string][]byte{}} }

func (m *cellMap) LogCell(_ context.Context, name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return bytes.Clone(m.cells[name]), nil
}

func (m *cellMap) LogPart(ctx context.Context, name string, from, count int) ([]byte, int, error) {
	value, _ := m.LogCell(ctx, name)
	if value == nil {
		return nil, -1, nil
	}
	from = min(from, len(value))
	return value[from:min(from+count, len(value))], len(value), nil
}

func (m *cellMap) LogValues(ctx context.Context, names []string) (values [][]byte, err error) {
	for _, name := range names {
		value, _ := m.LogCell(ctx, name)
		values = append(values, value)
	}
	return values, nil
}

func (m *cellMap) LogList(_ context.Context, prefix, after string) iter.Seq2[stele.Cell, error] {
	m.mu.Lock()
	var list []stele.Cell
	for name, value := range m.cells {
		if strings.HasPrefix(name, prefix) && name > after {
			list = append(list, stele.Cell{Name: name, Value: bytes.Clone(value)})
		}
	}
	m.mu.Unlock()
	slices.SortFunc(list, func(a, b stele.Cell) int { return strings.Compare(a.Name, b.Name) })
	return func(yield func(stele.Cell, error) bool) {
		for _, c := range list {
			if !yield(c, nil) {
				return
			}
		}
	}
}

func (m *cellMap) KeepLog(_ context.Context, changes ...stele.CellChange) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range changes {
		if now, ok := m.cells[c.Name]; ok != (c.Before != nil) || !bytes.Equal(now, c.Before) {
			return &stele.Error{Op: "keep", Kind: stele.Conflict, Err: stele.Messagef("test.conflict", "%s", c.Name)}
		}
	}
	for _, c := range changes {
		if c.After == nil {
			delete(m.cells, c.Name)
		} else {
			m.cells[c.Name] = bytes.Clone(c.After)
		}
	}
	return nil
}

// faulty is a Keeper whose commits fail: some before they are made, some after, as when an answer is lost.
type faulty struct {
	Keeper
	mu   sync.Mutex
	fail func() (before, after bool)
}

func (f *faulty) KeepLog(ctx context.Context, changes ...stele.CellChange) error {
	f.mu.Lock()
	before, after := f.fail()
	f.mu.Unlock()
	if before {
		return errFault
	}
	if err := f.Keeper.KeepLog(ctx, changes...); err != nil {
		return err
	}
	if after {
		return errFault
	}
	return nil
}

var errFault = &stele.Error{Op: "keep", Kind: stele.Unavailable, Err: context.DeadlineExceeded}
