package job

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/registrar/minting"
)

// partRows is how many rows are written together. A server that dies costs a second look at so
// many.
const partRows = 250

// importRows imports the rows of the upload that are not done.
func (w *working) importRows(ctx context.Context) error {
	user, err := w.asUser(ctx)
	if err != nil {
		return err
	}
	u := w.job.Upload
	survey, err := w.Board.Look(user, u)
	if err != nil {
		return err
	}
	file, err := w.Board.rows(user, u, &survey)
	if err != nil {
		return err
	}
	return errors.Join(w.importAll(ctx, file), file.close())
}

// importAll imports the rows of a file that are not done.
func (w *working) importAll(ctx context.Context, file *rowsOf) error {
	var rows []*bulk.Row
	seen, done := 0, w.job.Done
	for row, err := range file.all {
		if err != nil {
			return file.explain(err)
		}
		if seen++; seen <= done {
			continue
		}
		if rows = append(rows, row); len(rows) == partRows {
			if err := w.importPart(ctx, rows, file); err != nil {
				return err
			}
			rows = nil
		}
	}
	if len(rows) == 0 {
		return nil
	}
	return w.importPart(ctx, rows, file)
}

// importPart imports some rows, and keeps what became of them.
func (w *working) importPart(ctx context.Context, rows []*bulk.Row, file *rowsOf) error {
	user, err := w.beginPart(ctx)
	if err != nil {
		return err
	}
	name := partName(w.job.ID, w.job.Parts)
	var p part
	kept, _, err := w.Board.read(ctx, name, &p)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.Namespace != nil && !file.hasRules() {
			row.Err = errNamespaceRow
		}
	}
	if kept, err = w.nameRows(user, name, kept, &p, rows, file.pool); err != nil {
		return err
	}
	if err := w.writeAll(user, rows, file); err != nil {
		return err
	}
	w.resumed, w.before = false, nil
	counts := w.job.Counts
	p = part{}
	for _, row := range rows {
		o := Outcome{Line: row.Line, Kind: kindOf(row)}
		if row.Record != nil && !(row.Nameless && row.Rejected()) {
			o.ID = row.Record.ID.String()
		}
		if row.Namespace != nil {
			o.ID, o.Space = row.Namespace.Key().String(), true
		}
		if o.Kind == Refused {
			o.Problems = problemsOf(row.Err)
		}
		counts.add(o.Kind)
		p.Rows = append(p.Rows, o)
	}
	c, err := change(name, kept, &p)
	if err != nil {
		return err
	}
	return w.save(ctx, func(j *Job) {
		j.Done, j.Parts, j.Counts = j.Done+len(rows), j.Parts+1, counts
		j.Total = max(j.Total, j.Done)
	}, c)
}

// beginPart is begin for a part of a job, unless the server stops or a user has asked for the end of the job.
func (w *working) beginPart(ctx context.Context) (context.Context, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if w.job.Cancel {
		return nil, errCancelled
	}
	return w.begin(ctx)
}

// begin returns a context with the rights of the user, after the job has the number of an import.
func (w *working) begin(ctx context.Context) (context.Context, error) {
	user, err := w.asUser(ctx)
	if err != nil || w.job.Import != 0 {
		return user, err
	}
	number, err := w.Board.o.Registrar.BeginImport(user, w.job.Label)
	if err != nil {
		return user, err
	}
	return user, w.save(ctx, func(j *Job) { j.Import = number })
}

// nameRows gives names to rows that have none: those of an earlier attempt, or new ones, which are
// written down at once. It returns what the cell of the part has then. A row is judged before a
// name is made for it.
func (w *working) nameRows(ctx context.Context, cell string, kept []byte, p *part, rows []*bulk.Row, pool []stele.NamespaceKey) ([]byte, error) {
	var nameless []*bulk.Row
	for _, row := range rows {
		if row.Nameless && row.Err == nil {
			nameless = append(nameless, row)
		}
	}
	if len(nameless) == 0 {
		return kept, nil
	}
	if p.Names == nil {
		good, err := w.judgeRows(ctx, nameless)
		if err != nil || len(good) == 0 {
			return kept, err
		}
		if p.Names, err = w.mint(ctx, good, pool); err != nil {
			return kept, err
		}
		c, err := change(cell, kept, p)
		if err != nil {
			return kept, err
		}
		if err := w.save(ctx, func(*Job) {}, c); err != nil {
			return kept, err
		}
		kept = c.After
	}
	for _, row := range nameless {
		names := p.Names[row.Line]
		if names == nil {
			if row.Err == nil {
				row.Err = errNotNamed
			}
			continue
		}
		ids := make([]stele.ID, len(names))
		for i, name := range names {
			var err error
			if ids[i], err = w.Board.o.Schemes.Parse(name); err != nil {
				return kept, err
			}
		}
		row.Record.ID, row.Record.Spelling = ids[0], ""
		row.Record.Aliases = slices.Concat(ids[1:], row.Record.Aliases)
	}
	return kept, nil
}

var errNotNamed = stele.Messagef("job.row-not-named", "it could not be written when names were made for other rows; send it again")

// judgeRows returns the rows that the registry would take; the others are refused.
func (w *working) judgeRows(ctx context.Context, rows []*bulk.Row) (good []*bulk.Row, err error) {
	for len(rows) > 0 {
		// Rows that share a placeholder are judged one after the other.
		round, later := registrar.FirstOfEach(rows, func(row *bulk.Row) stele.ID { return row.Record.ID })
		copies := make([]*bulk.Row, len(round))
		for i, row := range round {
			c, rec := *row, *row.Record
			c.Record = &rec
			copies[i] = &c
		}
		if err := bulk.Ingest(ctx, w.Board.o.Registrar, copies, registrar.ImportOptions{DryRun: true, Update: w.job.Upload.Update}); err != nil {
			return nil, err
		}
		for i, row := range round {
			if copies[i].Rejected() {
				row.Err = copies[i].Err
			} else {
				good = append(good, row)
			}
		}
		rows = later
	}
	return good, nil
}

// mint makes names for rows. A request that is repeated, because the server died before the names
// were written down, gets the same names.
func (w *working) mint(ctx context.Context, rows []*bulk.Row, pool []stele.NamespaceKey) (map[int][]string, error) {
	text := fmt.Sprintf("job-%s-%d-%d", w.job.ID, w.job.Parts, len(rows))
	key := &minting.IdempotencyKey{Key: text, Digest: sha256.Sum256([]byte(text))}
	made, err := w.Board.o.Registrar.MintBatch(ctx, key, pool, len(rows), nil)
	if err != nil {
		return nil, err
	}
	names := make(map[int][]string, len(rows))
	for i, row := range rows {
		names[row.Line] = []string{made.Labels[i].ID.String()}
		for _, alias := range made.Labels[i].Aliases {
			names[row.Line] = append(names[row.Line], alias.String())
		}
	}
	return names, nil
}

// writeRows registers or changes the records of rows that are good. After a resumption it leaves
// those that an earlier attempt has written, unless the job updates and its own version is the
// current one: a later row of the same record may not be written yet, and to write all of them
// again, in their order, ends with the contents of the last.
func (w *working) writeRows(ctx context.Context, rows []*bulk.Row, file *rowsOf) error {
	good, versions, err := w.notWritten(ctx, rows)
	if err != nil || len(good) == 0 {
		return err
	}
	if err := w.holds(); err != nil {
		return err
	}
	if err := bulk.Ingest(ctx, w.Board.o.Registrar, good, registrar.ImportOptions{Update: w.job.Upload.Update, Import: w.job.Import, Keep: file.keep, KeepTypes: file.leftOut}); err != nil {
		return err
	}
	for row, version := range versions { // it is counted as in the attempt that wrote it
		if !row.Rejected() {
			row.Err, row.Record.Version = nil, version
		}
	}
	return nil
}

// notWritten returns the rows that are to be written, and the versions that an earlier attempt gave
// to some of them.
func (w *working) notWritten(ctx context.Context, rows []*bulk.Row) (todo []*bulk.Row, versions map[*bulk.Row]uint64, err error) {
	if w.resumed {
		if w.before == nil {
			if w.before, err = w.writtenBefore(ctx); err != nil {
				return nil, nil, err
			}
		}
		versions = make(map[*bulk.Row]uint64)
	}
	before := w.before
	for _, row := range rows {
		if row.Err != nil {
			continue
		}
		if w.resumed {
			mine, err := w.written(ctx, row.Record.ID)
			if err != nil {
				return nil, nil, err
			}
			name := row.Record.ID.String()
			repeated := before[name]
			before[name] = true
			switch update := w.job.Upload.Update; {
			case mine.last == 0, repeated && !update, repeated && mine.current && mine.first == mine.last: // as if it had not been interrupted
			case !update, !mine.current:
				row.Record.Version = mine.last
				continue
			case repeated:
				versions[row] = mine.last
			default:
				versions[row] = mine.first
			}
		}
		todo = append(todo, row)
	}
	return todo, versions, nil
}

// writtenBefore returns the names that parts of the job wrote which are complete.
func (w *working) writtenBefore(ctx context.Context) (map[string]bool, error) {
	names := make(map[string]bool)
	err := w.Board.Outcomes(ctx, &w.job, func(o Outcome) bool {
		if !o.Space && (o.Kind == New || o.Kind == Changed) {
			names[o.ID] = true
		}
		return true
	})
	return names, err
}

// own is what versions of a record a job has written.
type own struct {
	first, last uint64 // of the last that follow each other; 0 if there is none
	current     bool   // no other user has changed the record since
}

// written returns what versions of a record this job has written.
func (w *working) written(ctx context.Context, id stele.ID) (own, error) {
	var found own
	newest := true
	for rec, err := range w.Board.o.Registrar.History(ctx, id) {
		switch {
		case errors.Is(err, stele.NotFound), errors.Is(err, stele.Forbidden):
			return own{}, nil
		case err != nil:
			return own{}, err
		case rec.ID == id && rec.Import == w.job.Import:
			if found.last == 0 {
				found.last, found.current = rec.Version, newest
			}
			found.first = rec.Version
		case found.last != 0:
			return found, nil
		}
		newest = false
	}
	return found, nil
}

// noteImport keeps with the import what the job did, once. Without it the import can be reverted
// all the same.
func (w *working) noteImport(ctx context.Context) {
	if w.job.Import == 0 || w.job.Task == Revert {
		return
	}
	ctx = auth.With(ctx, auth.Local())
	i, err := w.Board.o.Registrar.Import(ctx, w.job.Import)
	if err == nil && i.Ended.IsZero() {
		n := w.job.Counts
		err = w.Board.o.Registrar.NoteImport(ctx, i.Number, registrar.ImportCounts{Created: n.New, Updated: n.Changed, Unchanged: n.Unchanged, Refused: n.Refused})
	}
	if err != nil {
		w.Log.Warn("the numbers of an import can't be kept", "job", w.job.ID, "error", err.Error())
	}
}
