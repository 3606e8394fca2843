package handle

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele/handles"
	"github.com/stele-id/stele/internal/limit"
	"github.com/stele-id/stele/trace"
	"github.com/stele-id/stele/wire/hdl"
)

// refusal is what most answers are, those of success too.
type refusal struct {
	Code    hdl.ResponseCode `json:"responseCode"`
	Message string           `json:"message,omitempty"`
	Handle  string           `json:"handle,omitempty"`
}

// status is the one table from response codes to HTTP's, as in the reference implementation (section 8). Code 402 is a
// challenge over TLS; see Challenge.
func status(code hdl.ResponseCode) int {
	switch code {
	case hdl.Success:
		return http.StatusOK
	case hdl.ServerBusy, hdl.ServerBackup:
		return http.StatusServiceUnavailable
	case hdl.ProtocolError, hdl.InvalidHandle, hdl.InvalidValue, hdl.NotResponsible, hdl.ValuesNotFound:
		return http.StatusBadRequest
	case hdl.Unsupported:
		return http.StatusNotImplemented
	case hdl.HandleNotFound:
		return http.StatusNotFound
	case hdl.HandleExists, hdl.ValueExists:
		return http.StatusConflict
	case hdl.ServiceReferral, hdl.PrefixReferral:
		return http.StatusMultipleChoices
	case hdl.NotAdministrator, hdl.NotPermitted, hdl.NotAuthenticated, hdl.InvalidCredential, hdl.Challenged:
		return http.StatusForbidden
	}
	return http.StatusInternalServerError
}

// refuse answers that something was not done.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, q Request, handle string, err error) {
	answer := refusal{Code: handles.CodeOf(err), Handle: handle}
	if limited, ok := errors.AsType[*limit.Refusal](err); ok {
		h.limited(w, r, q, limited)
		return
	}
	if known, ok := errors.AsType[*handles.Refusal](err); ok {
		answer.Message = known.Text
	}
	code := status(answer.Code)
	if code >= http.StatusInternalServerError && code != http.StatusNotImplemented && r.Context().Err() == nil {
		h.o.Log.ErrorContext(r.Context(), "a request of the REST interface for handles failed", "handle", handle, "error", err)
	}
	trace.Tell(r.Context(), w.Header())
	h.answer(w, r, q, code, answer)
}

// limited answers that a client has reached a limit.
func (h *Handler) limited(w http.ResponseWriter, r *http.Request, q Request, err *limit.Refusal) {
	w.Header().Set("Retry-After", strconv.FormatInt(int64((err.After+time.Second-1)/time.Second), 10))
	code := http.StatusServiceUnavailable
	if errors.Is(err, errExhausted) {
		code = http.StatusTooManyRequests
	}
	h.answer(w, r, q, code, refusal{Code: hdl.ServerBusy, Message: err.Error()})
}

// answer writes an answer. No cache keeps it.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, q Request, status int, answer any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if IsTrue(q.Query, "pretty") {
		e.SetIndent("", "  ")
	}
	if err := e.Encode(answer); err != nil {
		h.o.Log.ErrorContext(r.Context(), "an answer of the REST interface for handles could not be made", "error", err)
		status = http.StatusInternalServerError
		b.Reset()
		b.WriteString(`{"responseCode":2}` + "\n")
	}
	head := w.Header()
	setHead(head)
	head.Set("Content-Length", strconv.Itoa(b.Len()-1)) // Encode ends the line
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(b.Bytes()[:b.Len()-1]) // if this fails the client is gone
	}
}

func setHead(head http.Header) {
	head.Set("Content-Type", "application/json;charset=utf-8")
	head.Set("Cache-Control", "no-store")
	head.Set("X-Content-Type-Options", "nosniff")
}

// empty answers without a body.
func empty(w http.ResponseWriter, status int) {
	w.Header().Set("Cache-Control", "no-store")
	if status != http.StatusNoContent {
		w.Header().Set("Content-Length", "0")
	}
	w.WriteHeader(status)
}

// IsTrue reports whether a parameter is given as the reference server understands it: alone, or as yes or true.
func IsTrue(q url.Values, name string) bool {
	value := q.Get(name)
	return q.Has(name) && (value == "" || strings.EqualFold(value, "yes") || strings.EqualFold(value, "true"))
}

// isFalse reports whether a parameter is given, and not as IsTrue understands it.
func isFalse(q url.Values, name string) bool { return q.Has(name) && !IsTrue(q, name) }
