package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// mintCounts is what became of the rows of a sheet.
type mintCounts struct {
	Named    int `json:"named"`
	Kept     int `json:"kept"` // had a name before
	Rejected int `json:"rejected"`
}

// rowNamer names the rows of a sheet: it makes a batch of names, writes down which row
// gets which, and then registers them. So a row that is registered is written down, and
// a row that is written down gets no other name, whatever is cut off.
type rowNamer struct {
	p        *program
	registry *Registry
	sheet    *sheet
	reader   *sheetReader
	journal  *mintJournal
	rejects  *bulk.Rejects
	pool     []stele.NamespaceKey
	spaces   []*stele.Namespace // of the pool
	reserve  bool

	counts   mintCounts
	created  int // records that this run registered
	progress *progress
	size     int        // of the next batch
	fresh    []namedRow // rows that wait for names
	again    []namedRow // rows that have one in the journal
}

// namedRow is a row and its record.
type namedRow struct {
	sheetRow
	record *stele.Record
}

// mintFrom names the rows of a file.
func (f *mintFlags) mintFrom(p *program, choose func(ctx context.Context, l *Registry) ([]stele.NamespaceKey, error)) error {
	s, err := p.openSheet(f.sheet)
	if err != nil {
		return err
	}
	p.block = blockFor(max(1, s.nameless))
	f.minter.looks = f.sheet.dryRun
	return p.creating(f.record.cmd, func(ctx context.Context, l *Registry) (err error) {
		n := &rowNamer{p: p, registry: l, sheet: s, reserve: f.reserve, size: firstRows}
		if n.pool, err = choose(ctx, l); err != nil {
			return err
		}
		if n.journal, err = openJournal(s.path + ".names"); err != nil {
			return err
		}
		done := false
		defer func() { err = errors.Join(err, n.journal.close(done)) }()
		err = n.run(ctx)
		done = err == nil && !s.o.dryRun
		return n.report(err)
	})
}

// run names the rows, and writes the file.
func (n *rowNamer) run(ctx context.Context) error {
	if err := n.prepare(ctx); err != nil {
		return err
	}
	err := n.nameAll(ctx)
	n.progress.End()
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	err = errors.Join(err, n.rejects.Close(), n.note(context.WithoutCancel(ctx)))
	if err == nil && !n.sheet.o.dryRun && len(n.journal.entries) > 0 {
		err = n.sheet.write(n.journal)
	}
	return err
}

// prepare makes sure that the run can go on where an earlier one ended, and opens the
// file.
func (n *rowNamer) prepare(ctx context.Context) (err error) {
	if err := n.sheet.mayWrite(n.journal); err != nil {
		return err
	}
	if err := n.sameRegistry(ctx); err != nil {
		return err
	}
	for _, key := range n.pool {
		ns, err := n.registry.Namespace(ctx, key)
		if errors.Is(err, stele.NotFound) && n.sheet.o.dryRun {
			ns, err = &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix}, nil
		}
		if err != nil {
			return err
		}
		n.spaces = append(n.spaces, ns)
	}
	if n.reader, err = n.sheet.read(n.registry.schemes); err != nil {
		return err
	}
	if n.reserve && slices.Contains(n.reader.parser.Header, "state") {
		return errors.Join(refuse("mint", stele.Invalid, "the column state says which rows are reserved; leave --reserve out"), n.reader.close())
	}
	n.rejects = &bulk.Rejects{Path: n.sheet.o.rejects, Header: n.reader.parser.Title}
	if n.rejects.Path == "" {
		n.rejects.Path = n.sheet.path + ".rejects"
	}
	if n.journal.began() && n.journal.old > 0 {
		fmt.Fprintf(n.p.stderr, "mint: goes on; %s rows have names in %s\n", grouped(int64(n.journal.old)), n.journal.path)
	}
	n.progress = n.p.newProgress("mint", "rows", n.reader.file.Size, n.reader.file.Read.Load)
	return nil
}

// sameRegistry makes sure that the names of the journal are of this registry.
func (n *rowNamer) sameRegistry(ctx context.Context) error {
	head := n.journal.head
	if !n.journal.began() {
		return nil
	}
	for i, err := range n.registry.Imports(ctx, head.Import-1) {
		if err != nil {
			return err
		}
		if i.Number == head.Import && i.Began.Equal(head.Began) {
			return nil
		}
		break
	}
	return refuse("mint", stele.Conflict, "the names in %s were made in another registry, or before this one was restored from a backup, or by another user; go on there, or move that file away to make other names for all rows", n.journal.path)
}

// nameAll reads all rows, and names those that have no name.
func (n *rowNamer) nameAll(ctx context.Context) error {
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
func (n *rowNamer) take(ctx context.Context, row sheetRow) error {
	entry, written := n.journal.entries[row.line]
	switch {
	case row.asIs && !written:
		return nil
	case row.err != nil && !written:
		return n.reject(row, row.err)
	case written && row.name == entry.ID && row.name != "", row.name != "" && !written:
		if _, err := n.registry.parse(row.name); err != nil {
			return n.reject(row, fmt.Errorf("the column for names has %.60q, which is not an identifier: %w", row.name, stele.Reason(err)))
		}
		n.counts.Kept++
		return nil
	case written && (row.asIs || row.err != nil || row.name != "" || row.digest() != entry.Row):
		return n.sheet.otherRow(row.line, entry.ID, n.journal.path)
	}
	id := entry.ID
	if !written {
		below, err := minting.Placeholder(n.registry.schemes, n.spaces[0], row.line)
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
	if n.reserve {
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
func (n *rowNamer) reject(row sheetRow, err error) error {
	n.counts.Rejected++
	if err := n.rejects.Add([]bulk.Row{{Line: row.line, Text: row.text, Err: err}}); err != nil {
		return err
	}
	if most := n.sheet.o.maxErrors; most >= 0 && n.counts.Rejected > most {
		return bulk.ErrTooMany
	}
	return nil
}

// takeAgain takes a row that an earlier run wrote down. It may not be registered yet.
func (n *rowNamer) takeAgain(ctx context.Context, row namedRow, entry journalEntry) error {
	label, err := entry.label(n.registry.schemes)
	if err != nil {
		return err
	}
	row.record.Aliases = slices.Concat(label.Aliases, row.record.Aliases)
	if n.again = append(n.again, row); len(n.again) < mostRows {
		return nil
	}
	return n.nameAgain(ctx)
}

func (n *rowNamer) nameAgain(ctx context.Context) error {
	rows := n.again
	n.again = nil
	if n.sheet.o.dryRun {
		n.counts.Named += len(rows)
		return nil
	}
	return n.register(ctx, rows)
}

// nameFresh names the rows of the batch.
func (n *rowNamer) nameFresh(ctx context.Context) error {
	if len(n.fresh) == 0 {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	began := n.p.now()
	rows, err := n.judge(ctx, n.fresh)
	n.fresh = nil
	if err != nil {
		return err
	}
	if n.sheet.o.dryRun {
		n.counts.Named += len(rows)
		n.progress.Add(len(rows))
		return nil
	}
	if err := n.begin(ctx); err != nil {
		return err
	}
	// Names that were made before an error are used.
	labels, failed := n.registry.MintPool(ctx, n.pool, len(rows))
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
	n.pace(n.p.now().Sub(began))
	return failed
}

// pace chooses the size of the next batch by how long the last one took.
func (n *rowNamer) pace(took time.Duration) {
	switch {
	case took < shortBlock:
		n.size = min(2*n.size, mostRows)
	case took > longBlock:
		n.size = max(1, n.size/2)
	}
}

// judge returns the rows that the registry would take, and rejects the others, before a
// name is made for them.
func (n *rowNamer) judge(ctx context.Context, rows []namedRow) (good []namedRow, err error) {
	for len(rows) > 0 {
		// One that has the same placeholder as another waits for the next round.
		var round, later []namedRow
		seen := make(map[stele.ID]bool)
		for _, row := range rows {
			if seen[row.record.ID] {
				later = append(later, row)
				continue
			}
			seen[row.record.ID] = true
			round = append(round, row)
		}
		list := make([]*stele.Record, len(round))
		for i, row := range round {
			rec := *row.record
			list[i] = &rec
		}
		errs, err := n.registry.Ingest(ctx, list, registrar.ImportOptions{DryRun: true})
		if err != nil {
			return nil, sheetError(err)
		}
		for i, row := range round {
			if errs[i] == nil {
				good = append(good, row)
			} else if err := n.reject(row.sheetRow, errs[i]); err != nil {
				return nil, err
			}
		}
		rows = later
	}
	return good, nil
}

// begin gives the run the number of an import, by which it can be reverted, and writes it
// down.
func (n *rowNamer) begin(ctx context.Context) error {
	if n.journal.began() {
		return nil
	}
	label := filepath.Base(n.sheet.path)
	number, err := n.registry.BeginImport(ctx, label[:min(len(label), registrar.MaxLabel)])
	if err != nil {
		return err
	}
	head := journalHead{Sheet: n.sheet.path, Import: number}
	if n.sheet.output != n.sheet.path {
		head.Output = n.sheet.output
	}
	for i, err := range n.registry.Imports(ctx, number-1) {
		if err != nil {
			return err
		}
		head.Began = i.Began
		break
	}
	return n.journal.begin(head)
}

// register registers rows under names that are written down.
func (n *rowNamer) register(ctx context.Context, rows []namedRow) error {
	list := make([]*stele.Record, len(rows))
	for i, row := range rows {
		list[i] = row.record
	}
	if len(list) == 0 {
		return nil
	}
	errs, err := n.registry.Ingest(ctx, list, registrar.ImportOptions{Import: n.journal.head.Import})
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
		if err := n.reject(rows[i].sheetRow, errs[i]); err != nil {
			return err
		}
	}
	return nil
}

// isRegistered reports whether a name is registered for its row, now or by an earlier
// run. Another may have changed the record since.
func (n *rowNamer) isRegistered(ctx context.Context, id stele.ID, err error) (bool, error) {
	switch {
	case err == nil || errors.Is(err, registrar.ErrUnchanged):
		return true, nil
	case stele.KindOf(err) != stele.Conflict:
		return false, nil
	}
	first, err := n.registry.Version(ctx, id, 1)
	switch {
	case errors.Is(err, stele.NotFound):
		return false, nil
	case err != nil:
		return false, err
	}
	return first.ID == id && first.Import == n.journal.head.Import, nil
}

// note keeps with the import what this run did.
func (n *rowNamer) note(ctx context.Context) error {
	if !n.journal.began() || n.created == 0 {
		return nil
	}
	return n.registry.NoteImport(ctx, n.journal.head.Import, registrar.ImportCounts{Created: n.created})
}

// report tells what became of the rows, and returns the error of the verb.
func (n *rowNamer) report(err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		err = refuse("mint", stele.Unavailable, "interrupted; give the same command again to go on, and leave %s where it is", n.journal.path)
	case errors.Is(err, bulk.ErrTooMany):
		err = refuse("mint", stele.Invalid, "more than %d rows are rejected, so the rest is not read, and %s stays as it was; %s has the rejected ones. Names that were made are kept in %s; give the command again to go on",
			n.sheet.o.maxErrors, printable(n.sheet.output), n.rejects.Path, n.journal.path)
	case err != nil:
		return err
	}
	if perr := n.print(err == nil); perr != nil {
		return errors.Join(err, perr)
	}
	if err == nil && n.counts.Rejected > 0 {
		err = refuse("mint", stele.Invalid, "%s of %s rows have no name; %s has them, and says why. Mend them in the file, and give the command again",
			grouped(int64(n.counts.Rejected)), grouped(int64(n.counts.Rejected+n.counts.Named+n.counts.Kept)), n.rejects.Path)
	}
	return err
}

// print prints what became of the rows.
func (n *rowNamer) print(done bool) error {
	dry := n.sheet.o.dryRun
	if n.p.json {
		line, err := json.Marshal(struct {
			mintCounts
			Import uint64 `json:"import,omitempty"`
			File   string `json:"file"`
			Column string `json:"column"`
			DryRun bool   `json:"dryRun,omitempty"`
			Done   bool   `json:"done"`
		}{n.counts, n.journal.head.Import, n.sheet.output, n.columnName(), dry, done && !dry})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(n.p.stdout, "%s\n", line)
		return err
	}
	text := fmt.Sprintf("%s named, %s had a name, %s rejected", grouped(int64(n.counts.Named)), grouped(int64(n.counts.Kept)), grouped(int64(n.counts.Rejected)))
	switch {
	case dry:
		text += "; nothing was written"
	case n.journal.began():
		text += fmt.Sprintf("; import %d", n.journal.head.Import)
	}
	if !dry && done && n.counts.Named > 0 {
		text += fmt.Sprintf("\n%s has the names in its column %s", printable(n.shownOutput()), printable(n.columnName()))
	}
	_, err := fmt.Fprintln(n.p.stdout, text)
	return err
}

// shownOutput is the file with the names as the caller named it.
func (n *rowNamer) shownOutput() string {
	if n.sheet.o.output != "" {
		return n.sheet.o.output
	}
	return n.sheet.o.from
}

// columnName is the column for names as it stands in the file.
func (n *rowNamer) columnName() string {
	if n.reader == nil || n.reader.added {
		return n.sheet.o.column
	}
	cells, err := bulk.SplitRow(n.reader.parser.Title, n.reader.parser.Delimiter, nil)
	if err != nil || n.reader.index >= len(cells) {
		return n.sheet.o.column
	}
	return cells[n.reader.index]
}
