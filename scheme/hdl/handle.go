package hdl

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/scheme/internal/lex"
)

// shortDOI is the prefix of the aliases that shortdoi.org gives to DOIs. They
// are written as DOIs are, but are not DOIs (DOI Handbook, shortDOI Service).
const shortDOI = "10"

// reading is a handle that was found in a text.
type reading struct {
	src     source
	handle  string // decoded, letters as written
	start   int    // where handle begins in src's decoded body
	slash   int    // where prefix ends in handle
	numeric bool   // prefix is digits and dots
	id      stele.ID
}

// read finds, decodes and checks the handle in text. It is what Parse and
// Explain share.
func (r *reading) read(text string) (err error) {
	// A text that is too long is refused below in any case; its beginning tells which
	// scheme claims it.
	if !r.src.claim(text[:min(len(text), stele.MaxText)]) {
		return stele.ErrForeign
	}
	if err := stele.CheckText(name, text); err != nil {
		return err
	}
	if err := r.src.checkHost(); err != nil {
		return err
	}
	if r.handle, err = r.src.decode(); err != nil {
		return err
	}
	if r.src.proxy {
		if err := r.cutProxy(); err != nil {
			return err
		}
	}
	if err := r.split(); err != nil {
		return err
	}
	if err := r.check(); err != nil {
		return err
	}
	r.id, err = stele.NewID(name, r.canonical(text))
	return err
}

// cutProxy cuts what a proxy accepts before a handle in its paths: slashes,
// its interface for programs, a mark. It is HS9's order, in which decoding comes
// first.
func (r *reading) cutProxy() error {
	rest := strings.TrimLeft(r.handle, "/")
	if after, ok := lex.CutFold(rest, "api/"); ok {
		if rest, ok = lex.CutFold(after, "handles/"); !ok {
			return stele.Invalidf(name, r.src.at(len(r.handle)-len(after)),
				"hdl.reserved-path", "the proxy uses paths that begin with api/ itself; handles are below api/handles/")
		}
	}
	for _, m := range marks {
		if after, ok := lex.CutFold(rest, m.text); ok {
			rest = after
			r.src.doi = r.src.doi || m.doi
			if m.syntax == urn {
				r.src.syntax = urn
			}
			break
		}
	}
	r.start = len(r.handle) - len(rest)
	r.handle = rest
	return nil
}

// at returns where in the text the n-th byte of the handle stands.
func (r *reading) at(n int) int { return r.src.at(r.start + n) }

// split finds the end of the prefix and checks its characters.
func (r *reading) split() error {
	s, segment := r.handle, 0
	r.numeric = true
	for i := 0; i < len(s); {
		if lex.IsDigit(s[i]) {
			i++
			continue
		}
		c, n := rune(s[i]), 1
		if c >= utf8.RuneSelf {
			c, n = utf8.DecodeRuneInString(s[i:])
		}
		switch end := c == '/' || c == ':' && r.src.syntax == urn; {
		case end && i == 0:
			return stele.Invalidf(name, r.at(0), "hdl.prefix-missing", "the prefix is missing; a handle is such as 10.1000/182")
		case (end || c == '.') && i == segment:
			return stele.Invalidf(name, r.at(i), "hdl.prefix-segment-empty", "a segment of the prefix is empty; single dots stand between them")
		case end:
			r.slash = i
			return nil
		case c == '.':
			segment = i + 1
		case !inPrefix(c):
			return r.badPrefix(i, c)
		default:
			r.numeric = false
		}
		i += n
	}
	hint := ""
	if r.src.doi && s != "" {
		hint = "; a shortDOI is written with its prefix, 10/abcde"
	}
	return stele.Invalidf(name, r.at(len(s)), "hdl.slash-missing", `there is no "/" between prefix and local name, as in 10.1000/182{hint}`, hint)
}

// inPrefix reports whether c can stand in a segment of a prefix.
func inPrefix(c rune) bool {
	if c < utf8.RuneSelf {
		return lex.IsAlnum(byte(c)) || c == '-' || c == '_'
	}
	return unicode.In(c, unicode.L, unicode.M, unicode.Nd)
}

func (r *reading) badPrefix(i int, c rune) error {
	hint := ""
	switch {
	case c == '%' && r.src.syntax == plain:
		hint = "; percent-encoding is for URLs, info: and urn: only"
	case c == ':':
		hint = "; if it ends a mark, write one mark only"
	}
	return stele.Invalidf(name, r.at(i),
		"hdl.prefix-character", `{character} can't stand in a prefix, which has letters, digits, "-", "_" and dots{hint}`, stele.Describe(c), hint)
}

// check checks the local name, and that a DOI is a valid one.
func (r *reading) check() error {
	if p := r.handle[:r.slash]; r.src.doi && p != shortDOI && !(r.numeric && isDOI(p)) {
		return stele.Invalidf(name, r.at(0), "hdl.doi-prefix-malformed", `a DOI's prefix is "10." and digits, such as 10.1000; other handles are written hdl:`)
	}
	local := r.handle[r.slash+1:]
	if local == "" {
		return stele.Invalidf(name, r.at(r.slash+1), "hdl.local-name-missing", `the local name after the "/" is missing`)
	}
	first, _ := utf8.DecodeRuneInString(local)
	last, n := utf8.DecodeLastRuneInString(local)
	if unicode.IsSpace(first) {
		return stele.Invalidf(name, r.at(r.slash+1), "hdl.leading-space", "a local name can't begin with a space; remove it")
	}
	if unicode.IsSpace(last) {
		return stele.Invalidf(name, r.at(len(r.handle)-n), "hdl.trailing-space", "a local name can't end with a space; remove it")
	}
	return nil
}

// isDOI reports whether the prefix of a bare handle is a DOI's.
func isDOI(prefix string) bool { return strings.HasPrefix(prefix, shortDOI+".") }

// canonical returns the canonical form, which is text itself or a piece of it
// wherever that is possible.
func (r *reading) canonical(text string) string {
	small := 0 // where the first small letter is
	for small < len(r.handle) && (r.handle[small] < 'a' || r.handle[small] > 'z') {
		small++
	}
	if small == len(r.handle) && r.handle[r.slash] == '/' {
		if r.numeric {
			return r.handle
		}
		if r.src.syntax == plain && r.src.pos == len(mark) && strings.HasPrefix(text, mark) {
			return text
		}
	}
	var b strings.Builder
	if r.numeric {
		b.Grow(len(r.handle))
	} else {
		b.Grow(len(mark) + len(r.handle))
		b.WriteString(mark)
	}
	small = min(small, r.slash)
	b.WriteString(r.handle[:small])
	for i := small; i < len(r.handle); i++ {
		c := r.handle[i]
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		if i == r.slash {
			c = '/' // it may be a colon
		}
		b.WriteByte(c)
	}
	return b.String()
}

// escape returns start and handle as part of a URI's path. All is encoded that
// RFC 3986, 3.3, does not allow in a path, and "+", as the DOI Handbook asks for.
// A slash before "." or ".." is encoded too, or a browser would remove both
// (encoding the dots does not help: it decodes them first), and so is one before
// "ark:", or the URL would carry that ARK.
func escape(start, handle string) string { return encode(start, handle, true) }

// encode is escape; unless url is set, it does not encode what only browsers and proxies need.
func encode(start, handle string, url bool) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	b.Grow(len(start) + len(handle))
	b.WriteString(start)
	for i := range len(handle) {
		c := handle[i]
		switch {
		case c == '/' && (!url || !isDotSegment(handle[i+1:]) && !lex.IsMark(handle[i+1:], "ark:")), c == '+' && !url,
			lex.IsAlnum(c), strings.IndexByte("-._~!$&'()*,;=:@", c) >= 0:
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}

// isDotSegment reports whether the first segment of a path is "." or "..".
func isDotSegment(path string) bool {
	path, ok := strings.CutPrefix(path, ".")
	path = strings.TrimPrefix(path, ".")
	return ok && (path == "" || path[0] == '/')
}
