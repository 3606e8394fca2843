package plainxml

import (
	"encoding/xml"
	"strings"
	"unicode/utf8"
)

// ParseText reads a small document as a tree, as [Parse] does.
func ParseText(text string, limits Limits) (*Element, error) {
	if root, ok := Plain(text, limits); ok {
		return root, nil
	}
	return Parse(strings.NewReader(text), limits)
}

// Plain reads a document of the plainest shape as a tree, as [Parse] does, in a fraction of the time. It reports false if it does not
// know what to make of the document, which may be well-formed all the same, or be beyond a limit: the caller then reads it with Parse or
// a [Decoder], which say what is wrong with it.
//
// What it reads: elements, attributes with a space before each, text, and the five entities of XML, in UTF-8. It leaves all else to
// encoding/xml: declarations, comments, sections, instructions, numbers of characters, carriage returns, and names that are not ASCII.
// A fuzz test holds that both read the same.
func Plain(text string, limits Limits) (*Element, bool) {
	limits = limits.usual()
	if limits.Bytes >= 0 && int64(len(text)) > limits.Bytes || !isPlain(text) {
		return nil, false
	}
	p := plain{text: text, limits: limits}
	most := strings.Count(text, "<") - strings.Count(text, "</") // elements
	if limits.Elements >= 0 && int64(most) > limits.Elements {
		return nil, false
	}
	p.slab = make([]Element, 0, most)
	p.given = make([]xml.Attr, 0, min(strings.Count(text, `="`), firstAttributes))
	root := new(Element)
	p.open = append(p.open, plainOpen{Element: root})
	for p.at < len(text) {
		ok := false
		switch {
		case text[p.at] != '<':
			ok = p.characters()
		case strings.HasPrefix(text[p.at:], "</"):
			ok = p.end()
		default:
			ok = p.start()
		}
		if !ok {
			return nil, false
		}
	}
	if len(p.open) != 1 || len(root.Children) != 1 {
		return nil, false
	}
	return root.Children[0], true
}

// isPlain reports whether a text has only characters that XML allows and that need no attention.
func isPlain(text string) bool {
	ascii := true
	for i := range len(text) {
		switch c := text[i]; {
		case c >= utf8.RuneSelf:
			ascii = false
		case c < ' ' && c != '\n' && c != '\t':
			return false
		}
	}
	if !ascii && (!utf8.ValidString(text) || strings.Contains(text, "\ufffe") || strings.Contains(text, "\uffff")) {
		return false
	}
	return !strings.Contains(text, "]]>")
}

// plain is a document that is being read.
type plain struct {
	text   string
	at     int
	limits Limits
	slab   []Element
	given  []xml.Attr // attributes, those of one element after the other
	open   []plainOpen
	spaces []space
	attrs  int64 // of all elements
}

// firstAttributes is for how many attributes there is room from the beginning.
const firstAttributes = 64

// plainOpen is an element that has not ended.
type plainOpen struct {
	*Element
	tag    string // its name as it is written
	spaces int    // how many declarations there were before it
}

// space is a declaration of a namespace.
type space struct{ prefix, name string }

// characters reads text up to the next tag.
func (p *plain) characters() bool {
	n := strings.IndexByte(p.text[p.at:], '<')
	if n < 0 {
		n = len(p.text) - p.at
	}
	raw := p.text[p.at : p.at+n]
	p.at += n
	if len(p.open) == 1 {
		return strings.Trim(raw, " \t\n") == ""
	}
	value, ok := p.value(raw)
	if !ok {
		return false
	}
	switch e := p.open[len(p.open)-1].Element; {
	case e.Text == "":
		e.Text = value
	case len(e.Text) > maxCopied:
		return false
	default:
		e.Text += value
	}
	return true
}

// maxCopied is how long the text of an element may be which continues after an element in it: each piece copies those before it.
const maxCopied = 4096

// value returns a text without entities.
func (p *plain) value(raw string) (string, bool) {
	if len(raw) > p.limits.Token {
		return "", false
	}
	if strings.IndexByte(raw, '&') < 0 {
		return raw, true
	}
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(raw, "&")
		b.WriteString(before)
		if !found {
			return b.String(), true
		}
		name, after, ok := strings.Cut(rest, ";")
		if !ok {
			return "", false
		}
		switch name {
		case "amp":
			b.WriteByte('&')
		case "lt":
			b.WriteByte('<')
		case "gt":
			b.WriteByte('>')
		case "quot":
			b.WriteByte('"')
		case "apos":
			b.WriteByte('\'')
		default:
			return "", false
		}
		raw = after
	}
}

// end reads the end of an element.
func (p *plain) end() bool {
	top := &p.open[len(p.open)-1]
	rest := p.text[p.at+2:]
	if len(p.open) == 1 || !strings.HasPrefix(rest, top.tag) || !strings.HasPrefix(rest[len(top.tag):], ">") {
		return false
	}
	p.at += 2 + len(top.tag) + 1
	p.close()
	return true
}

func (p *plain) close() {
	p.spaces = p.spaces[:p.open[len(p.open)-1].spaces]
	p.open = p.open[:len(p.open)-1]
}

// start reads the beginning of an element, which may be its end too.
func (p *plain) start() bool {
	begin := p.at
	p.at++
	prefix, local, ok := p.name()
	if !ok || len(p.open) == 1 && len(p.open[0].Children) > 0 {
		return false
	}
	if len(p.slab) == cap(p.slab) || len(p.open) > p.limits.Depth || p.limits.Elements >= 0 && int64(len(p.slab)) >= p.limits.Elements {
		return false
	}
	p.slab = append(p.slab, Element{Name: xml.Name{Space: prefix, Local: local}})
	e := &p.slab[len(p.slab)-1]
	parent := p.open[len(p.open)-1].Element
	parent.Children = append(parent.Children, e)
	p.open = append(p.open, plainOpen{e, p.text[begin+1 : p.at], len(p.spaces)})
	empty, ok := p.attributes(e)
	if !ok || p.at-begin > p.limits.Token {
		return false
	}
	p.translate(&e.Name, true)
	for i := range e.Attr {
		p.translate(&e.Attr[i].Name, false)
		for k := range i {
			if e.Attr[k].Name == e.Attr[i].Name {
				return false
			}
		}
	}
	if empty {
		p.close()
	}
	return true
}

// maxSpaces is how many declarations of namespaces may be in force: each name is looked up among all of them.
const maxSpaces = 16

// attributes reads a tag from after its name to its end, and reports whether the element has ended too.
func (p *plain) attributes(e *Element) (empty, ok bool) {
	first := len(p.given)
	for {
		spaced := p.at
		for p.at < len(p.text) && (p.text[p.at] == ' ' || p.text[p.at] == '\t' || p.text[p.at] == '\n') {
			p.at++
		}
		rest := p.text[p.at:]
		switch {
		case strings.HasPrefix(rest, ">"):
			p.at++
			return false, true
		case strings.HasPrefix(rest, "/>"):
			p.at += 2
			return true, true
		case p.at == spaced || len(e.Attr) == p.limits.Attributes || p.limits.AllAttributes >= 0 && p.attrs == p.limits.AllAttributes:
			return false, false
		}
		p.attrs++
		prefix, local, ok := p.name()
		if !ok || !strings.HasPrefix(p.text[p.at:], `="`) {
			return false, false
		}
		p.at += 2
		n := strings.IndexByte(p.text[p.at:], '"')
		if n < 0 || strings.IndexByte(p.text[p.at:p.at+n], '<') >= 0 {
			return false, false
		}
		value, ok := p.value(p.text[p.at : p.at+n])
		if !ok {
			return false, false
		}
		p.at += n + 1
		p.given = append(p.given, xml.Attr{Name: xml.Name{Space: prefix, Local: local}, Value: value})
		e.Attr = p.given[first:len(p.given):len(p.given)]
		if prefix == "xmlns" {
			p.spaces = append(p.spaces, space{local, value})
		} else if prefix == "" && local == "xmlns" {
			p.spaces = append(p.spaces, space{"", value})
		}
		if len(p.spaces) > maxSpaces {
			return false, false
		}
	}
}

// name reads a name of ASCII letters, digits and some signs, with one prefix or none.
func (p *plain) name() (prefix, local string, ok bool) {
	begin, first := p.at, true
	for ; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_':
			first = false
			continue
		case !first && ('0' <= c && c <= '9' || c == '-' || c == '.'):
			continue
		case !first && prefix == "" && c == ':':
			prefix, begin, first = p.text[begin:p.at], p.at+1, true
			continue
		default:
			return prefix, p.text[begin:p.at], !first
		}
	}
	return prefix, p.text[begin:p.at], !first
}

// xmlSpace is the namespace of the prefix xml, which needs no declaration.
const xmlSpace = "http://www.w3.org/XML/1998/namespace"

// translate gives a name its namespace instead of its prefix, as encoding/xml does: a prefix that was not declared stays.
func (p *plain) translate(n *xml.Name, element bool) {
	switch {
	case n.Space == "xmlns", n.Space == "" && !element:
		return
	case n.Space == "xml":
		n.Space = xmlSpace
	case n.Space == "" && n.Local == "xmlns":
		return
	}
	for i := len(p.spaces) - 1; i >= 0; i-- {
		if p.spaces[i].prefix == n.Space {
			n.Space = p.spaces[i].name
			return
		}
	}
}
