package mem

import (
	"bytes"
	"context"
	"iter"
	"strings"

	"github.com/stele-id/stele"
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

// checkCells refuses what can be no change of cells, whatever the store has.
func checkCells(changes []stele.CellChange) error {
	seen := make(map[string]bool)
	for _, c := range changes {
		switch {
		case c.Name == "":
			return refuse("commit", stele.ID{}, stele.Invalid, "a cell has no name; give it one")
		case len(c.Name) > stele.MaxCellName:
			return refuse("commit", stele.ID{}, stele.Invalid, "cell %.100q has a name of more than %d bytes; shorten it", c.Name, stele.MaxCellName)
		case len(c.After) > stele.MaxCell:
			return refuse("commit", stele.ID{}, stele.Invalid, "cell %.100q was to have %d bytes; at most %d are kept", c.Name, len(c.After), stele.MaxCell)
		case seen[c.Name]:
			return refuse("commit", stele.ID{}, stele.Invalid, "cell %.100q is in the commit twice; commit its last value", c.Name)
		}
		seen[c.Name] = true
	}
	return nil
}

// putCell replaces a cell's value, or removes it.
func (st *state) putCell(c stele.CellChange) error {
	have, ok := st.cells.get(c.Name)
	if ok != (c.Before != nil) || !bytes.Equal(have, c.Before) {
		return refuse("commit", stele.ID{}, stele.Conflict, "cell %.100q has another value by now; read it again", c.Name)
	}
	if c.After == nil {
		st.cells = st.cells.without(c.Name)
	} else {
		st.cells = st.cells.with(c.Name, append([]byte{}, c.After...))
	}
	return nil
}
