package bulk

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/stele-id/stele"
)

// MaxColumns is how many columns a sheet has at most whose fields a person chooses.
const MaxColumns = 200

// Survey is what the beginning of a text says about it: whether it is a file of another system or has
// lines of JSON, or else what its columns are.
type Survey struct {
	System    string // by its name in package foreign; "" for rows of our own forms
	JSON      bool
	Delimiter byte     // between cells
	Encoding  Encoding // as far as it was read
	Headless  bool     // the first row is not a header: it has data
	Title     []byte   // the header as it stands there; nil if there is none
	Columns   []Column
}

// IsSheet reports whether the text has columns.
func (s *Survey) IsSheet() bool { return !s.JSON && s.System == "" }

// Column is a column of a sheet.
type Column struct {
	Name    string   // as it stands in the header; "" if the sheet has no header
	Field   string   // what it seems to be; [Ignored] if nothing tells
	Samples []string // of its first cells
}

// sampleRows is how many rows a survey shows.
const sampleRows = 3

// Look reads the beginning of a file. IsName reports whether a text is an identifier.
func Look(f *File, e Encoding, isName func(string) bool) (Survey, error) {
	r := NewReader(f)
	r.Lone = true
	r.start(e)
	var s Survey
	switch text := bytes.TrimLeft(r.buf, " \t"); {
	case len(text) == 0:
		return s, failf(stele.Invalid, "import.file-empty", "{file} has no rows", f.Name)
	case text[0] == '{':
		s.JSON, s.Encoding = true, UTF8
		return s, nil
	case text[0] == '[':
		return s, failf(stele.Invalid, "import.json-array", "{file} is one JSON array; write an object a line: jq -c '.[]'", f.Name)
	}
	if r.decoder == nil {
		r.decode(e)
	}
	title, end := r.firstRow()
	cells, err := SplitRow(title, r.delimiter, nil)
	switch {
	case err != nil:
		return s, failf(stele.Invalid, "import.header-wrong", "line {line} of {file}, the header: {cause}", r.line, f.Name, err)
	case IsEmpty(cells):
		return s, failf(stele.Invalid, "import.file-empty", "{file} has no rows", f.Name)
	case len(cells) > MaxColumns:
		return s, failf(stele.Invalid, "import.too-many-columns", "{file} has {columns} columns; {most} are the most here", f.Name, len(cells), MaxColumns)
	}
	s.Delimiter = r.delimiter
	s.Encoding, _ = r.decoder.Found()
	s.Headless = isData(cells, isName)
	if !s.Headless {
		s.Title = bytes.Clone(title)
		r.advance(end)
	}
	s.sample(r, len(cells))
	s.guess(cells, isName)
	return s, nil
}

// isData reports whether a row is not a header: it has a URL or an identifier, and no cell names
// a field.
func isData(cells []string, isName func(string) bool) bool {
	data := false
	for _, cell := range cells {
		if _, ok := fieldOf(cell); ok {
			return false
		}
		data = data || isURL(cell) || isName(strings.TrimSpace(cell))
	}
	return data
}

func isURL(cell string) bool {
	cell = strings.ToLower(strings.TrimSpace(cell))
	return strings.HasPrefix(cell, "https://") || strings.HasPrefix(cell, "http://")
}

// sample reads the first cells of the columns.
func (s *Survey) sample(r *Reader, columns int) {
	s.Columns = make([]Column, columns)
	b, err := r.Next()
	if err != nil || b.Long > 0 {
		return // there are no more rows, or what is wrong with them is found when they are judged
	}
	text := b.Text
	for rows := 0; rows < sampleRows && len(text) > 0; {
		n := RowEnd(text, s.Delimiter)
		if n == 0 {
			n = len(text)
		}
		row := TrimEnd(text[:n])
		text = text[n:]
		cells, err := SplitRow(row, s.Delimiter, nil)
		if IsSkipped(row) || err != nil || IsEmpty(cells) {
			continue
		}
		rows++
		for i, cell := range cells[:min(len(cells), columns)] {
			if cell = strings.TrimSpace(cell); cell != "" {
				s.Columns[i].Samples = append(s.Columns[i].Samples, shortened(cell))
			}
		}
	}
}

// shortened returns the beginning of a cell.
func shortened(cell string) string {
	const most = 80
	for i, n := 0, 0; i < len(cell); n++ {
		if n == most {
			return cell[:i] + "…"
		}
		_, size := utf8.DecodeRuneInString(cell[i:])
		i += size
	}
	return cell
}

// guess finds out what columns seem to be: by their names, or by their cells if there is no
// header. One that Stele does not know becomes metadata.
func (s *Survey) guess(cells []string, isName func(string) bool) {
	taken := make(map[string]bool)
	for i, cell := range cells {
		field := Ignored
		if s.Headless {
			field = guessByCell(cell, taken, isName)
		} else {
			s.Columns[i].Name = strings.TrimSpace(cell)
			if known, ok := fieldOf(cell); ok && !taken[known] {
				field = known
			} else if name := slug(cell); name != "" && !taken[meta+name] {
				if known, ok := fieldOf(meta + name); ok && !taken[known] {
					field = known
				}
			}
		}
		taken[field] = true
		s.Columns[i].Field = field
	}
}

// guessByCell returns what a cell seems to be.
func guessByCell(cell string, taken map[string]bool, isName func(string) bool) string {
	field := Ignored
	switch text := strings.TrimSpace(cell); {
	case text == "":
	case isName(text) && !taken["id"] && !isURL(text):
		field = "id"
	case isURL(text):
		field = "url"
	default:
		field = stele.What
	}
	if taken[field] {
		return Ignored
	}
	return field
}

// Fields returns the fields that the columns seem to have.
func (s *Survey) Fields() []string {
	list := make([]string, len(s.Columns))
	for i, c := range s.Columns {
		list[i] = c.Field
	}
	return list
}

// Slug returns the field of metadata that keeps the column under its own name; "" if its name does
// not make one.
func (c *Column) Slug() string {
	if name := slug(c.Name); name != "" {
		return meta + name
	}
	return ""
}

// IsField reports whether a column can have a field.
func IsField(field string) bool {
	known, ok := fieldOf(field)
	return ok && known == field
}

// SetHeadless says whether the first row is a header, as a person knows it.
func (s *Survey) SetHeadless(headless bool) {
	if s.Headless == headless {
		return
	}
	s.Headless = headless
	if headless {
		s.Title = nil
	}
}
