package foreign

import (
	"bytes"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
)

// CSV is a table with a header, as spreadsheets and databases write it: any of the usual encodings, with
// commas, semicolons or tabs. Package bulk has the rules of rows and cells.
const CSV Format = "csv"

const (
	maxTableColumns = 1000
	maxTableHeader  = 64 << 10 // bytes
)

// tableKind says what the columns of a system's tables mean.
type tableKind struct {
	source  string            // the system's name, under which the metadata has what means nothing else here
	columns map[string]string // what a column means, by its name without case, spaces and signs; see folded
	need    [][]string        // of each list the table has one
	exact   bool              // names of columns count as they are written

	// make makes a record of what a row says.
	make func(s *Source, row *bulk.Row, all []said)
}

// said is what a row says in one column.
type said struct {
	field string // what the column means; "" if it means nothing else here
	name  string // the column's name in the file
	value string
}

// plainName returns the name of a column without what is written differently: case, spaces and signs.
func plainName(cell string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case ' ', '_', '-', '\u00a0', '\ufeff':
			return -1
		}
		return r
	}, strings.ToLower(cell))
}

// table is a table that is read: what its columns are.
type table struct {
	kind      *tableKind
	s         *Source
	w         *window
	delimiter byte
	columns   []said // without values
	title     []byte // the header as it stands there
}

// openTable returns what opens the tables of a system.
func openTable(k *tableKind) func(s *Source, texts []*window) []part {
	return func(s *Source, texts []*window) (parts []part) {
		for _, w := range texts {
			parts = append(parts, s.tablePart(k, w))
		}
		return parts
	}
}

// tablePart returns a file that is a table in CSV.
func (s *Source) tablePart(k *tableKind, w *window) *itemPart {
	t := &table{kind: k, s: s, w: w.decoded()}
	s.watch(t.w)
	p := &itemPart{s: s, w: t.w, kind: CSV, read: t.read, make: t.makeRow}
	if p.err = t.header(); p.err == nil {
		p.err = s.entitle(t.title, w.name)
	}
	return p
}

// watch tells, after a table was read, what of the file was guessed: which encoding it has, and that its last row is whole although no
// line end follows, as editors and spreadsheets leave it out.
func (s *Source) watch(w *window) {
	s.closing = append(s.closing, func() (notes []error) {
		if w.decoder != nil {
			if found, lines := w.decoder.Found(); found != bulk.UTF8 {
				notes = append(notes, stele.Messagef("import.encoding-found", "{file} was read as {encoding}; {lines} lines have characters outside ASCII. If they look wrong, convert the file to UTF-8, and import it again", w.name, found.Title(), lines))
			}
		}
		if w.unended() {
			notes = append(notes, bulk.Unended(w.name))
		}
		return notes
	})
}

// entitle keeps the header of a table. All tables of an import have the same, because the file of rejected rows has one.
func (s *Source) entitle(title []byte, file string) error {
	if s.title == nil {
		s.title = title
		return nil
	}
	if !bytes.Equal(s.title, title) {
		return failf(stele.Invalid, "import.foreign-tables-differ", "{file} has another header than the first file; import it by itself", file)
	}
	return nil
}

// Title returns the header with which the file of rejected rows begins; nil if the files have none.
func (s *Source) Title() []byte { return s.title }

// decoded returns a window of the rest of a text in UTF-8, whatever its encoding; see [bulk.Decoder].
func (w *window) decoded() *window {
	rest := w.in
	if w.err != nil {
		rest = failedReader{w.err}
	}
	in := bulk.NewDecoder(io.MultiReader(bytes.NewReader(w.buf[w.pos:]), rest), bulk.Auto)
	d := &window{name: w.name, in: in, line: w.line, decoder: in}
	if bytes.HasPrefix(d.peekText(3), []byte("\xef\xbb\xbf")) {
		d.take(3)
	}
	return d
}

// failedReader is what is left of a text whose reading has ended.
type failedReader struct{ err error }

func (f failedReader) Read([]byte) (int, error) { return 0, f.err }

// header reads the header.
func (t *table) header() error {
	w := t.w
	t.delimiter = ','
	for {
		head := w.peekText(maxTableHeader)
		if err := w.failure(); err != nil {
			return err
		}
		n := bytes.IndexByte(head, '\n') + 1
		if n == 0 {
			n = len(head)
		}
		switch forced := bulk.Separator(head[:n]); {
		case n == 0:
			return failf(stele.Invalid, "import.foreign-table-empty", "{file} has no header; export it with the names of its columns in the first row", w.name)
		case forced != 0:
			w.take(n)
			t.delimiter = forced
			return t.names(w.peekText(maxTableHeader))
		case bulk.IsSkipped(head[:n]):
			w.take(n)
			continue
		}
		if c := bulk.Delimiter(head); c != 0 {
			t.delimiter = c
		}
		return t.names(head)
	}
}

// names reads the names of the columns, with which head begins.
func (t *table) names(head []byte) error {
	w := t.w
	n := bulk.RowEnd(head, t.delimiter)
	switch {
	case n == 0 && len(head) >= maxTableHeader:
		return failf(stele.Invalid, "import.foreign-header-too-long", "{file}: the header has more than {most} bytes, or a quotation mark in it is not closed", w.name, maxTableHeader)
	case n == 0:
		n = len(head)
	}
	line := w.line
	t.title = bulk.TrimEnd(w.take(n))
	cells, err := bulk.SplitAtMost(t.title, t.delimiter, nil, maxTableColumns)
	if err != nil {
		return failf(stele.Invalid, "import.header-wrong", "line {line} of {file}, the header: {cause}", line, w.name, err)
	}
	return t.layout(cells)
}

// layout finds out what columns mean.
func (t *table) layout(cells []string) error {
	have := make(map[string]string)
	for _, cell := range cells {
		name := strings.TrimSpace(cell)
		c := said{name: name, field: t.kind.fieldOf(name)}
		if mapped, ok := t.s.o.Map[strings.ToLower(name)]; ok {
			c.field, c.name = t.kind.fieldOf(mapped), mapped
		}
		if before, twice := have[c.field]; twice && c.field != "" {
			return failf(stele.Invalid, "import.foreign-columns-mean-the-same", "{file}: the columns {column} and {other-column} mean the same; remove one of them", t.w.name, stele.Quote(before), stele.Quote(name))
		}
		have[c.field] = name
		t.columns = append(t.columns, c.kept(t))
	}
	for _, group := range t.kind.need {
		if slices.ContainsFunc(group, func(field string) bool { _, ok := have[field]; return ok }) {
			continue
		}
		usual := t.kind.usual(group[0])
		shown := make([]string, 0, 20)
		for _, cell := range cells[:min(len(cells), 20)] {
			shown = append(shown, stele.Quote(strings.TrimSpace(cell)))
		}
		return failf(stele.Invalid, "import.foreign-column-missing", "{file}: the column {column} is missing; there are {columns}. If it has another name, say so with --map NAME={column}", t.w.name, usual, strings.Join(shown, ", "))
	}
	return nil
}

// kept returns a column with the name under which the metadata keeps it, and tells if that is another one, apart from the case of letters.
func (c said) kept(t *table) said {
	if t.kind.exact || c.field != "" && c.field != fieldShort && c.field != fieldDomain || c.name == "" {
		return c
	}
	said := strings.ReplaceAll(strings.ToLower(c.name), " ", "_")
	clean := metadataName(said)
	if c.name = clean; clean != said {
		t.s.note("import.foreign-column-renamed", "{file}: the column {column} is kept as {field}", t.w.name, stele.Quote(said), t.kind.source+"."+clean)
	}
	return c
}

// fieldOf returns what a column means.
func (k *tableKind) fieldOf(name string) string {
	if k.exact {
		return k.columns[name]
	}
	return k.columns[plainName(name)]
}

// usual returns the name of a column that has a meaning.
func (k *tableKind) usual(field string) string {
	for _, name := range slices.Sorted(maps.Keys(k.columns)) {
		if k.columns[name] == field {
			return name
		}
	}
	return field
}

// recognises reports whether a beginning has a header with all columns that are needed.
func (k *tableKind) recognises(head []byte) bool {
	w := (&window{name: "", in: bytes.NewReader(head), line: 1}).decoded()
	t := &table{kind: k, s: &Source{}, w: w}
	return t.header() == nil
}

// read returns the next row. A quotation mark that is not closed spoils its line, and not the rest of the file.
func (t *table) read() (item, error) {
	w := t.w
	for {
		line := w.line
		text, long, ok := t.next()
		switch {
		case !ok && w.failure() != nil:
			return item{}, w.failure()
		case !ok:
			return item{}, io.EOF
		case long > 0 || len(text) > maxRow:
			return item{line: line, err: tooLong(max(long, len(text)), maxRow)}, nil
		case !bulk.IsSkipped(text):
			return item{line: line, text: text}, nil
		}
	}
}

func (t *table) next() (text []byte, long int, ok bool) {
	w := t.w
	for {
		rest := w.buf[w.pos:]
		if n := bulk.RowEnd(rest, t.delimiter); n > 0 {
			return bulk.TrimEnd(w.take(n)), 0, true
		}
		if len(rest) > maxRow {
			return w.nextLine()
		}
		if !w.fill() {
			break
		}
	}
	if w.failure() != nil {
		return nil, 0, false
	}
	rest := w.buf[w.pos:]
	if ended := append(bytes.Clone(rest), '\n'); len(rest) > 0 && bulk.RowEnd(ended, t.delimiter) == len(ended) {
		return bulk.TrimEnd(w.take(len(rest))), 0, true
	}
	return w.nextLine()
}

// makeRow makes a record of a row.
func (t *table) makeRow(row *bulk.Row) {
	cells, err := bulk.SplitAtMost(row.Text, t.delimiter, make([]string, 0, len(t.columns)), maxTableColumns)
	if err != nil {
		row.Err = &stele.Error{Op: "import", Kind: stele.Invalid, Err: err}
		return
	}
	t.said(row, cells)
}

// said makes a record of the cells of a row. Spreadsheets leave out empty cells at the end of rows, or add some.
func (t *table) said(row *bulk.Row, cells []string) {
	for len(cells) > len(t.columns) && strings.TrimSpace(cells[len(cells)-1]) == "" {
		cells = cells[:len(cells)-1]
	}
	if len(cells) > len(t.columns) {
		row.Err = failf(stele.Invalid, "row.number-of-cells-differs", "the row has {cells} cells, and the header has {expected}", len(cells), len(t.columns))
		return
	}
	all := make([]said, 0, len(cells))
	for i, cell := range cells {
		if !utf8.ValidString(cell) {
			row.Err = failf(stele.Invalid, "import.foreign-cell-not-utf-8", "the cell {column} is not UTF-8", stele.Quote(t.columns[i].name))
			return
		}
		if cell = strings.TrimSpace(bulk.Restore(cell)); cell == "" || cell == `\N` { // NULL of MySQL
			continue
		}
		c := t.columns[i]
		if c.name == "" {
			row.Err = failf(stele.Invalid, "import.foreign-column-nameless", "cell {cell} stands in a column without a name; name it in the header", i+1)
			return
		}
		c.value = cell
		all = append(all, c)
	}
	t.kind.make(t.s, row, all)
}

// times are the forms of dates in tables, of databases and programs. A date without a zone is taken for one in UTC.
var times = []string{time.RFC3339, "2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04:05Z07", "2006-01-02 15:04:05Z07:00", "2006-01-02"}

// parseTime reads a date, or seconds since 1970.
func parseTime(text string) (time.Time, bool) {
	if text == "" {
		return time.Time{}, false // many sources have no dates, and an error costs more than a date
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Unix(n, 0).UTC(), n > 0 && n < 1<<34
	}
	for _, form := range times {
		if at, err := time.Parse(form, text); err == nil {
			return at.UTC().Truncate(time.Second), at.Unix() > 0
		}
	}
	return time.Time{}, false
}

// dated takes when a name was made, and when it was changed last. What is not a date is kept under the name of its column.
func (b *builder) dated(source string, changed bool, c said) {
	at, ok := parseTime(c.value)
	switch {
	case !ok:
		b.element(source, c.name, c.value)
	case changed:
		b.rec.Modified = at
	default:
		b.rec.Created = at
	}
}

// settle makes the dates of a record agree: it was changed last when it was made, or later.
func (b *builder) settle() {
	if b.rec.Created.IsZero() {
		b.rec.Created = b.rec.Modified
	}
	if b.rec.Modified.Before(b.rec.Created) {
		b.rec.Modified = b.rec.Created
	}
}
