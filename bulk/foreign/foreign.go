// Package foreign reads the files of other systems for an import, and writes files that they read:
// one file of this package for each format. [Systems] lists them. A Handle server that runs can be read
// too: its handles are listed first and then read one by one.
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
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
)

// Format is a format of a file.
type Format string

// What every system has beside its own formats.
const (
	Auto    Format = "auto"    // the beginning of a file says it
	unknown Format = "unknown" // no format is recognised
)

// recognised is how many bytes of a file say what it is.
const recognised = 4096

// Options say what is read, and how.
type Options struct {
	System     string // whose files they are, by its name; Auto: the first file's beginning says it
	Schemes    *stele.Schemes
	Format     Format            // Auto: each file's beginning says it
	Admins     bool              // with values of type HS_ADMIN, HS_VLIST and HS_PUBKEY
	Secrets    bool              // with values of type HS_SECKEY, in clear
	Merges     bool              // a registered record keeps what Handle values do not say
	Namespaces bool              // make namespaces for prefixes that have none
	Has        func(string) bool // whether a prefix has a namespace, such as 20.500.12345/
	Registered Registered        // where batch files find handles that they do not create
	Now        func() time.Time  // when values are written that a batch file changes there
	Map        map[string]string // what tables and columns of SQL are called there, and their usual names
	Prefix     string            // stands before names that are not identifiers in the files, such as "hdl:"
	TempDir    string            // where files are sorted; "" for the system's folder
	Memory     int               // bytes that are sorted in memory; 0 for a usual size

	// Root is the folder in an archive after which names begin, where folders are a part of names; "" if all of a path is.
	Root string

	// Work bounds how long it takes to find out what the folders of a tree answer; see [webrules.Options]. 0: as much as the command may use.
	Work int

	// Budget bounds what is read, decompressed; nil: nothing does.
	Budget *bulk.Budget

	// Find returns the namespace with a key; nil if there is none.
	Find func(stele.NamespaceKey) *stele.Namespace
}

// Report is what was left out, and what else the caller should tell.
type Report struct {
	Admins  int64    // values of type HS_ADMIN, HS_VLIST and HS_PUBKEY that were left out
	Secrets int64    // values of type HS_SECKEY that were left out
	Missing []string // homed prefixes without a namespace
	Notes   []error  // what else has no place in a registry
}

// Source is the rows of some files. It implements [bulk.Rows].
type Source struct {
	o      Options
	system *System
	files  []*bulk.File
	kinds  []Format

	parts   []part // what is still to be read
	at      int    // which part is read
	offset  int64  // where reading begins in it
	line    int
	admins  atomic.Int64
	secrets atomic.Int64
	persons atomic.Int64 // data of persons, such as IP addresses, that were left out
	title   []byte       // the header of tables
	missing []string
	seen    map[string]bool // prefixes
	notes   []error
	unnoted int     // notes beyond those that are kept
	number  uint64  // of the import, if an earlier run has begun
	checks  []Check // tests that the files bring along
	future  *future // what the files say, together; for tests
	err     error
	aliases aliases

	sorters  []*sorter        // of the parts
	done     int64            // what Done said last
	progress func() int64     // how much is read, if the files do not say it; may be nil
	closing  []func() []error // what to tell after all was read
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
	if o.Has == nil {
		o.Has = func(string) bool { return false }
	}
	if o.Find == nil {
		o.Find = func(stele.NamespaceKey) *stele.Namespace { return nil }
	}
	s := &Source{o: o, files: files, seen: make(map[string]bool)}
	texts := make([]*window, len(files))
	for i, f := range files {
		texts[i] = newWindow(f)
		texts[i].in = o.Budget.Reader(texts[i].in)
		kind, err := s.recognise(texts[i])
		if err != nil {
			return nil, err
		}
		s.kinds = append(s.kinds, kind)
	}
	s.parts = s.system.open(s, texts)
	return s, nil
}

// recognise finds out what a file is, and, by the first one, what system the files come from.
func (s *Source) recognise(w *window) (Format, error) {
	head := w.peekText(recognised)
	if err := w.failure(); err != nil {
		return unknown, err
	}
	if wide := bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")); wide {
		kind, err := s.recogniseText(w, (&window{name: w.name, in: bytes.NewReader(head), line: 1}).decoded().peekText(recognised))
		if err == nil && kind != CSV {
			err = failf(stele.Invalid, "import.foreign-utf-16", "{file} begins with the byte order mark of UTF-16; convert it to UTF-8, as 'iconv -f UTF-16 -t UTF-8' does", w.name)
		}
		return kind, err
	}
	return s.recogniseText(w, head)
}

// recogniseText finds out the same by the beginning of the text.
func (s *Source) recogniseText(w *window, head []byte) (Format, error) {
	if s.system == nil {
		var kind Format
		if s.system, kind = systemOf(s.o.System, head); s.system == nil {
			return unknown, failf(stele.Invalid, "import.foreign-system-unknown", "{file} does not begin as a file of a system that is known; name the system with --from", w.name)
		} else if kind != unknown && s.isAuto() {
			return kind, nil
		}
	}
	if !s.isAuto() {
		return s.o.Format, nil
	}
	kind := s.system.recognise(head)
	if kind == unknown {
		return kind, failf(stele.Invalid, "import.foreign-format-unknown", "{file} does not begin as a file of {system} does; name its format with --format", w.name, s.system.Title)
	}
	return kind, nil
}

// isAuto reports whether the files say themselves what their formats are.
func (s *Source) isAuto() bool { return s.o.Format == Auto || s.o.Format == "" }

// System returns the system that the files come from.
func (s *Source) System() *System { return s.system }

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
	b.WriteString(s.system.Name)
	if s.o.Prefix != "" {
		b.WriteString(" prefix=" + s.o.Prefix)
	}
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
			if s.addsSpaces() {
				s.addSpaces(p, b)
			}
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
	if s.addsSpaces() {
		return // they are made already
	}
	p := s.parts[b.End>>partBits]
	for i := range b.Rows {
		if row := &b.Rows[i]; row.Err == nil && row.Namespace == nil {
			bulk.ParseRow(row, p.parse)
		}
	}
}

// SkipTo implements [bulk.Rows].
func (s *Source) SkipTo(end int64, line int) error {
	s.at, s.offset, s.line = int(end>>partBits), end&(1<<partBits-1), line
	return nil
}

// Done implements [bulk.Rows]. Files that are sorted are read to their end before the first row comes, so of these
// it counts what came out of the sorter.
func (s *Source) Done() int64 {
	if s.progress != nil {
		return s.progress()
	}
	read, added, pulled := int64(0), int64(0), int64(0)
	for _, f := range s.files {
		read += f.Read.Load()
	}
	for _, sorter := range s.sorters {
		added += sorter.added
		pulled += sorter.pulled
	}
	if added > 0 {
		read = int64(float64(read) * float64(pulled) / float64(added))
	}
	s.done = max(s.done, read) // a part that is not sorted may come first
	return s.done
}

// newSorter returns a sorter whose progress counts.
func (s *Source) newSorter() *sorter {
	made := newSorter(s.o.TempDir, s.o.Memory)
	s.sorters = append(s.sorters, made)
	return made
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
	notes := slices.Clip(s.notes)
	if n := s.persons.Load(); n > 0 {
		notes = append(notes, stele.Messagef("import.foreign-persons-left-out", "{count} IP addresses of persons who made links were left out", n))
	}
	notes = append(notes, s.aliasCycles()...)
	for _, f := range s.closing {
		notes = append(notes, f()...)
	}
	if s.unnoted > 0 {
		notes = append(notes, stele.Messagef("import.foreign-notes-more", "{count} more notes like these are not listed; import the files in smaller parts to see all", s.unnoted))
	}
	return Report{Admins: s.admins.Load(), Secrets: s.secrets.Load(), Missing: s.missing, Notes: notes}
}

// maxNotes bounds what is told beside rejected rows.
const maxNotes = 100

// note tells something that is not about one record. Notes beyond maxNotes are counted.
func (s *Source) note(code, text string, args ...any) {
	if len(s.notes) >= maxNotes {
		s.unnoted++
		return
	}
	s.notes = append(s.notes, stele.Messagef(code, text, args...))
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

// failf makes an error of an import.
func failf(kind stele.Kind, code, text string, args ...any) error {
	return &stele.Error{Op: "import", Kind: kind, Err: stele.Messagef(code, text, args...)}
}
