package resolver

import (
	"fmt"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/ddds"
)

// Preference is a media range, such as text/html, text/* or text/html;level=1, or
// a language range, such as pt-br or *, and how much it is wanted.
// Ranges are in lower case, except the values of parameters.
type Preference = ddds.Preference

// What a header may have. Browsers send less than a tenth of it.
const (
	maxHeader      = 4096
	maxPreferences = 64
)

// ParseAccept reads the value of an Accept header (RFC 9110, section 12.5.1).
// Several headers are joined with a comma first. An empty one gives no
// preferences. Errors are of Kind Invalid; a server may then continue as if there was
// no header.
//
// Beside what the RFC has, a lone * and a weight without its zero (.2) are read: old Java
// programs send them. So are blanks around the equals sign of a parameter, as in
// text/x-bibliography; style = apa, which clients of DOIs send.
func ParseAccept(header string) ([]Preference, error) {
	return parseList(header, (*scanner).mediaRange)
}

// ParseAcceptLanguage reads the value of an Accept-Language header (RFC 9110,
// section 12.5.4) as ParseAccept does.
func ParseAcceptLanguage(header string) ([]Preference, error) {
	return parseList(header, (*scanner).languageRange)
}

// parseList reads a list whose items are ranges with parameters (RFC 9110,
// section 5.6.1: empty items are allowed and mean nothing).
func parseList(header string, item func(*scanner) (string, error)) (list []Preference, err error) {
	if len(header) > maxHeader {
		return nil, stele.Invalidf("", maxHeader, "request.accept-header-too-long", "the header has {bytes} bytes; at most {limit} are read", len(header), maxHeader)
	}
	s := &scanner{text: header}
	for {
		for s.space(); s.skip(','); s.space() {
		}
		if s.pos == len(header) {
			return list, nil
		}
		if len(list) == maxPreferences {
			return nil, stele.Invalidf("", s.pos, "request.accept-items-too-many", "the header has more than {limit} items", maxPreferences)
		}
		p := Preference{Q: -1}
		if p.Range, err = item(s); err == nil {
			err = s.parameters(&p)
		}
		if err != nil {
			return nil, err
		}
		if p.Q < 0 {
			p.Q = 1000
		}
		list = append(list, p)
	}
}

// scanner reads a header from its beginning.
type scanner struct {
	text string
	pos  int
}

// skip skips a byte if it is the next one.
func (s *scanner) skip(c byte) bool {
	if s.pos < len(s.text) && s.text[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

func (s *scanner) space() {
	for s.skip(' ') || s.skip('\t') {
	}
}

// token reads the characters of a kind that stand next.
func (s *scanner) token(is func(c byte) bool) string {
	start := s.pos
	for s.pos < len(s.text) && is(s.text[s.pos]) {
		s.pos++
	}
	return s.text[start:s.pos]
}

// next describes what stands next, for an error.
func (s *scanner) next() string {
	if s.pos == len(s.text) {
		return "the end"
	}
	for _, r := range s.text[s.pos:] {
		return stele.Describe(r)
	}
	return ""
}

func (s *scanner) mediaRange() (string, error) {
	kind := s.token(isToken)
	if kind == "" {
		return "", stele.Invalidf("", s.pos, "request.accept-media-type-missing", "a media type stands here, such as text/html, and not {found}", s.next())
	}
	if !s.skip('/') {
		if kind == "*" {
			return "*/*", nil
		}
		return "", stele.Invalidf("", s.pos, "request.accept-slash-missing", "a slash follows the type, as in text/html, and not {found}", s.next())
	}
	start := s.pos
	sub := s.token(isToken)
	if sub == "" || kind == "*" && sub != "*" {
		return "", stele.Invalidf("", start, "request.accept-subtype-missing", "a subtype stands here, as in text/html, text/* or */*")
	}
	return strings.ToLower(kind + "/" + sub), nil
}

// languageRange reads *, or subtags of up to 8 letters or, after the first,
// digits (RFC 4647, section 2.1).
func (s *scanner) languageRange() (string, error) {
	if s.skip('*') {
		return "*", nil
	}
	start := s.pos
	for first := true; ; first = false {
		at := s.pos
		tag := s.token(isAlphanumeric)
		if tag == "" || len(tag) > 8 || first && strings.ContainsAny(tag, "0123456789") {
			return "", stele.Invalidf("", at, "request.language-invalid", "a language stands here, such as en or pt-BR: letters, and digits after a hyphen, not more than 8 together")
		}
		if !s.skip('-') {
			return strings.ToLower(s.text[start:s.pos]), nil
		}
	}
}

// parameters reads what follows a range, to the comma or the end. The one named
// q is the weight, wherever it stands (RFC 9110, section 12.4.2); others belong
// to a media range, and a language range has none.
func (s *scanner) parameters(p *Preference) error {
	isMedia := strings.Contains(p.Range, "/")
	for {
		s.space()
		if s.pos == len(s.text) || s.text[s.pos] == ',' {
			return nil
		}
		if !s.skip(';') {
			return stele.Invalidf("", s.pos, "request.accept-separator-missing", "a comma or a semicolon stands here, and not {found}", s.next())
		}
		s.space()
		at := s.pos
		name := strings.ToLower(s.token(isToken))
		if name == "" && isMedia {
			continue // an empty parameter is ignored (RFC 9110, section 5.6.6)
		}
		if name != "q" && !isMedia {
			return stele.Invalidf("", at, "request.language-parameter-unknown", "a language has a weight and nothing else, such as ;q=0.5")
		}
		s.space()
		if !s.skip('=') {
			return stele.Invalidf("", s.pos, "request.accept-parameter-without-value", "a parameter has a value, as in ;q=0.5; an equals sign is missing")
		}
		s.space()
		if name != "q" {
			value, err := s.value()
			if err != nil {
				return err
			}
			p.Range += ";" + name + "=" + value
			continue
		}
		q, err := s.weight()
		if err != nil {
			return err
		}
		if p.Q >= 0 {
			return stele.Invalidf("", at, "request.accept-weight-twice", "an item has one weight, and this has two")
		}
		p.Q = q
	}
}

// weight reads a number from 0 to 1 with at most three decimals, in thousandths.
func (s *scanner) weight() (q int, err error) {
	start := s.pos
	text := s.token(isToken)
	whole, decimals, _ := strings.Cut(text, ".")
	ok := text != "" && text != "." && len(decimals) <= 3 && (whole == "" || whole == "0" || whole == "1")
	for _, c := range []byte((decimals + "000")[:3]) {
		ok = ok && isDigit(c)
		q = 10*q + int(c) - '0'
	}
	if whole == "1" {
		ok = ok && q == 0
		q = 1000
	}
	if !ok {
		return 0, stele.Invalidf("", start, "request.accept-weight-invalid", "a weight is a number from 0 to 1 with at most three decimals, such as 0.5")
	}
	return q, nil
}

// value reads the value of a parameter. Quotation marks stay where they are
// needed.
func (s *scanner) value() (string, error) {
	start := s.pos
	if !s.skip('"') {
		if v := s.token(isToken); v != "" {
			return v, nil
		}
		return "", stele.Invalidf("", start, "request.accept-value-missing", "a parameter's value stands here, and not {found}", s.next())
	}
	for s.pos < len(s.text) {
		c := s.text[s.pos]
		s.pos++
		switch {
		case c == '"':
			quoted := s.text[start:s.pos]
			if plain := quoted[1 : len(quoted)-1]; plain != "" && strings.IndexFunc(plain, func(r rune) bool { return r >= 0x80 || !isToken(byte(r)) }) < 0 {
				return plain, nil
			}
			return quoted, nil
		case c == '\\' && s.pos < len(s.text):
			s.pos++
			c = s.text[s.pos-1]
		}
		if c < ' ' && c != '\t' || c == 0x7f {
			return "", stele.Invalidf("", s.pos-1, "text.control-character", "control character {character}; remove it", fmt.Sprintf("%U", c))
		}
	}
	return "", stele.Invalidf("", start, "request.accept-quotation-open", "the quotation mark is not closed")
}

// isToken reports whether c may stand in a token (RFC 9110, section 5.6.2).
func isToken(c byte) bool {
	return isAlphanumeric(c) || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

func isAlphanumeric(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || isDigit(c) }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
