package purl

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/scheme/internal/lex"
)

// host is a resolver's host.
type host struct {
	text string // as it stands in canonical texts
	name string // in lower case
	port string // empty for the protocol's own
}

// newHost reads a host of the configuration.
func newHost(text string) (host, error) {
	h := host{name: lex.Lower(text)}
	name, port, hasPort := lex.Cut(h.name, ':')
	h.name = strings.TrimSuffix(name, ".")
	if lex.Domain(h.name) >= 0 {
		return host{}, stele.Messagef("purl.host-malformed", `"{text}" is not a host of PURLs; give a host name, perhaps with a port, such as purl.org or localhost:8080`, text)
	}
	if hasPort {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 || port[0] == '0' {
			return host{}, stele.Messagef("purl.host-port-malformed", `"{text}" is not a host of PURLs: its port must be a number from 1 to 65535`, text)
		}
		if n != 80 && n != 443 {
			h.port = port
		}
	}
	h.text = h.name
	if h.port != "" {
		h.text += ":" + h.port
	}
	return h, nil
}

// lookup finds the host of a URL among the hosts. Ports 80 and 443 are the
// protocols' own (RFC 3986, 6.2.3), each with its own protocol only.
func (s *Scheme) lookup(text string, secure bool) (h host, ok bool) {
	name, port, _ := lex.Cut(text, ':')
	if secure && port == "443" || !secure && port == "80" {
		port = ""
	}
	name = strings.TrimSuffix(name, ".")
	for _, h := range *s.known.Load() {
		if len(name) == len(h.name) && port == h.port {
			if _, ok := lex.CutFold(name, h.name); ok {
				return h, true
			}
		}
	}
	return host{}, false
}

// reading is a PURL that was found in a text.
type reading struct {
	link lex.Link
	host string // canonical, with a port that is not the protocol's own
	id   stele.ID
}

// read checks the PURL in text. It is what Parse and Explain share.
func (s *Scheme) read(text string, r *reading) (err error) {
	// A text that is too long is refused below; its beginning tells which scheme claims it.
	head := text[:min(len(text), stele.MaxText)]
	link, ok := lex.ParseLink(head)
	if !ok {
		return stele.ErrForeign
	}
	user := strings.LastIndexByte(link.Host, '@')
	h, ok := s.lookup(link.Host[user+1:], head[len("http")] != ':')
	if !ok || isForeign(head, link) {
		return stele.ErrForeign
	}
	if err := stele.CheckText(name, text); err != nil {
		return err
	}
	if user >= 0 {
		return stele.Invalidf(name, link.PathPos-len(link.Host)+user,
			"purl.user-information", `a PURL has no user information; remove what stands before the "@"`)
	}
	tidy, err := scan(link.Path, link.PathPos)
	if err != nil {
		return err
	}
	canonical := text[:link.PathPos+len(link.Path)]
	if !tidy || canonical[:link.PathPos-len(link.Host)] != start || link.Host != h.text {
		canonical = build(h.text, link.Path)
	}
	path := canonical[len(start)+len(h.text):]
	if err := checkNamed(canonical, path, tidy, link.PathPos); err != nil {
		return err
	}
	r.link, r.host = link, h.text
	r.id, err = stele.NewID(name, canonical)
	return err
}

// isForeign reports whether a URL carries a name that has a mark of its own.
func isForeign(text string, l lex.Link) bool {
	if strings.IndexByte(l.Path, ':') < 0 && strings.IndexByte(l.Path, '%') < 0 && strings.IndexByte(l.Query, ':') < 0 {
		return false
	}
	if _, ok := lex.FindURN(text); ok || lex.HasMark(l.Path, "ark:") {
		return true
	}
	first := strings.TrimPrefix(l.Path, "/")
	return lex.IsMark(first, "hdl:") || lex.IsMark(first, "doi:")
}

// checkNamed refuses a canonical path, from pos on in the text, that names
// nothing, or something of another sort.
func checkNamed(canonical, path string, tidy bool, pos int) error {
	if strings.TrimLeft(path, "/") == "" {
		return stele.Invalidf(name, pos, "purl.path-empty", "the path is empty, so nothing is named; a PURL is such as https://purl.org/dc/terms/title")
	}
	part, _, _ := lex.Cut(path[1:], '/')
	if strings.HasPrefix(part, ".") {
		return stele.Invalidf(name, pos+1, "purl.leading-dot-reserved", `a PURL can't begin with "{part}": a first part that begins with a dot is reserved for the resolver itself; choose another name`, shorten(part))
	}
	if IsReserved(part) {
		return stele.Invalidf(name, pos+1, "purl.part-reserved", `a PURL can't begin with "{part}", which a resolver uses itself`, shorten(part))
	}
	// It shows only now because its letters were encoded.
	if !tidy && isForeign(canonical, lex.Link{Path: path}) {
		return stele.Invalidf(name, pos, "purl.scheme-mark-encoded", `the path has a percent-encoded mark of another scheme, such as "ark:"; write it as it is`)
	}
	return nil
}

// shorten cuts a text that is to be quoted.
func shorten(s string) string { return s[:min(len(s), 20)] }

// scan checks the characters of a path, which begins at pos in the text, and
// that none of its parts is "." or "..". It reports whether the path is in its
// canonical form.
func scan(path string, pos int) (tidy bool, err error) {
	tidy = true
	part, dots := 0, 0 // where the part begins, and how many dots it is; -1: not only dots
	for i := 0; i <= len(path); i++ {
		if i == len(path) || path[i] == '/' {
			if dots == 1 || dots == 2 {
				return false, stele.Invalidf(name, pos+part,
					"purl.dot-segment", `"." and ".." can't be parts of a PURL's path, encoded or not: browsers remove them`)
			}
			part, dots = i+1, 0
			continue
		}
		c := path[i]
		if c == '%' {
			if c, err = triplet(path, i, pos); err != nil {
				return false, err
			}
			tidy = tidy && path[i+1] < 'a' && path[i+2] < 'a' && !isUnreserved(c)
			i += 2
		} else if !inPath[c] {
			return false, badChar(path[i:], pos+i)
		}
		switch {
		case c != '.':
			dots = -1
		case dots >= 0:
			dots++
		}
	}
	return tidy, nil
}

// inPath has the characters that stand for themselves in a path (RFC 3986, 3.3).
var inPath = func() (set [256]bool) {
	for c := range set {
		set[c] = isUnreserved(byte(c)) || strings.IndexByte("!$&'()*+,;=:@", byte(c)) >= 0
	}
	return set
}()

// triplet returns the byte that is encoded at path[i].
func triplet(path string, i, pos int) (byte, error) {
	if i+2 >= len(path) || !lex.IsHex(path[i+1]) || !lex.IsHex(path[i+2]) {
		return 0, stele.Invalidf(name, pos+i,
			"hdl.percent-sign-alone", `"%" must be followed by two hexadecimal digits; the character itself is written %25`)
	}
	c := lex.HexValue(path[i+1])<<4 | lex.HexValue(path[i+2])
	if c < ' ' || c == 0x7f {
		return 0, stele.Invalidf(name, pos+i, "purl.control-character", "percent-encoded control character {character}; remove it", fmt.Sprintf("%U", c))
	}
	return c, nil
}

// badChar makes the error for the character at the beginning of s, which no path
// has (RFC 3986, 3.3).
func badChar(s string, pos int) error {
	r, n := utf8.DecodeRuneInString(s)
	var encoded strings.Builder
	for i := range n {
		fmt.Fprintf(&encoded, "%%%02X", s[i])
	}
	return stele.Invalidf(name, pos, "purl.character-not-allowed", "{character} can't stand in a URL's path; if it belongs to the name, write it percent-encoded, {encoded}",
		stele.Describe(r), encoded.String())
}

// isUnreserved reports whether c means the same encoded and not (RFC 3986, 2.3).
func isUnreserved(c byte) bool {
	return lex.IsAlnum(c) || c == '-' || c == '.' || c == '_' || c == '~'
}

// build returns the canonical text of a path that scan accepts.
func build(host, path string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	b.Grow(len(start) + len(host) + len(path))
	b.WriteString(start)
	b.WriteString(host)
	for i := 0; i < len(path); i++ {
		c := path[i]
		if c == '%' {
			c = lex.HexValue(path[i+1])<<4 | lex.HexValue(path[i+2])
			i += 2
			if !isUnreserved(c) {
				b.WriteByte('%')
				b.WriteByte(hex[c>>4])
				c = hex[c&15]
			}
		}
		b.WriteByte(c)
	}
	return b.String()
}
