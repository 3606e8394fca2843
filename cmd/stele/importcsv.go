package main

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/registrar"
)

// CSV is as in RFC 4180, with a header; see package bulk. Cells are separated by commas,
// or by semicolons or tabs if the header has more of those, as spreadsheets in some
// countries write it.

// csvFormat is how the rows of a CSV file are read.
type csvFormat struct {
	columns  bulk.HeaderOptions
	rows     bulk.RowOptions
	encoding bulk.Encoding
}

// decode makes the reader read a text in whatever encoding as UTF-8, from where it is.
func (r *rowReader) decode(e bulk.Encoding) {
	in := r.in
	if r.err != nil && !errors.Is(r.err, io.EOF) {
		in = failingReader{r.err}
	}
	r.decoder = bulk.NewDecoder(io.MultiReader(bytes.NewReader(r.buf), in), e)
	r.in, r.buf, r.err = r.decoder, nil, nil
	r.before, r.passed = r.passed, nil
	r.fill()
}

// failingReader fails.
type failingReader struct{ err error }

func (f failingReader) Read([]byte) (int, error) { return 0, f.err }

// readHeader reads the first row as a header. It returns the row, too.
func (r *rowReader) readHeader(name string, o bulk.HeaderOptions) (h bulk.Header, title []byte, err error) {
	forced := byte(0)
	if n := bytes.IndexByte(r.buf, '\n'); n >= 0 {
		if forced = bulk.Separator(r.buf[:n]); forced != 0 {
			r.advance(n + 1)
		}
	}
	end := 0
	for {
		if r.delimiter = forced; forced == 0 {
			r.delimiter = bulk.Delimiter(r.buf)
		}
		if r.delimiter == 0 && r.lone {
			r.delimiter = ','
		}
		if r.delimiter != 0 {
			end = bulk.RowEnd(r.buf, r.delimiter)
		}
		if end > 0 || r.err != nil || len(r.buf) > maxRow {
			break
		}
		r.fill()
	}
	if end == 0 && errors.Is(r.err, io.EOF) {
		end = len(r.buf)
	}
	title = bulk.TrimEnd(r.buf[:end])
	cells, err := bulk.SplitRow(title, r.delimiter, nil)
	if err == nil && r.delimiter != 0 {
		if h, err = bulk.NewHeader(cells, o); err == nil {
			r.advance(end)
			return h, title, nil
		}
	}
	if err == nil || !bulk.IsHeader(cells) && len(o.Map) == 0 && slices.Contains(o.Need, "id") {
		return nil, nil, refuse("import", stele.Invalid,
			"line %d of %s is neither a record in JSON nor the header of a CSV file, which has at least the columns id and url; if it is a header, say which column has the identifier, as in --map COLUMN=id", r.line, name)
	}
	return nil, nil, refuse("import", stele.Invalid, "line %d of %s, the header: %w", r.line, name, err)
}

// parseCSV reads the rows of a block.
func (p *importParser) parseCSV(b *block) {
	var cells []string
	line := b.line
	for text := b.text; len(text) > 0; {
		n := bulk.RowEnd(text, p.delimiter)
		if n == 0 {
			n = len(text)
		}
		row := importRow{line: line, text: bulk.TrimEnd(text[:n])}
		line += bytes.Count(text[:n], []byte{'\n'})
		text = text[n:]
		if bulk.IsSkipped(row.text) {
			continue
		}
		if len(row.text) > maxRow {
			row.err = tooLongRow(row.text)
		} else if cells, row.err = bulk.SplitRow(row.text, p.delimiter, cells[:0]); row.err == nil {
			if bulk.IsEmpty(cells) {
				continue
			}
			row.record, row.patch, row.err = p.readRow(cells)
		}
		b.rows = append(b.rows, row)
	}
}

// readRow turns cells into a record, and into what is merged with a registered one.
func (p *importParser) readRow(cells []string) (*stele.Record, []byte, error) {
	doc, err := p.header.Document(cells, p.csv.rows)
	if err != nil {
		return nil, nil, err
	}
	if p.csv.rows.Merges {
		rec, err := registrar.Patch(p.schemes, nil, doc)
		return rec, doc, err
	}
	rec, err := p.schemes.DecodeRecord(doc)
	return rec, nil, err
}
