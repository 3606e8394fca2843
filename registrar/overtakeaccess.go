package registrar

import (
	"bytes"
	"context"
	"iter"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// accessMarks begin the names of the cells that say who may enter: users, tokens and
// when tokens were used.
var accessMarks = []string{auth.UserCells, auth.TokenCells, auth.UsedCells}

// IsAccess reports whether a cell says who may enter.
func IsAccess(cell stele.Cell) bool {
	for _, mark := range accessMarks {
		if strings.HasPrefix(cell.Name, mark) {
			return true
		}
	}
	return false
}

// OvertakeAccess takes over who may enter from another store, such as the one that a
// backup replaces: where both know a user or a token the other store is right. So a
// token that was revoked after the backup was made does not come back to life, and
// whoever restores is not locked out. Only an administrator may.
func (r *Registrar) OvertakeAccess(ctx context.Context, others iter.Seq2[stele.Cell, error]) error {
	const op, together = "restore", 500
	if err := administrate(ctx, op, stele.ID{}); err != nil {
		return err
	}
	c := &stele.Commit{}
	commit := func() error {
		if len(c.Cells) == 0 {
			return nil
		}
		err := r.apply(ctx, op, c)
		c = &stele.Commit{}
		return err
	}
	for cell, err := range others {
		if err != nil {
			return tell(op, err)
		}
		if !IsAccess(cell) {
			continue
		}
		have, err := r.store.Cell(ctx, cell.Name)
		if err != nil {
			return tell(op, err)
		}
		if have != nil && bytes.Equal(have, cell.Value) {
			continue
		}
		c.Cells = append(c.Cells, stele.CellChange{Name: cell.Name, Before: have, After: cell.Value})
		if len(c.Cells) == together {
			if err := commit(); err != nil {
				return err
			}
		}
	}
	return commit()
}
