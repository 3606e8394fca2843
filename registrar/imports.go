package registrar

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// Import is what the registry keeps of an import: who began it and when, and between
// which changes its own are. Every version that it writes carries its number
// ([stele.Record]'s Import), so that others may write meanwhile. The revert of an import
// is an import, too.
type Import struct {
	Number uint64    `json:"number"`
	Label  string    `json:"label,omitempty"` // what was imported: the name of a file
	By     string    `json:"by"`
	Began  time.Time `json:"began"`
	Ended  time.Time `json:"ended,omitzero"` // zero while it is under way, or if it was cut off

	Created   int `json:"created,omitempty"`
	Updated   int `json:"updated,omitempty"`
	Unchanged int `json:"unchanged,omitempty"`
	Refused   int `json:"refused,omitempty"`

	Reverts  uint64 `json:"reverts,omitempty"`  // the number of the import that it reverts
	Reverted uint64 `json:"reverted,omitempty"` // the number of the revert of this one, which may be under way

	Adopted *AdoptedFrom `json:"adopted,omitempty"` // of the adoption of a bundle; nil for others

	After uint64 `json:"after"`          // its changes come after this one
	Last  uint64 `json:"last,omitempty"` // and not after this one; 0 if it did not end
	At    uint64 `json:"at,omitempty"`   // of a revert: how far it is, as the number of a change
}

// AdoptedFrom says of an import that it is the adoption of a bundle.
type AdoptedFrom struct {
	From   string   `json:"from"`           // the giver, by the origin of its log
	Bundle string   `json:"bundle"`         // SHA-256 of the manifest, in hexadecimal digits
	Keys   []string `json:"keys,omitempty"` // public keys of the giver's log by which the bundle was checked
}

// MaxLabel is how many bytes the label of an import may have.
const MaxLabel = 1000

const (
	importsCell = "imports" // has the number of the last import
	importCells = "import " // begins the names of the cells of imports; the number follows
)

// importCell names the cell of an import, so that they are in order.
func importCell(number uint64) string { return fmt.Sprintf("%s%016x", importCells, number) }

// cell returns the cell of an import with its new value.
func (i *Import) cell(before []byte) (stele.CellChange, error) {
	after, err := json.Marshal(i)
	return stele.CellChange{Name: importCell(i.Number), Before: before, After: after}, err
}

// BeginImport gives an import a number. Numbers begin with 1 and are never used again.
// Forbidden for a caller that may write in no namespace.
func (r *Registrar) BeginImport(ctx context.Context, label string) (uint64, error) {
	if err := r.MayImport(ctx); err != nil {
		return 0, err
	}
	if len(label) > MaxLabel {
		return 0, refuse(opBeginImport, stele.ID{}, stele.Invalid, "import.label-too-long", "the label of the import has {size} bytes; {most} are the most", len(label), MaxLabel)
	}
	i := Import{Label: label}
	err := r.beginImport(ctx, opBeginImport, &i)
	return i.Number, err
}

const opBeginImport = "begin import"

// MayImport returns nil if the caller may write in some namespace, and so begin an import.
func (r *Registrar) MayImport(ctx context.Context) error {
	if err := identify(ctx, opBeginImport); err != nil {
		return err
	}
	s, err := r.view(ctx)
	if err != nil {
		return err
	}
	if who := auth.From(ctx); !who.Admin && !s.mayWriteSomewhere(who) {
		return refuse(opBeginImport, stele.ID{}, stele.Forbidden, "import.no-namespace-to-write", `"{user}" may write in no namespace; ask the owner of one, or an administrator, for the role editor`, who.Name)
	}
	return nil
}

// beginImport gives an import its number, and commits it.
func (r *Registrar) beginImport(ctx context.Context, op string, i *Import) error {
	i.By, i.Began = auth.From(ctx).Name, r.now()
	for attempt := 1; ; attempt++ {
		before, err := r.store.Cell(ctx, importsCell)
		if err != nil {
			return tell(op, err)
		}
		last := uint64(0)
		if before != nil {
			if last, err = strconv.ParseUint(string(before), 10, 64); err != nil {
				return refuse(op, stele.ID{}, stele.Internal, "import.last-number-damaged", `the number of the last import is damaged: "{text}"`, before)
			}
		}
		if i.After, err = r.store.LastChange(ctx); err != nil {
			return tell(op, err)
		}
		i.Number = last + 1
		cell, err := i.cell(nil)
		if err != nil {
			return tell(op, err)
		}
		c := &stele.Commit{Cells: []stele.CellChange{{Name: importsCell, Before: before, After: strconv.AppendUint(nil, i.Number, 10)}, cell}}
		err = r.apply(ctx, op, c)
		if err == nil || stele.KindOf(err) != stele.Conflict || !r.again(ctx, err, attempt) {
			return err
		}
	}
}

// Import returns what is kept of an import. Administrators see all, others their own;
// NotFound if there is none for the caller.
func (r *Registrar) Import(ctx context.Context, number uint64) (Import, error) {
	i, _, err := r.importOf(ctx, "import", number)
	return i, err
}

func (r *Registrar) importOf(ctx context.Context, op string, number uint64) (i Import, cell []byte, err error) {
	if err := identify(ctx, op); err != nil {
		return i, nil, err
	}
	if cell, err = r.store.Cell(ctx, importCell(number)); err != nil {
		return i, nil, tell(op, err)
	}
	if cell != nil {
		if i, err = readImport(cell); err != nil {
			return i, nil, err
		}
	}
	if who := auth.From(ctx); cell == nil || !who.Admin && who.Name != i.By {
		return Import{}, nil, refuse(op, stele.ID{}, stele.NotFound, "import.missing", "there is no import {import}; 'stele import ls' lists them", number)
	}
	return i, cell, nil
}

func readImport(cell []byte) (i Import, err error) {
	if err := json.Unmarshal(cell, &i); err != nil {
		return i, refuse("import", stele.ID{}, stele.Internal, "import.kept-damaged", `what is kept of an import is damaged: "{text}"`, cell)
	}
	return i, nil
}

// Imports yields the imports with a number above the given one, the oldest first.
// Administrators see all, others their own.
func (r *Registrar) Imports(ctx context.Context, after uint64) iter.Seq2[Import, error] {
	return func(yield func(Import, error) bool) {
		if err := identify(ctx, "import"); err != nil {
			yield(Import{}, err)
			return
		}
		who := auth.From(ctx)
		for cell, err := range r.store.Cells(ctx, importCells, importCell(after)) {
			var i Import
			if err == nil {
				i, err = readImport(cell.Value)
			}
			if err != nil {
				yield(Import{}, tell("import", err))
				return
			}
			if (who.Admin || who.Name == i.By) && !yield(i, nil) {
				return
			}
		}
	}
}

// ImportCounts is what became of records in a part of an import.
type ImportCounts struct{ Created, Updated, Unchanged, Refused int }

// NoteImport adds to what is kept of an import what became of a part of it, and that its
// changes end here, unless more follow.
func (r *Registrar) NoteImport(ctx context.Context, number uint64, n ImportCounts) error {
	const op = "import"
	for attempt := 1; ; attempt++ {
		i, before, err := r.importOf(ctx, op, number)
		if err != nil {
			return err
		}
		i.Created, i.Updated, i.Unchanged, i.Refused = i.Created+n.Created, i.Updated+n.Updated, i.Unchanged+n.Unchanged, i.Refused+n.Refused
		i.Ended = r.now()
		if i.Last, err = r.store.LastChange(ctx); err != nil {
			return tell(op, err)
		}
		cell, err := i.cell(before)
		if err != nil {
			return tell(op, err)
		}
		err = r.apply(ctx, op, &stele.Commit{Cells: []stele.CellChange{cell}})
		if err == nil || stele.KindOf(err) != stele.Conflict || !r.again(ctx, err, attempt) {
			return err
		}
	}
}

// mayContinue makes sure that the caller may write as a part of an import, and that what
// is kept of it covers the changes to come.
func (r *Registrar) mayContinue(ctx context.Context, number uint64) error {
	const op = "import"
	i, before, err := r.importOf(ctx, op, number)
	switch {
	case err != nil:
		return err
	case i.Reverts != 0:
		return refuse(op, stele.ID{}, stele.Conflict, "import.is-a-revert", "{import} is the revert of import {reverted}, not an import; begin another", number, i.Reverts)
	case i.Reverted != 0:
		return refuse(op, stele.ID{}, stele.Conflict, "import.reverted", "import {import} was reverted, by {revert}; begin another", number, i.Reverted)
	case i.Last == 0:
		return nil
	}
	i.Last, i.Ended = 0, time.Time{}
	cell, err := i.cell(before)
	if err != nil {
		return tell(op, err)
	}
	err = r.apply(ctx, op, &stele.Commit{Cells: []stele.CellChange{cell}})
	if errors.Is(err, stele.Conflict) { // another part of it was faster
		return nil
	}
	return err
}
