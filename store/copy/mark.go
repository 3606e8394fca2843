package copy

import (
	"context"
	"encoding/json"
	"time"

	"github.com/stele-id/stele"
)

// MarkCell is the cell that a store has while it is an unfinished copy of another one, or of
// a backup. A registry is not opened while its store has it.
const MarkCell = "store copy"

// Mark is the value of [MarkCell].
type Mark struct {
	From   string    `json:"from"`             // the place that is copied, for people
	Seal   string    `json:"seal"`             // the reason for which that is sealed
	Backup bool      `json:"backup,omitempty"` // it is a backup, and its minters must not be used yet
	Began  time.Time `json:"began"`
}

func failOpen(kind stele.Kind, code, text string, args ...any) error {
	return &stele.Error{Op: "open", Kind: kind, Err: stele.Messagef(code, text, args...)}
}

// Cell returns the cell that marks a store with m.
func (m *Mark) Cell() (stele.Cell, error) {
	value, err := json.Marshal(m)
	return stele.Cell{Name: MarkCell, Value: value}, err
}

// ReadMark returns the mark of a store; nil if it is not an unfinished copy.
func ReadMark(ctx context.Context, s stele.Store) (*Mark, error) {
	value, err := s.Cell(ctx, MarkCell)
	if err != nil || value == nil {
		return nil, err
	}
	mark := new(Mark)
	if err := json.Unmarshal(value, mark); err != nil {
		return nil, failOpen(stele.Internal, "copy.mark-damaged", "the mark of an unfinished copy is damaged ({cause}); copy into an empty place", err)
	}
	return mark, nil
}

// setMark marks a store that has no mark.
func setMark(ctx context.Context, s stele.Store, mark *Mark) error {
	cell, err := mark.Cell()
	if err != nil {
		return err
	}
	return s.Apply(ctx, &stele.Commit{Cells: []stele.CellChange{{Name: cell.Name, After: cell.Value}}})
}

// RemoveMark makes a finished copy a registry.
func RemoveMark(ctx context.Context, s stele.Store) error {
	value, err := s.Cell(ctx, MarkCell)
	if err != nil {
		return err
	}
	return s.Apply(ctx, &stele.Commit{Cells: []stele.CellChange{{Name: MarkCell, Before: value}}})
}

// RefuseUnfinished refuses a store that is an unfinished copy: names would be missing in
// it, and would be given again.
func RefuseUnfinished(ctx context.Context, s stele.Store, at Place) error {
	mark, err := ReadMark(ctx, s)
	if err != nil || mark == nil {
		return err
	}
	if mark.Backup {
		return failOpen(stele.Conflict, "restore.unfinished", "the restore of {backup} into {place} was not finished; drop the database, make it anew, and restore again", mark.From, at)
	}
	return failOpen(stele.Conflict, "copy.unfinished", "{place} is a copy of {source} that is not finished; go on with 'stele store copy', as it was begun", at, mark.From)
}
