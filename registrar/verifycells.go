package registrar

import (
	"context"
	"encoding/json"

	"github.com/stele-id/stele"
)

// besideRecords checks the cells that say something of a record: which bytes it stands for, and which other authorities know of it.
// Each must be readable, and be the cell of the record that it names. The record need not be there: such cells survive the restore of
// an older backup.
func (v *audit) besideRecords(ctx context.Context) error {
	for _, mark := range []string{fixedDataCells, foreignCells} {
		for cell, err := range v.store.Cells(ctx, mark, "") {
			if err != nil {
				return tell("verify", err)
			}
			v.besideRecord(mark, cell)
		}
	}
	return nil
}

func (v *audit) besideRecord(mark string, cell stele.Cell) {
	name, cause := readBeside(mark, cell.Value)
	if cause != nil {
		v.problem("verify.cell-unreadable", `The cell "{cell}" can't be read: {cause}.`, cell.Name, cause)
		return
	}
	if id, err := v.schemes.Parse(name); err != nil || cellOf(mark, id) != cell.Name {
		v.problem("verify.cell-of-other-record", `The cell "{cell}" is not that of "{id}", of which it speaks.`, cell.Name, name)
	}
}

// readBeside reads a cell, and returns the identifier of its record.
func readBeside(mark string, value []byte) (id string, err error) {
	if mark == foreignCells {
		var f foreignAuthorities
		err = json.Unmarshal(value, &f)
		return f.ID, err
	}
	var d FixedData
	if err := json.Unmarshal(value, &d); err != nil {
		return "", err
	}
	if !d.IsWhole() {
		return "", stele.Messagef("verify.fixed-data-without-digest", "it has neither a SHA-256 digest nor says that there are no data")
	}
	return d.ID, nil
}
