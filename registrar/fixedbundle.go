package registrar

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/stele-id/stele"
)

// FixedName says which bytes a name of a bundle stands for.
type FixedName struct {
	Name stele.ID
	FixedData
}

// FixedCell returns the cell that says which bytes a record stands for. It is for a registry that is made of a bundle, before other
// processes write to it.
func FixedCell(id stele.ID, d FixedData) (stele.CellChange, error) {
	d.ID = id.String()
	value, err := json.Marshal(&d)
	return stele.CellChange{Name: cellOf(fixedDataCells, id), After: value}, err
}

// Fixed returns which bytes the names of the bundle stand for, by scheme and name.
func (b *Bundling) Fixed(ctx context.Context) (list []FixedName, err error) {
	const op = "bundle"
	for cell, err := range b.r.store.Cells(ctx, fixedDataCells, "") {
		if err != nil {
			return nil, tell(op, err)
		}
		var d FixedData
		err = json.Unmarshal(cell.Value, &d)
		id := stele.ID{}
		if err == nil {
			id, err = b.r.schemes.Parse(d.ID)
		}
		if err != nil {
			return nil, refuse(op, stele.ID{}, stele.Internal, "job.cell-damaged", `the cell "{cell}" is damaged: {cause}`, cell.Name, err)
		}
		if b.hasName(id) {
			list = append(list, FixedName{id, d})
		}
	}
	slices.SortFunc(list, func(a, b FixedName) int {
		return cmp.Or(cmp.Compare(a.Name.Scheme(), b.Name.Scheme()), cmp.Compare(a.Name.String(), b.Name.String()))
	})
	return list, nil
}

// fixedAtOnce is how many cells are committed together.
const fixedAtOnce = 500

// judgeFixed refuses a bundle by which a name would stand for other bytes than it does here: these never change.
func (a *Adopting) judgeFixed(ctx context.Context) error {
	for i := range a.b.Fixed {
		if _, err := a.fixedChange(ctx, &a.b.Fixed[i]); err != nil {
			return err
		}
	}
	return nil
}

// fixedChange returns the change of a cell by which a name stands for the bytes that the bundle says; nil if it does already.
func (a *Adopting) fixedChange(ctx context.Context, f *FixedName) (*stele.CellChange, error) {
	if !a.Has(f.Name) {
		return nil, refuse(opAdopt, f.Name, stele.Invalid, "adopt.record-outside", "the bundle does not have the namespace of this name; let the giver make one of whole namespaces")
	}
	kept, err := a.r.fixedData(ctx, opAdopt, f.Name)
	switch {
	case err != nil:
		return nil, err
	case kept == nil:
		c, err := FixedCell(f.Name, f.FixedData)
		return &c, err
	case !kept.same(&f.FixedData):
		return nil, refuse(opAdopt, f.Name, stele.Conflict, "adopt.fixed-data-differs", "it stands for other bytes here, {here}, than in the bundle, {there}, and these never change; ask the giver which are right", kept.name(), f.name())
	}
	return nil, nil
}

// FixData says which bytes the names of the bundle stand for. It is called after Write.
func (a *Adopting) FixData(ctx context.Context) error {
	for part := range slices.Chunk(a.b.Fixed, fixedAtOnce) {
		for attempt := 1; ; attempt++ {
			var c stele.Commit
			for i := range part {
				change, err := a.fixedChange(ctx, &part[i])
				if err != nil {
					return err
				}
				if change != nil {
					c.Cells = append(c.Cells, *change)
				}
			}
			if len(c.Cells) == 0 {
				break
			}
			err := a.r.apply(ctx, opAdopt, &c)
			if err == nil {
				break
			}
			if !a.r.again(ctx, err, attempt) {
				return err
			}
		}
	}
	return nil
}
