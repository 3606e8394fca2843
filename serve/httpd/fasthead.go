package httpd

import (
	"bytes"
	"net/http"
	"strings"
)

// maxFast is the most bytes of a head that the fast path reads. It is also less than what any setting of the server allows.
const maxFast = 4 << 10

// verdict is what the fast path makes of the octets that it has.
type verdict uint8

const (
	unfinished verdict = iota // the head may be one for the fast path, and is not complete
	plainHead                 // it is
	otherHead                 // it is not, or can't become one: net/http reads it
)

// fastHead is the head of a request as the fast path reads it. There is one way to write such a head, so that all programs
// along the way read the same: GET or HEAD, a path without a query, of unreserved characters and those that have no meaning in a
// path; HTTP/1.1; lines that end with CR LF; one Host; and header fields from a list, each once, of visible ASCII. None of these says
// that a body follows, or that the connection is to be used in another way.
type fastHead struct {
	method, path, host string
	header             http.Header // without Host, which net/http removes too; shared with the next request that has the same fields

	fields []byte // from which host and header were made
}

// read reads the head at the beginning of b, and returns how many bytes it has. It never keeps b.
func (h *fastHead) read(b []byte) (n int, v verdict) {
	start, ok := fastMethod(b)
	if !ok {
		return 0, otherHead
	}
	end := bytes.Index(b[:min(len(b), maxFast)], []byte("\r\n\r\n"))
	switch {
	case end < 0 && len(b) >= maxFast:
		return 0, otherHead
	case end < 0 && !mayBeFast(b):
		return 0, otherHead
	case end < 0:
		return 0, unfinished
	}
	line, fields, _ := bytes.Cut(b[:end+len("\r\n")], []byte("\r\n"))
	path, ok := bytes.CutSuffix(line[start:], []byte(" HTTP/1.1"))
	if !ok || !isFastPath(path) {
		return 0, otherHead
	}
	if h.header == nil || !bytes.Equal(fields, h.fields) {
		if !h.readFields(string(fields)) {
			return 0, otherHead
		}
		h.fields = append(h.fields[:0], fields...)
	}
	h.method, h.path = http.MethodGet, string(path)
	if b[0] == 'H' {
		h.method = http.MethodHead
	}
	return end + len("\r\n\r\n"), plainHead
}

// fastMethod returns where the path begins. It returns false if b is the beginning of no head that the fast path reads.
func fastMethod(b []byte) (start int, ok bool) {
	for _, begin := range [...]string{"GET /", "HEAD /"} {
		if n := min(len(b), len(begin)); string(b[:n]) == begin[:n] {
			return max(n-1, 0), true
		}
	}
	return 0, false
}

// isFastPath reports whether a path is one that all programs read alike: nothing in it is encoded, and no segment begins with a dot.
// That leaves out the server's own addresses, too.
func isFastPath(path []byte) bool {
	if len(path) < 2 || path[0] != '/' {
		return false
	}
	for i, c := range path {
		if !fastPathBytes[c] || c == '.' && path[i-1] == '/' {
			return false
		}
	}
	return true
}

// fastPathBytes are the bytes of a path of the fast path: pchar of RFC 3986 without percent signs, and slashes. Those that
// [url.URL.EscapedPath] would encode are left out, so that a URL has one form here.
var fastPathBytes = bytesOf("/-._~:@$&+,;=")

// bytesOf returns a table of letters, digits and some more bytes.
func bytesOf(more string) (table [256]bool) {
	for c := range table {
		table[c] = isAlphanumeric(byte(c)) || strings.IndexByte(more, byte(c)) >= 0
	}
	return table
}

// readFields reads the header fields, each of which ends with CR LF. It returns false if one is not as it should be.
func (h *fastHead) readFields(fields string) bool {
	h.host, h.header = "", make(http.Header, 8)
	for fields != "" {
		line, rest, _ := strings.Cut(fields, "\r\n")
		fields = rest
		name, value, ok := strings.Cut(line, ":")
		if !ok || !isFastName(name) {
			return h.refuse()
		}
		value = strings.Trim(value, " \t")
		if !isFastValue(value) {
			return h.refuse()
		}
		name = http.CanonicalHeaderKey(name)
		if name == "Host" {
			if h.host != "" || !isFastHost(value) {
				return h.refuse()
			}
			h.host = strings.Clone(value)
			continue
		}
		if !fastFields[name] || h.header[name] != nil || name == "Connection" && !strings.EqualFold(value, "keep-alive") {
			return h.refuse()
		}
		// What keeps a value must not keep the whole head.
		h.header[name] = []string{strings.Clone(value)}
	}
	if h.host == "" {
		return h.refuse()
	}
	return true
}

// refuse forgets what was read.
func (h *fastHead) refuse() bool {
	h.header, h.fields = nil, h.fields[:0]
	return false
}

// fastFields are the header fields that the fast path reads, beside Host. The handlers see them as they see those of any other request.
// What is not here makes the whole connection one of net/http's: above all what announces a body (Content-Length, Transfer-Encoding,
// Expect, Trailer), what changes the connection (Upgrade, TE, HTTP2-Settings), credentials, conditions and ranges.
var fastFields = map[string]bool{
	"Accept": true, "Accept-Encoding": true, "Accept-Language": true, "Connection": true, "User-Agent": true, "Referer": true, "From": true,
	"Cookie": true, "Origin": true, "Dnt": true, "Priority": true, "Save-Data": true, "Upgrade-Insecure-Requests": true,
	"Sec-Fetch-Dest": true, "Sec-Fetch-Mode": true, "Sec-Fetch-Site": true, "Sec-Fetch-User": true, "Sec-Gpc": true,
	"Sec-Ch-Ua": true, "Sec-Ch-Ua-Mobile": true, "Sec-Ch-Ua-Platform": true,
	"Forwarded": true, "X-Forwarded-For": true, "X-Forwarded-Host": true, "X-Forwarded-Proto": true, "X-Real-Ip": true, "Via": true,
	"X-Forwarded-Port": true, "X-Forwarded-Server": true, "X-Forwarded-Ssl": true, "X-Amzn-Trace-Id": true, "Cdn-Loop": true,
	"X-Request-Id": true, "Traceparent": true, "Tracestate": true,
	"Cache-Control": true, "Pragma": true, // of browsers that load a page again; no handler reads them
}

// isFastName reports whether a name consists of letters, digits and hyphens.
func isFastName[T string | []byte](name T) bool {
	for i := range len(name) {
		if c := name[i]; !isAlphanumeric(c) && c != '-' {
			return false
		}
	}
	return len(name) > 0
}

// isFastValue reports whether a value consists of visible ASCII, spaces and tabs.
func isFastValue(value string) bool {
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c > '~' {
			return false
		}
	}
	return true
}

// isFastHost reports whether a text is a name or an address, perhaps with a port. Whether it is one of the server's is not asked here.
func isFastHost(host string) bool {
	for i := range len(host) {
		if c := host[i]; !isAlphanumeric(c) && c != '-' && c != '.' && c != '_' && c != ':' && c != '[' && c != ']' {
			return false
		}
	}
	return host != "" && len(host) <= 255
}

// mayBeFast reports whether half a head can become one for the fast path. net/http would answer others before CR LF CR LF comes.
func mayBeFast(b []byte) bool {
	for first := true; ; first = false {
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		if !whole {
			return true
		}
		line, ok := bytes.CutSuffix(line, []byte("\r"))
		if !ok || first && !bytes.HasSuffix(line, []byte(" HTTP/1.1")) {
			return false
		}
		if name, _, ok := bytes.Cut(line, []byte(":")); !first && (!ok || !isFastName(name)) {
			return false
		}
		b = rest
	}
}
