package main

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
)

// namespace adds the namespace of a row, or changes it in an update. A template whose
// names another registry gives is shut first: it stays so until an administrator has
// skipped its counter ahead of them.
func (im *importer) namespace(ctx context.Context, row *importRow) error {
	ns := row.namespace
	r := im.registry.registrar
	have, err := r.Namespace(ctx, ns.Key())
	switch {
	case err == nil && bytes.Equal(settingsOf(have), settingsOf(ns)):
		row.err = registrar.ErrUnchanged
		return nil
	case err == nil && have.Version > 0 && !im.o.update:
		row.err = refuse("import", stele.Conflict, "the namespace %s is there with other settings; change them with --update, or by hand", ns.Key())
		return nil
	case err != nil && !errors.Is(err, stele.NotFound):
		return err
	}
	if im.dry != nil {
		return nil
	}
	if ns.Minter.Kind == stele.MinterNOID && (have == nil || have.Minter != ns.Minter) {
		if row.err = r.ShutTemplate(ctx, ns.Key(), ns.Minter.Template, ns.Minter.Seed); row.err != nil {
			return unlessRefused(row.err)
		}
	}
	if have == nil {
		_, row.err = r.AddNamespace(ctx, ns)
	} else {
		_, row.err = r.SetNamespace(ctx, ns.Key(), 0, func(next *stele.Namespace) error {
			kept := *next
			*next = *ns
			next.Version, next.Created, next.Modified, next.By = kept.Version, kept.Created, kept.Modified, kept.By
			return nil
		})
	}
	return unlessRefused(row.err)
}

// unlessRefused returns an error that ends the import: not one about the row alone.
func unlessRefused(err error) error {
	if err == nil {
		return nil
	}
	switch stele.KindOf(err) {
	case stele.Unavailable, stele.Internal:
		return err
	}
	return nil
}

// settingsOf returns what people set of a namespace, as export writes it.
func settingsOf(ns *stele.Namespace) []byte {
	c := *ns
	c.Version, c.Created, c.Modified, c.By = 0, time.Time{}, time.Time{}, ""
	return c.AppendJSON(nil)
}
