package foreign

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/internal/plainxml"
)

// declaredEncoding finds the encoding in the declaration of a document.
var declaredEncoding = regexp.MustCompile(`^\s*<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]+)["'][^>]*\?>`)

// document returns the text of a document for a reader of XML in UTF-8. Batches of PURLZ say that they are in Latin-1.
func (w *window) document() io.Reader {
	head := w.peekText(recognised)
	encoding := bulk.UTF8
	if m := declaredEncoding.FindSubmatchIndex(head); m != nil {
		switch strings.ToLower(string(head[m[2]:m[3]])) {
		case "iso-8859-1", "latin1", "us-ascii", "ascii":
			encoding = bulk.Latin1
		case "windows-1252", "cp1252":
			encoding = bulk.CP1252
		}
		if encoding != bulk.UTF8 {
			w.take(m[1])
		}
	}
	rest := w.in
	if w.err != nil {
		rest = failedReader{w.err}
	}
	all := io.MultiReader(bytes.NewReader(w.buf[w.pos:]), rest)
	if encoding == bulk.UTF8 {
		return all
	}
	return bulk.NewDecoder(all, encoding)
}

// purlBatch finds the PURLs of a batch of PURLZ. It looks only for where they begin and end: readPURLXML, which several
// goroutines call, reads what they say.
type purlBatch struct {
	p      *purlPart
	cut    xmlCutter
	domain int

	text []byte   // for one
	open []string // for one
}

// The root of a batch, and the path of an element that is a PURL.
const (
	purlRoot = "purls"
	purlPath = "purls/purl"
)

// maxPURLDepth bounds elements within each other in a PURL. What we know is three deep.
const maxPURLDepth = 7

// readXML reads a batch of PURLZ.
func (p *purlPart) readXML(w *window) error {
	text := &window{name: w.name, in: w.document()}
	text.line = w.line
	if bytes.HasPrefix(text.peekText(3), []byte("\xef\xbb\xbf")) {
		text.take(3)
	}
	b := &purlBatch{p: p, cut: xmlCutter{w: text}, domain: len(p.domains)}
	p.domains = append(p.domains, purlDomain{})
	return b.read()
}

func (b *purlBatch) notBatch(code, text string, args ...any) error {
	return failf(stele.Invalid, "import.purl-xml-broken", "{file} is not a batch of PURLZ: {cause}", b.cut.w.name, stele.Messagef(code, text, args...))
}

func (b *purlBatch) crossed(line int, element string) error {
	return b.notBatch("import.purl-xml-tags", "line {line}: the end of {element} stands where another element ends", line, stele.Quote(element))
}

// read reads the whole batch.
func (b *purlBatch) read() error {
	begun, ended := false, false
	for {
		line := b.cut.w.line
		piece, err := b.cut.next()
		switch {
		case err == io.EOF && ended:
			return nil
		case err == io.EOF:
			return b.cut.cutOff()
		case err != nil:
			return err
		}
		within := begun && !ended
		switch {
		case piece.kind == xmlText && !isNothing(piece.raw, !begun):
			return b.notBatch("import.purl-xml-text", "line {line}: there is something between the PURLs that is not an element", line)
		case piece.kind == xmlText:
		case piece.kind == xmlEnd && (!within || piece.local != purlRoot):
			return b.crossed(line, piece.local)
		case piece.kind == xmlEnd:
			ended = true
		case !begun && piece.local == purlRoot:
			begun, ended = true, piece.kind == xmlEmpty
		case within && purlRoot+"/"+piece.local == purlPath:
			if err := b.one(piece, line); err != nil {
				return err
			}
		default:
			return b.notBatch("import.purl-xml-element", "line {line}: {element} is not an element of one", line, stele.Quote(piece.local))
		}
	}
}

// isNothing reports whether a text between elements is white space, a comment, or the declaration of the document before its root.
func isNothing(text []byte, declared bool) bool {
	return bytes.HasPrefix(text, []byte("<!--")) || declared && bytes.HasPrefix(text, []byte("<?xml ")) || len(bytes.TrimSpace(text)) == 0
}

// one cuts out a PURL whose first tag was read. No more than maxRow of it is in memory.
func (b *purlBatch) one(piece xmlPiece, line int) error {
	text, size := append(b.text[:0], piece.raw...), len(piece.raw)
	open := append(b.open[:0], piece.local)
	defer func() { b.text, b.open = text, open }()
	for piece.kind == xmlStart && len(open) > 0 {
		q, err := b.cut.next()
		if err == io.EOF {
			return b.cut.cutOff()
		} else if err != nil {
			return err
		}
		switch q.kind {
		case xmlStart:
			if open = append(open, q.local); len(open) > maxPURLDepth {
				return b.notBatch("import.purl-xml-deep", "line {line}: elements of a PURL are more than {most} deep", b.cut.w.line, maxPURLDepth)
			}
		case xmlEnd:
			if open[len(open)-1] != q.local {
				return b.crossed(b.cut.w.line, q.local)
			}
			open = open[:len(open)-1]
		}
		if size += len(q.raw); size <= maxRow {
			text = append(text, q.raw...)
		}
	}
	if size > maxRow {
		return b.p.fault(line, tooLong(size, maxRow))
	}
	return b.p.take(b.domain, false, line, text)
}

// isXML reports whether what a file says of a PURL is an element, and not an object.
func isXML(text []byte) bool { return len(text) > 0 && text[0] == '<' }

// plainID returns the attribute id of a PURL whose tag has nothing that needs a reader of XML, as almost all have; "" if it is not such
// a tag, or has no such attribute.
func plainID(text []byte) string {
	rest, ok := bytes.CutPrefix(text, []byte("<purl"))
	for ok {
		trimmed := bytes.TrimLeft(rest, " \t\r\n")
		if len(trimmed) == len(rest) {
			break
		}
		end := bytes.IndexByte(trimmed, '=')
		if end < 0 || end+2 > len(trimmed) {
			break
		}
		name, quote := trimmed[:end], trimmed[end+1]
		value := trimmed[end+2:]
		if !isLower(name) || quote != '"' && quote != '\'' {
			break
		}
		if end = bytes.IndexByte(value, quote); end < 0 {
			break
		}
		value, rest = value[:end], value[end+1:]
		if bytes.IndexByte(value, '<') >= 0 || bytes.IndexByte(value, '&') >= 0 {
			break
		}
		if string(name) == "id" {
			if bytes.ContainsAny(value, " \t\r\n") || len(rest) == 0 || !bytes.ContainsRune([]byte(" \t\r\n/>"), rune(rest[0])) {
				break
			}
			return string(value)
		}
	}
	return ""
}

// isLower reports whether a name is of lower-case letters of ASCII alone.
func isLower(name []byte) bool {
	for _, c := range name {
		if c < 'a' || c > 'z' {
			return false
		}
	}
	return len(name) > 0
}

// purlName returns the name of a PURL.
func purlName(text []byte) (string, error) {
	name, ok := "", true
	if !isXML(text) {
		name, ok = textMember(text, "name")
	} else if name = plainID(text); name == "" {
		said, err := readPURLXML(text)
		if err != nil {
			return "", err
		}
		name = said.name
	}
	if !ok || name == "" {
		return "", failf(stele.Invalid, "import.purl-nameless", "the PURL has no name")
	}
	return name, nil
}

// readPURLXML reads a PURL of a batch.
func readPURLXML(text []byte) (said purlSaid, err error) {
	root, err := plainxml.ParseText(string(text), plainxml.Limits{Bytes: maxRow, Token: maxRow, Depth: maxPURLDepth})
	if err != nil {
		return said, failf(stele.Invalid, "import.purl-broken", "the PURL can't be read: {cause}", stele.Reason(err))
	}
	r := &purlElement{said: &said}
	r.read(root, []string{purlRoot})
	if len(r.other) > stele.MaxFields {
		return said, tooManyMembers(len(r.other))
	}
	if len(r.other) > 0 {
		said.other = make(map[string]string, len(r.other))
	}
	for name, values := range r.other {
		said.other[name] = strings.Join(values, "\n")
	}
	return said, nil
}

// purlElement reads the element of a PURL.
type purlElement struct {
	said  *purlSaid
	other map[string][]string // what is not known, by the names of elements and attributes
}

// read reads an element with all that is in it; path are the elements around it.
func (r *purlElement) read(e *plainxml.Element, path []string) {
	said := r.said
	path = append(path, e.Name.Local)
	text := strings.TrimSpace(e.Text)
	var list *[]string
	where := strings.Join(path, "/")
	switch where {
	case "purls/purl/maintainers/uid":
		list = &said.users
	case "purls/purl/maintainers/gid":
		list = &said.groups
	}
	for _, a := range e.Attr {
		switch to := said.attribute(where, a.Name.Local); {
		case a.Name.Space == "xmlns" || a.Name == xml.Name{Local: "xmlns"}: // says nothing of the PURL
		case to != nil && *to == "":
			*to = strings.TrimSpace(a.Value)
		default:
			r.add(a.Name.Local, a.Value)
		}
	}
	for _, child := range e.Children {
		r.read(child, path)
	}
	switch {
	case text == "":
	case list != nil:
		*list = append(*list, text)
	default:
		r.add(e.Name.Local, text)
	}
}

// attribute returns where an attribute of an element with a path is kept; nil if it is not known.
func (s *purlSaid) attribute(path, name string) *string {
	switch path + "@" + name {
	case purlPath + "@id":
		return &s.name
	case purlPath + "@type":
		return &s.kind
	case purlPath + "/target@url":
		return &s.target
	case purlPath + "/seealso@url":
		return &s.see
	case purlPath + "/basepurl@path":
		return &s.base
	}
	return nil
}

// add keeps a text that is not known.
func (r *purlElement) add(name, text string) {
	if r.other == nil {
		r.other = make(map[string][]string)
	}
	r.other[name] = append(r.other[name], text)
}

// tooManyMembers refuses a PURL that says more than a record can have.
func tooManyMembers(n int) error {
	return failf(stele.Invalid, "import.purl-too-many-members", "the PURL has {count} members that are not known; {most} are the most", n, stele.MaxFields)
}

// purlObject returns a PURL of a batch as an object, as a file of rejected rows has it. One that can't be read has its text there.
func purlObject(text []byte) ([]byte, error) {
	type object struct {
		Name   string            `json:"name"`
		Type   string            `json:"type,omitempty"`
		Target string            `json:"target,omitempty"`
		See    string            `json:"seealso,omitempty"`
		Base   string            `json:"basepurl,omitempty"`
		Users  []string          `json:"uid,omitempty"`
		Groups []string          `json:"gid,omitempty"`
		Other  map[string]string `json:"other,omitempty"`
		XML    string            `json:"xml,omitempty"`
	}
	said, err := readPURLXML(text)
	if err != nil {
		name, _ := purlName(text) // one without a name is not sorted
		return json.Marshal(object{Name: name, XML: string(text)})
	}
	return json.Marshal(object{said.name, said.kind, said.target, said.see, said.base, said.users, said.groups, said.other, ""})
}

// equals reports whether two places say the same of a PURL. The spellings of its name may differ.
func (s *purlSaid) equals(t *purlSaid) bool {
	for i, value := range s.values() {
		if value != t.values()[i] {
			return false
		}
	}
	return slices.Equal(s.users, t.users) && slices.Equal(s.groups, t.groups) && maps.Equal(s.other, t.other)
}

func (s *purlSaid) values() [9]string {
	return [...]string{s.kind, s.target, s.see, s.base, s.created, s.modified, s.at, s.user, s.status}
}
