package mem

import (
	"bytes"
	"context"
	"iter"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/refusal"
)

// Cell implements [stele.Store].
func (s *Store) Cell(ctx context.Context, name string) ([]byte, error) {
	st, err := s.view(ctx, "get cell")
	if err != nil {
		return nil, err
	}
	kept, _ := st.cells.get(name)
	return bytes.Clone(kept), nil
}

// Cells implements [stele.Store].
func (s *Store) Cells(ctx context.Context, prefix, after string) iter.Seq2[stele.Cell, error] {
	return read(ctx, s, "list cells", func(st *state, yield func(stele.Cell, error) bool) {
		for name, kept := range st.cells.from(max(prefix, after)) {
			if !strings.HasPrefix(name, prefix) {
				return
			}
			// No cell has the empty name, so no cursor hides the first one.
			if name != after && !yield(stele.Cell{Name: name, Value: bytes.Clone(kept)}, nil) {
				return
			}
		}
	})
}

// putCell replaces a cell's value, or removes it.
func (st *state) putCell(c stele.CellChange) error {
	have, ok := st.cells.get(c.Name)
	if ok != (c.Before != nil) || !bytes.Equal(have, c.Before) {
		return refusal.CellChanged(c.Name)
	}
	if c.After == nil {
		st.cells = st.cells.without(c.Name)
	} else {
		st.cells = st.cells.with(c.Name, append([]byte{}, c.After...))
	}
	return nil
}
