package bulk

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
)

// Destination is the registry that an import writes to: a registrar, or a client of one.
type Destination interface {
	Bookmark(ctx context.Context, name string) ([]byte, error)
	BeginImport(ctx context.Context, label string) (uint64, error)
	NoteImport(ctx context.Context, number uint64, counts registrar.ImportCounts) error
	Ingest(ctx context.Context, records []*stele.Record, o registrar.ImportOptions) ([]error, error)
	IngestNamespace(ctx context.Context, ns *stele.Namespace, o registrar.ImportOptions) error
	SetNamespace(ctx context.Context, key stele.NamespaceKey, ifVersion uint64, change func(*stele.Namespace) error) (*stele.Namespace, error)
}

// Counts is what became of the rows.
type Counts struct {
	New        int `json:"new"`
	Updated    int `json:"updated"`
	Unchanged  int `json:"unchanged"`
	Rejected   int `json:"rejected"`
	Namespaces int `json:"namespaces,omitempty"` // new or changed

	Earlier     int `json:"earlier,omitempty"`        // versions of new records before their current one
	EarlierLeft int `json:"earlierLeftOut,omitempty"` // such versions that were not written: the record is registered already, or dates are not kept
}

// Rows returns how many rows were counted.
func (c Counts) Rows() int { return c.New + c.Updated + c.Unchanged + c.Rejected + c.Namespaces }

// count counts a row.
func (c *Counts) count(row *Row) {
	if !row.Rejected() {
		c.Earlier, c.EarlierLeft = c.Earlier+len(row.Earlier), c.EarlierLeft+row.earlierLeft
	}
	switch {
	case row.Unchanged():
		c.Unchanged++
	case row.Err != nil:
		c.Rejected++
	case row.Namespace != nil:
		c.Namespaces++
	case row.Record.Version > 1 && row.Earlier == nil:
		c.Updated++
	default:
		c.New++
	}
}

// ErrUnchanged says of a row that the registry has already what it says; see [registrar.ErrUnchanged].
var ErrUnchanged = registrar.ErrUnchanged

// Unchanged reports whether the registry has already what the row says.
func (r *Row) Unchanged() bool { return errors.Is(r.Err, registrar.ErrUnchanged) }

// Rejected reports whether nothing was written of the row.
func (r *Row) Rejected() bool { return r.Err != nil && !r.Unchanged() }

// ChunkLimit is how much is committed together; 0 is no limit. A crash costs the work on one
// chunk.
type ChunkLimit struct{ Rows, Lines, Bytes int }

// Committer takes the blocks of a [Flow] and commits them in chunks, their records and
// namespaces in order. It is the one loop of all imports. It counts and reports a row when
// what became of it is durable, and commits a bookmark never before what it covers.
type Committer struct {
	To      Destination
	Options registrar.ImportOptions // Update, Keep, DryRun, and Import if there is a number already
	Limit   ChunkLimit
	Idle    time.Duration // after which a chunk is committed that is not full

	// Begin returns the number of the import, or 0 for none. The Committer calls it before it
	// writes the first record.
	Begin func(ctx context.Context) (uint64, error)

	// EveryChunk makes the registry judge the import with every chunk, even if no row of it
	// can be written: Begin is called before the first chunk that has a row, and a chunk
	// without a record is ingested too.
	EveryChunk bool

	// Bookmark returns the bookmark of all that was reported to Committed, and the name under
	// which it is kept; "" if none is. Done says that all was read.
	Bookmark func(done bool) (name string, data []byte, err error)

	// Before is called before a chunk of so many lines is committed, and returns the context
	// for it. It may be nil.
	Before func(lines int) (context.Context, error)

	// Committed is called after a chunk was committed: the rows of its blocks say what became
	// of them.
	Committed func(chunk []*Block) error

	// Tick is called every second. It may be nil.
	Tick func()

	Counts Counts // of all rows; of an import that goes on, with those of before

	rehearsal *rehearsal // of a dry run that remembers what earlier chunks would have written; nil for none
	noted     Counts     // what of Counts is kept with the import

	chunk []*Block
	size  ChunkLimit // of chunk
}

// Run commits all that a flow brings. Where the flow ends with an error, Run commits what came
// before it, and returns the error. At its end the registry knows what became of the rows,
// also after an interrupt.
func (c *Committer) Run(ctx context.Context, flow *Flow) error {
	c.noted = c.Counts
	err := c.run(ctx, flow)
	if noted := c.note(context.WithoutCancel(ctx)); noted != nil {
		err = errors.Join(err, noted)
	}
	return err
}

func (c *Committer) run(ctx context.Context, flow *Flow) error {
	idle := time.NewTimer(c.Idle)
	defer idle.Stop()
	var tick <-chan time.Time
	if c.Tick != nil {
		t := time.NewTicker(time.Second)
		defer t.Stop()
		tick = t.C
	}
	for {
		select {
		case b, ok := <-flow.blocks:
			if !ok {
				return c.finish(ctx, flow)
			}
			if err := c.take(ctx, flow, b); err != nil {
				return err
			}
			idle.Reset(c.Idle)
		case <-idle.C: // the program that writes is slow
			if err := c.commit(ctx, flow); err != nil {
				return err
			}
		case <-tick:
			c.Tick()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// take adds a block to the chunk, and commits that when it is large enough.
func (c *Committer) take(ctx context.Context, flow *Flow, b *Block) error {
	select {
	case <-b.done:
	case <-ctx.Done():
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	c.chunk = append(c.chunk, b)
	c.size.Rows, c.size.Lines, c.size.Bytes = c.size.Rows+len(b.Rows), c.size.Lines+b.Next-b.Line, c.size.Bytes+b.bytes()
	reached := func(size, limit int) bool { return limit > 0 && size >= limit }
	if reached(c.size.Rows, c.Limit.Rows) || reached(c.size.Lines, c.Limit.Lines) || reached(c.size.Bytes, c.Limit.Bytes) {
		return c.commit(ctx, flow)
	}
	return nil
}

// finish commits the last chunk, and the bookmark after it.
func (c *Committer) finish(ctx context.Context, flow *Flow) error {
	if err := c.commit(ctx, flow); err != nil {
		return err
	}
	name, _, err := c.Bookmark(flow.err == nil)
	if err == nil && name != "" && !c.Options.DryRun {
		err = c.ingest(ctx, nil, flow.err == nil)
	}
	if err != nil {
		return err
	}
	return flow.err
}

// commit commits the chunk.
func (c *Committer) commit(ctx context.Context, flow *Flow) (err error) {
	if len(c.chunk) == 0 {
		return nil
	}
	if c.Before != nil {
		if ctx, err = c.Before(c.size.Lines); err != nil {
			return err
		}
	}
	if c.EveryChunk && c.size.Rows > 0 {
		if err := c.begin(ctx); err != nil {
			return err
		}
	}
	if err := c.write(ctx); err != nil {
		return err
	}
	for _, b := range c.chunk {
		for i := range b.Rows {
			c.Counts.count(&b.Rows[i])
		}
		flow.Release(b)
	}
	chunk := c.chunk
	c.chunk, c.size = nil, ChunkLimit{}
	return c.Committed(chunk)
}

// write writes the records and namespaces of the chunk, in their order.
func (c *Committer) write(ctx context.Context) error {
	var part []*Row
	asked := false
	flush := func() error {
		rows := part
		part = nil
		if c.rehearsal != nil {
			rows = c.rehearsal.repeated(rows, c.Options.Update)
		}
		for len(rows) > 0 {
			asked = true
			round := rows
			if rows = nil; c.rehearsal != nil { // rows without names may share a placeholder
				round, rows = registrar.FirstOfEach(round, func(row *Row) stele.ID { return row.Record.ID })
			}
			if err := c.ingest(ctx, round, false); err != nil {
				return err
			}
		}
		return nil
	}
	for _, b := range c.chunk {
		for i := range b.Rows {
			row := &b.Rows[i]
			switch {
			case row.Err != nil:
			case row.Namespace == nil:
				part = append(part, row)
			default:
				if err := flush(); err != nil {
					return err
				}
				if err := c.namespace(ctx, row); err != nil {
					return err
				}
			}
		}
	}
	if err := flush(); err != nil || asked || !c.EveryChunk {
		return err
	}
	return c.ingest(ctx, nil, false)
}

// ingest hands records to the registry, with the bookmark of what came before them: after a
// crash in between, the import only reads again records that are there already.
func (c *Committer) ingest(ctx context.Context, rows []*Row, done bool) (err error) {
	if len(rows) > 0 {
		if err := c.begin(ctx); err != nil {
			return err
		}
	}
	o := c.Options
	if o.Name, o.Bookmark, err = c.Bookmark(done); err != nil {
		return err
	}
	return Ingest(ctx, c.To, rows, o)
}

// begin gives the import its number before it writes for the first time.
func (c *Committer) begin(ctx context.Context) (err error) {
	if c.Options.Import == 0 && !c.Options.DryRun {
		c.Options.Import, err = c.Begin(ctx)
	}
	return err
}

// namespace adds the namespace of a row, or changes it in an update.
func (c *Committer) namespace(ctx context.Context, row *Row) error {
	return IngestNamespace(ctx, c.To, row, registrar.ImportOptions{Update: c.Options.Update, DryRun: c.Options.DryRun})
}

// IngestNamespace hands the namespace of a row to a registry, which adds it, or changes it in an update, and notes in the row what
// became of it. An error is not about the row alone.
func IngestNamespace(ctx context.Context, to Destination, row *Row, o registrar.ImportOptions) error {
	if row.RulesOnly && !o.DryRun {
		row.Err = setRules(ctx, to, row.Namespace, o.Update)
	} else {
		o.Progress = row.Progress
		row.Err = to.IngestNamespace(ctx, row.Namespace, o)
	}
	if !row.Rejected() {
		return nil
	}
	switch stele.KindOf(row.Err) {
	case stele.Unavailable, stele.Internal: // it is not about the row alone
		return row.Err
	}
	return nil
}

// setRules changes the rules of a namespace in an update. All other settings stay as they are now: others may have changed them since the
// import has read them.
func setRules(ctx context.Context, to Destination, ns *stele.Namespace, update bool) error {
	same := false
	_, err := to.SetNamespace(ctx, ns.Key(), 0, func(now *stele.Namespace) error {
		next := *now
		next.Rules = ns.Rules
		same = bytes.Equal(registrar.AppendSettings(nil, now), registrar.AppendSettings(nil, &next))
		if !same && !update {
			return &stele.Error{Op: "import", Kind: stele.Conflict, Err: stele.Messagef("import.namespace-rules-differ", "the namespace {namespace} is there with other rules; only an update changes them", ns.Key())}
		}
		now.Rules = ns.Rules
		return nil
	})
	if err == nil && same {
		return ErrUnchanged
	}
	return err
}

// note keeps with the import what became of the rows of this run.
func (c *Committer) note(ctx context.Context) error {
	if c.Options.Import == 0 || c.Options.DryRun {
		return nil
	}
	n, before := c.Counts, c.noted
	c.noted = n
	return c.To.NoteImport(ctx, c.Options.Import, registrar.ImportCounts{
		Created: n.New - before.New, Updated: n.Updated - before.Updated, Unchanged: n.Unchanged - before.Unchanged, Refused: n.Rejected - before.Rejected,
	})
}

// Ingest hands records to a registry, and notes in each row what became of it, with the fields
// that change in a dry run. An error means that the registry does not know what became of
// them.
func Ingest(ctx context.Context, to Destination, rows []*Row, o registrar.ImportOptions) error {
	records := make([]*stele.Record, len(rows))
	for i, row := range rows {
		records[i] = row.Record
		if row.Patch != nil {
			o.Lines = append(o.Lines, row.Patch)
		}
		if len(row.Earlier) > 0 && o.Earlier == nil {
			o.Earlier = make([][]*stele.Record, len(rows))
		}
		if o.Earlier != nil {
			o.Earlier[i] = row.Earlier
		}
		if row.Fixed != nil && o.Fixed == nil {
			o.Fixed = make([]*registrar.FixedData, len(rows))
		}
		if o.Fixed != nil {
			o.Fixed[i] = row.Fixed
		}
		if row.Version != 0 && o.Versions == nil {
			o.Versions = make([]uint64, len(rows))
		}
	}
	if len(o.Versions) == len(rows) {
		for i, row := range rows {
			o.Versions[i] = cmp.Or(o.Versions[i], row.Version)
		}
	}
	if o.DryRun {
		o.Changed = func(i int, fields []registrar.FieldChange) { rows[i].Changes = fields }
	}
	errs, err := to.Ingest(ctx, records, o)
	if err != nil {
		return err
	}
	for i, row := range rows {
		if row.Err = errs[i]; o.Earlier != nil && o.Earlier[i] == nil {
			row.Earlier, row.earlierLeft = nil, len(row.Earlier)
		}
	}
	return nil
}
