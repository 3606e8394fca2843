package foreign

import (
	"bytes"
	"slices"
	"strings"

	"github.com/stele-id/stele"
)

// readCSV reads a table of a Handle server as CSV with a header, as COPY handles TO STDOUT CSV HEADER writes it.
func readCSV(w *window, to *folded) error {
	if head := w.peekText(2); string(head) == "\xff\xfe" || string(head) == "\xfe\xff" { // of Windows; other bytes are data
		w = w.decoded()
	}
	r := newSQLReader(to)
	r.lexer = lexer{w: w}
	to.s.watch(w)
	if bytes.HasPrefix(w.peekText(3), []byte("\xef\xbb\xbf")) {
		w.take(3)
	}
	head, _, _ := bytes.Cut(w.peekText(4096), []byte("\n"))
	c := csvText{w: w, comma: delimiterOf(head)}
	header, _, ok := c.next()
	if !ok {
		return w.failure()
	}
	if len(header) > maxColumns {
		return r.columnsMost("handles")
	}
	var names []string
	for i := range header {
		names = append(names, r.usual(strings.TrimSpace(string(header[i].text))))
	}
	table := "handles"
	if slices.Contains(names, "na") {
		table = "nas"
	}
	columns, err := r.layout(table, names)
	if err != nil {
		return err
	}
	for {
		line := w.line
		cells, long, ok := c.next()
		switch {
		case !ok:
			return w.failure()
		case c.open:
			return failf(stele.Invalid, "import.foreign-csv-cut-off", "{file}: the quotation mark in line {line} is not closed; get the rest of the file", w.name, line)
		case long > 0:
			err = r.fault(table, columns, cells[:len(cells)-1], line, tooLong(long, maxLine))
		case len(cells) == 1 && len(cells[0].text) == 0 && len(columns) > 1: // an empty line
		default:
			err = r.row(table, columns, cells, line)
		}
		if err != nil {
			return err
		}
	}
}

// isTable reports whether a line is the header of one of the tables as CSV.
func isTable(line []byte) bool {
	if len(line) == 0 {
		return false
	}
	var found []string
	for cell := range bytes.SplitSeq(bytes.TrimSpace(line), []byte{delimiterOf(line)}) {
		name := strings.ToLower(strings.Trim(strings.TrimSpace(string(cell)), `"`))
		found = append(found, name)
	}
	for table := range sqlTables {
		if !slices.ContainsFunc(needed[table], func(name string) bool { return !slices.Contains(found, name) }) {
			return true
		}
	}
	return false
}

// delimiterOf returns what stands between the cells of a header.
func delimiterOf(header []byte) byte {
	for _, c := range []byte(",;\t") {
		if bytes.IndexByte(header, c) >= 0 {
			return c
		}
	}
	return ','
}

// csvText cuts a text into rows of CSV (RFC 4180).
type csvText struct {
	w     *window
	comma byte
	open  bool // the text ended within quotation marks
}

// next reads a row. Of one that is longer than maxLine it returns the cells at the beginning, of which the last one is
// cut off, and its size. ok is false at the end of the text. An empty cell without quotation marks is NULL.
func (c *csvText) next() (cells []cell, long int, ok bool) {
	if c.w.ended() {
		return nil, 0, false
	}
	var text []byte
	quoted, was := false, false // within quotation marks; the cell has some
	size := 0
	end := func() {
		text = slices.Clip(text)
		cells = append(cells, cell{text: text, null: !was && (len(text) == 0 || string(text) == `\N`)})
		text, was = nil, false
	}
	for {
		b, more := c.w.byte()
		if !more {
			c.open = quoted
			break
		}
		size++
		switch {
		case quoted && b == '"' && c.w.peek() == '"':
			c.w.byte()
		case b == '"' && (quoted || len(text) == 0):
			quoted, was = !quoted, true
			continue
		case quoted:
		case b == c.comma && len(cells) < maxColumns:
			if size <= maxLine {
				end()
			}
			continue
		case b == '\n':
			if n := len(text); n > 0 && text[n-1] == '\r' {
				text = text[:n-1]
			}
			end()
			if size > maxLine {
				return cells, size, true
			}
			return cells, 0, true
		}
		if size <= maxLine {
			text = append(text, b)
		}
	}
	end()
	if size > maxLine {
		return cells, size, true
	}
	return cells, 0, true
}
