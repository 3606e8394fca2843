package bundle

import (
	"cmp"
	"context"
	"io"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
)

// Fixed is a line of data/fixed.jsonl: which bytes a name stands for, for ever. Lines stand by scheme and name. A bundle without such
// names does not have the file.
type Fixed struct {
	Scheme string    `json:"scheme"`
	Name   string    `json:"name"`
	Absent bool      `json:"absent,omitempty"` // it stands for no data
	SHA256 string    `json:"sha256,omitempty"` // in hexadecimal digits
	Size   uint64    `json:"size,omitempty"`
	At     time.Time `json:"at"` // since when
}

// data returns what the registrar keeps.
func (f *Fixed) data() registrar.FixedData {
	return registrar.FixedData{ID: f.Name, Absent: f.Absent, SHA256: f.SHA256, Size: f.Size, At: f.At}
}

// Cell returns the cell in which a registry keeps it.
func (f *Fixed) Cell(schemes *stele.Schemes) (stele.CellChange, error) {
	id, err := schemes.Parse(f.Name)
	if err != nil {
		return stele.CellChange{}, err
	}
	return registrar.FixedCell(id, f.data())
}

// putFixed writes which bytes the names of the bundle stand for.
func (w *writer) putFixed(ctx context.Context) error {
	list, err := w.job.From.Fixed(ctx)
	if err != nil {
		return err
	}
	var lines []Fixed
	for i := range list {
		d := &list[i]
		if w.log.Has(d.Name) {
			lines = append(lines, Fixed{d.Name.Scheme(), d.Name.String(), d.Absent, d.SHA256, d.Size, d.At.UTC()})
		}
	}
	if w.counts.Fixed = uint64(len(lines)); len(lines) == 0 {
		return nil
	}
	return putLines(w, fileFixed, lines)
}

func (r *reader) readFixed(in io.Reader) error {
	return r.eachLine(in, func(text []byte) error {
		var f Fixed
		if err := parseJSON(text, &f); err != nil {
			return err
		}
		if err := r.fixedFollows(&f); err != nil {
			return err
		}
		r.fixed = f
		r.report.Counts.Fixed++
		return visit(r.o.Visit.Fixed, &f)
	})
}

// fixedFollows makes sure that a line is one of a name of the bundle, and stands in its order.
func (r *reader) fixedFollows(f *Fixed) error {
	if !r.report.Head.has(f.Scheme, f.Name) {
		return wrong("bundle.usage-outside", "{name} is not a name that the bundle is of", f.Name)
	}
	if id, err := r.o.Schemes.Parse(f.Name); err != nil || id.Scheme() != f.Scheme || id.String() != f.Name {
		return wrong("bundle.fixed-not-a-name", `"{name}" is not a name of the scheme {scheme} in its canonical form`, f.Name, f.Scheme)
	}
	if d := f.data(); !d.IsWhole() {
		return wrong("verify.fixed-data-without-digest", "it has neither a SHA-256 digest nor says that there are no data")
	}
	if cmp.Or(cmp.Compare(r.fixed.Scheme, f.Scheme), cmp.Compare(r.fixed.Name, f.Name)) >= 0 {
		return errOrder
	}
	return nil
}
