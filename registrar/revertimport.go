package registrar

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/stele-id/stele"
)

// What a revert of an import does to a record.
const (
	RevertWithdrawn = "withdrawn" // the import made it
	RevertReverted  = "reverted"  // the import changed it, and it has its former contents again
	RevertLeft      = "left"      // nothing was done; Why says why
)

// RevertStep is what a revert of an import did to a record, or would do.
type RevertStep struct {
	ID     stele.ID
	Status string // RevertWithdrawn, RevertReverted or RevertLeft
	To     uint64 // the version whose contents it has again; 0 unless it was reverted now
	Why    string // why it was left
	Err    error  // the same, for a page in another language
}

// RevertOptions say how an import is reverted.
type RevertOptions struct {
	DryRun bool   // say what would be done, and do nothing
	Reason string // for the tombstones of names that the import made; one that names the import if empty
	Retell bool   // look at all changes again, and tell also of records that an earlier run of this revert did
}

// RevertResult is what a revert did to all records.
type RevertResult struct {
	Number    uint64 // the number of the revert itself; 0 for a dry run
	Withdrawn int
	Reverted  int
	Left      int
}

// revertPage is how many changes are looked at, and how many records are committed,
// together. It bounds the memory of a revert.
const revertPage = 1000

// RevertImport undoes an import. Names that the import made are withdrawn, records that
// it changed get their former contents as a new version, and those that an editor changed
// since are left and reported. Nothing is deleted. It calls told for each record, once
// that is durable.
//
// A revert that was interrupted continues where it was. One that is complete looks
// again, and reverts records that were left and can be reverted now. The revert has a
// number like an import, and can be reverted itself. Namespaces that the import made
// stay.
//
// Each user may revert imports of their own, and administrators all. Rights are checked
// record by record: one that the caller may not write is left.
func (r *Registrar) RevertImport(ctx context.Context, number uint64, o RevertOptions, told func(RevertStep) error) (RevertResult, error) {
	v, err := r.beginRevert(ctx, number, o)
	if err != nil {
		return RevertResult{}, err
	}
	v.told = told
	for more := true; more; {
		if more, err = v.page(ctx); err != nil {
			return v.result, err
		}
	}
	if o.DryRun {
		return v.result, nil
	}
	return v.result, v.save(ctx, nil, true)
}

// reverting is a revert of an import under way.
type reverting struct {
	*Registrar
	o      RevertOptions
	told   func(RevertStep) error
	of     Import // that is reverted
	own    Import // the revert
	cell   []byte // of own
	end    uint64 // the last change to look at
	result RevertResult
}

const opRevert = "revert import"

// beginRevert finds the import, and gives the revert its number, unless it has one.
func (r *Registrar) beginRevert(ctx context.Context, number uint64, o RevertOptions) (*reverting, error) {
	of, before, err := r.importOf(ctx, opRevert, number)
	if err != nil {
		return nil, err
	}
	if of.Adopted != nil {
		return nil, refuse(opRevert, stele.ID{}, stele.Conflict, "import.is-an-adoption", "import {import} took names over from {giver}, and this registry answers for them since; they are not withdrawn together", number, of.Adopted.From)
	}
	v := &reverting{Registrar: r, o: o, of: of, end: of.Last}
	if v.end == 0 {
		if v.end, err = r.store.LastChange(ctx); err != nil {
			return nil, tell(opRevert, err)
		}
	}
	if v.o.Reason == "" {
		v.o.Reason = fmt.Sprintf("It was registered by import %d, which was reverted.", number)
	}
	if of.Reverted != 0 {
		if v.own, v.cell, err = r.importOf(ctx, opRevert, of.Reverted); err != nil {
			return nil, err
		}
	}
	if o.DryRun {
		v.own.At = of.After
		return v, nil
	}
	if of.Reverted == 0 {
		v.own = Import{Label: of.Label, Reverts: number, At: of.After}
		// The number of the revert is not known before it is committed; so it is noted in
		// the import afterwards.
		if err := r.beginImport(ctx, opRevert, &v.own); err != nil {
			return nil, err
		}
		of.Reverted = v.own.Number
		change, err := of.cell(before)
		if err != nil {
			return nil, tell(opRevert, err)
		}
		if err := r.apply(ctx, opRevert, &stele.Commit{Cells: []stele.CellChange{change}}); err != nil {
			if stele.KindOf(err) == stele.Conflict {
				err = refuse(opRevert, stele.ID{}, stele.Conflict, "import.under-way", "import {import} is under way, or is being reverted; wait until that has ended and try again", number)
			}
			return nil, err
		}
		if v.cell, err = r.store.Cell(ctx, importCell(v.own.Number)); err != nil {
			return nil, tell(opRevert, err)
		}
	} else if !v.own.Ended.IsZero() || o.Retell {
		v.own.At = of.After // it was complete, or the caller missed steps: all is looked at again
	}
	v.result.Number = v.own.Number
	return v, nil
}

// page looks at some changes, and reverts what the import did there. It returns false
// after the last.
func (v *reverting) page(ctx context.Context) (more bool, err error) {
	var changes []stele.Change
	for c, err := range v.store.Changes(ctx, v.own.At) {
		if err != nil {
			return false, tell(opRevert, err)
		}
		if c.Seq > v.end {
			break
		}
		if changes = append(changes, c); len(changes) == revertPage {
			break
		}
	}
	if len(changes) == 0 {
		return false, nil
	}
	s, err := v.view(ctx)
	if err != nil {
		return false, err
	}
	var steps []RevertStep
	var records []*stele.Record
	for _, c := range changes {
		step, next, err := v.change(ctx, s, c)
		if err != nil {
			return false, err
		}
		if step == nil {
			continue
		}
		steps = append(steps, *step)
		if next != nil {
			records = append(records, next)
		}
	}
	v.own.At = changes[len(changes)-1].Seq
	if !v.o.DryRun {
		if err := v.commit(ctx, records, steps); err != nil {
			return false, err
		}
	}
	for _, step := range steps {
		v.count(step)
		if err := v.told(step); err != nil {
			return false, err
		}
	}
	return len(changes) == revertPage, nil
}

func (v *reverting) count(step RevertStep) {
	switch step.Status {
	case RevertWithdrawn:
		v.result.Withdrawn++
	case RevertReverted:
		v.result.Reverted++
	case RevertLeft:
		v.result.Left++
	}
}

// change decides what becomes of the record of a change, and returns its next version.
// Both are nil if the change is not the import's last one of this record, or is undone
// already; the version alone is nil if the record is left.
func (v *reverting) change(ctx context.Context, s *namespaceTree, c stele.Change) (*RevertStep, *stele.Record, error) {
	if !c.ID.IsValid() {
		return nil, nil, nil
	}
	now, err := v.store.Record(ctx, c.ID)
	if err != nil {
		return nil, nil, tell(opRevert, err)
	}
	if now.Import != v.of.Number {
		return v.edited(ctx, c, now)
	}
	if now.Version != c.Version {
		return nil, nil, nil // a later change of the import is still to come
	}
	next, step, err := v.undo(ctx, s, now)
	if err != nil {
		if kind := stele.KindOf(err); kind == stele.Unavailable || kind == stele.Internal {
			return nil, nil, err
		}
		return left(c.ID, err), nil, nil
	}
	return step, next, nil
}

// left returns the step of a record that is left.
func left(id stele.ID, err error) *RevertStep {
	why := stele.Reason(err)
	return &RevertStep{ID: id, Status: RevertLeft, Why: why.Error(), Err: why}
}

// edited decides about a record whose current version is not the import's.
func (v *reverting) edited(ctx context.Context, c stele.Change, now *stele.Record) (*RevertStep, *stele.Record, error) {
	if v.own.Number != 0 && now.Import == v.own.Number {
		if v.o.Retell && now.Version == c.Version+1 {
			return retold(now), nil, nil
		}
		return nil, nil, nil // an earlier run of this revert did it
	}
	var next *stele.Record          // the version that follows the change
	mine, after := false, uint64(0) // whether the change is the import's, and whose version follows it
	for old, err := range v.store.History(ctx, c.ID) {
		if err != nil {
			return nil, nil, tell(opRevert, err)
		}
		if old.Version == c.Version {
			mine = old.Import == v.of.Number
			break
		}
		next, after = old, old.Import
	}
	if mine && v.o.Retell && v.own.Number != 0 && after == v.own.Number {
		return retold(next), nil, nil
	}
	if !mine || after == v.of.Number {
		return nil, nil, nil
	}
	return left(c.ID, stele.Messagef("import.record-changed-since", `it was changed since: it has version {version}, by "{user}"`, now.Version, now.By)), nil, nil
}

// retold returns the step with which an earlier run of the revert made a version.
func retold(made *stele.Record) *RevertStep {
	if made.State == stele.Withdrawn {
		return &RevertStep{ID: made.ID, Status: RevertWithdrawn}
	}
	return &RevertStep{ID: made.ID, Status: RevertReverted}
}

// undo returns the version of a record that undoes what the import did.
func (v *reverting) undo(ctx context.Context, s *namespaceTree, now *stele.Record) (*stele.Record, *RevertStep, error) {
	old, err := v.before(ctx, now)
	if err != nil {
		return nil, nil, err
	}
	step := &RevertStep{ID: now.ID, Status: RevertWithdrawn}
	next, err := v.revision(ctx, opRevert, s.lookup(), now, func(next *stele.Record) error {
		switch {
		case old != nil:
			step.Status, step.To = RevertReverted, old.Version
			return v.takeBack(opRevert, s, next, old)
		case next.State == stele.Reserved:
			return refuse(opRevert, next.ID, stele.Conflict, "import.reserved-not-withdrawable", "it is reserved, so the public knows nothing of it that could be withdrawn")
		case next.State == stele.Withdrawn:
			return errWithdrawn
		}
		next.State, next.Tombstone = stele.Withdrawn, &stele.Tombstone{Reason: v.o.Reason, At: v.now()}
		return nil
	})
	switch {
	case errors.Is(err, errWithdrawn), err == nil && next == nil:
		return nil, nil, nil // it is as it should be
	case err != nil:
		return nil, nil, err
	}
	next.Import = v.own.Number
	return next, step, nil
}

var errWithdrawn = stele.Messagef("record.withdrawn-already", "it is withdrawn already")

// before returns the last version that the import did not make; nil if there is none.
func (v *reverting) before(ctx context.Context, now *stele.Record) (*stele.Record, error) {
	if now.Version == 1 {
		return nil, nil
	}
	for old, err := range v.History(ctx, now.ID) {
		if err != nil {
			return nil, err
		}
		if old.Import != v.of.Number {
			return old, nil
		}
	}
	return nil, nil
}

// commit commits the versions of a page, and how far the revert is. If one can't be
// committed each is tried by itself, and those that can't are left.
func (v *reverting) commit(ctx context.Context, records []*stele.Record, steps []RevertStep) error {
	err := v.save(ctx, records, false)
	if err == nil || unsure(err) {
		return err
	}
	held, err := v.store.Cell(ctx, importCell(v.own.Number))
	if err != nil {
		return tell(opRevert, err)
	}
	if !bytes.Equal(held, v.cell) { // records that it undid would be reported as left
		return refuse(opRevert, stele.ID{}, stele.Unavailable, "import.revert-elsewhere", "another server undoes import {number} too; try again when it has ended", v.of.Number)
	}
	for _, rec := range records {
		err := v.apply(ctx, opRevert, &stele.Commit{Records: []*stele.Record{rec}})
		if err != nil && unsure(err) {
			return err
		}
		for k := range steps {
			if err != nil && steps[k].ID == rec.ID {
				steps[k] = *left(rec.ID, err)
			}
		}
	}
	return v.save(ctx, nil, false)
}

// save commits records, and what is kept of the revert.
func (v *reverting) save(ctx context.Context, records []*stele.Record, ended bool) error {
	own := v.own
	if ended {
		var err error
		own.Ended, own.Updated, own.Refused = v.now(), v.result.Withdrawn+v.result.Reverted, v.result.Left
		if own.Last, err = v.store.LastChange(ctx); err != nil {
			return tell(opRevert, err)
		}
	}
	cell, err := own.cell(v.cell)
	if err != nil {
		return tell(opRevert, err)
	}
	if err := v.apply(ctx, opRevert, &stele.Commit{Records: records, Cells: []stele.CellChange{cell}}); err != nil {
		return err
	}
	v.own, v.cell = own, cell.After
	return nil
}
