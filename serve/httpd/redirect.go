package httpd

import (
	"io"
	"net/http"
	"strings"

	"github.com/stele-id/stele"
)

// redirect sends the client elsewhere. A location that is not fit for it, whoever
// registered it, is not sent.
func (h *Handler) redirect(w http.ResponseWriter, r *http.Request, location string, status int) {
	safe, ok := safeLocation(location)
	if !ok {
		h.fail(w, r, &stele.Error{Op: "resolve", Kind: stele.NotFound, Err: errLocation})
		return
	}
	send(w, r, safe, status)
}

// send writes a redirect to a location that is fit for a header: it was checked, or
// made here of the server's own address and of encoded paths.
func send(w http.ResponseWriter, r *http.Request, safe string, status int) {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		status = http.StatusFound
	}
	head := w.Header()
	head["Location"] = []string{safe}
	head["Content-Type"] = plainTextType
	head["Access-Control-Allow-Origin"] = anybody // where scripts follow it
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		// For people who see it; nobody is left to tell if it fails.
		_, _ = io.WriteString(w, safe)
	}
}

const errLocation = reason("its owner has registered an address to which this server sends nobody; tell them")

// reason is an error that is only its text.
type reason string

func (r reason) Error() string { return string(r) }

// safeLocation returns a URL as it may stand in a header, or false if people must
// not be sent there: it has another protocol than those that fetch something from a
// host, no host, or control characters. What is not ASCII is encoded.
func safeLocation(location string) (string, bool) {
	protocol, rest, ok := strings.Cut(location, "://")
	if !ok || !mayLeadTo(protocol) {
		return "", false
	}
	end := authorityEnd(rest)
	if !isHost(rest[strings.IndexByte(rest[:end], '@')+1 : end]) {
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

// mayLeadTo reports whether people are sent to URLs of a protocol. They are those
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
