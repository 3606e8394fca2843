package foreign

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/document/anvl"
	"github.com/stele-id/stele/document/ezidrecord"
	"github.com/stele-id/stele/internal/plainxml"
)

// The formats of batch downloads of EZID, of which [CSV] is one (EZID API, version 2, "Batch download"). What the elements of a record mean,
// package ezidrecord knows, as for EZID's API here.
const (
	EZIDText Format = "anvl" // blocks of ANVL, each after a line with :: and the identifier
	EZIDXML  Format = "xml"  // records/record[@identifier]/element[@name]
)

const fieldID = "id"

func ezidTable() *tableKind {
	return &tableKind{source: "ezid", columns: map[string]string{"_id": fieldID}, need: [][]string{{fieldID}}, exact: true, make: ezidRow}
}

// detectEZID finds out what a batch download is by its beginning.
func detectEZID(head []byte) Format {
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	for len(text) > 0 && text[0] == '#' { // remarks of a file of rejected rows
		_, text, _ = bytes.Cut(text, []byte("\n"))
		text = bytes.TrimLeft(text, " \t\r\n")
	}
	switch {
	case bytes.HasPrefix(text, []byte(blockMark)):
		return EZIDText
	case bytes.HasPrefix(text, []byte("<")):
		return EZIDXML
	case ezidTable().recognises(head):
		return CSV
	}
	return unknown
}

// isEZID reports whether a beginning is that of a batch download and of no other file.
func isEZID(head []byte) bool {
	return detectEZID(head) != EZIDXML || bytes.Contains(head, []byte("<records>")) && bytes.Contains(head, []byte("<record identifier="))
}

// openEZID opens batch downloads.
func openEZID(s *Source, texts []*window) (parts []part) {
	mixed := slices.Contains(s.kinds, CSV) && slices.ContainsFunc(s.kinds, func(f Format) bool { return f != CSV })
	for i, w := range texts {
		var p *itemPart
		switch s.kinds[i] {
		case CSV:
			p = s.tablePart(ezidTable(), w)
		case EZIDXML:
			r := &ezidXML{w: w}
			p = &itemPart{s: s, w: w, kind: EZIDXML, read: r.read, make: s.ezidRecord}
		default:
			r := &ezidBlocks{w: w}
			p = &itemPart{s: s, w: w, kind: EZIDText, read: r.read, make: s.ezidBlock}
		}
		if mixed {
			p.err = failf(stele.Invalid, "import.foreign-forms-mixed", "{file}: tables and other files can't be in one import; import them one by one", w.name)
		}
		parts = append(parts, p)
	}
	return parts
}

// ezidElements makes a record of the elements of an identifier.
func (s *Source) ezidElements(row *bulk.Row, name string, elements []anvl.Element) {
	id, err := ezidrecord.ParseName(s.o.Schemes, name)
	if err != nil {
		row.Err = err
		return
	}
	rec, err := ezidrecord.FromBatch(s.o.Schemes, id, elements)
	if err != nil {
		row.Err = err
		return
	}
	s.fill(row, rec)
}

// ezidRow makes a record of a row of CSV.
func ezidRow(s *Source, row *bulk.Row, all []said) {
	var name string
	elements := make([]anvl.Element, 0, len(all))
	for _, c := range all {
		if c.field == fieldID {
			name = c.value
			continue
		}
		elements = append(elements, anvl.Element{Label: c.name, Value: c.value})
	}
	if name == "" {
		row.Err = errNoIdentifier()
		return
	}
	s.ezidElements(row, name, elements)
}

func errNoIdentifier() error {
	return failf(stele.Invalid, "import.ezid-identifier-missing", "the record of EZID has no identifier")
}

// blockMark begins the line with the identifier of a block.
const blockMark = ":: "

// ezidBlocks cuts a file in ANVL into blocks.
type ezidBlocks struct{ w *window }

// read returns the next block, with an empty line at its end, so that the file of rejected rows has one.
func (r *ezidBlocks) read() (item, error) {
	w := r.w
	if w.base == 0 && w.pos == 0 && bytes.HasPrefix(w.peekText(3), []byte("\xef\xbb\xbf")) {
		w.take(3)
	}
	line, size := 0, 0
	var text []byte
	for {
		at := w.line
		one, long, ok := w.nextLine()
		switch {
		case !ok && w.failure() != nil:
			return item{}, w.failure()
		case !ok && line == 0:
			return item{}, io.EOF
		case !ok || len(one) == 0 && line > 0:
			if size > maxRow {
				return item{line: line, err: tooLong(size, maxRow)}, nil
			}
			if !ok && w.unended() {
				return item{line: line, text: text, err: failf(stele.Invalid, "", "{cause}", errUnended(w.name))}, nil
			}
			return item{line: line, text: text}, nil
		case len(one) == 0 || line == 0 && one[0] == '#':
			continue
		case line == 0:
			line = at
		}
		if size += max(long, len(one)) + 1; size <= maxRow {
			text = append(append(text, one...), '\n')
		}
	}
}

// ezidBlock makes a record of a block.
func (s *Source) ezidBlock(row *bulk.Row) {
	first, rest, _ := bytes.Cut(row.Text, []byte("\n"))
	name, ok := bytes.CutPrefix(first, []byte(blockMark))
	if !ok {
		row.Err = failf(stele.Invalid, "import.ezid-block-nameless", "the block does not begin with :: and an identifier")
		return
	}
	elements, err := anvl.ParseFrom(string(rest), row.Line+1)
	if err != nil {
		row.Err = err
		return
	}
	s.ezidElements(row, string(bytes.TrimSpace(name)), elements)
}

// ezidXML cuts a file in XML into its records, which stand in no other element. What is in them is read later.
type ezidXML struct {
	w     *window
	begun bool
}

const (
	recordsBegin, recordsEnd = "<records>", "</records>"
	recordBegin, recordEnd   = "<record", "</record>"
)

// read returns the next record.
func (r *ezidXML) read() (item, error) {
	w := r.w
	if !r.begun {
		if err := r.begin(); err != nil {
			return item{}, err
		}
		r.begun = true
	}
	w.space()
	head := w.peekText(len(recordsEnd))
	switch {
	case w.failure() != nil:
		return item{}, w.failure()
	case bytes.HasPrefix(head, []byte(recordsEnd)):
		w.take(len(recordsEnd))
		if w.space(); !w.ended() {
			return item{}, r.broken("the end of the file")
		}
		return item{}, io.EOF
	case !bytes.HasPrefix(head, []byte(recordBegin)):
		return item{}, r.broken("a record")
	}
	line := w.line
	text, size, err := r.upTo("", recordEnd)
	if err != nil {
		return item{}, err
	}
	if size > maxRow {
		return item{line: line, err: tooLong(size, maxRow)}, nil
	}
	return item{line: line, text: text}, nil
}

// begin passes over what stands before the first record: a declaration and comments, but no document type.
func (r *ezidXML) begin() error {
	w := r.w
	if bytes.HasPrefix(w.peekText(3), []byte("\xef\xbb\xbf")) {
		w.take(3)
	}
	for {
		w.space()
		head := w.peekText(len(recordsBegin))
		end := ""
		switch {
		case w.failure() != nil:
			return w.failure()
		case bytes.HasPrefix(head, []byte(recordsBegin)):
			w.take(len(recordsBegin))
			return nil
		case bytes.HasPrefix(head, []byte("<?xml")):
			end = "?>"
		case bytes.HasPrefix(head, []byte("<!--")):
			end = "-->"
		case bytes.HasPrefix(head, []byte("<!")):
			return failf(stele.Invalid, "import.xml-declaration", "{file}: the document type declaration at line {line} is not read; leave it out", w.name, w.line)
		default:
			return r.broken(recordsBegin)
		}
		if _, _, err := r.upTo(end, ""); err != nil {
			return err
		}
	}
}

// upTo returns all up to the end of a mark, and its size; of what is too long it returns nothing. In comments, sections and instructions
// a mark does not count; within is the end of that in which the text begins, and is a mark itself if there is none other.
func (r *ezidXML) upTo(within, mark string) (text []byte, size int, err error) {
	w := r.w
	for from := 0; ; {
		rest := w.buf[w.pos:]
		from, within, text = xmlMark(rest, from, within, mark)
		if text != nil {
			return w.take(len(text)), size + len(text), nil
		}
		if len(rest) > 2*maxRow {
			w.take(from)
			size, from = size+from, 0
		}
		if !w.fill() {
			if err := w.failure(); err != nil {
				return nil, 0, err
			}
			return nil, 0, failf(stele.Invalid, "import.ezid-xml-cut-off", "{file} is cut off at line {line}: {mark} is missing there; get the rest of it", w.name, w.line, cmp.Or(mark, within))
		}
	}
}

// xmlMark looks for a mark from a place on, and returns the text up to its end. If there is none yet, the text is nil, and the search goes
// on from next, when there is more of the text, in what within ends.
func xmlMark(rest []byte, from int, within, mark string) (next int, end string, text []byte) {
	for {
		if within != "" {
			n := bytes.Index(rest[from:], []byte(within))
			if n < 0 {
				return max(from, len(rest)-len(within)+1), within, nil
			}
			from += n + len(within)
			if mark == "" {
				return from, within, rest[:from]
			}
			within = ""
		}
		n := bytes.IndexByte(rest[from:], '<')
		if n < 0 {
			return len(rest), "", nil
		}
		from += n
		head := rest[from:]
		switch {
		case bytes.HasPrefix(head, []byte(mark)):
			return from, "", rest[:from+len(mark)]
		case len(head) < max(len(mark), len(sectionBegin)):
			return from, "", nil
		case bytes.HasPrefix(head, []byte("<!--")):
			from, within = from+len("<!--"), "-->"
		case bytes.HasPrefix(head, []byte(sectionBegin)):
			from, within = from+len(sectionBegin), "]]>"
		case bytes.HasPrefix(head, []byte("<?")):
			from, within = from+len("<?"), "?>"
		default:
			from++
		}
	}
}

const sectionBegin = "<![CDATA["

func (r *ezidXML) broken(want string) error {
	w := r.w
	if w.ended() {
		return failf(stele.Invalid, "import.ezid-xml-cut-off", "{file} is cut off at line {line}: {mark} is missing there; get the rest of it", w.name, w.line, recordsEnd)
	}
	return failf(stele.Invalid, "import.ezid-xml-broken", "{file} is not a batch download of EZID in XML at line {line}: {expected} should stand there", w.name, w.line, want)
}

// ezidRecord makes a record of one in XML. If it is rejected, the file of rejected rows has it in ANVL, in which it can stand alone.
func (s *Source) ezidRecord(row *bulk.Row) {
	name, elements, err := readEZIDRecord(row.Text)
	if err != nil {
		row.Err = err
		return
	}
	row.Text, row.Later = nil, func() []byte {
		b := append([]byte(blockMark), strings.Map(oneLine, name)...)
		b = append(b, '\n')
		for _, e := range elements {
			b = anvl.Append(b, e.Label, e.Value)
		}
		return b
	}
	if name == "" {
		row.Err = errNoIdentifier()
		return
	}
	s.ezidElements(row, name, elements)
}

func oneLine(r rune) rune {
	if r == '\r' || r == '\n' {
		return ' '
	}
	return r
}

// readEZIDRecord reads a record in XML. Documents of DataCite and Crossref stand in it as XML, and are kept as they are written there.
func readEZIDRecord(text []byte) (name string, elements []anvl.Element, err error) {
	if !utf8.Valid(text) {
		return "", nil, failf(stele.Invalid, "import.ezid-not-utf-8", "the record is not UTF-8")
	}
	limits := plainxml.Limits{Bytes: maxRow, Token: maxRow, Elements: 100_000}
	if root, ok := plainxml.Plain(string(text), limits); ok {
		if elements, ok := plainEZIDElements(root); ok {
			return strings.TrimSpace(root.Get("identifier")), elements, nil
		}
	}
	dec := plainxml.NewDecoder(bytes.NewReader(text), limits)
	var value strings.Builder
	depth, begins, inner := 0, int64(0), false // inner: the element has others within
	seen := make(map[string]bool)
	for {
		before := dec.Offset()
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return name, elements, nil
		}
		if err != nil {
			return "", nil, err
		}
		switch t := token.(type) {
		case xml.StartElement:
			depth++
			switch {
			case depth == 1:
				name = strings.TrimSpace(attribute(t, "identifier"))
			case depth == 2:
				label := attribute(t, "name")
				if t.Name.Local != "element" || label == "" || seen[label] || len(elements) == anvl.MaxElements {
					return "", nil, failf(stele.Invalid, "import.ezid-xml-element", "{element} {name} is not an element with a name of its own", t.Name.Local, stele.Quote(label))
				}
				seen[label] = true
				elements = append(elements, anvl.Element{Label: label})
				begins, inner = dec.Offset(), false
				value.Reset()
			default:
				inner = true
			}
		case xml.CharData:
			if depth == 2 {
				value.Write(t)
			}
		case xml.EndElement:
			if depth == 2 {
				e := &elements[len(elements)-1]
				if e.Value = value.String(); inner {
					e.Value = string(text[begins:before])
				}
			}
			depth--
		}
	}
}

// plainEZIDElements returns the elements of a record; false if one has others within, or is none.
func plainEZIDElements(root *plainxml.Element) ([]anvl.Element, bool) {
	if len(root.Children) > anvl.MaxElements {
		return nil, false
	}
	elements := make([]anvl.Element, len(root.Children))
	for i, e := range root.Children {
		label := e.Get("name")
		if e.Name.Local != "element" || label == "" || len(e.Children) > 0 {
			return nil, false
		}
		elements[i] = anvl.Element{Label: label, Value: e.Text}
		for k := range min(i, maxCompared) {
			if elements[k].Label == label {
				return nil, false
			}
		}
	}
	return elements, len(elements) <= maxCompared
}

// maxCompared is how many elements are compared with each other.
const maxCompared = 100

func attribute(t xml.StartElement, name string) string {
	for _, a := range t.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}
