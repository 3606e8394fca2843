package publish

import "strings"

// Head returns the size of what is written in any case wherever names have a head: the
// scheme and the first thing after it, urn:example or ark:12345. It is 0 for names
// without.
func Head(text string) int {
	scheme := strings.IndexByte(text, ':')
	if scheme < 0 {
		return 0
	}
	if n := strings.IndexAny(text[scheme+1:], ":/"); n >= 0 {
		return scheme + 1 + n
	}
	return len(text)
}

// Key returns where clients begin to look for the names under a prefix: a scheme, such as
// urn, and a label in lower case, such as the namespace of a URN (RFC 3404, section 4.2)
// or the NAAN of an ARK. ok is false if nothing in such names can be a label: clients find
// them over HTTP only. So it is with handles and DOIs, PURLs and IBIs.
func Key(prefix string) (scheme, label string, ok bool) {
	scheme, label, _ = strings.Cut(prefix[:Head(prefix)], ":")
	for i := range len(label) {
		c := label[i]
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return "", "", false
		}
	}
	return scheme, strings.ToLower(label), label != "" && len(label) <= 63
}
