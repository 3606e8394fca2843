package hdl

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/scheme/internal/lex"
)

// syntax is how the characters around and in a handle are meant.
type syntax uint8

const (
	plain syntax = iota // each character is itself
	info                // RFC 4452: percent-encoded, perhaps a fragment
	urn                 // RFC 8141: percent-encoded, perhaps components
	link                // the path of an http URL: percent-encoded
)

// dropped is a set of what stood beside a handle and was left out.
type dropped uint8

const (
	query dropped = 1 << iota
	fragment
	component
)

// source is the place of a handle in a text.
type source struct {
	body    string // holds the handle, as written
	pos     int    // where body begins in the text
	syntax  syntax
	doi     bool // a spelling that only DOIs have
	proxy   bool // body is a path on a known proxy, which may have marks of its own
	carried bool // a URN in the path of a URL, which may have a query of its own
	dropped dropped
	host    string // of a URL, as written
	hostPos int
}

// spelling is a text that stands before a handle, in any case of letters.
type spelling struct {
	text   string
	syntax syntax
	doi    bool
}

// marks begin a text, or the path of a known proxy (HS9's knows them too, except
// urn:handle:).
var marks = [...]spelling{
	{"hdl:", plain, false},
	{"doi:", plain, true},
	{"info:hdl/", info, false},
	{"info:doi/", info, true},
	{"urn:hdl:", urn, false},
	{"urn:doi:", urn, true},
	{"urn:handle:", urn, false},
}

// pathMarks begin a path on any host, where digits and dots must follow. (DSpace,
// which most institutional repositories run, has handle/.)
var pathMarks = [...]spelling{
	{"hdl/", link, false},
	{"handle/", link, false},
	{"hdl:", link, false},
	{"doi/", link, true},
	{"doi:", link, true},
}

// claim finds the handle in text. It reports false if text has no mark of one.
func (src *source) claim(text string) bool {
	if isBare(text, false) {
		src.body = text
		return true
	}
	if !lex.Begins(text, "hdiuw") { // all marks, proxies and protocols
		return false
	}
	if text[0]|0x20 == 'u' && (len(text) < 5 || !lex.Begins(text[4:], "hd")) {
		return false // another URN
	}
	if lex.Begins(text, "h") {
		if l, ok := lex.ParseLink(text); ok {
			return src.claimLink(text, l)
		}
	}
	if src.claimMark(text, 0) {
		return true
	}
	if lex.Begins(text, "iu") {
		return false
	}
	// As in "DOI 10.1000/182" of a list of references.
	if rest, ok := lex.CutFold(text, "doi "); ok && isBare(rest, true) {
		*src = source{body: rest, pos: len("doi "), doi: true}
		return true
	}
	host, _, _ := lex.Cut(text, '/')
	doi, ok := lex.HandleProxy(host)
	if !ok || len(host) == len(text) {
		return false
	}
	*src = source{pos: len(host), syntax: link, doi: doi, proxy: true, host: host}
	rest, _, found := lex.Cut(text[len(host):], '#')
	src.note(found, fragment)
	src.body, _, found = lex.Cut(rest, '?')
	src.note(found, query)
	return true
}

// claimMark finds the handle after a mark that stands at pos in text.
func (src *source) claimMark(text string, pos int) bool {
	for i := range marks {
		m := &marks[i]
		if m.text[0] != text[pos]|0x20 {
			continue
		}
		rest, ok := lex.CutFold(text[pos:], m.text)
		if !ok {
			continue
		}
		if m.syntax == plain {
			rest = afterMark(rest, m.doi)
		}
		src.body, src.pos = rest, len(text)-len(rest)
		src.syntax, src.doi = m.syntax, m.doi
		return true
	}
	return false
}

// afterMark skips what people put between "hdl:" or "doi:" and the handle: one
// space, or the slash of PILIN's citations, hdl:/102.100.272/Y35XYS0QH.
func afterMark(rest string, doi bool) string {
	if rest, ok := strings.CutPrefix(rest, " "); ok || doi {
		return rest
	}
	return strings.TrimPrefix(rest, "/")
}

// claimLink finds the handle in a URL: the path of a known proxy, /hdl/<handle>
// and the like on any host, or a URN of the handle's, wherever those may stand.
// A URL that carries another URN or an ARK is left to their schemes.
func (src *source) claimLink(text string, l lex.Link) bool {
	src.host, src.hostPos, src.syntax = l.Host, l.PathPos-len(l.Host), link
	if strings.IndexByte(l.Path, ':') >= 0 || strings.IndexByte(l.Path, '%') >= 0 || strings.IndexByte(l.Query, ':') >= 0 {
		if c, ok := lex.FindURN(text); ok {
			src.carried = c.Path
			return src.claimMark(text, c.Pos)
		}
		if lex.HasMark(l.Path, "ark:") {
			return false
		}
	}
	src.note(l.HasQuery, query)
	src.note(l.Fragment != "", fragment)
	host := l.Host[strings.LastIndexByte(l.Host, '@')+1:]
	host, _, _ = lex.Cut(host, ':')
	host = strings.TrimSuffix(host, ".")
	if doi, ok := lex.HandleProxy(host); ok {
		src.body, src.pos, src.doi, src.proxy = l.Path, l.PathPos, doi, true
		return true
	}
	if l.Path == "" || !lex.Begins(l.Path[1:], "hd") {
		return false
	}
	for _, m := range pathMarks {
		if rest, ok := lex.CutFold(l.Path[1:], m.text); ok && isBare(rest, m.doi) {
			src.body, src.pos, src.doi = rest, l.PathPos+len(l.Path)-len(rest), m.doi
			return true
		}
	}
	return false
}

func (src *source) note(is bool, what dropped) {
	if is {
		src.dropped |= what
	}
}

// isBare reports whether s begins as a handle whose prefix is digits and dots,
// right or wrong; for a DOI it begins with "10.". A character that looks like the
// slash, and an encoded slash, count: where they are not allowed, the error names
// the mistake.
func isBare(s string, doi bool) bool {
	if doi && !strings.HasPrefix(s, "10.") {
		return false
	}
	digits, i := false, 0
	for ; i < len(s) && (lex.IsDigit(s[i]) || s[i] == '.'); i++ {
		digits = digits || s[i] != '.'
	}
	if !digits || i == len(s) {
		return false
	}
	switch c := s[i]; {
	case c == '/':
		return true
	case c == '%':
		_, ok := lex.CutFold(s[i:], "%2f")
		return ok
	case c >= utf8.RuneSelf:
		r, _ := utf8.DecodeRuneInString(s[i:])
		return stele.LooksLike(r) == '/'
	}
	return false
}

// checkHost refuses a URL that is misleading or invalid.
func (src *source) checkHost() error {
	if src.host == "" && src.hostPos > 0 {
		return stele.Invalidf(name, src.hostPos, "server.url-without-host", "the URL has no host")
	}
	for i := range len(src.host) {
		switch c := src.host[i]; {
		case c == '@':
			return stele.Invalidf(name, src.hostPos+i,
				"hdl.url-user-information", `a URL that carries a name has no user information; remove what stands before the "@"`)
		case c < utf8.RuneSelf && !lex.IsAlnum(c) && strings.IndexByte("-._~:[]", c) < 0:
			return stele.Invalidf(name, src.hostPos+i, "hdl.host-character", "'{character}' can't stand in a host name", string(rune(c)))
		}
	}
	return nil
}

// decode returns the characters that are meant in body, having cut off what
// follows the handle.
func (src *source) decode() (string, error) {
	if src.syntax == plain {
		return src.body, nil
	}
	if err := src.cutComponents(); err != nil {
		return "", err
	}
	if i := strings.IndexByte(src.body, ' '); i >= 0 && src.syntax == link {
		return "", stele.Invalidf(name, src.pos+i, "hdl.url-space", "a URL has no spaces; end it here, or write %20 if the space belongs to the name")
	}
	text, bad := lex.Unescape(src.body)
	if bad >= 0 {
		return "", stele.Invalidf(name, src.pos+bad,
			"hdl.percent-sign-alone", `"%" must be followed by two hexadecimal digits; the character itself is written %25`)
	}
	if len(text) < len(src.body) {
		// The decoded characters have not been checked yet.
		if err := stele.CheckText(name, text); err != nil {
			if syntax, ok := errors.AsType[*stele.SyntaxError](err); ok {
				return "", stele.Invalidf(name, src.at(syntax.Pos), "hdl.percent-encoded", "percent-encoded {reason}", syntax.Reason)
			}
			return "", err
		}
	}
	return text, nil
}

// cutComponents cuts the fragment off an info URI, and the components off a URN
// (RFC 8141, 2.3). Neither may have a "?" otherwise.
func (src *source) cutComponents() error {
	if src.syntax == link {
		return nil
	}
	rest, _, found := lex.Cut(src.body, '#')
	src.note(found, fragment)
	i := strings.IndexByte(rest, '?')
	switch {
	case i < 0:
	case src.syntax == urn && i+1 < len(rest) && (rest[i+1] == '+' || rest[i+1] == '='):
		src.note(true, component)
		rest = rest[:i]
	case src.carried:
		src.note(true, query)
		rest = rest[:i]
	default:
		return stele.Invalidf(name, src.pos+i, "hdl.question-mark", `"?" can't stand here; if it belongs to the name, write %3F`)
	}
	src.body = rest
	return nil
}

// at returns where in the text the n-th character of the decoded body stands.
func (src *source) at(n int) int {
	if src.syntax == plain {
		return src.pos + n
	}
	return src.pos + lex.Offset(src.body, n)
}
