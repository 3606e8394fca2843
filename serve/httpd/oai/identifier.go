package oai

import (
	"strings"

	"github.com/stele-id/stele"
)

// identifier returns the identifier of a record for harvesters, which must be a URI (OAI-PMH 2.0, 2.4): the name itself, if it
// is one, or else the name after its scheme, percent-encoded. Two names never have the same.
func identifier(id stele.ID) string {
	text := id.String()
	if isURI(text) {
		return text
	}
	var b strings.Builder
	b.WriteString(id.Scheme() + ":")
	for i := range len(text) {
		if c := text[i]; c == '%' || !isURIByte(c) {
			const hex = "0123456789ABCDEF"
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
			continue
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// isURIByte reports whether a URI can have a byte as it is.
func isURIByte(c byte) bool {
	return c > ' ' && c < 0x7f && strings.IndexByte("<>\"{}|\\^`", c) < 0
}

// isURI reports whether a text can be a URI: it begins with a scheme and a colon (RFC 3986, section 3.1), and has no characters
// that would have to be encoded.
func isURI(text string) bool {
	for i := range len(text) {
		if c := text[i]; !isURIByte(c) || c == '%' && !isTriplet(text[i:]) {
			return false
		}
	}
	scheme, _, ok := strings.Cut(text, ":")
	if !ok || scheme == "" {
		return false
	}
	for i, c := range []byte(scheme) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || (c < '0' || c > '9') && c != '+' && c != '-' && c != '.') {
			return false
		}
	}
	return true
}

func isTriplet(s string) bool { return len(s) >= 3 && isHex(s[1]) && isHex(s[2]) }

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}

// parseIdentifier reads what identifier writes, and nothing else.
func parseIdentifier(schemes *stele.Schemes, text string) (stele.ID, bool) {
	_, rest, _ := strings.Cut(text, ":")
	for _, name := range [...]string{text, decoded(rest)} {
		if id, err := schemes.Parse(name); err == nil && identifier(id) == text {
			return id, true
		}
	}
	return stele.ID{}, false
}

// decoded returns a text without percent-encoding.
func decoded(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && isTriplet(text[i:]) {
			b.WriteByte(value(text[i+1])<<4 | value(text[i+2]))
			i += 2
			continue
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

func value(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

// setSpec returns the name of the set of a namespace: the scheme, a dot, and the prefix without the scheme. Characters that names
// of sets can't have (OAI-PMH 2.0, 2.6) become ~ and two hexadecimal digits. There is no colon: it would make a set part of another.
func setSpec(key stele.NamespaceKey) string {
	var b strings.Builder
	b.WriteString(key.Scheme)
	rest := strings.TrimPrefix(key.Prefix, key.Scheme+":")
	if rest == "" {
		return b.String()
	}
	b.WriteByte('.')
	for i := range len(rest) {
		c := rest[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9'
		if letter || c == '-' || c == '_' || c == '.' {
			b.WriteByte(c)
			continue
		}
		const hex = "0123456789ABCDEF"
		b.WriteByte('~')
		b.WriteByte(hex[c>>4])
		b.WriteByte(hex[c&15])
	}
	return b.String()
}

// isSetSpec reports whether a text can be the name of a set, of some repository.
func isSetSpec(text string) bool {
	if text == "" {
		return false
	}
	for part := range strings.SplitSeq(text, ":") {
		if part == "" {
			return false
		}
		for _, c := range []byte(part) {
			letter := 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9'
			if !letter && strings.IndexByte(`-_.!~*'()`, c) < 0 {
				return false
			}
		}
	}
	return true
}
