package registrar

import (
	"context"
	"iter"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// WorkCells begins the names of cells that servers work with in the background: files that users
// sent, bulk changes, mail that is to be sent, and what was done so far. No record depends on them;
// packages bulk/job and mail remove them after a time, and a restore removes them all.
const WorkCells = "work "

const opWork = "keep work"

// mayWork makes sure that the caller is a server, which decides who sees what of the work. A
// name outside of WorkCells is another part's.
func mayWork(ctx context.Context, name string) error {
	if who := auth.From(ctx); !who.Admin || who.Token != "" {
		return refuse(opWork, stele.ID{}, stele.Forbidden, "work.kept-by-server-only", "only a server keeps what is done in the background")
	}
	if !strings.HasPrefix(name, WorkCells) {
		return refuse(opWork, stele.ID{}, stele.Internal, "work.cell-of-another-part", `the cell "{cell}" does not belong to work in the background`, name)
	}
	return nil
}

// WorkCell returns a cell of the work; nil if there is none.
func (r *Registrar) WorkCell(ctx context.Context, name string) ([]byte, error) {
	if err := mayWork(ctx, name); err != nil {
		return nil, err
	}
	value, err := r.store.Cell(ctx, name)
	return value, tell(opWork, err)
}

// WorkList yields the cells of the work whose names begin with a text and come after another, in
// order.
func (r *Registrar) WorkList(ctx context.Context, prefix, after string) iter.Seq2[stele.Cell, error] {
	return func(yield func(stele.Cell, error) bool) {
		if err := mayWork(ctx, prefix); err != nil {
			yield(stele.Cell{}, err)
			return
		}
		for c, err := range r.store.Cells(ctx, prefix, after) {
			if err != nil {
				yield(stele.Cell{}, tell(opWork, err))
				return
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}

// KeepWork changes cells of the work, all or none. Conflict if one does not have the value that
// the change expects. What a job does to records has its entries in the audit trail; this has none.
func (r *Registrar) KeepWork(ctx context.Context, changes ...stele.CellChange) error {
	for _, c := range changes {
		if err := mayWork(ctx, c.Name); err != nil {
			return err
		}
	}
	return r.apply(ctx, opWork, &stele.Commit{Cells: changes})
}

// endWork removes all cells of the work: after a restore a job would do again what it did since the
// backup, and mail would be sent again. It reads some at a time, because they have the files of users.
func (r *Registrar) endWork(ctx context.Context) error {
	const atOnce = 16
	for {
		var list []stele.CellChange
		for c, err := range r.store.Cells(ctx, WorkCells, "") {
			if err != nil {
				return tell(opWork, err)
			}
			if list = append(list, stele.CellChange{Name: c.Name, Before: c.Value}); len(list) == atOnce {
				break
			}
		}
		if len(list) == 0 {
			return nil
		}
		if err := r.apply(ctx, opWork, &stele.Commit{Cells: list}); err != nil {
			return err
		}
	}
}
