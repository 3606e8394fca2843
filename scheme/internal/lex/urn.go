package lex

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/stele-id/stele"
)

// Carrier says where in a text a URN begins. It is the zero Carrier if the text
// is itself a URN.
type Carrier struct {
	Pos      int  // where "urn:" stands
	Path     bool // it stands in the path of a URL, whose own query may follow it
	Hostless bool // it stands in a URL without a host
}

// FindURN looks for a URN, in any case of letters: the text itself, the first
// part of an http URL's path that begins with "urn:", or a URL's query that does.
// The last is how THTTP asks (RFC 2169: /uri-res/N2L?urn:...), and national
// libraries' resolvers do (?urn=urn:..., ?identifier=urn:...). Nothing is decoded, and what
// follows "urn:" is not checked.
//
// A path of which an earlier part has a colon or begins with a digit carries
// another sort of name, an ARK or a handle, and "urn:" can be the tail of that.
func FindURN(text string) (c Carrier, ok bool) {
	if !Begins(text, "uh") {
		return c, false
	}
	if _, ok = CutFold(text, "urn:"); ok {
		return c, true
	}
	text = text[:min(len(text), stele.MaxText)]
	if !hasURN(text) {
		return c, false // most URLs
	}
	link, ok := ParseLink(text)
	if !ok {
		return c, false
	}
	c.Hostless = link.Host == ""
	for i := 0; i < len(link.Path); {
		if _, ok := CutFold(link.Path[i:], "/urn:"); ok {
			c.Pos, c.Path = link.PathPos+i+1, true
			return c, true
		}
		part, _, _ := Cut(link.Path[i+1:], '/')
		if part != "" && IsDigit(part[0]) || strings.IndexByte(part, ':') >= 0 {
			return c, false
		}
		i += 1 + len(part)
	}
	c.Pos = link.PathPos + len(link.Path) + 1
	for _, key := range [...]string{"", "urn=", "identifier="} {
		if rest, ok := CutFold(link.Query, key); ok {
			if _, ok = CutFold(rest, "urn:"); ok {
				c.Pos += len(key)
				return c, true
			}
		}
	}
	return c, false
}

// hasURN reports whether "urn:" is anywhere in text.
func hasURN(text string) bool {
	for {
		i := strings.IndexByte(text, ':')
		if i < 0 {
			return false
		}
		if i >= 3 && text[i-1]|0x20 == 'n' && text[i-2]|0x20 == 'r' && text[i-3]|0x20 == 'u' {
			return true
		}
		text = text[i+1:]
	}
}

// URN is what follows "urn:NID:", taken apart (RFC 8141, section 2). Each part is
// as it was written.
type URN struct {
	NSS      string // not empty, of the right characters
	Pos      int    // where NSS begins in the whole text
	R, Q, F  string // the components; none of them is part of the name
	Query    string // what a URL has after a "?" that begins no component
	HasQuery bool   // that "?" is there, if with nothing after it
}

// SplitURN takes apart the URN that c carries in text; its NSS begins at pos. The
// errors are parse errors of the scheme.
//
// Which host a URL names does not matter, since a URN is the same at every
// resolver; but it must name one.
//
// A "?" begins a component only with "+" or "=" after it. In the path of a URL
// any other is the URL's own; elsewhere it is an error, because RFC 8141 keeps it
// for later (section 2.3).
func SplitURN(scheme, text string, c Carrier, pos int) (u URN, err error) {
	if c.Hostless {
		return u, stele.Invalidf(scheme, strings.Index(text, "//")+2, "urn.url-host-missing", "the URL has no host; write the resolver's, or the URN alone")
	}
	u.Pos = pos
	i, err := scan(scheme, text, pos, nss)
	if err != nil {
		return u, err
	}
	u.NSS = text[pos:i]
	if strings.HasPrefix(text[i:], "?+") {
		start := i + 2
		if i, err = scan(scheme, text, start, rComponent); err != nil {
			return u, err
		}
		u.R = text[start:i]
	}
	if strings.HasPrefix(text[i:], "?=") {
		start := i + 2
		if i, err = scan(scheme, text, start, qComponent); err != nil {
			return u, err
		}
		u.Q = text[start:i]
	}
	if strings.HasPrefix(text[i:], "?") {
		if !c.Path {
			return u, stele.Invalidf(scheme, i, "urn.question-mark", `a "?" begins a component of a URN only as "?+" or "?="; in a name it is written "%3F"`)
		}
		u.Query, _, _ = Cut(text[i+1:], '#')
		u.HasQuery = true
		i += 1 + len(u.Query)
	}
	if i < len(text) { // nothing but "#" is left to stop at
		u.F = text[i+1:]
		_, err = scan(scheme, text, i+1, fComponent)
	}
	return u, err
}

// part is a part of a URN with a grammar of its own.
type part uint8

const (
	nss part = iota
	rComponent
	qComponent
	fComponent
)

func (p part) String() string {
	return [...]string{"the name", "the r-component", "the q-component", "the f-component"}[p]
}

// scan returns where the part that begins at start ends. RFC 8141, section 2:
//
//	NSS           = pchar *(pchar / "/")
//	r-component   = pchar *( pchar / "/" / "?" )
//	q-component   = pchar *( pchar / "/" / "?" )
//	f-component   = fragment
//
// where the r-component ends before the first "?=", and a fragment may be empty
// (RFC 3986, 3.5).
func scan(scheme, text string, start int, p part) (end int, err error) {
	i := start
loop:
	for {
		for i < len(text) && pchar[text[i]] {
			i++
		}
		if i == len(text) {
			break
		}
		switch c := text[i]; {
		case c == '%' && i+2 < len(text) && IsHex(text[i+1]) && IsHex(text[i+2]):
			i += 3
		case c == '#' && p != fComponent:
			break loop
		case c == '?' && (p == nss || p == rComponent && strings.HasPrefix(text[i:], "?=")):
			break loop
		case (c == '/' || c == '?') && (i > start || p == fComponent):
			i++
		default:
			return i, misfit(scheme, text, i, p)
		}
	}
	if i == start && p != fComponent {
		return i, stele.Invalidf(scheme, i, "urn.part-empty", "{part} of the URN is empty", p)
	}
	return i, nil
}

// misfit makes the error for the character at text[i], which can't stand there.
func misfit(scheme, text string, i int, p part) error {
	r, _ := utf8.DecodeRuneInString(text[i:])
	switch {
	case r == '%':
		return stele.Invalidf(scheme, i, "urn.percent-sign-alone", `two hexadecimal digits must follow "%" in {part}; "%" itself is written "%25"`, p)
	case r == '/' || r == '?':
		return stele.Invalidf(scheme, i, "urn.part-begins-wrong", "{part} of a URN can't begin with '{character}'", p, string(rune(r)))
	case r >= utf8.RuneSelf:
		return stele.Invalidf(scheme, i, "urn.character-not-ascii", "{character} can't stand in {part} of a URN, which is ASCII; percent-encode what is not", stele.Describe(r), p)
	}
	return stele.Invalidf(scheme, i, "urn.character-not-allowed", `{character} can't stand in {part} of a URN; write "%{code}"`, stele.Describe(r), p, fmt.Sprintf("%02X", r))
}

// pchar says which bytes are a pchar that stands for itself (RFC 3986, 3.3). It
// is a table because every byte of every URN is looked up.
var pchar = func() (table [256]bool) {
	for c := range len(table) {
		table[c] = IsAlnum(byte(c)) || c < utf8.RuneSelf && strings.IndexByte("-._~!$&'()*+,;=:@", byte(c)) >= 0
	}
	return table
}()

// FoldURN returns s with the letters of its first n bytes in lower case and with
// the digits of its percent-encodings, wherever they are, in upper case; s itself
// if that is how they are.
func FoldURN(s string, n int) string {
	n = min(n, len(s))
	i := 0
	for i < n && s[i] != '%' && (s[i] < 'A' || s[i] > 'Z') {
		i++
	}
	if i == n {
		next := strings.IndexByte(s[n:], '%')
		if next < 0 {
			return s
		}
		i += next
	}
	return foldFrom(s, i, n)
}

// foldFrom does the work of FoldURN for an s of which the first i bytes stay as
// they are.
func foldFrom(s string, i, n int) string {
	var short [128]byte // on the stack
	b := append(short[:0], s...)
	for ; i < len(b); i++ {
		switch c := b[i]; {
		case c == '%' && i+2 < len(b):
			b[i+1], b[i+2] = UpperHex(b[i+1]), UpperHex(b[i+2])
			i += 2
		case i < n && 'A' <= c && c <= 'Z':
			b[i] |= 0x20
		}
	}
	if string(b) == s { // compares without a copy
		return s
	}
	return string(b)
}

// Components returns the components that u has as parts of an explanation.
func (u *URN) Components() (parts stele.Parts) {
	for _, c := range [...]stele.Part{
		{Name: "r", Value: u.R, Note: "for the resolver, no part of the name"},
		{Name: "q", Value: u.Q, Note: "for the thing itself, no part of the name"},
		{Name: "f", Value: u.F, Note: "a place in the thing, no part of the name"},
	} {
		if c.Value != "" {
			parts = append(parts, c)
		}
	}
	return parts
}

// EncodesControl reports whether a control character is percent-encoded in s. It is
// legal, and may deceive a program that decodes it.
func EncodesControl(s string) bool {
	for i := 0; i+2 < len(s); i++ {
		if s[i] == '%' && IsHex(s[i+1]) && IsHex(s[i+2]) {
			if c := HexValue(s[i+1])<<4 | HexValue(s[i+2]); c < ' ' || c == 0x7f {
				return true
			}
		}
	}
	return false
}

// Warnings returns what the reader of any URN should know about u.
func (u *URN) Warnings() (all []string) {
	if EncodesControl(u.NSS) {
		all = append(all, "A control character is percent-encoded in the name; be careful with whatever decodes it.")
	}
	if triplet := needless(u.NSS); triplet != "" {
		all = append(all, fmt.Sprintf("The name writes as %q a character that needs no encoding; with that character itself it is another name.", triplet))
	}
	if u.HasQuery {
		all = append(all, `The query of the URL was dropped: it is no part of the URN, and only "?+" and "?=" begin components of one.`)
	}
	return all
}

// needless returns the first percent-encoding in s of a character that stands for
// itself in every URI, or "". It is legal, and makes another name: such pairs are
// the same URI (RFC 3986, 2.3) but not the same URN (RFC 8141, 3.1), so they are
// easily taken for each other.
func needless(s string) string {
	for {
		i := strings.IndexByte(s, '%')
		if i < 0 || i+2 >= len(s) {
			return ""
		}
		if c := HexValue(s[i+1])<<4 | HexValue(s[i+2]); IsAlnum(c) || strings.IndexByte("-._~", c) >= 0 {
			return s[i : i+3]
		}
		s = s[i+3:]
	}
}
