package registrar

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// beginGeneration begins the generation of the restored registry.
func (r *Registrar) beginGeneration(ctx context.Context, l *Legacy) error {
	const op = "restore"
	if err := administrate(ctx, op, stele.ID{}); err != nil {
		return err
	}
	backup, err := r.store.Generations(ctx)
	if err != nil {
		return tell(op, err)
	}
	last, err := r.store.LastChange(ctx)
	if err != nil {
		return tell(op, err)
	}
	next := backup.Next(r.o.Now(), last, l.Generations, l.Last)
	if err := r.store.SetGenerations(ctx, backup.Last().ID, next); err != nil {
		return tell(op, err)
	}
	return nil
}

// restoreMissing takes over cells that were written since the backup. Those of idempotency
// keys are of another generation, so that a repeated request gets an error about the
// restore, and mints no names a second time.
func (r *Registrar) restoreMissing(ctx context.Context, cells []stele.Cell) error {
	taken := cellWriter{r: r, op: "restore"}
	for _, cell := range cells {
		have, err := r.store.Cell(ctx, cell.Name)
		if err != nil {
			return tell(taken.op, err)
		}
		if have == nil {
			if err := taken.put(ctx, stele.CellChange{Name: cell.Name, After: cell.Value}); err != nil {
				return err
			}
		}
	}
	return taken.flush(ctx)
}

// restoreNamespaces takes over the owners and grants of the namespaces that both
// registries have, and the signing keys with their ends: a role that was revoked since
// the backup stays revoked, and a key that was revoked signs nothing. A seal stays, also
// of a namespace that the backup does not have. All else is as in the backup.
func (r *Registrar) restoreNamespaces(ctx context.Context, present []*stele.Namespace) error {
	const op = "restore"
	if len(present) == 0 {
		return nil
	}
	if err := r.Reload(ctx); err != nil {
		return err
	}
	for _, now := range present {
		before, err := r.store.Namespace(ctx, now.Key())
		if stele.KindOf(err) == stele.NotFound && err != nil {
			if !now.IsSealed() {
				continue // it was added since
			}
			before, err = nil, nil
		}
		if err != nil {
			return tell(op, err)
		}
		next := restoredNamespace(now, before)
		r.stampNamespace(ctx, before, next)
		if before != nil && sameNamespace(before, next) {
			continue
		}
		epoch, err := r.store.Cell(ctx, epochCell)
		if err != nil {
			return tell(op, err)
		}
		changed := (&namespaceTree{epoch: epoch}).changed()
		if err := r.apply(ctx, op, &stele.Commit{Namespaces: []*stele.Namespace{next}, Cells: []stele.CellChange{changed}}); err != nil {
			return err
		}
	}
	return r.Reload(ctx)
}

// restoredNamespace returns a namespace of the backup with what is taken over of the present one. One that the backup does not have was
// sealed since: it comes back without what it makes and publishes.
func restoredNamespace(now, before *stele.Namespace) *stele.Namespace {
	if before == nil {
		next := cloneNamespace(now)
		next.Minter, next.Publication = stele.Minter{}, stele.Publication{}
		return next
	}
	next := cloneNamespace(before)
	next.Owner, next.Grants, next.Keys = now.Owner, slices.Clone(now.Grants), laterKeys(now.Keys, before.Keys)
	next.Heirs = slices.Clone(now.Heirs) // or else one that was removed could take the names over
	next.Reviewed = now.Reviewed         // or else editors would write what they may only propose
	next.Listed = now.Listed             // or else the public would list names that an owner no longer lists
	restoreHandOver(now, before, next)
	return next
}

// restoreHandOver takes over how far a namespace was handed over. One that was sealed since the backup stays sealed: or else
// two registries would make the same names. One that was adopted since is for reading only until the bundle is adopted again: the
// backup does not have its names, or not all.
func restoreHandOver(now, before, next *stele.Namespace) {
	if now.IsSealed() || now.Version >= before.Version {
		next.HandOver, next.Adoptions = now.HandOver, slices.Clone(now.Adoptions)
	}
	n, m := len(next.Adoptions), len(before.Adoptions)
	if n > 0 && (m == 0 || before.IsRead() || before.Adoptions[m-1].Bundle != next.Adoptions[n-1].Bundle) {
		next.Adoptions[n-1].Reading = true
	}
}

// laterKeys returns the keys of the present, with those that only the backup has.
func laterKeys(present, backup []stele.SigningKey) []stele.SigningKey {
	keys := slices.Clone(present)
	for _, k := range backup {
		if !slices.ContainsFunc(present, func(p stele.SigningKey) bool { return p.ID == k.ID }) {
			keys = append(keys, k)
		}
	}
	return keys
}

// restoreRedactions redacts what was redacted since the backup.
func (r *Registrar) restoreRedactions(ctx context.Context, redactions map[stele.ID]string) error {
	for _, id := range slices.SortedFunc(maps.Keys(redactions), stele.ID.Compare) {
		rec, err := r.store.Record(ctx, id)
		switch {
		case stele.KindOf(err) == stele.NotFound && err != nil:
			// It was registered since the backup, which may have a proposal of it.
			if err := r.endProposals(ctx, id); err != nil {
				return err
			}
			continue
		case err != nil:
			return tell("restore", err)
		case rec.ID != id || rec.Redacted:
			continue
		}
		if _, err := r.Redact(ctx, id, 0, cmp.Or(redactions[id], "redacted before the registry was restored from a backup")); err != nil {
			return err
		}
	}
	return nil
}

// shutTokens shuts all tokens, and ends all accounts at OpenID providers: the backup can't know
// which of them were revoked.
func (r *Registrar) shutTokens(ctx context.Context) error {
	const op = "restore"
	w := cellWriter{r: r, op: op}
	all, err := r.readTokens(ctx, op)
	if err != nil {
		return err
	}
	for _, t := range all.list {
		have := all.cells[t.ID]
		t.Shut = true
		next, err := t.Cell()
		if err != nil {
			return tell(op, err)
		}
		if err := w.put(ctx, stele.CellChange{Name: have.Name, Before: have.Value, After: next.Value}); err != nil {
			return err
		}
	}
	if err := w.flush(ctx); err != nil {
		return err
	}
	return r.shutIdentities(ctx, op)
}

// OpenToken opens a token that a restore without a present registry shut, and returns it
// without its secret. Only an administrator may, and has to know that it was not revoked
// since the backup. A token that is not shut stays as it is. NotFound if there is none.
func (r *Registrar) OpenToken(ctx context.Context, id string) (t auth.Token, err error) {
	const op = "open token"
	if err := administrate(ctx, op, stele.ID{}); err != nil {
		return t, err
	}
	cell := stele.Cell{Name: auth.TokenCells + id}
	if cell.Value, err = r.store.Cell(ctx, cell.Name); err != nil {
		return t, tell(op, err)
	}
	if cell.Value == nil {
		return t, refuse(op, stele.ID{}, stele.NotFound, "token.missing", `there is no token "{token}"; list the tokens`, id)
	}
	if t, err = auth.ReadToken(cell); err != nil {
		return auth.Token{}, err
	}
	if t.Shut {
		t.Shut = false
		next, err := t.Cell()
		if err != nil {
			return t, tell(op, err)
		}
		if err := r.apply(ctx, op, &stele.Commit{Cells: []stele.CellChange{{Name: cell.Name, Before: cell.Value, After: next.Value}}}); err != nil {
			return t, err
		}
	}
	t.Hash = nil
	return t, nil
}
