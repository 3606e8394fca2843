package main

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
)

// What is committed together. A crash costs the work on one chunk.
const (
	chunkRows  = 100_000
	chunkBytes = 26 << 20
)

// importCounts is what became of the rows.
type importCounts struct {
	New        int `json:"new"`
	Updated    int `json:"updated"`
	Unchanged  int `json:"unchanged"`
	Rejected   int `json:"rejected"`
	Namespaces int `json:"namespaces,omitempty"` // new or changed
}

func (c importCounts) rows() int { return c.New + c.Updated + c.Unchanged + c.Rejected + c.Namespaces }

// importMark is how far an import is. The registry keeps it: that of a chunk is
// committed with the next one, so that all that it says is certain, and a crash in
// between costs nothing but looking at records again that are there already.
type importMark struct {
	importCounts
	Import  uint64 `json:"import,omitempty"` // the number of the import
	Offset  int64  `json:"offset"`
	Line    int    `json:"line"`
	Rejects int64  `json:"rejects,omitempty"` // bytes of the file of rejected rows
	Done    bool   `json:"done,omitempty"`
}

func (m *importMark) bytes() ([]byte, error) { return json.Marshal(m) }

// importer commits what is read.
type importer struct {
	ledger   *ledger
	o        importOptions
	key      string // names the bookmark; "" for none
	label    string // what is imported, for people
	parser   *importParser
	flow     *importFlow
	rejects  *importRejects
	progress *progress
	dry      *rehearsal // nil unless nothing is to be written
	stop     func()     // ends the flow

	mark   importMark
	read   atomic.Int64 // how much of the file is done
	failed int          // rows that were rejected in this run
	noted  importCounts // what is kept with the import of what became of rows
	shown  changeReport // what changes, in a dry run

	chunk []*block
	rows  int
	bytes int
}

var errTooMany = errors.New("too many lines are rejected")

// run commits all that the flow brings.
func (im *importer) run(ctx context.Context) error {
	defer im.stop()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	idle := true
	for {
		select {
		case b, ok := <-im.flow.blocks:
			if !ok {
				return im.finish(ctx)
			}
			idle = false
			if err := im.take(ctx, b); err != nil {
				return err
			}
		case <-tick.C:
			im.progress.tick()
			if idle { // whoever writes takes their time
				if err := im.commit(ctx); err != nil {
					return err
				}
			}
			idle = true
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// take adds a block to the chunk, and commits that when it is large enough.
func (im *importer) take(ctx context.Context, b *block) error {
	select {
	case <-b.done:
	case <-ctx.Done():
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	im.chunk = append(im.chunk, b)
	im.rows, im.bytes = im.rows+len(b.rows), im.bytes+len(b.text)
	if im.rows < im.ledger.chunk && im.bytes < chunkBytes {
		return nil
	}
	return im.commit(ctx)
}

// finish commits the last chunk, and the bookmark with it. Where the file could not
// be read to its end, what came before is imported.
func (im *importer) finish(ctx context.Context) error {
	if err := im.commit(ctx); err != nil {
		return err
	}
	im.mark.Done = im.flow.err == nil
	if err := im.save(ctx); err != nil {
		return err
	}
	return im.flow.err
}

// save commits the bookmark alone.
func (im *importer) save(ctx context.Context) error {
	if im.key == "" || im.dry != nil {
		return nil
	}
	_, err := im.ingest(ctx, nil)
	return err
}

// commit commits the chunk: its records and namespaces in their order.
func (im *importer) commit(ctx context.Context) error {
	if len(im.chunk) == 0 {
		return nil
	}
	next := im.mark
	var rejected []importRow
	var part []*importRow
	for _, b := range im.chunk {
		for i := range b.rows {
			row := &b.rows[i]
			switch {
			case row.err != nil:
			case row.namespace == nil:
				part = append(part, row)
			default:
				if err := im.records(ctx, part); err != nil {
					return err
				}
				part = part[:0]
				if err := im.namespace(ctx, row); err != nil {
					return err
				}
			}
		}
	}
	if err := im.records(ctx, part); err != nil {
		return err
	}
	for _, b := range im.chunk {
		next.Offset, next.Line = b.end, b.next
		for i := range b.rows {
			if next.count(&b.rows[i]) {
				rejected = append(rejected, b.rows[i])
			}
		}
	}
	return im.settle(next, rejected)
}

// settle makes the chunk's end the place where the import is.
func (im *importer) settle(next importMark, rejected []importRow) error {
	excess := 0
	if im.o.maxErrors >= 0 {
		excess = max(0, im.failed+len(rejected)-im.o.maxErrors)
	}
	im.failed += len(rejected)
	if err := im.rejects.add(rejected); err != nil {
		return err
	}
	next.Rejects, next.Import = im.rejects.size, im.mark.Import
	im.mark = next
	for _, b := range im.chunk {
		im.read.Store(b.read)
		im.flow.release(b)
	}
	im.progress.Add(im.rows)
	im.chunk, im.rows, im.bytes = nil, 0, 0
	if excess > 0 {
		return errTooMany
	}
	return nil
}

// count counts a row, and reports whether it is rejected.
func (c *importCounts) count(row *importRow) (rejected bool) {
	switch {
	case errors.Is(row.err, registrar.ErrUnchanged):
		c.Unchanged++
	case row.err != nil:
		c.Rejected++
		return true
	case row.namespace != nil:
		c.Namespaces++
	case row.record.Version > 1:
		c.Updated++
	default:
		c.New++
	}
	return false
}

// records writes records. In an update a record may come again: then it is changed
// again, after all others were written once.
func (im *importer) records(ctx context.Context, rows []*importRow) error {
	if im.dry != nil {
		rows = im.dry.repeated(rows, im.o.update)
	}
	for len(rows) > 0 {
		wave, later := rows, []*importRow(nil)
		if im.o.update {
			wave, later = firsts(rows)
		}
		errs, err := im.ingest(ctx, wave)
		if err != nil {
			return err
		}
		for i, row := range wave {
			row.err = errs[i]
		}
		rows = later
	}
	return nil
}

// firsts divides rows into the first of each record and the others.
func firsts(rows []*importRow) (first, others []*importRow) {
	seen := make(map[stele.ID]bool, len(rows))
	for _, row := range rows {
		if seen[row.record.ID] {
			others = append(others, row)
			continue
		}
		seen[row.record.ID] = true
		first = append(first, row)
	}
	return first, others
}

// ingest hands records to the registrar, with the bookmark of what came before them.
func (im *importer) ingest(ctx context.Context, rows []*importRow) ([]error, error) {
	o := registrar.ImportOptions{Update: im.o.update, DryRun: im.dry != nil, Keep: !im.o.fresh}
	if im.key != "" && im.dry == nil {
		var err error
		o.Name = im.key
		if o.Bookmark, err = im.mark.bytes(); err != nil {
			return nil, err
		}
	}
	list := make([]*stele.Record, len(rows))
	for i, row := range rows {
		list[i] = row.record
		if row.patch != nil {
			o.Lines = append(o.Lines, row.patch)
		}
	}
	if im.dry != nil {
		o.Changed = func(i int, fields []registrar.FieldChange) { im.shown.add(rows[i], fields) }
	} else if err := im.number(ctx, len(rows)); err != nil {
		return nil, err
	}
	o.Import = im.mark.Import
	return im.ledger.Ingest(ctx, list, o)
}

// number gives the import its number before it writes for the first time.
func (im *importer) number(ctx context.Context, rows int) (err error) {
	if im.mark.Import == 0 && rows > 0 {
		im.mark.Import, err = im.ledger.BeginImport(ctx, im.label)
	}
	return err
}

// note keeps with the import what became of the rows of this run.
func (im *importer) note(ctx context.Context) error {
	if im.mark.Import == 0 || im.dry != nil {
		return nil
	}
	c, n := im.mark.importCounts, im.noted
	im.noted = c
	return im.ledger.NoteImport(ctx, im.mark.Import, registrar.ImportCounts{
		Created: c.New - n.New, Updated: c.Updated - n.Updated, Unchanged: c.Unchanged - n.Unchanged, Refused: c.Rejected - n.Rejected,
	})
}

// readMark reads the bookmark of an earlier run; a new one if there is none.
func readMark(ctx context.Context, l *ledger, key string) (importMark, error) {
	var m importMark
	if key == "" {
		return m, nil
	}
	data, err := l.Bookmark(ctx, key)
	if err != nil || data == nil {
		return m, err
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return importMark{}, refuse("import", stele.Internal, "the bookmark of the import is damaged (%w); start over with --again", err)
	}
	return m, nil
}
