package foreign

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/stele-id/stele"
)

// The tables of a Handle server, and their columns in the usual order (specification, section 4).
var sqlTables = map[string][]string{
	"nas":     {"na"},
	"handles": {"handle", "idx", "type", "data", "ttl_type", "ttl", "timestamp", "refs", "admin_read", "admin_write", "pub_read", "pub_write"},
}

// needed are the columns without which a row says nothing.
var needed = map[string][]string{"nas": {"na"}, "handles": {"handle", "idx", "type", "data"}}

// sqlReader reads what pg_dump and mysqldump write: COPY and INSERT of the two tables. It reads the
// columns of CREATE TABLE, and passes over all other statements.
type sqlReader struct {
	lexer
	to      *folded
	columns map[string][]string // by table, as CREATE TABLE has them
	types   map[string]string   // of columns, by table and name
	found   bool                // one of the tables
	told    map[string]bool     // tables and columns that are not read
}

func newSQLReader(to *folded) *sqlReader {
	return &sqlReader{to: to, columns: make(map[string][]string), types: make(map[string]string), told: make(map[string]bool)}
}

func readSQL(w *window, to *folded) error {
	head := w.peekText(4096)
	r := newSQLReader(to)
	r.lexer = lexer{w: w, mysql: isMySQL(head), ansi: ansi.Match(head)}
	for {
		t, err := r.next()
		if err != nil {
			return err
		}
		switch {
		case t.kind == tokenEnd:
			if !r.found {
				to.s.note("import.foreign-sql-no-tables", "{file} has no table handles and no table nas; if they have other names there, say so with --map NAME=handles", w.name)
			}
			return nil
		case t.is("COPY"):
			err = r.copy()
		case t.is("INSERT"), t.is("REPLACE"):
			err = r.insert()
		case t.is("CREATE"):
			err = r.create()
		case !t.is(";"):
			err = r.rest()
		}
		if err != nil {
			return err
		}
	}
}

var (
	postgres = regexp.MustCompile(`(?i)PostgreSQL database dump|\bCOPY\s[^;]*\sFROM\s+stdin\b|\sbytea\b`)
	mysql    = regexp.MustCompile(`(?m)^(?:--|#|/\*).*(?:MySQL|MariaDB)`)
	ansi     = regexp.MustCompile(`(?m)^/\*![0-9]+ SET .*SQL_MODE='[^']*\bANSI`) // mysqldump --compatible=ansi
	// comments, but not those with a version, which MySQL executes, and strings
	aside = regexp.MustCompile(`(?s)--[^\n]*|/\*[^!].*?\*/|'(?:[^'\\]|\\.)*(?:'|\z)`)
)

// isMySQL reports whether a dump is of MySQL or MariaDB by its beginning. What only PostgreSQL writes comes
// first, because any dump may mention the others. MySQL names itself in a comment, or writes names
// in backticks.
func isMySQL(head []byte) bool {
	if postgres.Match(aside.ReplaceAllFunc(head, func(text []byte) []byte {
		if bytes.HasPrefix(text, []byte("-- PostgreSQL database dump")) {
			return text
		}
		return nil
	})) {
		return false
	}
	return mysql.Match(head) || bytes.IndexByte(aside.ReplaceAll(head, nil), '`') >= 0
}

// usual returns the usual name of a table or a column.
func (r *sqlReader) usual(name string) string {
	name = strings.ToLower(name)
	if mapped, ok := r.to.s.o.Map[name]; ok {
		return mapped
	}
	return name
}

// table reads the name of a table, with its schema before it, and returns the usual name.
func (r *sqlReader) table() (string, error) {
	for {
		t, err := r.next()
		if err != nil {
			return "", err
		}
		if t.kind != tokenName {
			return "", r.unexpected(t, "the name of a table")
		}
		name := string(t.text)
		dot, err := r.peek()
		if err != nil {
			return "", err
		}
		if !dot.is(".") {
			return r.usual(name), nil
		}
		if _, err := r.next(); err != nil {
			return "", err
		}
	}
}

// rest passes over the rest of a statement.
func (r *sqlReader) rest() error {
	for {
		t, err := r.next()
		if err != nil || t.is(";") {
			return err
		}
		if t.kind == tokenEnd {
			return r.cutOff()
		}
	}
}

// names reads names in parentheses, if they stand here.
func (r *sqlReader) names(table string) (list []string, err error) {
	t, err := r.peek()
	if err != nil || !t.is("(") {
		return nil, err
	}
	for {
		if t, err = r.next(); err != nil {
			return nil, err
		}
		switch {
		case t.is(")"):
			return list, nil
		case t.kind == tokenName:
			list = append(list, r.usual(string(t.text)))
		case !t.is("(") && !t.is(","):
			return nil, r.unexpected(t, "the name of a column")
		}
		if len(list) > maxColumns {
			return nil, r.columnsMost(table)
		}
	}
}

const maxColumns = maxTableColumns

// columnsMost refuses a table that is none of a Handle server, before it takes memory.
func (r *sqlReader) columnsMost(table string) error {
	return failf(stele.Invalid, "import.foreign-sql-columns", "{file}, line {line}: the table {table} has more than {most} columns", r.w.name, r.w.line, table, maxColumns)
}

// create reads the columns of CREATE TABLE.
func (r *sqlReader) create() error {
	t, err := r.next()
	if err != nil || !t.is("TABLE") {
		return r.ended(t, err)
	}
	if t, err = r.peek(); err == nil && t.is("IF") {
		for range 3 { // IF NOT EXISTS
			if _, err = r.next(); err != nil {
				return err
			}
		}
	}
	table, err := r.table()
	if err != nil {
		return err
	}
	if t, err = r.next(); err != nil || !t.is("(") {
		return r.ended(t, err)
	}
	var columns []string
	first := true // of an item
	for depth := 1; depth > 0; {
		if t, err = r.next(); err != nil {
			return err
		}
		switch {
		case t.kind == tokenEnd:
			return r.cutOff()
		case t.is("("):
			depth++
		case t.is(")"):
			depth--
		case t.is(",") && depth == 1:
			first = true
			continue
		case first && t.kind == tokenName && (t.quoted || !slices.Contains([]string{"PRIMARY", "UNIQUE", "KEY", "CONSTRAINT", "INDEX", "FULLTEXT", "FOREIGN", "CHECK"}, strings.ToUpper(string(t.text)))):
			name := r.usual(string(t.text))
			if columns = append(columns, name); len(columns) > maxColumns {
				return r.columnsMost(table)
			}
			if t, err = r.peek(); err != nil {
				return err
			}
			r.types[table+"."+name] = strings.ToLower(string(t.text))
		}
		first = false
	}
	r.columns[table] = columns
	return r.rest()
}

// ended passes over the rest of a statement of which t was read.
func (r *sqlReader) ended(t token, err error) error {
	switch {
	case err != nil || t.is(";"):
		return err
	case t.kind == tokenEnd:
		return r.cutOff()
	}
	return r.rest()
}

// layout returns the columns of the rows that follow; nil if the table is not one of ours.
func (r *sqlReader) layout(table string, given []string) ([]string, error) {
	usual, ours := sqlTables[table]
	if !ours {
		if !r.told[table] {
			r.told[table] = true
			r.to.s.note("import.foreign-sql-table-skipped", "{file}: the table {table} is not one of a Handle server, and is left out; if it is one under another name, say so with --map {table}=handles", r.w.name, stele.Quote(table))
		}
		return nil, nil
	}
	r.found = true
	columns := given
	if columns == nil {
		columns = r.columns[table]
	}
	if columns == nil {
		columns = usual
	}
	for _, name := range needed[table] {
		if !slices.Contains(columns, name) {
			return nil, failf(stele.Invalid, "import.foreign-sql-column-missing", "{file}, line {line}: the table {table} has the columns {columns}, and {missing} is not among them; say which it is with --map COLUMN={missing}",
				r.w.name, r.w.line, table, strings.Join(columns, ", "), name)
		}
	}
	var left []string
	for _, name := range columns {
		if at := table + "." + name; !slices.Contains(usual, name) && !r.told[at] {
			r.told[at] = true
			left = append(left, stele.Quote(name))
		}
	}
	if len(left) > 0 {
		const most = 20
		count := len(left)
		r.to.s.note("import.foreign-sql-columns-skipped", "{file}: {count} columns of the table {table} mean nothing to a Handle server, and are left out: {columns}", r.w.name, count, table, strings.Join(left[:min(most, count)], ", "))
	}
	return columns, nil
}

// insert reads INSERT INTO table (columns) VALUES (...), (...);
func (r *sqlReader) insert() error {
	var t token
	var err error
	for !t.is("INTO") { // IGNORE, DELAYED
		if t, err = r.next(); err != nil || t.is(";") {
			return err
		}
		if t.kind == tokenEnd {
			return r.cutOff()
		}
	}
	table, err := r.table()
	if err != nil {
		return err
	}
	given, err := r.names(table)
	if err != nil {
		return err
	}
	for !t.is("VALUES") && !t.is("VALUE") { // OVERRIDING SYSTEM VALUE
		if t, err = r.next(); err != nil || t.is(";") {
			return err
		}
		if t.kind == tokenEnd {
			return r.cutOff()
		}
		if t.is("SELECT") {
			return r.rest()
		}
	}
	columns, err := r.layout(table, given)
	if err != nil {
		return err
	}
	if columns == nil {
		return r.rest()
	}
	for {
		if t, err = r.next(); err != nil {
			return err
		}
		switch {
		case t.is(";"):
			return nil
		case t.kind == tokenEnd:
			return r.cutOff()
		case t.is(","):
		case t.is("("):
			line := r.w.line
			cells, err := r.cells()
			if err != nil {
				return err
			}
			if err := r.row(table, columns, cells, line); err != nil {
				return err
			}
		default: // ON CONFLICT ...
			return r.rest()
		}
	}
}

// cells reads the values of a row, after its parenthesis.
func (r *sqlReader) cells() (list []cell, err error) {
	for {
		t, err := r.next()
		if err != nil {
			return nil, err
		}
		c := cell{text: t.text}
		switch {
		case t.kind == tokenString, t.kind == tokenNumber:
		case t.kind == tokenHex:
			c.octets = true
		case t.is("NULL"):
			c = cell{null: true}
		case t.kind == tokenName && !t.quoted: // true, false
		default:
			return nil, r.unexpected(t, "a value")
		}
		list = append(list, c)
		if len(list) > maxColumns {
			return nil, r.unexpected(t, "fewer values")
		}
		if t, err = r.next(); err != nil {
			return nil, err
		}
		for t.is(":") || t.kind == tokenName { // ::bytea
			if t, err = r.next(); err != nil {
				return nil, err
			}
		}
		switch {
		case t.is(")"):
			return list, nil
		case !t.is(","):
			return nil, r.unexpected(t, "a comma")
		}
	}
}

// copy reads COPY table (columns) FROM stdin; and the lines after it.
func (r *sqlReader) copy() error {
	table, err := r.table()
	if err != nil {
		return err
	}
	given, err := r.names(table)
	if err != nil {
		return err
	}
	stdin, csv := false, false
	for {
		t, err := r.next()
		if err != nil {
			return err
		}
		if t.is(";") {
			break
		}
		if t.kind == tokenEnd {
			return r.cutOff()
		}
		stdin, csv = stdin || t.is("STDIN"), csv || t.is("CSV") || t.is("BINARY")
	}
	if !stdin {
		return nil
	}
	columns, err := r.layout(table, given)
	if err != nil {
		return err
	}
	if csv && columns != nil {
		return failf(stele.Invalid, "import.foreign-sql-copy-format", "{file}, line {line}: COPY of {table} is not in the text format; dump the database without --format", r.w.name, r.w.line, table)
	}
	r.w.nextLine() // the rest of the line with the semicolon
	for {
		line := r.w.line
		text, long, ok := r.w.nextLine()
		switch {
		case !ok:
			if err := r.w.failure(); err != nil {
				return err
			}
			return failf(stele.Invalid, "import.foreign-sql-cut-off", "{file} ends at line {line}, within the rows of {table}; get the rest of it", r.w.name, r.w.line, table)
		case string(text) == `\.`:
			return nil
		case columns == nil:
		case long > 0:
			cells := copyCells(text) // of its beginning; the last one is cut off
			if err := r.fault(table, columns, cells[:len(cells)-1], line, tooLong(long, maxLine)); err != nil {
				return err
			}
		default:
			if err := r.row(table, columns, copyCells(text), line); err != nil {
				return err
			}
		}
	}
}

// copyCells cuts a line of COPY: tabs between cells, \N for NULL, and escapes.
func copyCells(text []byte) (list []cell) {
	for part := range bytes.SplitSeq(text, []byte("\t")) {
		if string(part) == `\N` {
			list = append(list, cell{null: true})
			continue
		}
		list = append(list, cell{text: unescapeCopy(part)})
	}
	return list
}

func unescapeCopy(part []byte) []byte {
	if bytes.IndexByte(part, '\\') < 0 {
		return part
	}
	out := make([]byte, 0, len(part))
	for i := 0; i < len(part); i++ {
		c := part[i]
		if c != '\\' || i+1 == len(part) {
			out = append(out, c)
			continue
		}
		i++
		const letters, meanings = "bfnrtv", "\b\f\n\r\t\v"
		switch c = part[i]; {
		case strings.IndexByte(letters, c) >= 0:
			out = append(out, meanings[strings.IndexByte(letters, c)])
		case '0' <= c && c <= '7':
			n := 0
			for k := 0; k < 3 && i < len(part) && '0' <= part[i] && part[i] <= '7'; k++ {
				n = n<<3 | int(part[i]-'0')
				i++
			}
			i--
			out = append(out, byte(n))
		default:
			out = append(out, c)
		}
	}
	return out
}
