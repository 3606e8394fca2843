package httpd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/handlejson"
	"github.com/stele-id/stele/internal/limit"
)

// handleCode is a response code of the Handle System (RFC 3652, 2.2.2.3).
type handleCode int

const (
	handleSuccess      handleCode = 1
	handleError        handleCode = 2
	handleBusy         handleCode = 3
	handleProtocol     handleCode = 4
	handleUnknown      handleCode = 100
	handleInvalid      handleCode = 102
	handleNoValues     handleCode = 200
	handleElsewhere    handleCode = 301 // this server is not responsible
	handleNeedsKnowing handleCode = 402 // the client must authenticate
)

// handleStatus is the one table from response codes to HTTP's, as in the reference server.
// Without TLS a handle client can't authenticate, so that 402 is not a challenge here.
func handleStatus(code handleCode) int {
	switch code {
	case handleSuccess, handleNoValues:
		return http.StatusOK
	case handleBusy:
		return http.StatusServiceUnavailable
	case handleProtocol, handleInvalid, handleElsewhere:
		return http.StatusBadRequest
	case handleUnknown:
		return http.StatusNotFound
	case handleNeedsKnowing:
		return http.StatusForbidden
	}
	return http.StatusInternalServerError
}

// handleCodeOf is the one table from kinds of failure to response codes.
func handleCodeOf(err error) handleCode {
	if _, ok := errors.AsType[*refusal](err); ok {
		return handleProtocol
	}
	if _, ok := errors.AsType[*limit.Refusal](err); ok || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return handleBusy
	}
	switch stele.KindOf(err) {
	case stele.Invalid, stele.Conflict:
		return handleProtocol
	case stele.NotFound, stele.Gone:
		return handleUnknown
	case stele.Unauthenticated, stele.Forbidden:
		return handleNeedsKnowing
	case stele.Unavailable, stele.Exhausted:
		return handleBusy
	}
	return handleError
}

// isHandleREST reports whether a request is for the Handle System's REST interface: all that
// is below /api/ except our own.
func isHandleREST(t requestTarget) bool {
	first, rest := t.segment()
	which, _, _ := strings.Cut(rest, "/")
	return first == "api" && which != "v1"
}

// failHandle answers with an error in the form of the REST interface, so that a handle client
// can read what is wrong wherever that was found. The status is that of the error.
func (h *Handler) failHandle(w http.ResponseWriter, r *http.Request, err error) {
	refused := handleRefusal{Code: handleCodeOf(err), status: statusOf(err)}
	p := problem{Status: refused.status}
	if _, limited := errors.AsType[*limit.Refusal](err); !limited && p.Status >= http.StatusInternalServerError {
		h.hide(w, r, &p, err)
	} else if p.Detail = legible(err.Error()); !limited {
		h.tell(r, &p, err)
	}
	refused.Message = p.Detail
	q, _ := readParameters(readTarget(r).query) // of it the answer needs only how it is written
	h.writeHandle(w, r, q, refused)
}

// handleAnswer is what the REST interface says. The order of keys is the reference
// server's, and is not the same in all answers.
type handleAnswer struct {
	Code   handleCode         `json:"responseCode"`
	Handle string             `json:"handle"`
	Values []handlejson.Value `json:"values"`
}

type handleNothing struct {
	Code   handleCode         `json:"responseCode"`
	Values []handlejson.Value `json:"values"`
	Handle string             `json:"handle"`
}

type handleRefusal struct {
	Code    handleCode `json:"responseCode"`
	Message string     `json:"message,omitempty"`
	Handle  string     `json:"handle,omitempty"`
	status  int        // if not that of the code
}

// newHandleAnswer makes the answer for values, which may be none, sorted by their indexes.
func newHandleAnswer(handle string, values []stele.HandleValue) any {
	shown := make([]handlejson.Value, len(values))
	values = byIndex(values)
	for i := range values {
		shown[i] = handlejson.Show(&values[i])
	}
	if len(shown) == 0 {
		return handleNothing{handleNoValues, shown, handle}
	}
	return handleAnswer{handleSuccess, handle, shown}
}

// writeHandle writes an answer: as JSON, or as a call of the function that the
// parameter callback names.
func (h *Handler) writeHandle(w http.ResponseWriter, r *http.Request, q url.Values, answer any) {
	status := http.StatusOK
	if refusal, ok := answer.(handleRefusal); ok {
		if status = refusal.status; status == 0 {
			status = handleStatus(refusal.Code)
		}
		w.Header()["Cache-Control"] = notKept // the error may be corrected
	}
	media, callback := "application/json", ""
	if q.Has("callback") {
		if callback = q.Get("callback"); !isFunction(callback) {
			answer, callback = handleRefusal{Code: handleProtocol, Message: "callback is not a name of a function; use letters, digits, _ and $"}, ""
			status = http.StatusBadRequest
		} else {
			media = "application/javascript"
		}
	}
	var b bytes.Buffer
	if callback != "" {
		b.WriteString(callback + "(")
	}
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if isTrue(q, "pretty") {
		encoder.SetIndent("", "  ")
	}
	if err := encoder.Encode(answer); err != nil {
		h.fail(w, r, err)
		return
	}
	b.Truncate(b.Len() - 1) // Encode ends the line
	if callback != "" {
		b.WriteString(");")
	}
	w.Header()["Access-Control-Allow-Origin"] = anyOrigin
	h.write(w, r, status, media+";charset=utf-8", b.Bytes())
}

// isFunction reports whether a text is a plain name of JavaScript's, so that the
// answer can't be made to call anything else.
func isFunction(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == '$'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != "" && len(name) <= 64
}

// isTrue reports whether a parameter is given as the reference server understands
// it: alone, or as yes or true.
func isTrue(q url.Values, name string) bool {
	value := q.Get(name)
	return q.Has(name) && (value == "" || strings.EqualFold(value, "yes") || strings.EqualFold(value, "true"))
}
