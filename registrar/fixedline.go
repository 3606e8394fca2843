package registrar

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document"
)

// fixedName is the member of a line of an import that says which bytes the record stands for.
const fixedName = "fixed"

// IsWhole reports whether d has a SHA-256 digest in lower case, or says that there are no data.
func (d *FixedData) IsWhole() bool {
	if d.Absent {
		return d.SHA256 == "" && d.Size == 0
	}
	sum, err := hex.DecodeString(d.SHA256)
	return err == nil && len(sum) == 32 && strings.ToLower(d.SHA256) == d.SHA256
}

// same reports whether both are about the same bytes.
func (d *FixedData) same(e *FixedData) bool {
	return d.Absent == e.Absent && d.SHA256 == e.SHA256 && (d.Size == e.Size || d.Size == 0 || e.Size == 0)
}

// fixedMember is the member in JSON. The line has the identifier.
type fixedMember struct {
	Absent bool      `json:"absent,omitempty"`
	SHA256 string    `json:"sha256,omitempty"`
	Size   uint64    `json:"size,omitempty"`
	At     time.Time `json:"at,omitzero"`
}

// CutFixedData takes the member "fixed" out of a line of an import: which bytes the record stands for, for ever, as
// [AppendFixedData] writes it. It returns the rest of the line, which is the line itself if it has no such member.
func CutFixedData(line []byte) (rest []byte, d *FixedData, err error) {
	if !bytes.Contains(line, []byte(`"`+fixedName+`"`)) { // the usual line
		return line, nil, nil
	}
	object, err := document.ReadObject(line)
	if err != nil || object[fixedName] == nil {
		return line, nil, nil // reading the rest says what is wrong
	}
	var said fixedMember
	dec := json.NewDecoder(bytes.NewReader(object[fixedName]))
	dec.DisallowUnknownFields()
	err = dec.Decode(&said)
	d = &FixedData{Absent: said.Absent, SHA256: said.SHA256, Size: said.Size, At: said.At}
	if err != nil || !d.IsWhole() {
		var f stele.Report
		f.Addf(fixedName, "document.fixed-unreadable", `should say which bytes the record stands for: a digest as in {"sha256":"e3b0...","size":7}, or {"absent":true}`)
		return nil, nil, f.Err("read record", stele.ID{})
	}
	delete(object, fixedName)
	if rest, err = json.Marshal(object); err != nil {
		return nil, nil, err // unreachable: each member was read
	}
	return rest, d, nil
}

// AppendFixedData adds which bytes a record stands for, if that is known, to its document, which b ends with.
func AppendFixedData(b []byte, d *FixedData) []byte {
	if d == nil {
		return b
	}
	said, err := json.Marshal(fixedMember{d.Absent, d.SHA256, d.Size, d.At})
	if err != nil {
		panic(err) // unreachable: the registrar stores no date after the year 9999
	}
	b = append(b[:len(b)-1], `,"`+fixedName+`":`...)
	return append(append(b, said...), '}')
}

// FixedDataReader reads which bytes records stand for, for an export. Few schemes promise bytes, so it asks the store only for
// records of schemes that have any.
type FixedDataReader struct {
	r       *Registrar
	schemes map[string]bool
}

// FixedDataReader returns a reader of which bytes records stand for. The caller hands only records to it that the user may see.
func (r *Registrar) FixedDataReader(ctx context.Context) (*FixedDataReader, error) {
	f := &FixedDataReader{r, make(map[string]bool)}
	for cell, err := range r.store.Cells(ctx, fixedDataCells, "") {
		if err != nil {
			return nil, tell("export", err)
		}
		var d FixedData
		if err := json.Unmarshal(cell.Value, &d); err != nil {
			return nil, refuse("export", stele.ID{}, stele.Internal, "job.cell-damaged", `the cell "{cell}" is damaged: {cause}`, cell.Name, err)
		}
		if id, err := r.schemes.Parse(d.ID); err == nil {
			f.schemes[id.Scheme()] = true
		}
	}
	return f, nil
}

// Of returns which bytes a record stands for; nil if that is open.
func (f *FixedDataReader) Of(ctx context.Context, id stele.ID) (*FixedData, error) {
	if !f.schemes[id.Scheme()] {
		return nil, nil
	}
	return f.r.fixedData(ctx, "export", id)
}

// fixData commits which bytes the records of a chunk stand for, before the records: after a crash in between the import reads
// these again. It refuses those that stand for other bytes here.
func (in *intake) fixData(ctx context.Context) error {
	for i, d := range in.o.Fixed {
		if d == nil || in.errs[i] != nil && !errors.Is(in.errs[i], ErrUnchanged) {
			continue
		}
		switch err := in.fixOne(ctx, in.records[i].ID, *d); stele.KindOf(err) {
		case stele.Forbidden, stele.Conflict, stele.Invalid:
			if in.errs[i] = err; in.unfixed == nil {
				in.unfixed = make(map[int]error)
			}
			in.unfixed[i] = err
		default:
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// fixOne says which bytes a record stands for, as another registry said it.
func (in *intake) fixOne(ctx context.Context, id stele.ID, d FixedData) error {
	if !auth.From(ctx).Admin {
		return refuse(opImport, id, stele.Forbidden, "import.fixed-data-forbidden", "only an administrator may say which bytes a name stands for; leave fixed out, or let an administrator import it")
	}
	if now := in.now(); d.At.IsZero() || d.At.After(now) {
		d.At = now
	}
	d.ID = id.String()
	value, err := json.Marshal(&d)
	if err != nil {
		return refuse(opImport, id, stele.Invalid, "import.fixed-data-date-wrong", "the date since when it stands for these bytes can't be written: {cause}; correct the line", err)
	}
	// A registry to which the namespace was handed over says what its names stand for.
	if err := in.open(ctx, opImport, in.namespaceTree, &stele.Record{ID: id, Version: 2}); err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		kept, err := in.fixedData(ctx, opImport, id)
		switch {
		case err != nil:
			return err
		case kept != nil && !kept.same(&d):
			return refuse(opImport, id, stele.Conflict, "import.fixed-data-differs", "it stands for other bytes here, {here}, than the import says, {there}, and these never change; register a new revision", kept.name(), d.name())
		case kept != nil || in.o.DryRun:
			return nil
		}
		err = in.apply(ctx, opFixData, &stele.Commit{Cells: []stele.CellChange{{Name: cellOf(fixedDataCells, id), After: value}}})
		if err == nil || !errors.Is(err, stele.Conflict) || !in.again(ctx, err, attempt) {
			return err
		}
	}
}

// name returns what tells the bytes from others.
func (d *FixedData) name() string {
	if d.Absent {
		return "no data, for ever"
	}
	return "sha256:" + d.SHA256
}
