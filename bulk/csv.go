package bulk

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/registrar"
)

// CSV is as in RFC 4180, with a header; see package bulk. Cells are separated by commas,
// or by semicolons or tabs if the header has more of those, as spreadsheets in some
// countries write it.

// Format is how the rows of a CSV file are read.
type Format struct {
	Columns  HeaderOptions
	Rows     RowOptions
	Encoding Encoding

	// Placeholder returns the identifier under which a row without one is judged, by the number
	// of its line; such a row is [Row.Nameless]. Nil: each row needs an identifier.
	Placeholder func(line int) (string, error)
}

// decode makes the reader read a text in whatever encoding as UTF-8, from where it is.
func (r *Reader) decode(e Encoding) {
	in := r.in
	if r.err != nil && !errors.Is(r.err, io.EOF) {
		in = failingReader{r.err}
	}
	r.decoder = NewDecoder(io.MultiReader(bytes.NewReader(r.buf), in), e)
	r.in, r.buf, r.seen, r.err = r.decoder, nil, 0, nil
	r.before, r.passed = r.passed, nil
	r.fill()
}

// failingReader fails.
type failingReader struct{ err error }

func (f failingReader) Read([]byte) (int, error) { return 0, f.err }

// readHeader reads the first row as a header. It returns the row, too.
func (r *Reader) readHeader(name string, o HeaderOptions) (h Header, title []byte, err error) {
	title, end := r.firstRow()
	cells, err := SplitRow(title, r.delimiter, nil)
	if err == nil && r.delimiter != 0 {
		if h, err = NewHeader(cells, o); err == nil && o.Headless {
			return h, nil, nil
		} else if err == nil {
			r.advance(end)
			return h, title, nil
		}
	}
	if err == nil || o.Fields == nil && !IsHeader(cells) && len(o.Map) == 0 && slices.Contains(o.Need, "id") {
		return nil, nil, failf(stele.Invalid,
			"import.line-neither-record-nor-header", "line {line} of {file} is neither a record in JSON nor the header of a CSV file, which has at least the columns id and url; if it is a header, say which column has the identifier, as in --map COLUMN=id", r.line, name)
	}
	return nil, nil, failf(stele.Invalid, "import.header-wrong", "line {line} of {file}, the header: {cause}", r.line, name, err)
}

// firstRow finds out what separates cells, and returns the first row without its end, and where
// it ends. It passes over the line in which Excel says what separates cells.
func (r *Reader) firstRow() (row []byte, end int) {
	forced := byte(0)
	if n := bytes.IndexByte(r.buf, '\n'); n >= 0 {
		if forced = Separator(r.buf[:n]); forced != 0 {
			r.advance(n + 1)
		}
	}
	for {
		if r.delimiter = forced; forced == 0 {
			r.delimiter = Delimiter(r.buf)
		}
		if r.delimiter == 0 && r.Lone {
			r.delimiter = ','
		}
		if r.delimiter != 0 {
			end = RowEnd(r.buf, r.delimiter)
		}
		if end > 0 || r.err != nil || len(r.buf) > r.most {
			break
		}
		r.fill()
	}
	if end == 0 && errors.Is(r.err, io.EOF) {
		end = len(r.buf)
	}
	return TrimEnd(r.buf[:end]), end
}

// parseCSV reads the rows of a block.
func (p *Parser) parseCSV(b *Block) {
	var cells []string
	line := b.Line
	for text := b.Text; len(text) > 0; {
		n := RowEnd(text, p.Delimiter)
		if n == 0 {
			n = len(text)
		}
		row := Row{Line: line, Text: TrimEnd(text[:n])}
		line += bytes.Count(text[:n], []byte{'\n'})
		text = text[n:]
		if IsSkipped(row.Text) {
			continue
		}
		if len(row.Text) > p.most {
			row.Err = p.tooLong(len(row.Text), row.Text)
		} else if cells, row.Err = SplitRow(row.Text, p.Delimiter, cells[:0]); row.Err == nil {
			if IsEmpty(cells) {
				continue
			}
			if cells, row.Err = p.complete(cells, &row); row.Err == nil {
				row.Record, row.Patch, row.Err = p.ReadRow(cells)
			}
		}
		b.Rows = append(b.Rows, row)
	}
}

// complete gives a row the cells that spreadsheets leave out at its end, or takes away empty ones
// that they add, and gives it a placeholder if it has no name.
func (p *Parser) complete(cells []string, row *Row) ([]string, error) {
	columns := len(p.Header)
	if p.unnamed {
		columns--
	}
	for len(cells) > columns && strings.TrimSpace(cells[len(cells)-1]) == "" {
		cells = cells[:len(cells)-1]
	}
	for len(cells) < columns && !slices.ContainsFunc(p.Header[len(cells):columns], func(field string) bool { return field != Ignored }) {
		cells = append(cells, "")
	}
	if p.format.Placeholder == nil || len(cells) != columns {
		return cells, nil // a number of cells that is wrong is found later
	}
	if p.unnamed {
		cells = append(cells, "")
	}
	i := slices.Index(p.Header, "id")
	if strings.TrimSpace(cells[i]) != "" {
		return cells, nil
	}
	row.Nameless = true
	var err error
	cells[i], err = p.format.Placeholder(row.Line)
	return cells, err
}

// ReadRow turns cells into a record, and into what is merged with a registered one.
func (p *Parser) ReadRow(cells []string) (*stele.Record, []byte, error) {
	doc, err := p.Header.Document(cells, p.format.Rows)
	if err != nil {
		return nil, nil, err
	}
	if p.format.Rows.Merges {
		rec, err := registrar.Patch(p.schemes, nil, doc)
		return rec, doc, err
	}
	rec, err := document.DecodeRecord(p.schemes, doc)
	return rec, nil, err
}
