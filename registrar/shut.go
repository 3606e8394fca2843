package registrar

import (
	"bytes"
	"context"

	"github.com/stele-id/stele"
)

// ShutTemplate shuts a template of a prefix whose names another registry may have
// given, until an administrator skips its counter ahead; see [Registrar.SkipCounter].
// It is for namespaces that come from elsewhere, and is called before they are added.
// Only an administrator may.
func (r *Registrar) ShutTemplate(ctx context.Context, key stele.NamespaceKey, template string, seed uint64) error {
	const op = "shut template"
	if err := administrate(ctx, op, stele.ID{}); err != nil {
		return err
	}
	done, err := r.desk(key).interrupt(ctx)
	if err != nil {
		return err
	}
	defer done()
	data, state, err := r.minterState(ctx, key)
	if err != nil {
		return err
	}
	if state.date != nil {
		return refuse(op, stele.ID{}, stele.Conflict, "names under %s are made of dates here; use another prefix", key)
	}
	next, i := state.noid.with(stele.Minter{Template: template, Seed: seed})
	next[i].shut = true
	if bytes.Equal(next.bytes(), data) {
		return nil
	}
	m := stele.MinterState{Name: stateName(key), Before: data, After: next.bytes()}
	return r.apply(ctx, op, &stele.Commit{Minters: []stele.MinterState{m}})
}
