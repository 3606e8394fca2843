package main

import (
	"bytes"
	"strings"

	"github.com/stele-id/stele"
)

// row writes a record as a row of CSV, with the first of its targets.
func (x *exporter) row(rec *stele.Record) error {
	cells := csvCells(rec)
	if !saysAll(x.ledger.schemes, cells, rec) {
		x.more++
	}
	x.buf = x.buf[:0]
	for i, cell := range cells {
		if i > 0 {
			x.buf = append(x.buf, ',')
		}
		x.buf = appendCell(x.buf, cell)
	}
	_, err := x.out.Write(append(x.buf, '\n'))
	return err
}

// csvCells returns what a row can hold of a record, by csvColumns.
func csvCells(rec *stele.Record) []string {
	var t stele.Target
	if len(rec.Targets) > 0 {
		t = rec.Targets[0]
	}
	id, reason, state := rec.ID.String(), "", string(rec.State)
	if rec.Spelling != "" {
		id = rec.Spelling
	}
	if rec.State == stele.Active {
		state = ""
	}
	if rec.Tombstone != nil {
		reason = rec.Tombstone.Reason
	}
	service := string(t.Service)
	if t.Service == stele.N2L {
		service = ""
	}
	var aliases []string
	for _, alias := range rec.Aliases {
		aliases = append(aliases, alias.String())
	}
	m := rec.Metadata
	return []string{
		id, t.URL, strings.Join(aliases, " "), service, t.Type, t.Language, state, reason,
		m[stele.Who], m[stele.What], m[stele.When], m[stele.Where],
	}
}

// saysAll reports whether a row says all that the record does, what the system keeps
// aside.
func saysAll(schemes *stele.Schemes, cells []string, rec *stele.Record) bool {
	again, err := csvHeader(csvColumns).record(schemes, cells)
	if err != nil {
		return false
	}
	if again.Tombstone != nil && rec.Tombstone != nil {
		again.Tombstone.At = rec.Tombstone.At
	}
	return bytes.Equal(contentOf(again), contentOf(rec))
}

// appendCell appends a cell, in quotation marks if it needs them (RFC 4180), and
// where a row could be taken for a remark.
func appendCell(b []byte, cell string) []byte {
	if !strings.ContainsAny(cell, ",\"\r\n") && !strings.HasPrefix(cell, "#") && strings.TrimSpace(cell) == cell {
		return append(b, cell...)
	}
	b = append(b, '"')
	b = append(b, strings.ReplaceAll(cell, `"`, `""`)...)
	return append(b, '"')
}
