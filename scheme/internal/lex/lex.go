// Package lex holds the lexical rules that several schemes share: ASCII case,
// percent-encoding, host names, http URLs that carry an identifier, and the parts
// of a URN. It makes no identifiers and decides nothing about them.
package lex

import "strings"

// IsDigit reports whether c is an ASCII digit.
func IsDigit(c byte) bool { return '0' <= c && c <= '9' }

// IsAlpha reports whether c is an ASCII letter.
func IsAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// IsAlnum reports whether c is an ASCII letter or digit.
func IsAlnum(c byte) bool { return IsAlpha(c) || IsDigit(c) }

// IsHex reports whether c is a hexadecimal digit.
func IsHex(c byte) bool { return IsDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// Lower returns s with its ASCII letters in lower case; s itself if it has no
// capital. Other characters stay as they are.
func Lower(s string) string { return fold(s, 'A', 'Z') }

// Upper returns s with its ASCII letters in upper case; s itself if it has no
// small one. Other characters stay as they are: strings.ToUpper would turn "ß"
// or a dotless i into something else.
func Upper(s string) string { return fold(s, 'a', 'z') }

// fold toggles the case of the letters from lo to hi.
func fold(s string, lo, hi byte) string {
	for i := range len(s) {
		if lo <= s[i] && s[i] <= hi {
			var b strings.Builder
			b.Grow(len(s))
			b.WriteString(s[:i])
			for ; i < len(s); i++ {
				c := s[i]
				if lo <= c && c <= hi {
					c ^= 0x20
				}
				b.WriteByte(c)
			}
			return b.String()
		}
	}
	return s
}

// Cut is strings.Cut at one byte, which parsers do all the time.
func Cut(s string, sep byte) (before, after string, found bool) {
	if i := strings.IndexByte(s, sep); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}

// Begins reports whether the first byte of s is one of letters, which are lower
// case, in any case. It is the first check of a scheme on a text: five of six texts
// belong to other schemes.
func Begins(s, letters string) bool {
	if s == "" {
		return false
	}
	for i := range len(letters) {
		if letters[i] == s[0]|0x20 {
			return true
		}
	}
	return false
}

// CutFold is strings.CutPrefix with ASCII letters compared in any case. The
// prefix is given in lower case.
func CutFold(s, prefix string) (rest string, ok bool) {
	if len(s) < len(prefix) {
		return s, false
	}
	for i := range len(prefix) {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c != prefix[i] {
			return s, false
		}
	}
	return s[len(prefix):], true
}

// UpperHex returns a hexadecimal digit in upper case.
func UpperHex(c byte) byte {
	if c >= 'a' {
		c -= 0x20
	}
	return c
}

// Unescape decodes the percent-encodings in s, once. bad is the offset of the
// first "%" without two digits, or -1.
func Unescape(s string) (decoded string, bad int) {
	i := strings.IndexByte(s, '%')
	if i < 0 {
		return s, -1
	}
	b := make([]byte, i, len(s))
	copy(b, s)
	for ; i < len(s); i++ {
		c := s[i]
		if c == '%' {
			if i+2 >= len(s) || !IsHex(s[i+1]) || !IsHex(s[i+2]) {
				return s, i
			}
			c = HexValue(s[i+1])<<4 | HexValue(s[i+2])
			i += 2
		}
		b = append(b, c)
	}
	return string(b), -1
}

// InTriplet reports whether a cut after n bytes of a text falls into a percent-encoding.
// All percent-encodings of the text must be valid.
func InTriplet(text string, n int) bool {
	return n > 0 && text[n-1] == '%' || n > 1 && text[n-2] == '%'
}

// HexValue returns the value of a hexadecimal digit.
func HexValue(c byte) byte {
	if IsDigit(c) {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

// Offset returns where in s the n-th byte of its decoded form stands, so that an
// error found after Unescape is reported where its reader sees it.
func Offset(s string, n int) int {
	i := 0
	for ; n > 0 && i < len(s); n-- {
		if s[i] == '%' {
			i += 2
		}
		i++
	}
	return min(i, len(s))
}

// Link is an http or https URL that may carry an identifier.
type Link struct {
	Host     string // as written, with port and user information
	Path     string // as written, from its first "/" on; may be empty
	PathPos  int    // where Path begins in the whole text
	Query    string // what follows the first "?"
	HasQuery bool   // a "?" is there, if with nothing after it
	Fragment string // what follows "#"
}

// ParseLink takes a URL apart without judging its parts. ok is false if text
// does not begin with http:// or https://, in any case of letters.
func ParseLink(text string) (l Link, ok bool) {
	rest, ok := CutFold(text, "https://")
	if !ok {
		if rest, ok = CutFold(text, "http://"); !ok {
			return l, false
		}
	}
	l.PathPos = len(text) - len(rest)
	rest, l.Fragment, _ = Cut(rest, '#')
	rest, l.Query, l.HasQuery = Cut(rest, '?')
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		l.PathPos += i
		l.Host, l.Path = rest[:i], rest[i:]
	} else {
		l.PathPos += len(rest)
		l.Host = rest
	}
	return l, true
}

// Label checks that s is a label of a host name: letters, digits and inner
// hyphens, 1 to 63 of them (RFC 1034, 3.5; RFC 1123, 2.1). bad is the offset of
// what is wrong, len(s) if something is missing there, or -1.
func Label(s string) (bad int) {
	if s == "" {
		return 0
	}
	if len(s) > 63 {
		return 63
	}
	if s[0] == '-' {
		return 0
	}
	for i := range len(s) {
		if !IsAlnum(s[i]) && s[i] != '-' {
			return i
		}
	}
	if s[len(s)-1] == '-' {
		return len(s) - 1
	}
	return -1
}

// Domain checks that s is a domain name of labels with dots between them, at
// most 253 bytes, no dot at its end. bad is as in Label.
func Domain(s string) (bad int) {
	if len(s) > 253 {
		return 253
	}
	for start := 0; ; {
		label, _, more := Cut(s[start:], '.')
		if bad := Label(label); bad >= 0 {
			return start + bad
		}
		if !more {
			return -1
		}
		start += len(label) + 1
	}
}
