// Package anvl reads and writes A Name-Value Language (draft-kunze-anvl-02), in which ARKs are described and in
// which EZID's clients speak: an element a line, its label, a colon and its value.
//
//	# a remark
//	erc.who: Lima, A.
//	erc.what: Rivers of Pará,
//	  a survey
//
// A line that begins with white space continues the line before it. A percent sign and two hexadecimal digits are a
// byte; labels and values are UTF-8 after that. A label occurs once.
//
// It computes: no request, no file. What an element means is for its caller to know.
package anvl

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/stele-id/stele"
)

// Element is a label and its value, decoded.
type Element struct{ Label, Value string }

// MaxElements is how many elements a text may have. A record keeps fewer fields; see [stele.MaxFields].
const MaxElements = 10_000

// op names what is tried, in errors.
const op = "read ANVL"

// Parse reads elements. White space around labels and values does not count, and neither do empty lines, remarks,
// and a byte order mark at the beginning. Any bytes are answered: with elements in their order, or with an Error of Kind Invalid
// that names the line. It takes time linear in len(text).
func Parse(text string) ([]Element, error) { return ParseFrom(text, 1) }

// ParseFrom reads the part of a file that begins at a line of this number, so that errors name lines of the file.
func ParseFrom(text string, number int) ([]Element, error) {
	text = strings.TrimPrefix(text, mark)
	var p parser
	for ; text != ""; number++ {
		var line string
		line, text = cutLine(text)
		if err := p.line(number, line); err != nil {
			return nil, err
		}
	}
	if err := p.end(); err != nil {
		return nil, err
	}
	return p.list, nil
}

// mark is the byte order mark, which some editors write at the beginning of files.
const mark = "\ufeff"

// cutLine returns the first line of a text, and what follows its end: CR LF, CR or LF.
func cutLine(text string) (line, rest string) {
	i := strings.IndexAny(text, "\r\n")
	if i < 0 {
		return text, ""
	}
	line, rest = text[:i], text[i+1:]
	if text[i] == '\r' {
		rest = strings.TrimPrefix(rest, "\n")
	}
	return line, rest
}

// parser gathers elements. The value of the last one is in parts, since lines may follow.
type parser struct {
	list  []Element
	seen  map[string]bool
	open  bool // a line may continue the last element
	first int  // the line of its label
	parts []string
}

// line reads a line.
func (p *parser) line(number int, line string) error {
	if !utf8.ValidString(line) {
		return fail("anvl.not-utf8", "line {line}: character decoding error, not UTF-8; send the text in UTF-8", number)
	}
	first, _ := utf8.DecodeRuneInString(line)
	switch {
	case line == "":
		return p.end()
	case first == '#':
		return nil
	case unicode.IsSpace(first):
		rest := strings.TrimSpace(line)
		switch {
		case p.open && rest != "":
			p.parts = append(p.parts, rest)
		case rest != "" && !p.open:
			return fail("anvl.nothing-to-continue", "line {line}: no previous label for continuation line; begin the line with a label and a colon, without a space before it", number)
		}
		return nil
	}
	if err := p.end(); err != nil {
		return err
	}
	return p.begin(number, line)
}

// begin reads the line of a label.
func (p *parser) begin(number int, line string) error {
	label, value, ok := strings.Cut(line, ":")
	if !ok {
		return fail("anvl.colon-missing", "line {line}: no colon in line; write a label, a colon and a value", number)
	}
	label, err := decode(number, strings.TrimSpace(label))
	switch {
	case err != nil:
		return err
	case label == "":
		return fail("anvl.label-empty", "line {line}: empty label; write one before the colon", number)
	case p.seen[label]:
		return fail("anvl.label-repeated", `line {line}: repeated label, "{label}"; give it once`, number, label)
	case len(p.list) == MaxElements:
		return fail("anvl.too-many-elements", "line {line}: there are more than {most} elements, which are the most", number, MaxElements)
	}
	if p.seen == nil {
		p.seen = make(map[string]bool)
	}
	p.seen[label] = true
	p.list = append(p.list, Element{Label: label})
	p.open, p.first = true, number
	if value = strings.TrimSpace(value); value != "" {
		p.parts = append(p.parts, value)
	}
	return nil
}

// end gives the last element its value.
func (p *parser) end() (err error) {
	if p.open {
		p.list[len(p.list)-1].Value, err = decode(p.first, strings.Join(p.parts, " "))
	}
	p.open, p.parts = false, p.parts[:0]
	return err
}

// decode decodes what is percent-encoded.
func decode(number int, text string) (string, error) {
	i := strings.IndexByte(text, '%')
	if i < 0 {
		return text, nil
	}
	b := append(make([]byte, 0, len(text)), text[:i]...)
	for ; i < len(text); i++ {
		c := text[i]
		if c == '%' {
			if i+2 >= len(text) || nibble(text[i+1]) < 0 || nibble(text[i+2]) < 0 {
				return "", fail("anvl.percent-encoding", "line {line}: percent-decode error; after % come two hexadecimal digits, and %25 is the sign itself", number)
			}
			c = byte(nibble(text[i+1])<<4 | nibble(text[i+2]))
			i += 2
		}
		b = append(b, c)
	}
	if !utf8.Valid(b) {
		return "", fail("anvl.encoded-not-utf8", "line {line}: what is percent-encoded is not UTF-8; encode the bytes of characters in UTF-8", number)
	}
	return string(b), nil
}

// nibble returns the value of a hexadecimal digit, -1 if it is not one.
func nibble(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

func fail(code, text string, args ...any) error {
	return stele.Errorf(op, stele.ID{}, stele.Invalid, code, text, args...)
}
