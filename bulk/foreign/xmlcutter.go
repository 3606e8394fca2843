package foreign

import (
	"bytes"
	"io"
	"strings"

	"github.com/stele-id/stele"
)

// xmlCutter finds elements of an XML text without reading what they say: tags, and what stands between them. It keeps no more
// than one of both in memory. It is no judge of XML: each element that is cut out is read by plainxml afterwards.
type xmlCutter struct {
	w *window

	names map[string]string // of elements, each once: a file has few
}

// The kinds of what an xmlCutter finds.
const (
	xmlText = iota // also comments, CDATA sections and processing instructions
	xmlStart
	xmlEnd
	xmlEmpty // a start tag that is an end tag too
)

// xmlPiece is a tag, or what stands before the next one.
type xmlPiece struct {
	kind  int
	raw   []byte
	local string // the name of the element, without its prefix
}

// next returns the next piece; io.EOF at the end.
func (c *xmlCutter) next() (p xmlPiece, err error) {
	if c.w.ended() {
		if err := c.w.failure(); err != nil {
			return p, err
		}
		return p, io.EOF
	}
	if c.w.peek() != '<' {
		p.raw, err = c.until("<", false)
		return p, err
	}
	head := c.w.peekText(9)
	switch {
	case bytes.HasPrefix(head, []byte("<!--")):
		p.raw, err = c.until("-->", true)
	case bytes.HasPrefix(head, []byte("<![CDATA[")):
		p.raw, err = c.until("]]>", true)
	case bytes.HasPrefix(head, []byte("<?")):
		if p.raw, err = c.until("?>", true); err == nil {
			err = c.instruction(p.raw)
		}
	case bytes.HasPrefix(head, []byte("<!")):
		err = failf(stele.Invalid, "import.xml-declaration", "{file}: the document type declaration at line {line} is not read; leave it out", c.w.name, c.w.line)
	default:
		p.raw, err = c.tag()
		name := bytes.Trim(p.raw, "</>")
		if i := bytes.IndexAny(name, " \t\r\n/"); i >= 0 {
			name = name[:i]
		}
		if i := bytes.LastIndexByte(name, ':'); i >= 0 {
			name = name[i+1:]
		}
		switch p.local, p.kind = c.name(name), xmlStart; {
		case bytes.HasPrefix(head, []byte("</")):
			p.kind = xmlEnd
		case bytes.HasSuffix(p.raw, []byte("/>")):
			p.kind = xmlEmpty
		}
	}
	return p, err
}

// maxNames is how many names of elements are kept.
const maxNames = 1000

// name returns the name of an element as text.
func (c *xmlCutter) name(name []byte) string {
	if text, ok := c.names[string(name)]; ok {
		return text
	}
	text := string(name)
	if c.names == nil {
		c.names = make(map[string]string)
	}
	if len(c.names) < maxNames && len(text) <= maxNames {
		c.names[text] = text
	}
	return text
}

// until passes over all up to a mark, and over the mark if it belongs to the piece. If it does not, the end of the text is an end
// too.
func (c *xmlCutter) until(mark string, with bool) ([]byte, error) {
	from := 0
	for {
		if i := bytes.Index(c.w.buf[c.w.pos+from:], []byte(mark)); i >= 0 {
			if i += from; with {
				i += len(mark)
			}
			return c.w.take(i), nil
		}
		from = max(0, len(c.w.buf)-c.w.pos-len(mark)+1)
		if from > maxRow {
			return nil, c.long()
		}
		if !c.w.fill() {
			if !with && c.w.failure() == nil {
				return c.w.take(len(c.w.buf) - c.w.pos), nil
			}
			return nil, c.cutOff()
		}
	}
}

// tag passes over a tag. A > in the value of an attribute does not end it.
func (c *xmlCutter) tag() ([]byte, error) {
	if end := bytes.IndexByte(c.w.buf[c.w.pos:], '>'); end >= 0 && bytes.IndexByte(c.w.buf[c.w.pos:c.w.pos+end], '"') < 0 && bytes.IndexByte(c.w.buf[c.w.pos:c.w.pos+end], '\'') < 0 {
		return c.w.take(end + 1), nil
	}
	quote := byte(0)
	for i := 0; ; {
		for ; c.w.pos+i < len(c.w.buf); i++ {
			switch b := c.w.buf[c.w.pos+i]; {
			case quote != 0 && b == quote:
				quote = 0
			case quote != 0:
			case b == '"' || b == '\'':
				quote = b
			case b == '>':
				return c.w.take(i + 1), nil
			}
		}
		if i > maxRow {
			return nil, c.long()
		}
		if !c.w.fill() {
			return nil, c.cutOff()
		}
	}
}

func (c *xmlCutter) cutOff() error {
	if err := c.w.failure(); err != nil {
		return err
	}
	return failf(stele.Invalid, "import.foreign-json-cut-off", "{file} ends within line {line}; get the rest of it", c.w.name, c.w.line)
}

func (c *xmlCutter) long() error {
	return failf(stele.Invalid, "import.xml-piece-too-long", "{file}: a tag or a text at line {line} has more than {most} bytes", c.w.name, c.w.line, maxRow)
}

// instruction refuses a text in another encoding.
func (c *xmlCutter) instruction(raw []byte) error {
	text := strings.ToLower(string(raw[:min(len(raw), 300)]))
	_, rest, ok := strings.Cut(text, "encoding")
	if !ok || !strings.HasPrefix(text, "<?xml ") {
		return nil
	}
	rest = strings.TrimLeft(rest, " =")
	for _, name := range []string{"utf-8", "us-ascii", "ascii"} {
		if len(rest) > len(name)+1 && rest[1:len(name)+1] == name && rest[0] == rest[len(name)+1] {
			return nil
		}
	}
	return failf(stele.Invalid, "import.xml-encoding", "{file} is not in UTF-8; convert it, as 'iconv' or 'xmllint --encode UTF-8' do", c.w.name)
}
