package registrar

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
)

// IngestNamespace imports a namespace from another registry: it is added, or in an
// update changed. [ErrUnchanged] if it has these settings already, Conflict if it has
// others and this is not an update. A template whose names another registry gives is shut
// first, and stays so until an administrator has skipped its counter ahead of them; so
// only an administrator brings one.
func (r *Registrar) IngestNamespace(ctx context.Context, ns *stele.Namespace, o ImportOptions) error {
	const op = "import"
	have, err := r.Namespace(ctx, ns.Key())
	switch {
	case err == nil && bytes.Equal(AppendSettings(nil, have), AppendSettings(nil, ns)):
		return r.ingestProgress(ctx, ns, o)
	case err == nil && have.Version > 0 && !o.Update:
		return refuse(op, stele.ID{}, stele.Conflict, "import.namespace-settings-differ", "the namespace {namespace} is there with other settings; only an update changes them", ns.Key())
	case err != nil && !errors.Is(err, stele.NotFound):
		return err
	}
	f, err := r.isFurther(ctx, have, ns, o)
	if err != nil {
		return err
	}
	if err := r.advance(ctx, ns, f, o); err != nil {
		return err
	}
	if o.DryRun {
		return r.rehearseNamespace(ctx, op, ns)
	}
	if have == nil {
		_, err = r.addNamespace(ctx, ns, keepSeed)
		return err
	}
	_, err = r.setNamespace(ctx, ns.Key(), 0, func(next *stele.Namespace) error {
		kept := *next
		*next = *ns
		next.Keys = withKeys(ns.Keys, kept.Keys)
		next.Version, next.Created, next.Modified, next.By = kept.Version, kept.Created, kept.Modified, kept.By
		return nil
	}, keepSeed)
	return err
}

// further is what of a minter is, or may be, further elsewhere than here.
type further struct{ template, earlier, dates bool }

// isFurther returns what of the minter of a namespace that is imported is, or may be, further elsewhere than here: the template
// is another one than the namespace has, or the import says so.
func (r *Registrar) isFurther(ctx context.Context, have, ns *stele.Namespace, o ImportOptions) (f further, err error) {
	switch {
	case ns.Minter.Kind != stele.MinterNOID:
	case have == nil || have.Minter != ns.Minter:
		f.template = true
	case o.Progress.Given > 0:
		status, err := r.MinterStatus(ctx, ns.Key())
		if err != nil {
			return f, err
		}
		f.template = o.Progress.Given > status.Given
	}
	if f.earlier, err = r.minters.EarlierFurther(ctx, opImport, ns.Key(), o.Progress); err != nil {
		return f, err
	}
	f.dates, err = r.minters.DatesFurther(ctx, opImport, ns, o.Progress)
	return f, err
}

// advance lets a minter continue where another registry or program is, before its namespace is written: no name that was issued there
// is issued here. Templates are the administrator's; dates are those of the user who may write the namespace with its prefixes.
func (r *Registrar) advance(ctx context.Context, ns *stele.Namespace, f further, o ImportOptions) error {
	if f.template || f.earlier {
		if err := administrate(ctx, opImport, stele.ID{}); err != nil {
			return err
		}
	}
	if f.dates {
		if err := r.rehearseNamespace(ctx, opImport, ns); err != nil {
			return err
		}
	}
	if o.DryRun {
		return nil
	}
	if f.earlier {
		if err := r.minters.AdvanceEarlier(ctx, opImport, ns.Key(), o.Progress); err != nil {
			return err
		}
	}
	if f.template {
		if err := r.ShutTemplate(ctx, ns.Key(), ns.Minter, o.Progress); err != nil {
			return err
		}
	}
	if f.dates {
		return r.minters.AdvanceDates(ctx, opImport, ns, o.Progress)
	}
	return nil
}

// ingestProgress lets the minter of a namespace that has these settings already continue where another
// program is. ErrUnchanged if it is as far here.
func (r *Registrar) ingestProgress(ctx context.Context, ns *stele.Namespace, o ImportOptions) error {
	f, err := r.isFurther(ctx, ns, ns, o)
	if err != nil {
		return err
	}
	if f == (further{}) {
		return ErrUnchanged
	}
	return r.advance(ctx, ns, f, o)
}

// rehearseNamespace finds out whether a namespace could be written so.
func (r *Registrar) rehearseNamespace(ctx context.Context, op string, ns *stele.Namespace) error {
	s, err := r.view(ctx)
	if err != nil {
		return err
	}
	var before *stele.Namespace
	if sp := s.listable(ctx, s.Get(ns.Key())); sp != nil {
		before = sp.Namespace
	}
	next := cloneNamespace(ns)
	if before != nil {
		next.Keys = withKeys(next.Keys, before.Keys)
	}
	r.stampNamespace(ctx, before, next)
	if next.Minter.Kind == stele.MinterNOID && (before == nil || before.Minter != next.Minter) {
		if err := administrate(ctx, op, stele.ID{}); err != nil {
			return err
		}
	}
	_, _, err = r.admitNamespace(ctx, op, s, before, next)
	return err
}

// AppendSettings appends what people set of a namespace, in JSON, as an export has it:
// without what the system keeps.
func AppendSettings(b []byte, ns *stele.Namespace) []byte {
	c := *ns
	c.Version, c.Created, c.Modified, c.By = 0, time.Time{}, time.Time{}, ""
	c.HandOver, c.Adoptions = stele.HandOver{}, nil
	return document.AppendNamespace(b, &c)
}
