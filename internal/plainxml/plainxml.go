// Package plainxml reads XML that others send, within limits: it reads elements, attributes and text, and refuses
// what a document of data does not need. It refuses document type declarations, so that a document can neither define
// entities nor refer to anything outside of itself; processing instructions; encodings other than UTF-8; and
// documents that are too long, too deep or have too many parts. Only the five entities that XML itself defines, and
// numbers of characters, are read.
//
// A [Decoder] yields the tokens of a document of any length, for files. [Parse] reads a small document as a tree, for
// messages. The package opens nothing, and writes nothing.
package plainxml

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"github.com/stele-id/stele"
)

// Limits bound the work that a document may cause. A limit of 0 is the usual one.
type Limits struct {
	Bytes      int64 // of the document; usually 1 MiB; -1: no limit
	Token      int   // bytes of one tag, text or comment; usually 1 MiB
	Depth      int   // elements within each other; usually 64
	Elements   int64 // usually 10,000; -1: no limit
	Attributes int   // of one element, with declarations of namespaces; usually 64

	AllAttributes int64 // of all elements together; usually 10 for each of Elements; -1: no limit

	Instructions bool // processing instructions, such as those for style sheets, are passed over and not refused
}

// The usual limits.
const (
	usualBytes      = 1 << 20
	usualDepth      = 64
	usualElements   = 10_000
	usualAttributes = 64

	averageAttributes = 10
)

func (l Limits) usual() Limits {
	if l.Bytes == 0 {
		l.Bytes = usualBytes
	}
	if l.Token == 0 {
		l.Token = usualBytes
	}
	if l.Depth == 0 {
		l.Depth = usualDepth
	}
	if l.Elements == 0 {
		l.Elements = usualElements
	}
	if l.Attributes == 0 {
		l.Attributes = usualAttributes
	}
	switch {
	case l.AllAttributes != 0:
	case l.Elements < 0:
		l.AllAttributes = -1
	default:
		l.AllAttributes = max(averageAttributes*l.Elements, int64(l.Attributes))
	}
	return l
}

const op = "read XML"

func refuse(code, text string, args ...any) error {
	return stele.Errorf(op, stele.ID{}, stele.Invalid, code, text, args...)
}

// Decoder yields the tokens of a document.
type Decoder struct {
	in         *source
	xml        *xml.Decoder
	limits     Limits
	depth      int
	elements   int64
	attributes int64
	begun      bool // the root element has begun
	failed     error
}

// NewDecoder returns a Decoder that reads a document.
func NewDecoder(r io.Reader, limits Limits) *Decoder {
	limits = limits.usual()
	in := &source{r: r, limits: limits}
	d := &Decoder{in: in, xml: xml.NewDecoder(in), limits: limits}
	d.xml.Strict = true
	return d
}

// Line returns in which line of the document the decoder is.
func (d *Decoder) Line() int {
	line, _ := d.xml.InputPos()
	return line
}

// Offset returns how many bytes of the document the decoder has passed: where the token that it returned last ends.
func (d *Decoder) Offset() int64 { return d.xml.InputOffset() }

// Token returns the next token: an [xml.StartElement], an [xml.EndElement] or [xml.CharData], which is valid until the
// next call. It leaves out comments and the XML declaration. At the end of the document, where all elements have ended,
// it returns io.EOF. Any other error is Invalid, says what is wrong, and comes again from then on; it is that of the
// reader if that failed.
func (d *Decoder) Token() (xml.Token, error) {
	for d.failed == nil {
		d.in.token = 0
		t, err := d.xml.Token()
		if err != nil {
			d.failed = d.why(err)
			break
		}
		switch t := t.(type) {
		case xml.StartElement:
			d.failed = d.enter(&t)
		case xml.EndElement:
			d.depth--
		case xml.CharData:
			if d.depth == 0 && len(bytes.Trim(t, " \t\r\n\ufeff")) > 0 {
				d.failed = refuse("xml.text-outside", "line {line}: there is text outside of the root element", d.Line())
			}
		case xml.Comment:
			continue
		case xml.ProcInst:
			if t.Target == "xml" && !d.begun || t.Target != "xml" && d.limits.Instructions {
				continue
			}
			d.failed = refuse("xml.instruction", "line {line}: processing instructions are not read here; leave it out", d.Line())
		case xml.Directive:
			d.failed = refuse("xml.declaration", "line {line}: document type declarations are not read here, nor entities that they define; leave it out", d.Line())
		}
		if d.failed == nil {
			return t, nil
		}
	}
	return nil, d.failed
}

// enter judges the beginning of an element.
func (d *Decoder) enter(e *xml.StartElement) error {
	if d.begun && d.depth == 0 {
		return refuse("xml.second-root", "line {line}: there is a second root element", d.Line())
	}
	d.begun = true
	d.elements++
	d.attributes += int64(len(e.Attr))
	switch d.depth++; {
	case d.depth > d.limits.Depth:
		return refuse("xml.too-deep", "line {line}: elements are more than {most} deep", d.Line(), d.limits.Depth)
	case d.limits.Elements >= 0 && d.elements > d.limits.Elements:
		return refuse("xml.too-many-elements", "line {line}: there are more than {most} elements", d.Line(), d.limits.Elements)
	case len(e.Attr) > d.limits.Attributes:
		return refuse("xml.too-many-attributes", "line {line}: an element has more than {most} attributes", d.Line(), d.limits.Attributes)
	case d.limits.AllAttributes >= 0 && d.attributes > d.limits.AllAttributes:
		return refuse("xml.too-many-attributes-in-all", "line {line}: the elements have more than {most} attributes together", d.Line(), d.limits.AllAttributes)
	}
	for i, a := range e.Attr { // encoding/xml does not mind, and readers would differ in which one counts
		for _, b := range e.Attr[:i] {
			if a.Name == b.Name {
				return refuse("xml.attribute-twice", `line {line}: an element has the attribute "{attribute}" twice`, d.Line(), a.Name.Local)
			}
		}
	}
	return nil
}

// why returns the error for one of encoding/xml.
func (d *Decoder) why(err error) error {
	syntax, isSyntax := errors.AsType[*xml.SyntaxError](err)
	switch {
	case d.in.failed != nil: // the error of a reader, or a limit
		return d.in.failed
	case err == io.EOF && !d.begun:
		return refuse("xml.empty", "there is no XML element")
	case err == io.EOF:
		return io.EOF
	case isSyntax:
		return refuse("xml.syntax", "line {line}: it is not well-formed XML: {cause}", syntax.Line, syntax.Msg)
	}
	return refuse("xml.unreadable", "line {line}: it can't be read as XML: {cause}", d.Line(), err)
}

// source is the document, within the limits of bytes.
type source struct {
	r      io.Reader
	limits Limits
	all    int64
	token  int // bytes that were read since the last token; the decoder reads some ahead
	failed error
}

// readAhead is how much encoding/xml reads at a time.
const readAhead = 4096

func (s *source) Read(b []byte) (n int, err error) {
	if s.failed != nil {
		return 0, s.failed
	}
	n, err = s.r.Read(b)
	s.all += int64(n)
	s.token += n
	switch {
	case s.limits.Bytes >= 0 && s.all > s.limits.Bytes:
		s.failed = refuse("xml.too-long", "the document has more than {most} bytes", s.limits.Bytes)
	case s.token > s.limits.Token+readAhead:
		s.failed = refuse("xml.token-too-long", "a tag or a text of the document has more than {most} bytes", s.limits.Token)
	case err != nil && err != io.EOF:
		s.failed = err
	}
	if s.failed != nil {
		return 0, s.failed
	}
	return n, err
}

// Element is an element of a small document.
type Element struct {
	Name     xml.Name
	Attr     []xml.Attr
	Children []*Element
	Text     string // all text directly in it, as it stands
}

// Parse reads a small document as a tree. The error is Invalid, or that of the reader.
func Parse(r io.Reader, limits Limits) (*Element, error) {
	d := NewDecoder(r, limits)
	root := new(Element)
	type open struct {
		*Element
		text strings.Builder
	}
	stack := []*open{{Element: root}}
	for {
		t, err := d.Token()
		if err == io.EOF {
			return root.Children[0], nil
		}
		if err != nil {
			return nil, err
		}
		top := stack[len(stack)-1]
		switch t := t.(type) {
		case xml.StartElement:
			e := &Element{Name: t.Name, Attr: t.Attr}
			top.Children = append(top.Children, e)
			stack = append(stack, &open{Element: e})
		case xml.CharData:
			if len(stack) > 1 {
				top.text.Write(t)
			}
		case xml.EndElement:
			top.Element.Text = top.text.String()
			stack = stack[:len(stack)-1]
		}
	}
}

// Child returns the first child with a local name, in any namespace; nil if there is none.
func (e *Element) Child(local string) *Element {
	for _, c := range e.Children {
		if c.Name.Local == local {
			return c
		}
	}
	return nil
}

// Get returns the value of the attribute with a local name, in any namespace.
func (e *Element) Get(local string) string {
	for _, a := range e.Attr {
		if a.Name.Local == local && a.Name.Space != "xmlns" {
			return a.Value
		}
	}
	return ""
}

// Write writes text into a document so that it is read back as it is: the characters of markup are escaped, and what
// XML can't express becomes U+FFFD. A buffer takes everything, so that nothing fails.
func Write(b *bytes.Buffer, text string) { _ = xml.EscapeText(b, []byte(text)) }
