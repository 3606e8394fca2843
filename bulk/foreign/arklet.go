package foreign

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
)

// arklet keeps ARKs in one table of PostgreSQL, ark_ark. Its files are that table as CSV, or a dump with COPY. The ARK stands there
// without its label, and its NAAN was made from a number: one that began with zeros has lost them.

// Copied is what pg_dump writes.
const Copied Format = "sql"

const arkTable = "ark_ark"

// What the columns of arklet mean.
const (
	fieldARK        = "ark"
	fieldNAAN       = "naan"
	fieldShoulder   = "shoulder"
	fieldAssigned   = "assigned"
	fieldCommitment = "commitment"
)

func arkletTable() *tableKind {
	k := &tableKind{
		source: "arklet",
		columns: map[string]string{
			"ark": fieldARK, "naan": fieldNAAN, "naanid": fieldNAAN, "shoulder": fieldShoulder, "assignedname": fieldAssigned, "url": fieldTarget, "commitment": fieldCommitment,
			"createdat": fieldCreated, "updatedat": fieldModified, "title": fieldTitle,
		},
		need: [][]string{{fieldARK}, {fieldTarget}},
	}
	k.make = k.arkletRow
	return k
}

// detectArklet finds out what a file of arklet is by its beginning.
func detectArklet(head []byte) Format {
	switch {
	case arkletTable().recognises(head):
		return CSV
	case detectHandle(head) == SQL:
		return Copied
	}
	return unknown
}

// isArklet reports whether a beginning is that of a file of arklet and of no other system.
func isArklet(head []byte) bool {
	return bytes.Contains(head, []byte(arkTable)) || isArkTable(head)
}

func isArkTable(head []byte) bool {
	k := arkletTable()
	k.need = append(k.need, []string{fieldNAAN})
	return k.recognises(head)
}

// openArklet opens files of arklet.
func openArklet(s *Source, texts []*window) (parts []part) {
	for i, w := range texts {
		if s.kinds[i] == Copied {
			parts = append(parts, s.copyPart(arkletTable(), w, arkTable))
		} else {
			parts = append(parts, s.tablePart(arkletTable(), w))
		}
	}
	return parts
}

// arkletRow makes a record of a row.
func (k *tableKind) arkletRow(s *Source, row *bulk.Row, all []said) {
	got := make(map[string]string)
	for _, c := range all {
		got[c.field] = c.value
	}
	name, err := s.arkletName(got[fieldARK])
	if err != nil {
		row.Err = err
		return
	}
	id, err := s.o.Schemes.Parse(name)
	if err != nil {
		row.Err = err
		return
	}
	b := newBuilder(id)
	parts := got[fieldNAAN] + "/" + strings.TrimPrefix(got[fieldShoulder], "/") + got[fieldAssigned]
	for _, c := range all {
		switch c.field {
		case fieldARK:
		case fieldNAAN, fieldShoulder, fieldAssigned:
			if parts != got[fieldARK] { // otherwise the name says them
				b.element(k.source, c.name, c.value)
			}
		case fieldCommitment:
			b.rec.Persistence.Statement = c.value
		default:
			k.add(s, b, c)
		}
	}
	b.settle()
	if len(b.rec.Targets) == 0 && len(b.rec.Metadata) == 0 {
		b.rec.State = stele.Reserved // it was made, and nothing was bound to it
	}
	s.fill(row, b.finish(k.source))
}

// arkletName returns the identifier of an ARK as arklet keeps it, 12345/fk4abc.
func (s *Source) arkletName(ark string) (string, error) {
	mark := numberedMark(s.o.Schemes)
	if len(ark) > len(mark) && strings.EqualFold(ark[:len(mark)], mark) {
		return ark, nil
	}
	number, rest, ok := strings.Cut(ark, "/")
	if ark == "" || !ok || rest == "" {
		return "", failf(stele.Invalid, "import.arklet-name", "{name} is not an ARK as arklet keeps it, such as 12345/fk4abc", stele.Quote(ark))
	}
	given := strings.Trim(strings.TrimPrefix(s.o.Prefix, mark), "/")
	switch {
	case given != "" && strings.TrimLeft(given, "0") == strings.TrimLeft(number, "0"):
		return mark + given + "/" + rest, nil
	case len(number) < 5:
		return "", failf(stele.Invalid, "import.arklet-naan-short", "the NAAN {naan} of {name} has fewer than 5 digits, because arklet keeps it as a number; say what it is with --prefix, such as {example}",
			number, stele.Quote(ark), mark+strings.Repeat("0", 5-len(number))+number+"/")
	}
	return mark + ark, nil
}

// copyPart returns a dump of PostgreSQL of which one table is read.
func (s *Source) copyPart(k *tableKind, w *window, name string) *itemPart {
	c := &copied{table: table{kind: k, s: s, w: w, delimiter: ','}, name: name}
	p := &itemPart{s: s, w: w, kind: Copied, read: c.read, make: c.makeRow}
	if p.err = c.seek(); p.err == nil {
		p.err = s.entitle(c.title, w.name)
	}
	return p
}

// copied reads the rows of one table of a dump.
type copied struct {
	table
	name   string // of the table
	within bool   // its rows are read
}

// isCopy finds the statement before the rows of a table, and isInsert one that has rows in another form.
var (
	isCopy   = regexp.MustCompile(`^COPY\s+(?:"?\w+"?\.)?"?(\w+)"?\s*\(([^)]*)\)\s+FROM\s+stdin\s*;\s*$`)
	isInsert = regexp.MustCompile(`(?i)^INSERT\s+INTO\s+(?:"?\w+"?\.)?"?(\w+)"?[\s(]`)
)

// seek finds the rows of the table. Only the first rows have its columns; where there are more of them, the columns are the same.
func (c *copied) seek() error {
	w, skips := c.w, false // skips: the rows of another table are passed over
	for {
		line := w.line
		text, _, ok := w.nextLine()
		if !ok {
			switch {
			case w.failure() != nil:
				return w.failure()
			case skips:
				return c.cutOff()
			case c.columns == nil:
				return failf(stele.Invalid, "import.foreign-table-missing", "{file} has no rows of the table {table}; dump it with 'pg_dump -t {table}'", w.name, c.name)
			}
			return io.EOF
		}
		if skips {
			skips = string(text) != `\.`
			continue
		}
		if m := isInsert.FindSubmatch(text); m != nil && string(m[1]) == c.name {
			return failf(stele.Invalid, "import.foreign-sql-inserts", "{file}, line {line}: the rows of {table} are in INSERT; dump the database without --inserts", w.name, line, c.name)
		}
		m := isCopy.FindSubmatch(text)
		if m == nil {
			continue
		}
		if string(m[1]) != c.name {
			skips = true
			continue
		}
		var cells []string
		for cell := range strings.SplitSeq(string(m[2]), ",") {
			if cells = append(cells, strings.Trim(cell, ` "`)); len(cells) > maxColumns {
				return failf(stele.Invalid, "import.foreign-sql-columns", "{file}, line {line}: the table {table} has more than {most} columns", w.name, line, c.name, maxColumns)
			}
		}
		title := bulk.AppendRow(nil, cells, ',')
		if c.columns != nil && !bytes.Equal(title, c.title) {
			return failf(stele.Invalid, "import.foreign-sql-columns-differ", "{file}, line {line}: the columns of {table} differ from those before", w.name, line, c.name)
		}
		c.within = true
		if c.columns != nil {
			return nil
		}
		c.title = title
		return c.layout(cells)
	}
}

func (c *copied) cutOff() error {
	return failf(stele.Invalid, "import.foreign-sql-rows-cut-off", "{file} ends at line {line}, within the rows of a table; get the rest of it", c.w.name, c.w.line)
}

// read returns the next row.
func (c *copied) read() (item, error) {
	w := c.w
	for {
		if !c.within {
			if err := c.seek(); err != nil {
				return item{}, err
			}
		}
		line := w.line
		text, long, ok := w.nextLine()
		switch {
		case !ok && w.failure() != nil:
			return item{}, w.failure()
		case !ok:
			return item{}, c.cutOff()
		case string(text) == `\.`:
			c.within = false
		case long > 0 || len(text) > maxRow:
			return item{line: line, err: tooLong(max(long, len(text)), maxRow)}, nil
		default:
			return item{line: line, text: text}, nil
		}
	}
}

// makeRow makes a record of a row. A rejected one is written as CSV.
func (c *copied) makeRow(row *bulk.Row) {
	if bytes.Count(row.Text, []byte{'\t'}) >= maxColumns {
		row.Err = failf(stele.Invalid, "import.foreign-row-columns", "the row has more than {most} values", maxColumns)
		return
	}
	cells := make([]string, 0, len(c.columns))
	for _, cell := range copyCells(row.Text) {
		cells = append(cells, string(cell.text))
	}
	row.Text, row.Later = nil, func() []byte { return bulk.AppendRow(nil, neutral(cells), ',') }
	if len(cells) != len(c.columns) {
		row.Err = failf(stele.Invalid, "import.foreign-sql-row", "the row has {cells} values for {columns} columns", len(cells), len(c.columns))
		return
	}
	c.said(row, neutral(cells))
}

// neutral returns cells as a table has them, in which an apostrophe may stand before what is not a formula.
func neutral(cells []string) []string {
	list := slices.Clone(cells)
	for i, cell := range list {
		list[i] = bulk.Neutralise(cell)
	}
	return list
}
