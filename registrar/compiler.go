package registrar

import (
	"bytes"
	"context"

	"github.com/stele-id/stele"
)

// compilerCell has the name of what made zones of the registry last.
const compilerCell = "zone compiler"

// NoteCompiler notes which zone compiler makes the registry's zones from now on. If it
// is another than before, all namespaces that have a zone get a new version: the serials
// grow, and a secondary transfers a zone as a whole, since everything in it may be
// different. Only an administrator may.
func (r *Registrar) NoteCompiler(ctx context.Context, name string) error {
	const op = "publish"
	if err := administrate(ctx, op, stele.ID{}); err != nil {
		return err
	}
	if err := r.lock(ctx); err != nil {
		return err
	}
	defer r.unlock()
	for attempt := 1; ; attempt++ {
		before, err := r.store.Cell(ctx, compilerCell)
		if err != nil {
			return tell(op, err)
		}
		if bytes.Equal(before, []byte(name)) {
			return nil
		}
		s, err := r.latest(ctx)
		if err != nil {
			return err
		}
		c := &stele.Commit{Cells: []stele.CellChange{{Name: compilerCell, Before: before, After: []byte(name)}}}
		if before != nil {
			c.Namespaces = r.publishedAnew(ctx, s)
		}
		err = r.apply(ctx, op, c)
		if len(c.Namespaces) > 0 {
			r.replace(s, nil)
		}
		if err == nil || !r.again(ctx, err, attempt) {
			return err
		}
	}
}

// publishedAnew returns new versions, otherwise the same, of the namespaces that have a
// zone.
func (r *Registrar) publishedAnew(ctx context.Context, s *namespaceTree) (list []*stele.Namespace) {
	for _, sp := range s.All() {
		if sp.Publication.Zone != "" {
			next := cloneNamespace(sp.Namespace)
			r.stampNamespace(ctx, sp.Namespace, next)
			list = append(list, next)
		}
	}
	return list
}
