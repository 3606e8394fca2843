package foreign

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/mint"
)

// The formats of files of Noid and Nog, which make names, and of egg, which keeps what is known of them
// (N2T's binder). All are databases of keys and values:
//
//	ID<tab>ELEMENT      Noid: an element of a name; elements that begin with :/ are Noid's own
//	ID|ELEMENT          egg: the same; ^hh stands for a character in names of both
//	:/NAME              the minter itself: its template, its counters, and so on
const (
	NOIDDump Format = "db_dump" // a text dump of Berkeley DB, with -p or without
	NOIDInfo Format = "dbinfo"  // what `noid dbinfo dump` prints: KEY: VALUE
	EggIDs   Format = "iddump"  // what `egg iddump` prints: elements and values in hexadecimal, by name
	NOIDJSON Format = "json"    // the state of a minter as EZID keeps it
)

// openNOID opens files of Noid, Nog and egg.
func openNOID(s *Source, texts []*window) []part {
	return []part{&noidPart{s: s, o: &s.o, texts: texts, numbered: numberedMark(s.o.Schemes), sorter: s.newSorter()}}
}

// noidPart reads files of Noid, Nog and egg. Their databases are sorted by keys, of which a name has
// several, but a database can be a hash and names can be in several files: so all is sorted.
type noidPart struct {
	s      *Source
	o      *Options
	texts  []*window
	sorter *sorter
	seq    uint64

	numbered string // stands before names that begin with a NAAN

	sorted bool
	done   int64 // how many names were handed over
	heads  []bulk.Row

	minter *noidMinter // of the file that is read
	queued int
	idmaps int
}

// noidPair is a key with its value.
type noidPair struct {
	key, value []byte
	line       int
}

// detectNOID finds out what a file is by its beginning.
func detectNOID(head []byte) Format {
	text := bytes.TrimLeft(head, " \t\r\n")
	for bytes.HasPrefix(text, []byte("#")) && !bytes.HasPrefix(text, []byte(idMark)) { // remarks of a file of rejected rows
		_, rest, _ := bytes.Cut(text, []byte("\n"))
		text = bytes.TrimLeft(rest, " \t\r\n")
	}
	first, _, _ := bytes.Cut(text, []byte("\n"))
	switch {
	case bytes.HasPrefix(text, []byte("VERSION=")):
		return NOIDDump
	case bytes.HasPrefix(text, []byte(idMark)):
		return EggIDs
	case bytes.HasPrefix(text, []byte("{")):
		return NOIDJSON
	case len(text) == 0:
		return NOIDInfo // of nothing
	}
	if _, _, ok := cutInfo(first); ok {
		return NOIDInfo
	}
	return unknown
}

// isNOID reports whether a beginning has keys of Noid, Nog or egg, in text or in hexadecimal.
func isNOID(head []byte) bool {
	for _, mark := range []string{":/", "3a2f", idMark, `\09`, "|_t", "|__m"} {
		if bytes.Contains(head, []byte(mark)) {
			return true
		}
	}
	return false
}

func (p *noidPart) close() error { return p.sorter.close() }

// read reads all files.
func (p *noidPart) read() error {
	p.sorted = true
	for i, w := range p.texts {
		p.minter = &noidMinter{values: make(map[string]string)}
		var err error
		switch p.s.kinds[i] {
		case NOIDDump:
			err = readNOIDDump(w, p.take)
		case EggIDs:
			err = readEggIDs(w, p.bind, p.fault)
		case NOIDJSON:
			err = readNOIDJSON(w, p.take)
		default:
			err = readNOIDInfo(w, p.take)
		}
		if err != nil {
			return err
		}
		p.heads = append(p.heads, p.minterRows()...)
	}
	if p.queued > 0 {
		p.s.note("import.noid-queued", "{count} names are queued there to be issued again; this registry issues no name twice, so they stay reserved", p.queued)
	}
	if p.idmaps > 0 {
		p.s.note("import.noid-idmap", "{count} rules (:idmap) compute values of names by patterns, and are not imported", p.idmaps)
	}
	return p.sorter.sort()
}

// take takes a key with its value.
func (p *noidPart) take(pair noidPair, bad error) error {
	if bad != nil {
		return p.fault(pair.line, bad)
	}
	if name, ok := bytes.CutPrefix(pair.key, []byte(":/")); ok {
		return p.takeOwn(string(name), pair)
	}
	if id, element, ok := bytes.Cut(pair.key, []byte("\t")); ok {
		return p.bind(fromNoid, string(id), string(element), pair.value, pair.line)
	}
	if id, element, ok := bytes.Cut(pair.key, []byte("|")); ok {
		return p.bind(fromEgg, unflex(string(id)), unflex(string(element)), pair.value, pair.line)
	}
	return p.fault(pair.line, failf(stele.Invalid, "import.noid-key-unknown", "{key} is not a key of Noid or egg: it has neither a tab nor a vertical bar after a name", stele.Quote(string(pair.key))))
}

// takeOwn takes what the program keeps for itself.
func (p *noidPart) takeOwn(name string, pair noidPair) error {
	switch {
	case strings.HasPrefix(name, "idmap/"):
		p.idmaps++
		return nil
	case strings.HasPrefix(name, "q/"): // a name that waits to be issued, or issued again
		p.queued++
		return p.bind(fromNoid, string(pair.value), queueElement, []byte(name[len("q/"):]), pair.line)
	}
	return p.minter.set(name, string(pair.value), pair.line)
}

// fault takes a row that can't be read.
func (p *noidPart) fault(line int, err error) error {
	if len(p.heads) >= maxHeads {
		return failf(stele.Invalid, "import.foreign-rows-refused", "more than {most} rows can't be read; the last one is at line {line}", maxHeads, line)
	}
	p.heads = append(p.heads, bulk.Row{Line: line, Err: err})
	return nil
}

// The programs that names come from, as the metadata calls them.
const (
	fromNoid = "noid"
	fromEgg  = "egg"
)

// bind takes an element of a name.
func (p *noidPart) bind(program, id, element string, value []byte, line int) error {
	if len(id)+len(element)+len(value) > maxRow {
		return p.fault(line, tooLong(len(id)+len(element)+len(value), maxRow))
	}
	key := id
	if parsed, err := p.o.Schemes.Parse(p.identify(program, id)); err == nil {
		key = parsed.String() // so that all spellings of a name come together
	}
	p.seq++
	b := binary.AppendUvarint(nil, uint64(line))
	for _, text := range []string{program, id, element} {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	return p.sorter.add(key, p.seq, append(b, value...))
}

// binding is an element of a name.
type binding struct {
	program, id, element, value string
	line                        int
}

// parseBinding reads what bind wrote.
func parseBinding(b []byte) (e binding, err error) {
	line, b, ok := cutNumber(b)
	if !ok {
		return e, errSorted
	}
	e.line = int(line)
	for _, text := range []*string{&e.program, &e.id, &e.element} {
		var n uint64
		if n, b, ok = cutNumber(b); !ok || n > uint64(len(b)) {
			return e, errSorted
		}
		*text, b = string(b[:n]), b[n:]
	}
	e.value = string(b)
	return e, nil
}

// identify returns a name as an identifier's text.
func (p *noidPart) identify(program, id string) string {
	if program == fromEgg {
		return id
	}
	if p.o.Prefix != "" {
		return p.o.Prefix + id
	}
	if naan, _, ok := strings.Cut(id, "/"); ok && isNAAN(naan) {
		return p.numbered + id
	}
	return id
}

// numberedMark returns what stands before a name that begins with a NAAN: the name of the scheme whose check
// characters are those of such names, and a colon.
func numberedMark(schemes *stele.Schemes) string {
	for _, name := range schemes.Names() {
		if _, ok := schemes.Lookup(name).(interface{ CheckZone(string) string }); ok {
			return name + ":"
		}
	}
	return ""
}

// isNAAN reports whether a text looks like the number of a name assigning authority: five characters, or
// some more, of which none is a vowel (the ARK draft, section 2.3).
func isNAAN(text string) bool {
	return len(text) >= 5 && len(text) <= 9 && !slices.ContainsFunc([]byte(text), func(c byte) bool { return !mint.IsBetanumeric(c) })
}

// unflex resolves ^hh, which egg writes for characters that separate names and elements.
func unflex(text string) string {
	if !strings.Contains(text, "^") {
		return text
	}
	b := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] == '^' && i+2 < len(text) {
			if c, ok := hexByte(text[i+1], text[i+2]); ok {
				b = append(b, c)
				i += 2
				continue
			}
		}
		b = append(b, text[i])
	}
	return string(b)
}

// skip implements part. What was sorted is the same each time, so names are counted.
func (p *noidPart) skip(end int64, _ int) error {
	if err := p.read(); err != nil {
		return err
	}
	p.heads = nil
	for p.done < end {
		if _, _, err := p.sorter.next(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		p.done++
	}
	return nil
}

// next implements part.
func (p *noidPart) next() (*bulk.Block, error) {
	if !p.sorted {
		if err := p.read(); err != nil {
			return nil, err
		}
	}
	b := &bulk.Block{Rows: p.heads}
	p.heads = nil
	for len(b.Rows) == 0 || b.Size < windowBytes {
		_, list, err := p.sorter.next()
		if err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		p.done++
		row := bulk.Row{Line: firstLine(list)}
		if row.Err = list[0].err; row.Err != nil {
			b.Rows = append(b.Rows, row)
			continue
		}
		for _, e := range list {
			row.Text = append(binary.AppendUvarint(row.Text, uint64(len(e.data))), e.data...)
		}
		b.Size += len(row.Text) + 64
		b.Rows = append(b.Rows, row)
	}
	if len(b.Rows) == 0 {
		return nil, io.EOF
	}
	b.Line, b.Next, b.End = b.Rows[0].Line, b.Rows[len(b.Rows)-1].Line+1, max(p.done, 1)
	return b, nil
}

// firstLine returns the number of the first line of a name.
func firstLine(list []entry) int {
	e, err := parseBinding(list[0].data)
	if err != nil {
		return 0
	}
	return e.line
}
