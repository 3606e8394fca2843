package destination

import "strings"

// Safe returns a URL as it may stand in a header, or false if it is not fit for a
// redirect: it has another protocol than those that fetch something from a
// host, no host, or control characters. What is not ASCII is encoded.
func Safe(location string) (string, bool) {
	protocol, rest, ok := strings.Cut(location, "://")
	if !ok || !mayLeadTo(protocol) {
		return "", false
	}
	end := authorityEnd(rest)
	if !IsHost(rest[strings.IndexByte(rest[:end], '@')+1 : end]) {
		return "", false
	}
	start := len(location) - len(rest)
	odd := -1 // the first byte that must be encoded
	for i := range len(location) {
		c := location[i]
		if c < ' ' || c == 0x7f || i < start+end && (c <= ' ' || c > '~' || c == '\\') {
			return "", false
		}
		if odd < 0 && !inURL[c] {
			odd = i
		}
	}
	if odd < 0 {
		return location, true
	}
	const hex = "0123456789ABCDEF"
	b := append(make([]byte, 0, len(location)+16), location[:odd]...)
	for _, c := range []byte(location[odd:]) {
		if inURL[c] {
			b = append(b, c)
		} else {
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(b), true
}

// mayLeadTo reports whether a redirect may lead to URLs of a protocol. They are those
// that a target may have.
func mayLeadTo(protocol string) bool {
	switch protocol {
	case "https", "http":
		return true
	}
	switch strings.ToLower(protocol) {
	case "https", "http", "ftp", "ftps", "sftp", "rsync", "rtsp":
		return true
	}
	return false
}

// inURL has the characters that stand for themselves somewhere in a URL.
var inURL = func() (set [256]bool) {
	for c := range set {
		set[c] = plainText[c] || c < 0x80 && strings.IndexByte("%?#[]", byte(c)) >= 0
	}
	return set
}()

// authorityEnd returns where the authority ends that a URL has after its "://".
func authorityEnd(rest string) int {
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		return end
	}
	return len(rest)
}

// IsHost reports whether a text can be a host, perhaps with a port. It does not look it
// up.
func IsHost(host string) bool {
	for i := range len(host) {
		if c := host[i]; !isAlphanumeric(c) && strings.IndexByte("-._:[]", c) < 0 {
			return false
		}
	}
	return host != "" && len(host) <= 260
}

// plainText has the characters that stand for themselves in a URL's path (RFC
// 3986, section 3.3).
var plainText = func() (set [256]bool) {
	for c := range set {
		set[c] = isAlphanumeric(byte(c)) || c < 0x80 && strings.IndexByte("-._~!$&'()*+,;=:@/", byte(c)) >= 0
	}
	return set
}()

// InPath reports whether a character stands for itself in a URL's path.
func InPath(c byte) bool { return plainText[c] }

// InURL reports whether a character stands for itself somewhere in a URL.
func InURL(c byte) bool { return inURL[c] }

// Escape returns a text as it may stand in a URL's path.
func Escape(text string) string {
	const hex = "0123456789ABCDEF"
	b := make([]byte, 0, len(text)+16)
	for i := range len(text) {
		if c := text[i]; plainText[c] {
			b = append(b, c)
		} else {
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(b)
}

func isAlphanumeric(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' }
