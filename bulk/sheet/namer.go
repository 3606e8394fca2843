package sheet

import (
	"iter"

	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/registrar/minting"
)

// Rows are named in batches that take about so long, so that a minter of one name a
// second shows progress, and a quick one is not held up by the disk.
const (
	firstRows  = 32
	mostRows   = 2000
	shortBlock = time.Second
	longBlock  = 4 * time.Second
)

// Counts is what became of the rows of a sheet.
type Counts struct {
	Named    int `json:"named"`
	Kept     int `json:"kept"` // had a name before
	Rejected int `json:"rejected"`
}

// Registry is where names are made and rows are registered.
type Registry interface {
	Namespace(ctx context.Context, key stele.NamespaceKey) (*stele.Namespace, error)
	Version(ctx context.Context, name stele.ID, version uint64) (*stele.Record, error)
	MintPool(ctx context.Context, pool []stele.NamespaceKey, n int) ([]minting.Label, error)
	Ingest(ctx context.Context, records []*stele.Record, o registrar.ImportOptions) ([]error, error)
	BeginImport(ctx context.Context, label string) (uint64, error)
	NoteImport(ctx context.Context, number uint64, n registrar.ImportCounts) error
	Imports(ctx context.Context, after uint64) iter.Seq2[registrar.Import, error]
}

// Progress shows how many rows were named.
type Progress interface {
	Add(rows int)
	End()
}

// Namer names the rows of a sheet: it makes a batch of names, writes down which row gets
// which, and then registers them. So a row that is registered is written down, and a row
// that is written down gets no other name, whenever the process ends.
type Namer struct {
	Sheet    *Sheet
	Registry Registry
	Schemes  *stele.Schemes
	Now      func() time.Time
	Pool     []stele.NamespaceKey // in which names are made
	Reserve  bool                 // register rows as reserved

	// OnResume is called if an earlier run has written down names of some rows.
	OnResume func(rows int, journal string)

	// Progress starts to show progress. The total and done are in bytes of the sheet.
	Progress func(total int64, done func() int64) Progress

	reader   *reader
	journal  *journal
	rejects  *bulk.Rejects
	pooled   []*stele.Namespace // of the pool
	counts   Counts
	created  int // records that this run registered
	progress Progress
	size     int        // of the next batch
	fresh    []namedRow // rows that wait for names
	again    []namedRow // rows that have one in the journal
}

// Result is what a run did.
type Result struct {
	Counts
	Import  uint64 // its number, by which it can be reverted; 0 if no name was made
	Column  string // in which the names are, as it stands in the file
	Journal string // the file with names that are not in the sheet yet
	Rejects string // the file with the rows that have no name
}

// Run names the rows, and writes the file. After an error it can be run again, and
// continues: the result tells what it did until then.
func (n *Namer) Run(ctx context.Context) (done Result, err error) {
	n.size = firstRows
	if n.journal, err = openJournal(n.Sheet.path + ".names"); err != nil {
		return done, err
	}
	err = n.run(ctx)
	done = Result{Counts: n.counts, Import: n.journal.head.Import, Column: n.columnName(), Journal: n.journal.path}
	if n.rejects != nil {
		done.Rejects = n.rejects.Path
	}
	return done, errors.Join(err, n.journal.close(err == nil && !n.Sheet.o.DryRun))
}

// namedRow is a row and its record.
type namedRow struct {
	row
	record *stele.Record
}

// run names the rows, and writes the file.
func (n *Namer) run(ctx context.Context) error {
	if err := n.prepare(ctx); err != nil {
		return err
	}
	err := n.nameAll(ctx)
	n.progress.End()
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	err = errors.Join(err, n.rejects.Close(), n.note(context.WithoutCancel(ctx)))
	if err == nil && !n.Sheet.o.DryRun && len(n.journal.entries) > 0 {
		err = n.Sheet.write(n.journal)
	}
	return err
}

// prepare makes sure that the run can continue where an earlier one ended, and opens
// the file.
func (n *Namer) prepare(ctx context.Context) (err error) {
	if err := n.Sheet.mayWrite(n.journal); err != nil {
		return err
	}
	if err := n.sameRegistry(ctx); err != nil {
		return err
	}
	for _, key := range n.Pool {
		ns, err := n.Registry.Namespace(ctx, key)
		if errors.Is(err, stele.NotFound) && n.Sheet.o.DryRun {
			ns, err = &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix}, nil
		}
		if err != nil {
			return err
		}
		n.pooled = append(n.pooled, ns)
	}
	if n.reader, err = n.Sheet.read(n.Schemes); err != nil {
		return err
	}
	if n.Reserve && slices.Contains(n.reader.parser.Header, "state") {
		return errors.Join(refuse(stele.Invalid, "mint.reserve-and-state-column", "the column state says which rows are reserved; leave --reserve out"), n.reader.close())
	}
	n.rejects = &bulk.Rejects{Path: n.Sheet.o.Rejects, Header: n.reader.parser.Title}
	if n.rejects.Path == "" {
		n.rejects.Path = n.Sheet.path + ".rejects"
	}
	if n.journal.began() && n.journal.old > 0 {
		n.OnResume(n.journal.old, n.journal.path)
	}
	n.progress = n.Progress(n.reader.file.Size, n.reader.file.Read.Load)
	return nil
}

// sameRegistry makes sure that the names of the journal are of this registry.
func (n *Namer) sameRegistry(ctx context.Context) error {
	head := n.journal.head
	if !n.journal.began() {
		return nil
	}
	for i, err := range n.Registry.Imports(ctx, head.Import-1) {
		if err != nil {
			return err
		}
		if i.Number == head.Import && i.Began.Equal(head.Began) {
			return nil
		}
		break
	}
	return refuse(stele.Conflict, "mint.journal-of-other-registry", "the names in {path} were made in another registry, or before this one was restored from a backup, or by another user; go on there, or move that file away to make other names for all rows", n.journal.path)
}

// nameAll reads all rows, and names those that have no name.
func (n *Namer) nameAll(ctx context.Context) error {
	defer n.reader.close()
	for {
		row, err := n.reader.next()
		if err == io.EOF {
			return errors.Join(n.nameAgain(ctx), n.nameFresh(ctx))
		}
		if err == nil {
			err = n.take(ctx, row)
		}
		if err != nil {
			return err
		}
	}
}

// take judges a row, and puts it into a batch if it needs a name.
func (n *Namer) take(ctx context.Context, row row) error {
	entry, written := n.journal.entries[row.line]
	switch {
	case row.asIs && !written:
		return nil
	case row.err != nil && !written:
		return n.reject(row, row.err)
	case written && row.name == entry.ID && row.name != "", row.name != "" && !written:
		if _, err := n.Schemes.Parse(row.name); err != nil {
			return n.reject(row, stele.Messagef("row.name-not-an-identifier", `the column for names has "{name}", which is not an identifier: {cause}`, row.name, stele.Reason(err)))
		}
		n.counts.Kept++
		return nil
	case written && (row.asIs || row.err != nil || row.name != "" || row.digest() != entry.Row):
		return n.Sheet.otherRow(row.line, entry.ID, n.journal.path)
	}
	id := entry.ID
	if !written {
		below, err := minting.Placeholder(n.Schemes, n.pooled[0], row.line)
		if err != nil {
			return err
		}
		id = below.String()
	}
	rec, err := n.reader.record(&row, id)
	switch {
	case err != nil && written:
		return err
	case err != nil:
		return n.reject(row, err)
	}
	if n.Reserve {
		rec.State = stele.Reserved
	}
	if written {
		return n.takeAgain(ctx, namedRow{row, rec}, entry)
	}
	if n.fresh = append(n.fresh, namedRow{row, rec}); len(n.fresh) < n.size {
		return nil
	}
	return n.nameFresh(ctx)
}

// reject writes down a row that gets no name.
func (n *Namer) reject(row row, err error) error {
	n.counts.Rejected++
	if err := n.rejects.Add([]bulk.Row{{Line: row.line, Text: row.text, Err: err}}); err != nil {
		return err
	}
	if most := n.Sheet.o.MaxErrors; most >= 0 && n.counts.Rejected > most {
		return bulk.ErrTooMany
	}
	return nil
}

// takeAgain takes a row that an earlier run wrote down. It may not be registered yet.
func (n *Namer) takeAgain(ctx context.Context, row namedRow, entry journalEntry) error {
	label, err := entry.label(n.Schemes)
	if err != nil {
		return err
	}
	row.record.Aliases = slices.Concat(label.Aliases, row.record.Aliases)
	if n.again = append(n.again, row); len(n.again) < mostRows {
		return nil
	}
	return n.nameAgain(ctx)
}

func (n *Namer) nameAgain(ctx context.Context) error {
	rows := n.again
	n.again = nil
	if n.Sheet.o.DryRun {
		n.counts.Named += len(rows)
		return nil
	}
	return n.register(ctx, rows)
}

// nameFresh names the rows of the batch.
func (n *Namer) nameFresh(ctx context.Context) error {
	if len(n.fresh) == 0 {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	began := n.Now()
	rows, err := n.judge(ctx, n.fresh)
	n.fresh = nil
	if err != nil {
		return err
	}
	if n.Sheet.o.DryRun {
		n.counts.Named += len(rows)
		n.progress.Add(len(rows))
		return nil
	}
	if err := n.begin(ctx); err != nil {
		return err
	}
	// Names that were made before an error are used.
	labels, failed := n.Registry.MintPool(ctx, n.Pool, len(rows))
	rows = rows[:len(labels)]
	entries := make([]journalEntry, len(rows))
	for i, label := range labels {
		rows[i].record.ID, rows[i].record.Spelling = label.ID, ""
		rows[i].record.Aliases = slices.Concat(label.Aliases, rows[i].record.Aliases)
		entries[i] = journalEntry{Line: rows[i].line, Row: rows[i].digest(), ID: label.ID.String()}
		for _, alias := range label.Aliases {
			entries[i].Aliases = append(entries[i].Aliases, alias.String())
		}
	}
	if err := n.journal.append(entries); err != nil {
		return errors.Join(failed, err)
	}
	if err := n.register(context.WithoutCancel(ctx), rows); err != nil {
		return errors.Join(failed, err)
	}
	n.pace(n.Now().Sub(began))
	return failed
}

// pace chooses the size of the next batch by how long the last one took.
func (n *Namer) pace(took time.Duration) {
	switch {
	case took < shortBlock:
		n.size = min(2*n.size, mostRows)
	case took > longBlock:
		n.size = max(1, n.size/2)
	}
}

// judge returns the rows that the registry would take, and rejects the others, before a
// name is made for them.
func (n *Namer) judge(ctx context.Context, rows []namedRow) (good []namedRow, err error) {
	for len(rows) > 0 {
		// One that has the same placeholder as another waits for the next round.
		round, later := registrar.FirstOfEach(rows, func(row namedRow) stele.ID { return row.record.ID })
		list := make([]*stele.Record, len(round))
		for i, row := range round {
			rec := *row.record
			list[i] = &rec
		}
		errs, err := n.Registry.Ingest(ctx, list, registrar.ImportOptions{DryRun: true})
		if err != nil {
			return nil, sheetError(err)
		}
		for i, row := range round {
			if errs[i] == nil {
				good = append(good, row)
			} else if err := n.reject(row.row, errs[i]); err != nil {
				return nil, err
			}
		}
		rows = later
	}
	return good, nil
}

// begin gives the run the number of an import, by which it can be reverted, and writes it
// down.
func (n *Namer) begin(ctx context.Context) error {
	if n.journal.began() {
		return nil
	}
	label := filepath.Base(n.Sheet.path)
	number, err := n.Registry.BeginImport(ctx, label[:min(len(label), registrar.MaxLabel)])
	if err != nil {
		return err
	}
	head := journalHead{Sheet: n.Sheet.path, Import: number}
	if n.Sheet.output != n.Sheet.path {
		head.Output = n.Sheet.output
	}
	for i, err := range n.Registry.Imports(ctx, number-1) {
		if err != nil {
			return err
		}
		head.Began = i.Began
		break
	}
	return n.journal.begin(head)
}

// register registers rows under names that are written down.
func (n *Namer) register(ctx context.Context, rows []namedRow) error {
	list := make([]*stele.Record, len(rows))
	for i, row := range rows {
		list[i] = row.record
	}
	if len(list) == 0 {
		return nil
	}
	errs, err := n.Registry.Ingest(ctx, list, registrar.ImportOptions{Import: n.journal.head.Import})
	if err != nil {
		return sheetError(err)
	}
	var void []journalEntry
	var rejected []int
	for i := range rows {
		ours, err := n.isRegistered(ctx, rows[i].record.ID, errs[i])
		if err != nil {
			return err
		}
		if errs[i] == nil {
			n.created++
		}
		if ours {
			n.counts.Named++
			continue
		}
		void = append(void, journalEntry{Line: rows[i].line, Void: true})
		rejected = append(rejected, i)
	}
	n.progress.Add(len(rows))
	if len(void) == 0 {
		return nil
	}
	if err := n.journal.append(void); err != nil {
		return err
	}
	for _, i := range rejected {
		if err := n.reject(rows[i].row, errs[i]); err != nil {
			return err
		}
	}
	return nil
}

// isRegistered reports whether a name is registered for its row, now or by an earlier
// run. Another user may have changed the record since.
func (n *Namer) isRegistered(ctx context.Context, id stele.ID, err error) (bool, error) {
	switch {
	case err == nil || errors.Is(err, registrar.ErrUnchanged):
		return true, nil
	case stele.KindOf(err) != stele.Conflict:
		return false, nil
	}
	first, err := n.Registry.Version(ctx, id, 1)
	switch {
	case errors.Is(err, stele.NotFound):
		return false, nil
	case err != nil:
		return false, err
	}
	return first.ID == id && first.Import == n.journal.head.Import, nil
}

// note keeps with the import what this run did.
func (n *Namer) note(ctx context.Context) error {
	if !n.journal.began() || n.created == 0 {
		return nil
	}
	return n.Registry.NoteImport(ctx, n.journal.head.Import, registrar.ImportCounts{Created: n.created})
}

// columnName is the column for names as it stands in the file.
func (n *Namer) columnName() string {
	if n.reader == nil || n.reader.added {
		return n.Sheet.o.Column
	}
	cells, err := bulk.SplitRow(n.reader.parser.Title, n.reader.parser.Delimiter, nil)
	if err != nil || n.reader.index >= len(cells) {
		return n.Sheet.o.Column
	}
	return cells[n.reader.index]
}
