package registrar

import (
	"context"
	"iter"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// LogCells begins the names of the cells of the transparency log, which package transparency keeps.
const LogCells = "log "

const opLog = "keep log"

// mayLog makes sure that the caller is a server, or an operator at its files.
func mayLog(ctx context.Context, name string) error {
	if who := auth.From(ctx); !who.Admin || who.Token != "" {
		return refuse(opLog, stele.ID{}, stele.Forbidden, "log.kept-by-server-only", "only a server keeps the log")
	}
	if !strings.HasPrefix(name, LogCells) {
		return refuse(opLog, stele.ID{}, stele.Internal, "log.cell-of-another-part", `the cell "{cell}" does not belong to the log`, name)
	}
	return nil
}

// LogCell returns a cell of the log; nil if there is none.
func (r *Registrar) LogCell(ctx context.Context, name string) ([]byte, error) {
	if err := mayLog(ctx, name); err != nil {
		return nil, err
	}
	value, err := r.store.Cell(ctx, name)
	return value, tell(opLog, err)
}

// LogPart returns a part of a cell of the log, and how long the cell is; -1 if there is none.
func (r *Registrar) LogPart(ctx context.Context, name string, from, count int) (part []byte, length int, err error) {
	if err := mayLog(ctx, name); err != nil {
		return nil, 0, err
	}
	if cutter, ok := r.store.(stele.CellCutter); ok {
		part, length, err = cutter.CutCell(ctx, name, from, count)
		return part, length, tell(opLog, err)
	}
	value, err := r.store.Cell(ctx, name)
	if err != nil || value == nil {
		return nil, -1, tell(opLog, err)
	}
	rest := value[min(from, len(value)):]
	return rest[:min(count, len(rest))], len(value), nil
}

// LogValues returns cells of the log, in the order of their names, and nil for one that is not there.
func (r *Registrar) LogValues(ctx context.Context, names []string) ([][]byte, error) {
	for _, name := range names {
		if err := mayLog(ctx, name); err != nil {
			return nil, err
		}
	}
	values, err := r.gatherCells(ctx, names)
	return values, tell(opLog, err)
}

// gatherCells reads many cells.
func (r *Registrar) gatherCells(ctx context.Context, names []string) ([][]byte, error) {
	if many, ok := r.store.(stele.CellGatherer); ok {
		return many.GatherCells(ctx, names)
	}
	values := make([][]byte, len(names))
	for i, name := range names {
		var err error
		if values[i], err = r.store.Cell(ctx, name); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// LogList yields the cells of the log whose names begin with a text and come after another, in order.
func (r *Registrar) LogList(ctx context.Context, prefix, after string) iter.Seq2[stele.Cell, error] {
	return func(yield func(stele.Cell, error) bool) {
		if err := mayLog(ctx, prefix); err != nil {
			yield(stele.Cell{}, err)
			return
		}
		for c, err := range r.store.Cells(ctx, prefix, after) {
			if !yield(c, tell(opLog, err)) || err != nil {
				return
			}
		}
	}
}

// KeepLog changes cells of the log, all or none. Conflict if one does not have the value that the change expects. It leaves
// no entry in the audit trail: the log itself is one.
func (r *Registrar) KeepLog(ctx context.Context, changes ...stele.CellChange) error {
	for _, c := range changes {
		if err := mayLog(ctx, c.Name); err != nil {
			return err
		}
	}
	return r.apply(ctx, opLog, &stele.Commit{Cells: changes})
}

// ListsID reports whether the names of the namespace of an identifier may be listed by all.
func (p *Public) ListsID(id stele.ID) bool { return p.Of(id) != nil }

// ListsNamespace reports whether the names of a namespace may be listed by all.
func (p *Public) ListsNamespace(key stele.NamespaceKey) bool {
	sp := p.tree.Get(key)
	return sp != nil && sp.Namespace.Listed
}
