// Package foreign reads the files of other systems for an import, and writes files that they read:
// one file of this package for each format. So far these are the files of Handle servers: JSON
// exports, text dumps of Berkeley DB and the log of its transactions, SQL dumps, and batch files; a
// server that runs, whose handles are listed first and then read one by one; and the databases of Noid,
// Nog and egg, with the states of their minters.
//
// A [Source] brings records to an import of package bulk, with a bookmark from which an interrupted
// import continues. It streams files that have a record in one place. In other files what is known
// of a record is in several places; they are sorted first, in temporary files if they are large.
//
// Nothing is left out silently: what a record can't keep makes the record a rejected one, with the
// reason, and values that only an administrator may bring are counted.
package foreign

import (
	"bytes"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
)

// Format is a format of a file.
type Format string

// The formats of files of Handle servers.
const (
	Auto    Format = "auto"
	JSON    Format = "json"    // {"homedPrefixes":[...],"handleRecords":{...}}, or a record a line
	Dump    Format = "dump"    // a text dump of Berkeley DB: handles-*.dump, nas-*.dump
	Log     Format = "txnlog"  // dbtxns.log, which is replayed over a dump
	SQL     Format = "sql"     // of pg_dump or mysqldump
	Batch   Format = "batch"   // for hdl-genericbatch
	unknown Format = "unknown" // no format is recognised
)

// Formats returns all formats.
func Formats() []Format { return []Format{Auto, JSON, Dump, Log, SQL, Batch} }

// Options say what is read, and how.
type Options struct {
	Schemes    *stele.Schemes
	Format     Format            // Auto: each file's beginning says it
	Admins     bool              // with values of type HS_ADMIN, HS_VLIST and HS_PUBKEY
	Secrets    bool              // with values of type HS_SECKEY, in clear
	Merges     bool              // a registered record keeps what Handle values do not say
	Namespaces bool              // make namespaces for prefixes that have none
	Has        func(string) bool // whether a prefix has a namespace, such as 20.500.12345/
	Map        map[string]string // what tables and columns of SQL are called there, and their usual names
	TempDir    string            // where files are sorted; "" for the system's folder
	Memory     int               // bytes that are sorted in memory; 0 for a usual size
}

// Report is what was left out, and what else the caller should tell.
type Report struct {
	Admins  int64    // values of type HS_ADMIN, HS_VLIST and HS_PUBKEY that were left out
	Secrets int64    // values of type HS_SECKEY that were left out
	Missing []string // homed prefixes without a namespace
	Notes   []string // what else has no place in a registry
}

// Source is the rows of some files. It implements [bulk.Rows].
type Source struct {
	o     Options
	files []*bulk.File
	kinds []Format

	parts   []part // what is still to be read
	at      int    // which part is read
	offset  int64  // where reading begins in it
	line    int
	admins  atomic.Int64
	secrets atomic.Int64
	missing []string
	seen    map[string]bool // prefixes
	notes   []string
	err     error

	progress func() int64 // how much is read, if the files do not say it; may be nil
}

// part is one thing that is read from its beginning to its end: a file, or what was sorted.
type part interface {
	// next returns the next block, whose End counts within the part; io.EOF at the end.
	next() (*bulk.Block, error)

	// parse fills in a row. Its Record may have what next knows of it: the name as its Spelling,
	// and values.
	parse(row *bulk.Row)

	// skip continues after a block that had this End.
	skip(end int64, line int) error

	close() error
}

// The offset of a bookmark has the number of the part above these bits.
const partBits = 48

// Open finds out what the files are.
func Open(files []*bulk.File, o Options) (*Source, error) {
	s := &Source{o: o, files: files, seen: make(map[string]bool)}
	if o.Has == nil {
		s.o.Has = func(string) bool { return false }
	}
	sorted := false
	texts := make([]*window, len(files))
	for i, f := range files {
		texts[i] = newWindow(f)
		kind := o.Format
		if kind == Auto || kind == "" {
			kind = detect(texts[i])
		}
		if err := texts[i].failure(); err != nil {
			return nil, err
		}
		switch kind {
		case unknown:
			return nil, failf(stele.Invalid, "import.foreign-format-unknown", "{file} does not begin as a file of a Handle server does; name its format with --format", f.Name)
		case Log, SQL, Batch:
			sorted = true
		}
		s.kinds = append(s.kinds, kind)
	}
	if sorted {
		s.parts = []part{newFolded(s, texts)}
		return s, nil
	}
	for i, w := range texts {
		if s.kinds[i] == JSON {
			s.parts = append(s.parts, &jsonPart{s: s, w: w})
		} else {
			s.parts = append(s.parts, &dumpPart{s: s, w: w})
		}
	}
	return s, nil
}

// Kinds returns the format of each file.
func (s *Source) Kinds() []Format { return s.kinds }

// Key names the files as they are now, and what is read of them; "" if a file has no identity.
func (s *Source) Key() string {
	var b strings.Builder
	for i, f := range s.files {
		if f.Key == "" {
			return ""
		}
		b.WriteString(f.Key)
		b.WriteString(" " + string(s.kinds[i]) + " ")
	}
	b.WriteString("handle")
	if s.o.Admins {
		b.WriteString(" admins")
	}
	if s.o.Namespaces { // an import without them, which tells what is missing, may be complete
		b.WriteString(" namespaces")
	}
	for _, name := range slices.Sorted(maps.Keys(s.o.Map)) {
		b.WriteString(" " + name + "=" + s.o.Map[name])
	}
	return b.String()
}

// Next implements [bulk.Rows].
func (s *Source) Next() (*bulk.Block, error) {
	for s.at < len(s.parts) {
		p := s.parts[s.at]
		if s.offset > 0 {
			if err := p.skip(s.offset, s.line); err != nil {
				return nil, err
			}
			s.offset = 0
		}
		b, err := p.next()
		if err == nil {
			b.End |= int64(s.at) << partBits
			b.Read = s.Done()
			return b, nil
		}
		if err != io.EOF {
			return nil, err
		}
		if err := p.close(); err != nil {
			return nil, err
		}
		s.at++
	}
	return nil, io.EOF
}

// Parse implements [bulk.Rows].
func (s *Source) Parse(b *bulk.Block) {
	p := s.parts[b.End>>partBits]
	for i := range b.Rows {
		if row := &b.Rows[i]; row.Err == nil && row.Namespace == nil {
			p.parse(row)
		}
	}
}

// SkipTo implements [bulk.Rows].
func (s *Source) SkipTo(end int64, line int) error {
	s.at, s.offset, s.line = int(end>>partBits), end&(1<<partBits-1), line
	return nil
}

// Done implements [bulk.Rows].
func (s *Source) Done() (read int64) {
	if s.progress != nil {
		return s.progress()
	}
	for _, f := range s.files {
		read += f.Read.Load()
	}
	return read
}

// Close removes what was made for sorting.
func (s *Source) Close() error {
	var first error
	for _, p := range s.parts {
		if err := p.close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// Report returns what was left out so far.
func (s *Source) Report() Report {
	return Report{Admins: s.admins.Load(), Secrets: s.secrets.Load(), Missing: s.missing, Notes: s.notes}
}

// maxNotes bounds what is told beside rejected rows.
const maxNotes = 100

// note tells something that is not about one record.
func (s *Source) note(text string) {
	if len(s.notes) < maxNotes {
		s.notes = append(s.notes, text)
	}
}

// prefix takes a homed prefix, 0.NA/20.500.12345, and returns the row of its namespace, if one is to be made.
func (s *Source) prefix(name string, line int) []bulk.Row {
	bare := name
	if len(name) > len(authorities) && strings.EqualFold(name[:len(authorities)], authorities) {
		bare = name[len(authorities):]
	}
	key := upper(bare) + "/"
	if s.seen[key] {
		return nil
	}
	s.seen[key] = true
	scheme := s.o.Schemes.Lookup(handleScheme)
	if scheme == nil {
		return []bulk.Row{{Line: line, Err: failf(stele.Invalid, "locations.handle-scheme-missing", "handles are not among the known schemes")}}
	}
	prefix, _, err := scheme.ParsePrefix(handleMark + key)
	if err != nil {
		return []bulk.Row{{Line: line, Err: failf(stele.Invalid, "import.foreign-prefix-refused", "the homed prefix {prefix} can't be a namespace: {cause}", name, stele.Reason(err))}}
	}
	if s.o.Has(prefix.String()) {
		return nil
	}
	if !s.o.Namespaces {
		s.missing = append(s.missing, prefix.String())
		return nil
	}
	return []bulk.Row{{Line: line, Namespace: &stele.Namespace{Scheme: handleScheme, Prefix: prefix.String()}}}
}

// detect finds out what a file is by its beginning.
func detect(w *window) Format {
	head := w.peekText(4096)
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	text := bytes.TrimLeft(head, " \t\r\n")
	for len(text) > 0 && text[0] == '#' { // remarks of a file of rejected rows
		_, rest, _ := bytes.Cut(text, []byte("\n"))
		text = bytes.TrimLeft(rest, " \t\r\n")
	}
	switch {
	case len(text) == 0:
		return Batch // of nothing
	case text[0] == '{':
		return JSON
	case bytes.HasPrefix(text, []byte("VERSION=")):
		return Dump
	case head[0] == logMark && len(head) > 1 && head[1] <= actionDeleteAll:
		return Log
	}
	first, _, _ := bytes.Cut(text, []byte("\n"))
	word, rest, _ := strings.Cut(strings.TrimSpace(string(first)), " ")
	if isCommand(strings.ToUpper(word)) && !isStatement.MatchString(rest) {
		return Batch
	}
	if bytes.HasPrefix(text, []byte("--")) || bytes.HasPrefix(text, []byte("/*")) || bytes.HasPrefix(text, []byte("\\restrict")) {
		return SQL
	}
	switch strings.ToUpper(word) {
	case "INSERT", "COPY", "SET", "CREATE", "DROP", "LOCK", "SELECT", "BEGIN", "START":
		return SQL
	}
	return unknown
}

// isStatement finds what follows CREATE in SQL, where a batch file has a handle.
var isStatement = regexp.MustCompile(`(?i)^(?:TEMP(?:ORARY)? |UNLOGGED |UNIQUE )?(?:TABLE|DATABASE|SCHEMA|EXTENSION|SEQUENCE|INDEX|ROLE|USER|TYPE|FUNCTION)(?: |$)`)

// failf makes an error of an import.
func failf(kind stele.Kind, code, text string, args ...any) error {
	return &stele.Error{Op: "import", Kind: kind, Err: stele.Messagef(code, text, args...)}
}
