package httpd

import (
	"io"
	"net/http"
	"strconv"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/destination"
)

// redirect sends the client elsewhere. It never sends a location that is not safe, whichever
// record or setting it is from; it reports whether it sent one.
func (h *Handler) redirect(w http.ResponseWriter, r *http.Request, location string, status int) bool {
	safe, ok := destination.Safe(location)
	if !ok {
		h.fail(w, r, &stele.Error{Op: "resolve", Kind: stele.NotFound, Err: errLocation})
		return false
	}
	send(w, r, safe, status)
	return true
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
	head["Access-Control-Allow-Origin"] = anyOrigin // where scripts follow it
	if r.ProtoMajor >= 2 {                          // net/http sends a body as a second frame, in a TLS record and by a system call of its own
		w.WriteHeader(status)
		return
	}
	head["Content-Type"] = plainTextType
	if len(safe) > maxUncounted && r.Method != http.MethodHead {
		head["Content-Length"] = []string{strconv.Itoa(len(safe))}
	}
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		// For people who see it; if it fails the client is gone.
		_, _ = io.WriteString(w, safe)
	}
}

// maxUncounted is how many bytes of a body net/http counts itself; beyond that it sends chunks.
const maxUncounted = 2 << 10

var errLocation = stele.Messagef("redirect.location-not-allowed", "its owner has registered an address to which this server does not redirect; tell them")
