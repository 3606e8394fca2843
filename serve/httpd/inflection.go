package httpd

import (
	"net/http"
	"strconv"

	"github.com/stele-id/stele/resolver"
)

// arkRoot answers with the path to which clients append an ARK to have it resolved
// (draft-kunze-ark-42, section 5.6).
func (h *Handler) arkRoot(w http.ResponseWriter, r *http.Request) {
	w.Header()["Cache-Control"] = oneDay
	forScripts(w.Header())
	h.write(w, r, http.StatusOK, textType, []byte("/\n"))
}

// inflect answers an inflection: what is known of a name, in the form that clients of ARKs
// read.
func (h *Handler) inflect(w http.ResponseWriter, r *http.Request, res *resolver.Resolution) {
	h.describeAs(thump{w}, r, res, "text/plain")
}

// thump gives an answer the status of THUMP, by which clients of ARKs distinguish a server
// that understands inflections from one that ignores an unknown query (draft-kunze-ark-42,
// section 5.2).
type thump struct{ http.ResponseWriter }

// thumpVersion is that of the protocol, in front of the status.
const thumpVersion = "0.6"

func (t thump) WriteHeader(status int) {
	t.Header()["Thump-Status"] = []string{thumpVersion + " " + strconv.Itoa(status) + " " + http.StatusText(status)}
	t.ResponseWriter.WriteHeader(status)
}

// Unwrap is for [http.ResponseController].
func (t thump) Unwrap() http.ResponseWriter { return t.ResponseWriter }
