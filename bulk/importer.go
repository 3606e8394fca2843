package bulk

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
	ChunkRows  = 100_000 // in a store at hand
	chunkBytes = 26 << 20
)

// inFlight is how many pieces of text are read and not committed.
const inFlight = 160

// Counts is what became of the rows.
type Counts struct {
	New        int `json:"new"`
	Updated    int `json:"updated"`
	Unchanged  int `json:"unchanged"`
	Rejected   int `json:"rejected"`
	Namespaces int `json:"namespaces,omitempty"` // new or changed
}

// Rows returns how many rows were counted.
func (c Counts) Rows() int { return c.New + c.Updated + c.Unchanged + c.Rejected + c.Namespaces }

// Bookmark is how far an import is. The registry keeps it: that of a chunk is
// committed with the next one, so that all that it says is durable, and a crash in
// between costs only a second look at records that are there already.
type Bookmark struct {
	Counts
	Import  uint64 `json:"import,omitempty"` // the number of the import
	Offset  int64  `json:"offset"`
	Line    int    `json:"line"`
	Rejects int64  `json:"rejects,omitempty"` // bytes of the file of rejected rows
	Done    bool   `json:"done,omitempty"`
}

// Destination is the registry that an import writes to: a registrar, or a client of one.
type Destination interface {
	Bookmark(ctx context.Context, name string) ([]byte, error)
	BeginImport(ctx context.Context, label string) (uint64, error)
	NoteImport(ctx context.Context, number uint64, counts registrar.ImportCounts) error
	Ingest(ctx context.Context, records []*stele.Record, o registrar.ImportOptions) ([]error, error)
	IngestNamespace(ctx context.Context, ns *stele.Namespace, o registrar.ImportOptions) error
}

// Progress shows how far an import is.
type Progress interface {
	Add(rows int)
	Tick() // a second has passed
}

// Importer reads rows and commits them in chunks.
type Importer struct {
	To        Destination
	Rejects   *Rejects
	Key       string // names the bookmark; "" for none
	Label     string // what is imported, for people
	ChunkRows int    // rows that are committed together
	MaxErrors int    // rejected rows after which the import ends; negative: never
	Update    bool   // change records that are registered already
	Fresh     bool   // ignore the times and authors of creation and change that records give
	DryRun    bool   // write nothing

	Changed func(row *Row, fields []registrar.FieldChange) // what an update would change, in a dry run

	Mark Bookmark // where the import is

	progress Progress
	flow     *Flow
	dry      *rehearsal // nil unless nothing is to be written
	stop     func()     // ends the flow
	read     atomic.Int64
	failed   int    // rows that were rejected in this run
	noted    Counts // what is kept with the import of what became of rows

	chunk []*Block
	rows  int
	bytes int
}

// Resume reads how far an earlier run of the import was.
func (im *Importer) Resume(ctx context.Context) error {
	if im.Key == "" || im.DryRun {
		return nil
	}
	data, err := im.To.Bookmark(ctx, im.Key)
	if err != nil || data == nil {
		return err
	}
	var m Bookmark
	if err := json.Unmarshal(data, &m); err != nil {
		return failf(stele.Internal, "the bookmark of the import is damaged (%w); start over with --again", err)
	}
	im.Mark, im.Rejects.size = m, m.Rejects
	return nil
}

// Read returns how much of the file is done.
func (im *Importer) Read() int64 { return im.read.Load() }

// Overflowed reports whether a dry run saw more names than it remembers, so that names that
// come twice were not all found.
func (im *Importer) Overflowed() bool { return im.dry != nil && im.dry.full }

// Run imports what a reader brings, from the bookmark on. The number of the import and what
// became of the rows are kept with it, also after an interrupt. If reading fails, explain
// says why.
func (im *Importer) Run(ctx context.Context, parser *Parser, rows *Reader, explain func(error) error, start func() Progress) (err error) {
	defer func() { err = errors.Join(err, im.Rejects.Close()) }()
	if im.DryRun {
		im.dry = newRehearsal()
	}
	if im.Mark.Offset > 0 {
		if err := rows.SkipTo(im.Mark.Offset, im.Mark.Line); err != nil {
			return explain(err)
		}
	}
	im.read.Store(rows.Done())
	im.progress = start()
	flowing, stop := context.WithCancel(ctx)
	im.stop, im.flow, im.noted = stop, parser.Flow(flowing, rows, inFlight, explain), im.Mark.Counts
	err = im.run(ctx)
	return errors.Join(err, im.note(context.WithoutCancel(ctx)))
}

// ErrTooMany says that more rows were rejected than may be.
var ErrTooMany = errors.New("too many lines are rejected")

// run commits all that the flow brings.
func (im *Importer) run(ctx context.Context) error {
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
			im.progress.Tick()
			if idle { // the program that writes is slow
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
func (im *Importer) take(ctx context.Context, b *Block) error {
	select {
	case <-b.done:
	case <-ctx.Done():
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	im.chunk = append(im.chunk, b)
	im.rows, im.bytes = im.rows+len(b.Rows), im.bytes+len(b.Text)
	if im.rows < im.ChunkRows && im.bytes < chunkBytes {
		return nil
	}
	return im.commit(ctx)
}

// finish commits the last chunk, and the bookmark with it. Where the file could not
// be read to its end, what came before is imported.
func (im *Importer) finish(ctx context.Context) error {
	if err := im.commit(ctx); err != nil {
		return err
	}
	im.Mark.Done = im.flow.err == nil
	if err := im.save(ctx); err != nil {
		return err
	}
	return im.flow.err
}

// save commits the bookmark alone.
func (im *Importer) save(ctx context.Context) error {
	if im.Key == "" || im.dry != nil {
		return nil
	}
	_, err := im.ingest(ctx, nil)
	return err
}

// commit commits the chunk: its records and namespaces in their order.
func (im *Importer) commit(ctx context.Context) error {
	if len(im.chunk) == 0 {
		return nil
	}
	next := im.Mark
	var rejected []Row
	var part []*Row
	for _, b := range im.chunk {
		for i := range b.Rows {
			row := &b.Rows[i]
			switch {
			case row.Err != nil:
			case row.Namespace == nil:
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
		next.Offset, next.Line = b.End, b.Next
		for i := range b.Rows {
			if next.count(&b.Rows[i]) {
				rejected = append(rejected, b.Rows[i])
			}
		}
	}
	return im.settle(next, rejected)
}

// settle makes the chunk's end the place where the import is.
func (im *Importer) settle(next Bookmark, rejected []Row) error {
	excess := 0
	if im.MaxErrors >= 0 {
		excess = max(0, im.failed+len(rejected)-im.MaxErrors)
	}
	im.failed += len(rejected)
	if err := im.Rejects.Add(rejected); err != nil {
		return err
	}
	next.Rejects, next.Import = im.Rejects.size, im.Mark.Import
	im.Mark = next
	for _, b := range im.chunk {
		im.read.Store(b.Read)
		im.flow.Release(b)
	}
	im.progress.Add(im.rows)
	im.chunk, im.rows, im.bytes = nil, 0, 0
	if excess > 0 {
		return ErrTooMany
	}
	return nil
}

// count counts a row, and reports whether it is rejected.
func (c *Counts) count(row *Row) (rejected bool) {
	switch {
	case errors.Is(row.Err, registrar.ErrUnchanged):
		c.Unchanged++
	case row.Err != nil:
		c.Rejected++
		return true
	case row.Namespace != nil:
		c.Namespaces++
	case row.Record.Version > 1:
		c.Updated++
	default:
		c.New++
	}
	return false
}

// records writes records. In an update a record may come again: then it is changed
// again, after all others were written once.
func (im *Importer) records(ctx context.Context, rows []*Row) error {
	if im.dry != nil {
		rows = im.dry.repeated(rows, im.Update)
	}
	for len(rows) > 0 {
		wave, later := rows, []*Row(nil)
		if im.Update {
			wave, later = registrar.FirstOfEach(rows, func(row *Row) stele.ID { return row.Record.ID })
		}
		errs, err := im.ingest(ctx, wave)
		if err != nil {
			return err
		}
		for i, row := range wave {
			row.Err = errs[i]
		}
		rows = later
	}
	return nil
}

// ingest hands records to the registrar, with the bookmark of what came before them.
func (im *Importer) ingest(ctx context.Context, rows []*Row) ([]error, error) {
	o := registrar.ImportOptions{Update: im.Update, DryRun: im.dry != nil, Keep: !im.Fresh}
	if im.Key != "" && im.dry == nil {
		var err error
		o.Name = im.Key
		if o.Bookmark, err = json.Marshal(&im.Mark); err != nil {
			return nil, err
		}
	}
	list := make([]*stele.Record, len(rows))
	for i, row := range rows {
		list[i] = row.Record
		if row.Patch != nil {
			o.Lines = append(o.Lines, row.Patch)
		}
	}
	if im.dry != nil {
		o.Changed = func(i int, fields []registrar.FieldChange) { im.Changed(rows[i], fields) }
	} else if err := im.number(ctx, len(rows)); err != nil {
		return nil, err
	}
	o.Import = im.Mark.Import
	return im.To.Ingest(ctx, list, o)
}

// number gives the import its number before it writes for the first time.
func (im *Importer) number(ctx context.Context, rows int) (err error) {
	if im.Mark.Import == 0 && rows > 0 {
		im.Mark.Import, err = im.To.BeginImport(ctx, im.Label)
	}
	return err
}

// namespace adds the namespace of a row, or changes it in an update.
func (im *Importer) namespace(ctx context.Context, row *Row) error {
	row.Err = im.To.IngestNamespace(ctx, row.Namespace, registrar.ImportOptions{Update: im.Update, DryRun: im.dry != nil})
	if row.Err == nil || errors.Is(row.Err, registrar.ErrUnchanged) {
		return nil
	}
	switch stele.KindOf(row.Err) {
	case stele.Unavailable, stele.Internal: // it is not about the row alone
		return row.Err
	}
	return nil
}

// note keeps with the import what became of the rows of this run.
func (im *Importer) note(ctx context.Context) error {
	if im.Mark.Import == 0 || im.dry != nil {
		return nil
	}
	c, n := im.Mark.Counts, im.noted
	im.noted = c
	return im.To.NoteImport(ctx, im.Mark.Import, registrar.ImportCounts{
		Created: c.New - n.New, Updated: c.Updated - n.Updated, Unchanged: c.Unchanged - n.Unchanged, Refused: c.Rejected - n.Rejected,
	})
}
