package main

import (
	"context"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
)

// columns finds out which columns the records need, and writes the header. The records
// are read twice for it.
func (x *exporter) columns(ctx context.Context) error {
	var c bulk.Columns
	for _, key := range x.keys {
		for rec, err := range x.ledger.Export(ctx, key, false) {
			if err != nil {
				return err
			}
			c.Add(rec)
		}
	}
	x.header = c.Header()
	_, err := x.out.Write(append(bulk.AppendRow(nil, x.header, ','), '\n'))
	return err
}

// row writes a record as a row of CSV.
func (x *exporter) row(rec *stele.Record) error {
	cells, err := x.header.Cells(rec)
	if err != nil {
		return refuse("export", stele.Unavailable, "the registry changed while it was exported: %w; export it again", err)
	}
	x.buf = append(bulk.AppendRow(x.buf[:0], cells, ','), '\n')
	_, err = x.out.Write(x.buf)
	return err
}
