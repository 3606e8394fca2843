package foreign

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"io"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
)

// The formats of files of PURL servers: purl.org as the Internet Archive keeps it, and PURLZ, which many others run.
//
//	purl_NAME_purl.json          {"name":"/x","created":T,"maintainer":{...},"purls":[{"name","type","target","created","modified"},...]}
//	purl_NAME_purl_history.json  {"history":[{"name","type","target","status","modtime","user"},...]}
//	PURLZ batch                  <purls><purl id="/x/a" type="302"><maintainers>...</maintainers><target url="..."/></purl>...</purls>
//
// A file of rejected rows has objects like those of purl.org, with both lists, one a line.
const (
	PURLJSON Format = "json"
	PURLXML  Format = "xml"
)

// purlHost stands before the names of purl.org.
const purlHost = "https://purl.org"

// purlSource is the name under which the metadata keeps what PURL servers know beside.
const purlSource = "purls"

const (
	maxLinks   = 1_000_000 // PURLs that are made of others
	maxDomains = 1_000_000
	maxLink    = 100      // PURLs that are each made of the next
	maxAbout   = 16 << 10 // bytes that an object says of all its PURLs; the record of each has them
)

// detectPURLOrg finds out whether a file is one of purl.org by its beginning.
func detectPURLOrg(head []byte) Format {
	if isJSON(head) {
		return PURLJSON
	}
	return unknown
}

// isPURLOrg reports whether a beginning has the members of purl.org's files.
func isPURLOrg(head []byte) bool {
	return isJSON(head) && (bytes.Contains(head, []byte(`"purls"`)) || bytes.Contains(head, []byte(`"history"`)) && bytes.Contains(head, []byte(`"modtime"`)))
}

// detectPURLZ finds out what a file of PURLZ is by its beginning.
func detectPURLZ(head []byte) Format {
	switch text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n"); {
	case bytes.HasPrefix(text, []byte("<")):
		return PURLXML
	case isJSON(head):
		return PURLJSON
	case purlTable().recognises(head):
		return CSV
	}
	return unknown
}

// isPURLZ reports whether a beginning is that of a batch of PURLZ.
func isPURLZ(head []byte) bool {
	switch detectPURLZ(head) {
	case PURLXML:
		return bytes.Contains(head, []byte("<purls"))
	case CSV:
		return true
	}
	return false
}

// openPURLOrg opens files of purl.org.
func openPURLOrg(s *Source, texts []*window) []part {
	p := newPURLPart(s, texts)
	if p.base = s.o.Prefix; p.base == "" {
		p.base = purlHost
	}
	p.relative = purlHost
	return []part{p}
}

// openPURLZ opens files of PURLZ.
func openPURLZ(s *Source, texts []*window) (parts []part) {
	var batches []*window
	k := purlTable()
	for i, w := range texts {
		if s.kinds[i] == CSV {
			parts = append(parts, s.tablePart(k, w))
		} else {
			batches = append(batches, w)
		}
	}
	if batches == nil {
		return parts
	}
	p := newPURLPart(s, batches)
	p.base, p.relative = s.o.Prefix, s.o.Prefix
	return append(parts, p)
}

// purlPart reads files of PURL servers. What is known of a name is in several places, so all is sorted.
type purlPart struct {
	s        *Source
	texts    []*window
	base     string // stands before names
	relative string // what targets without a host are relative to
	sorter   *sorter
	seq      uint64

	domains []purlDomain
	known   map[string]bool   // names of domains whose present PURLs were read, in lower case
	links   map[string]string // of PURLs that are made of another: the name of that one; both by key
	bases   map[string]purlSaid
	loosely int // PURLs that change the extension of what follows the name

	sorted bool
	done   int64
	heads  []bulk.Row
}

// purlDomain is what a file says of all its PURLs.
type purlDomain struct {
	name string
	said stele.Metadata // what else it says, by the names of the metadata
	size int            // bytes of that
}

func newPURLPart(s *Source, texts []*window) *purlPart {
	return &purlPart{s: s, texts: texts, sorter: s.newSorter(), known: make(map[string]bool), links: make(map[string]string), bases: make(map[string]purlSaid)}
}

func (p *purlPart) close() error { return p.sorter.close() }

// read reads all files.
func (p *purlPart) read() error {
	p.sorted = true
	for _, w := range p.texts {
		read := p.readJSON
		if text := bytes.TrimLeft(bytes.TrimPrefix(w.peekText(recognised), []byte("\xef\xbb\xbf")), " \t\r\n"); bytes.HasPrefix(text, []byte("<")) {
			read = p.readXML
		}
		if err := read(w); err != nil {
			return err
		}
	}
	if p.loosely > 0 {
		p.s.note("import.purl-extensions", "{count} PURLs change the extension of what follows their name (types partial-...-extension); here it is appended as it is. Their metadata has the type, purls.type", p.loosely)
	}
	if err := p.sorter.sort(); err != nil || len(p.links) == 0 {
		return err
	}
	return p.join()
}

// join finds what PURLs that others are made of say: all is sorted once more.
func (p *purlPart) join() error {
	wanted := make(map[string]bool)
	for _, key := range p.links {
		if p.links[key] == "" {
			wanted[key] = true
		}
	}
	again := p.s.newSorter()
	defer func() { p.sorter = again }()
	defer p.sorter.close()
	for {
		e, err := p.sorter.step()
		if err == io.EOF {
			return again.sort()
		} else if err != nil {
			return err
		}
		if found, err := parsePURLEntry(e.data); err == nil && wanted[e.key] && !found.past {
			p.bases[e.key], _ = readPURL(found.text) // one that can't be read leads nowhere
		}
		if err := again.add(e.key, e.seq, e.data); err != nil {
			return err
		}
	}
}

// fault takes a row that can't be read.
func (p *purlPart) fault(line int, err error) error {
	if len(p.heads) >= maxHeads {
		return failf(stele.Invalid, "import.foreign-rows-refused", "more than {most} rows can't be read; the last one is at line {line}", maxHeads, line)
	}
	p.heads = append(p.heads, bulk.Row{Line: line, Err: err})
	return nil
}

// take takes what a file says of a PURL, an object in JSON or an element in XML: now, or in the past.
func (p *purlPart) take(domain int, past bool, line int, text []byte) error {
	name, err := purlName(text)
	if err != nil {
		return p.fault(line, err)
	}
	key := p.key(name)
	if !past && mayBeLink(text) {
		if said, err := readPURL(text); err == nil && said.isLink() {
			if len(p.links) >= maxLinks {
				return failf(stele.Invalid, "import.purl-too-many-links", "more than {most} PURLs are of the types clone and chain; import their domains one by one", maxLinks)
			}
			p.links[key] = p.key(said.link())
		}
	}
	if !past && (bytes.Contains(text, []byte(`-extension"`)) || isXML(text) && bytes.Contains(text, []byte(`-extension'`))) {
		p.loosely++
	}
	e := purlEntry{line: line, domain: domain, past: past, text: text}
	p.seq++
	return p.sorter.add(key, p.seq, e.append(make([]byte, 0, len(text)+maxEntryHead)))
}

// mayBeLink reports whether a PURL can be of the types clone and chain. In XML a number can stand for a letter.
func mayBeLink(text []byte) bool {
	if isXML(text) {
		return bytes.Contains(text, []byte("clone")) || bytes.Contains(text, []byte("chain")) || bytes.Contains(text, []byte("&#"))
	}
	return bytes.Contains(text, []byte(`clone"`)) || bytes.Contains(text, []byte(`chain"`))
}

// identify returns a name as an identifier's text.
func (p *purlPart) identify(name string) string {
	return strings.TrimSuffix(p.base, "/") + "/" + strings.TrimPrefix(name, "/")
}

// key returns that under which a name is sorted: all spellings of an identifier have the same.
func (p *purlPart) key(name string) string {
	text := p.identify(name)
	if id, err := p.s.o.Schemes.Parse(text); err == nil {
		return id.String()
	}
	return text
}

// purlEntry is what one place of a file says of a PURL.
type purlEntry struct {
	line   int
	domain int
	past   bool
	text   []byte
}

// maxEntryHead is how much append writes before the text.
const maxEntryHead = 2*binary.MaxVarintLen64 + 1

func (e *purlEntry) append(b []byte) []byte {
	b = appendNumber(appendNumber(b, uint64(e.line)), uint64(e.domain))
	was := byte(0)
	if e.past {
		was = 1
	}
	return append(append(b, was), e.text...)
}

// parsePURLEntry reads what append wrote.
func parsePURLEntry(b []byte) (e purlEntry, err error) {
	line, b, ok := cutNumber(b)
	if !ok {
		return e, errSorted
	}
	domain, b, ok := cutNumber(b)
	if !ok || len(b) == 0 {
		return e, errSorted
	}
	return purlEntry{int(line), int(domain), b[0] == 1, b[1:]}, nil
}

// skip implements part. What was sorted is the same each time, so names are counted.
func (p *purlPart) skip(end int64, _ int) error {
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
func (p *purlPart) next() (*bulk.Block, error) {
	if !p.sorted {
		if err := p.read(); err != nil {
			return nil, err
		}
	}
	b := &bulk.Block{Rows: p.heads}
	p.heads = nil
	for len(b.Rows) == 0 || b.Size < windowBytes {
		key, list, err := p.sorter.next()
		if err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		p.done++
		first, err := parsePURLEntry(list[0].data)
		row := bulk.Row{Line: first.line, Err: cmp.Or(list[0].err, err)}
		if row.Err != nil {
			b.Rows = append(b.Rows, row)
			continue
		}
		row.Text = append(binary.AppendUvarint(row.Text, uint64(len(key))), key...)
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

// textMember returns a member of an object in JSON that is a text, if the object has it at its own level.
func textMember(text []byte, name string) (string, bool) {
	depth, key := 0, false // key: the next string is a member's name
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{':
			depth++
			key = depth == 1
		case '[':
			depth++
		case '}', ']':
			depth--
		case ',':
			key = depth == 1
		case '"':
			begin := i + 1
			for i = begin; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			if i >= len(text) {
				return "", false
			}
			if !key || string(text[begin:i]) != name {
				key = false
				continue
			}
			key = false
			rest := bytes.TrimLeft(text[i+1:], " \t\r\n")
			rest = bytes.TrimLeft(bytes.TrimPrefix(rest, []byte(":")), " \t\r\n")
			if len(rest) == 0 || rest[0] != '"' {
				return "", false
			}
			end := 1
			for ; end < len(rest) && rest[end] != '"'; end++ {
				if rest[end] == '\\' {
					end++
				}
			}
			if end >= len(rest) {
				return "", false
			}
			if isPlain(rest[1:end]) {
				return string(rest[1:end]), true
			}
			var value string
			err := json.Unmarshal(rest[:end+1], &value)
			return value, err == nil
		}
	}
	return "", false
}
