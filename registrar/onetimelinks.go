package registrar

import (
	"context"
	"iter"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

const opEndLink = "end link"

// Links yields the one-time links of a user, or of all users if that is empty, that were not used and
// have not expired, for an administrator.
func (r *Registrar) Links(ctx context.Context, user string) iter.Seq2[auth.Link, error] {
	const op = "list links"
	return func(yield func(auth.Link, error) bool) {
		if err := administrate(ctx, op, stele.ID{}); err != nil {
			yield(auth.Link{}, err)
			return
		}
		now := r.now()
		for c, err := range r.store.Cells(ctx, auth.LinkCells, "") {
			if err != nil {
				yield(auth.Link{}, tell(op, err))
				return
			}
			l, err := auth.ReadLink(c)
			if err != nil || user != "" && l.User != user || l.Ended(now) {
				continue
			}
			l.Hash = nil
			if !yield(l, nil) {
				return
			}
		}
	}
}

// EndLink ends a one-time link that was not used, such as one that went to a wrong address. A
// link that is not there has ended already.
func (r *Registrar) EndLink(ctx context.Context, id string) error {
	if err := administrate(ctx, opEndLink, stele.ID{}); err != nil {
		return err
	}
	if len(auth.LinkCells+id) > stele.MaxCellName {
		return nil
	}
	for attempt := 1; ; attempt++ { // its user may use it at this moment
		value, err := r.store.Cell(ctx, auth.LinkCells+id)
		if err != nil || value == nil {
			return tell(opEndLink, err)
		}
		err = r.apply(ctx, opEndLink, &stele.Commit{Cells: []stele.CellChange{{Name: auth.LinkCells + id, Before: value}}})
		if err == nil || !r.again(ctx, err, attempt) {
			return err
		}
	}
}
