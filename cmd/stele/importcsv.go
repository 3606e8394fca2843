package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stele-id/stele"
)

// CSV is as in RFC 4180, in UTF-8, with a header. Cells are separated by commas, or
// by semicolons or tabs if the header has those and no comma, as spreadsheets in
// some countries write it.

// csvColumns are the columns that the header may name, but for meta.*.
var csvColumns = []string{
	"id", "url", "aliases", "service", "type", "language", "state", "reason",
	stele.Who, stele.What, stele.When, stele.Where,
}

// metaColumn begins the names of columns with metadata of the owner's own.
const metaColumn = "meta."

// csvHeader is the names of the columns, in their order.
type csvHeader []string

// readHeader reads the first row as a header. It returns the row, too.
func (r *rowReader) readHeader(name string) (h csvHeader, title []byte, err error) {
	end := 0
	for {
		if r.delimiter = delimiterOf(r.buf); r.delimiter != 0 {
			end = rowEnd(r.buf, r.delimiter)
		}
		if end > 0 || r.err != nil || len(r.buf) > maxRow {
			break
		}
		r.fill()
	}
	if end == 0 && errors.Is(r.err, io.EOF) {
		end = len(r.buf)
	}
	title = trimEnd(r.buf[:end])
	cells, err := splitRow(title, r.delimiter, nil)
	if err == nil && r.delimiter != 0 {
		if h, err = newHeader(cells); err == nil {
			r.advance(end)
			return h, title, nil
		}
	}
	if err == nil || !slices.ContainsFunc(cells, func(c string) bool { return columnName(c) == "id" }) {
		return nil, nil, refuse("import", stele.Invalid,
			"line %d of %s is neither a record in JSON nor the header of a CSV file, which has at least the columns id and url", r.line, name)
	}
	return nil, nil, refuse("import", stele.Invalid, "line %d of %s, the header: %w", r.line, name, err)
}

// delimiterOf returns what separates the cells of a header; 0 if nothing does.
func delimiterOf(text []byte) byte {
	if n := bytes.IndexByte(text, '\n'); n >= 0 {
		text = text[:n]
	}
	for _, c := range []byte(",;\t") {
		if bytes.IndexByte(text, c) >= 0 {
			return c
		}
	}
	return 0
}

// columnName returns the name of a column as it is meant.
func columnName(cell string) string {
	name := strings.ToLower(strings.TrimSpace(cell))
	if name == "title" {
		return stele.What
	}
	return name
}

// newHeader makes a header of its cells.
func newHeader(cells []string) (csvHeader, error) {
	h := make(csvHeader, len(cells))
	for i, cell := range cells {
		name := columnName(cell)
		if key, ok := strings.CutPrefix(name, metaColumn); ok {
			if slices.Contains(csvColumns[len(csvColumns)-4:], key) {
				name = key
			}
		} else if !slices.Contains(csvColumns, name) {
			return nil, fmt.Errorf("there is no column %.60q; there are %s, and meta.x for metadata of your own, here meta.%.60s",
				cell, strings.Join(csvColumns, ", "), printable(name))
		}
		if slices.Contains(h[:i], name) {
			return nil, fmt.Errorf("the column %s is there twice", name)
		}
		h[i] = name
	}
	for _, name := range []string{"id", "url"} {
		if !slices.Contains(h, name) {
			return nil, fmt.Errorf("the column %s is missing", name)
		}
	}
	return h, nil
}

// document turns a row into a record's document. Cells that are empty say nothing.
func (h csvHeader) document(cells []string) ([]byte, error) {
	if len(cells) != len(h) {
		return nil, fmt.Errorf("the row has %d cells, and the header has %d", len(cells), len(h))
	}
	type target struct {
		Service  string `json:"service,omitempty"`
		URL      string `json:"url"`
		Type     string `json:"type,omitempty"`
		Language string `json:"language,omitempty"`
	}
	var doc struct {
		ID        string            `json:"id"`
		Aliases   []string          `json:"aliases,omitempty"`
		State     string            `json:"state,omitempty"`
		Tombstone map[string]string `json:"tombstone,omitempty"`
		Targets   []target          `json:"targets,omitempty"`
		Metadata  map[string]string `json:"metadata,omitempty"`
	}
	var t target
	for i, cell := range cells {
		if cell == "" {
			continue
		}
		switch name := h[i]; name {
		case "id":
			doc.ID = strings.TrimSpace(cell)
		case "url":
			t.URL = strings.TrimSpace(cell)
		case "aliases":
			doc.Aliases = strings.Fields(cell)
		case "service":
			t.Service = cell
		case "type":
			t.Type = cell
		case "language":
			t.Language = cell
		case "state":
			doc.State = cell
		case "reason":
			doc.Tombstone = map[string]string{"reason": cell}
		default:
			if doc.Metadata == nil {
				doc.Metadata = make(map[string]string)
			}
			doc.Metadata[strings.TrimPrefix(name, metaColumn)] = cell
		}
	}
	if t != (target{}) {
		doc.Targets = []target{t}
	}
	return json.Marshal(doc)
}

// parse reads the rows of a block.
func (h csvHeader) parse(schemes *stele.Schemes, b *block, delimiter byte) {
	var cells []string
	line := b.line
	for text := b.text; len(text) > 0; {
		n := rowEnd(text, delimiter)
		if n == 0 {
			n = len(text)
		}
		row := importRow{line: line, text: trimEnd(text[:n])}
		line += bytes.Count(text[:n], []byte{'\n'})
		text = text[n:]
		if isSkipped(row.text) {
			continue
		}
		if len(row.text) > maxRow {
			row.err = tooLongRow(row.text)
		} else if cells, row.err = splitRow(row.text, delimiter, cells[:0]); row.err == nil {
			row.record, row.err = h.record(schemes, cells)
		}
		b.rows = append(b.rows, row)
	}
}

func (h csvHeader) record(schemes *stele.Schemes, cells []string) (*stele.Record, error) {
	for i, cell := range cells {
		if !utf8.ValidString(cell) {
			return nil, fmt.Errorf("cell %d is not UTF-8", i+1)
		}
	}
	doc, err := h.document(cells)
	if err != nil {
		return nil, err
	}
	return schemes.DecodeRecord(doc)
}

// rowEnd returns the end of the first row of a text, behind its line's end; 0 if the
// text ends before it does. A remark is a row by itself.
func rowEnd(text []byte, delimiter byte) int {
	line := bytes.IndexByte(text, '\n')
	if line < 0 {
		return 0
	}
	if bytes.IndexByte(text[:line], '"') < 0 || isSkipped(text[:line]) {
		return line + 1
	}
	for i := 0; i < len(text); i++ { // at the beginning of a cell
		if text[i] == '"' {
			n := quotedEnd(text[i:])
			if n == 0 {
				return 0
			}
			i += n
		}
		for ; i < len(text) && text[i] != delimiter; i++ {
			if text[i] == '\n' {
				return i + 1
			}
		}
	}
	return 0
}

// quotedEnd returns the end of a cell in quotation marks, behind the second one; 0 if
// there is none. In between two of them stand for one.
func quotedEnd(text []byte) int {
	for i := 1; ; i += 2 {
		n := bytes.IndexByte(text[i:], '"')
		if n < 0 {
			return 0
		}
		if i += n; i+1 >= len(text) || text[i+1] != '"' {
			return i + 1
		}
	}
}

// splitRow appends the cells of a row to cells.
func splitRow(row []byte, delimiter byte, cells []string) ([]string, error) {
	for {
		if len(row) > 0 && row[0] == '"' {
			n := quotedEnd(row)
			if n == 0 {
				return cells, fmt.Errorf("cell %d begins with a quotation mark and has none at its end", len(cells)+1)
			}
			if n < len(row) && row[n] != delimiter {
				return cells, fmt.Errorf("cell %d goes on behind its quotation mark; inside a cell write it twice: \"\"", len(cells)+1)
			}
			cells = append(cells, strings.ReplaceAll(string(row[1:n-1]), `""`, `"`))
			if n == len(row) {
				return cells, nil
			}
			row = row[n+1:]
			continue
		}
		cell, rest, more := bytes.Cut(row, []byte{delimiter})
		if bytes.IndexByte(cell, '"') >= 0 {
			return cells, fmt.Errorf("cell %d has a quotation mark inside; write it twice, and one before and behind the cell", len(cells)+1)
		}
		cells = append(cells, string(cell))
		if !more {
			return cells, nil
		}
		row = rest
	}
}

// trimEnd cuts off the end of a line.
func trimEnd(line []byte) []byte {
	line = bytes.TrimSuffix(line, []byte{'\n'})
	return bytes.TrimSuffix(line, []byte{'\r'})
}
