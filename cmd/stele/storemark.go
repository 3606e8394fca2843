package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/stele-id/stele"
)

// markCell is there while a store is an unfinished copy of another one, or of a backup. A
// registry is opened without it only.
const markCell = "store copy"

// copyMark is what the cell says.
type copyMark struct {
	From   string    `json:"from"`             // the place that is copied, for people
	Seal   string    `json:"seal"`             // the reason for which that is sealed
	Backup bool      `json:"backup,omitempty"` // it is a backup, and its minters must not be used yet
	Began  time.Time `json:"began"`
}

// readCopyMark returns the mark of a store; nil if it is no unfinished copy.
func readCopyMark(ctx context.Context, s stele.Store) (*copyMark, error) {
	value, err := s.Cell(ctx, markCell)
	if err != nil || value == nil {
		return nil, err
	}
	mark := new(copyMark)
	if err := json.Unmarshal(value, mark); err != nil {
		return nil, refuse("open", stele.Internal, "the mark of an unfinished copy is damaged (%w); copy into an empty place", err)
	}
	return mark, nil
}

// setCopyMark marks a store that has no mark.
func setCopyMark(ctx context.Context, s stele.Store, mark *copyMark) error {
	value, err := json.Marshal(mark)
	if err != nil {
		return err
	}
	return s.Apply(ctx, &stele.Commit{Cells: []stele.CellChange{{Name: markCell, After: value}}})
}

// removeCopyMark makes a copy a registry.
func removeCopyMark(ctx context.Context, s stele.Store) error {
	value, err := s.Cell(ctx, markCell)
	if err != nil {
		return err
	}
	return s.Apply(ctx, &stele.Commit{Cells: []stele.CellChange{{Name: markCell, Before: value}}})
}

// refuseUnfinished refuses a store that is an unfinished copy: names would be missing in
// it, and would be given again.
func refuseUnfinished(ctx context.Context, s stele.Store, at place) error {
	mark, err := readCopyMark(ctx, s)
	if err != nil || mark == nil {
		return err
	}
	if mark.Backup {
		return refuse("open", stele.Conflict, "the restore of %s into %s was not finished; drop the database, make it anew, and restore again", mark.From, at)
	}
	return refuse("open", stele.Conflict, "%s is a copy of %s that is not finished; go on with 'stele store copy', as it was begun", at, mark.From)
}
