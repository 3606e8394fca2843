package dnsrr

import (
	"strconv"
	"strings"

	"github.com/miekg/dns"
)

// plainRule reads a NAPTR record that is written as programs write it: absolute names, quotes, nothing escaped. The reader of the DNS library
// reads all that this one does not, and takes several times as long; a zone may have a million rules. Where this one reads a record,
// both read the same.
func plainRule(text string, ttl uint32) (e Entry, ok bool) {
	for _, c := range []byte(text) {
		if c < ' ' || c > '~' || c == '\\' {
			return e, false
		}
	}
	owner, rest := nextField(text)
	if !isPlainName(owner) || len(owner) == 1 {
		return e, false
	}
	field, rest := nextField(rest)
	if n, err := strconv.ParseUint(field, 10, 31); err == nil {
		ttl = uint32(n)
		field, rest = nextField(rest)
	}
	if field == "IN" {
		field, rest = nextField(rest)
	}
	if field != "NAPTR" {
		return e, false
	}
	var numbers [2]uint16
	for i := range numbers {
		field, rest = nextField(rest)
		n, err := strconv.ParseUint(field, 10, 16)
		if err != nil {
			return e, false
		}
		numbers[i] = uint16(n)
	}
	var texts [3]string
	for i := range texts {
		if texts[i], rest, ok = quotedField(rest); !ok {
			return e, false
		}
	}
	replacement, rest := nextField(rest)
	if !isPlainName(replacement) || rest != "" {
		return e, false
	}
	rr := &dns.NAPTR{Hdr: dns.RR_Header{Name: owner, Rrtype: dns.TypeNAPTR, Class: dns.ClassINET, Ttl: ttl},
		Order: numbers[0], Preference: numbers[1], Flags: texts[0], Service: texts[1], Regexp: texts[2], Replacement: replacement}
	return newEntry(rr), true
}

// nextField returns what stands before the next space, and what stands after all spaces that follow.
func nextField(text string) (field, rest string) {
	field, rest, _ = strings.Cut(text, " ")
	return field, strings.TrimLeft(rest, " ")
}

// quotedField returns a text in quotes with which another text begins, and what follows.
func quotedField(text string) (field, rest string, ok bool) {
	inner, ok := strings.CutPrefix(text, `"`)
	if !ok {
		return "", "", false
	}
	field, rest, ok = strings.Cut(inner, `"`)
	trimmed := strings.TrimLeft(rest, " ")
	return field, trimmed, ok && len(field) <= 255 && len(trimmed) < len(rest)
}

// isPlainName reports whether a name is absolute, and has only characters that need no escape.
func isPlainName(name string) bool {
	if name == "." {
		return true
	}
	if len(name) > 254 || !strings.HasSuffix(name, ".") {
		return false
	}
	label := 0
	for _, c := range []byte(name) {
		switch {
		case c == '.':
			if label == 0 {
				return false
			}
			label = 0
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_':
			if label++; label > 63 {
				return false
			}
		default:
			return false
		}
	}
	return true
}
