package describe

import (
	"strings"
	"unicode/utf8"
)

// clean returns a text without what no valid record has (see stele's Validate):
// each such character becomes U+FFFD. Lines stay lines.
func clean(s string) string {
	s = strings.TrimSpace(s)
	bad := func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r == 0x202d || r == 0x202e ||
			r == 0xfffe || r == 0xffff
	}
	if utf8.ValidString(s) && strings.IndexFunc(s, bad) < 0 {
		return s
	}
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		if bad(r) {
			return utf8.RuneError
		}
		return r
	}, s)
}

// line returns a text on one line, with single spaces.
func line(s string) string { return strings.Join(strings.Fields(clean(s)), " ") }

// list splits a text at its semicolons.
func list(s string) (items []string) {
	for item := range strings.SplitSeq(s, ";") {
		if item = line(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// uncoded returns a value of the kernel metadata without the code that may stand
// before it: "(:unkn) anonymous".
func uncoded(s string) string {
	if rest, ok := strings.CutPrefix(s, "(:"); ok {
		if _, after, ok := strings.Cut(rest, ")"); ok {
			return strings.TrimSpace(after)
		}
	}
	return s
}

const upperHex = "0123456789ABCDEF"

// uriText has the characters that may stand in a URI (RFC 3986, section 2), except %.
var uriText = func() (set [256]bool) {
	for c := range set {
		set[c] = c < 0x80 && (isAlphanumeric(byte(c)) || strings.IndexByte("-._~:/?#[]@!$&'()*+,;=", byte(c)) >= 0)
	}
	return set
}()

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// encode percent-encodes what can't stand in a URI, so that the result can be put
// between the angle brackets of a header or of Turtle. What is percent-encoded
// already stays so.
func encode(url string) string {
	for i := range len(url) {
		if c := url[i]; !uriText[c] && !isTriplet(url[i:]) {
			return string(appendEncoded([]byte(url[:i]), url[i:]))
		}
	}
	return url
}

// appendEncoded appends url as encode returns it.
func appendEncoded(b []byte, url string) []byte {
	for i := range len(url) {
		if c := url[i]; uriText[c] || isTriplet(url[i:]) {
			b = append(b, c)
		} else {
			b = append(b, '%', upperHex[c>>4], upperHex[c&0xf])
		}
	}
	return b
}

func isTriplet(s string) bool {
	return len(s) >= 3 && s[0] == '%' && isHex(s[1]) && isHex(s[2])
}

// pathOf returns an identifier as the path of a URL: what would begin a query or
// a fragment is encoded.
func pathOf(id string) string {
	return strings.ReplaceAll(strings.ReplaceAll(id, "?", "%3F"), "#", "%23")
}

// webURL returns s, percent-encoded where need be, if it is the URL of a page.
func webURL(s string) (string, bool) {
	protocol, rest, ok := strings.Cut(s, "://")
	if !ok || rest == "" || strings.ContainsAny(rest[:1], "/?#") || strings.ContainsAny(s, " \t\n") {
		return "", false
	}
	switch strings.ToLower(protocol) {
	case "http", "https":
		return encode(s), true
	}
	return "", false
}

// targetURL returns a target's URL if it is of a protocol that targets may have.
func targetURL(s string) (string, bool) {
	protocol, rest, ok := strings.Cut(s, "://")
	if !ok || rest == "" {
		return "", false
	}
	switch strings.ToLower(protocol) {
	case "http", "https", "ftp", "ftps", "sftp", "rsync", "rtsp":
		return encode(s), true
	}
	return "", false
}
