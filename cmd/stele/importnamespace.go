package main

import (
	"context"
	"errors"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
)

// namespace adds the namespace of a row, or changes it in an update.
func (im *importer) namespace(ctx context.Context, row *importRow) error {
	row.err = im.ledger.IngestNamespace(ctx, row.namespace, registrar.ImportOptions{Update: im.o.update, DryRun: im.dry != nil})
	if row.err == nil || errors.Is(row.err, registrar.ErrUnchanged) {
		return nil
	}
	switch stele.KindOf(row.err) {
	case stele.Unavailable, stele.Internal: // it is not about the row alone
		return row.err
	}
	return nil
}
