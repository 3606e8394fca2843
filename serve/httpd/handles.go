package httpd

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/handles"
	"github.com/stele-id/stele/internal/destination"
	"github.com/stele-id/stele/resolver"
)

// handleScheme is the scheme whose names have handle values, and handleMark the prefix that
// marks its names as handles where nothing else does.
const (
	handleScheme = destination.HandleScheme
	handleMark   = destination.HandleMark
)

// maxParameters is the size in bytes of the longest body with parameters.
const maxParameters = 8 << 10

// handles answers the REST interface of the Handle System's own server, release 9, at
// /api/handles/. It only reads; package handle knows who administers handles, and writes.
func (h *Handler) handles(w http.ResponseWriter, r *http.Request, t requestTarget) {
	_, rest := t.segment()
	_, text, _ := strings.Cut(rest, "/")
	q, broken := readParameters(t.query)
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodPost: // like GET, with parameters in the body
		if err := addBody(q, r); err != nil {
			h.writeHandle(w, r, q, handleRefusal{Code: handleProtocol, Message: err.Error()})
			return
		}
	case http.MethodOptions:
		w.Header().Set("Allow", "GET, HEAD, POST, PUT, DELETE, TRACE, OPTIONS")
		w.Header()["Access-Control-Allow-Origin"] = anyOrigin
		w.Header().Set("Content-Length", "0")
		return
	case http.MethodPut, http.MethodDelete:
		h.administerHandle(w, r, rest, q, broken)
		return
	default:
		w.Header()["Connection"] = closing
		h.writeHandle(w, r, q, handleRefusal{Code: handleProtocol, Message: "Unknown method " + r.Method, status: http.StatusNotImplemented})
		return
	}
	switch {
	case text != "":
		h.showHandle(w, r, rest, q)
	case q.Has("prefix"): // the public may not list the handles below a prefix
		h.administerHandle(w, r, rest, q, broken)
	default:
		h.writeHandle(w, r, q, handleRefusal{Code: handleInvalid, Message: "Empty handle invalid"})
	}
}

// readHandle looks up the handle that stands in a path, and makes the answer. In the head it
// says for how long clients may cache it.
func (h *Handler) readHandle(head http.Header, r *http.Request, text string, q url.Values) any {
	wanted, err := readSelection(q)
	if err != nil {
		return handleRefusal{Code: handleProtocol, Message: err.Error()}
	}
	text = decodeHandle(text)
	id, err := h.parseHandle(text)
	if err != nil {
		if _, other := h.o.Schemes.Parse(text); other == nil { // a name, but not a handle
			return handleRefusal{Code: handleUnknown, Handle: text}
		}
		return handleRefusal{Code: handleInvalid, Message: whyNoHandle(err), Handle: text}
	}
	handle := spelledHandle(id, text)
	reader, err := h.readerOf(r, id)
	if err != nil {
		return h.missingHandle(r, id, handle, err)
	}
	res, err := h.o.Resolver.Resolve(r.Context(), resolver.Request{ID: id, Given: text, Who: reader.principal})
	switch {
	case err != nil:
		return h.missingHandle(r, id, handle, err)
	case res.Kind == resolver.Delegation:
		return handleRefusal{Code: handleElsewhere, Message: "That prefix doesn't live here; ask " + res.URL, Handle: handle}
	case res.Kind == resolver.Tombstone:
		h.linkMementos(head, r, &res, neighbours{})
		return handleRefusal{Code: handleUnknown, Message: epitaph(&res.Tombstone, h.shown(r, res.Tombstone.Replacement)), Handle: handle, status: http.StatusGone}
	case res.Rule != nil && res.Kind == resolver.Gone:
		return handleRefusal{Code: handleUnknown, Message: legible(res.Rule.Reason), Handle: handle}
	}
	values := wanted.Of(handleValues(&res))
	open := openValues(values)
	res.TTL = h.valuesTTL(&res, open, stele.MaxTTL)
	h.keep(head, &res)
	if len(open) < len(values) && !isTrue(q, "publicOnly") {
		switch {
		case reader.mayRead:
			open = handles.Readable(values)
		case q.Has("publicOnly"): // all of them are wanted
			return handleRefusal{Code: reader.lacks, Handle: handle, status: http.StatusForbidden}
		}
	}
	return newHandleAnswer(handle, open)
}

// missingHandle makes the answer where the resolver found no record.
func (h *Handler) missingHandle(r *http.Request, id stele.ID, handle string, err error) any {
	switch stele.KindOf(err) {
	case stele.NotFound:
		ns, nsErr := h.o.Resolver.Namespace(r.Context(), id)
		if nsErr == nil && ns == nil {
			return handleRefusal{Code: handleElsewhere, Message: "That prefix doesn't live here", Handle: handle}
		}
		return handleRefusal{Code: handleUnknown, Handle: handle}
	case stele.Invalid: // what follows a registered beginning leads nowhere
		return handleRefusal{Code: handleUnknown, Handle: handle}
	case stele.Unavailable, stele.Exhausted:
		return handleRefusal{Code: handleBusy, Handle: handle}
	}
	h.o.Log.ErrorContext(r.Context(), "a handle could not be read", "handle", handle, "error", err)
	return handleRefusal{Code: handleError, Handle: handle}
}

// parseHandle reads a handle, in any of its spellings or with nothing before it.
func (h *Handler) parseHandle(text string) (stele.ID, error) {
	return destination.ParseHandle(h.o.Schemes, text)
}

// whyNoHandle returns the reason in a parser's error.
func whyNoHandle(err error) string {
	if syntax, ok := errors.AsType[*stele.SyntaxError](err); ok {
		return syntax.Error()
	}
	return err.Error()
}

// decodeHandle decodes a handle that stands in a path; what can't be decoded stays.
func decodeHandle(text string) string {
	if decoded, err := url.PathUnescape(text); err == nil {
		return decoded
	}
	return text
}

// bareHandle returns a handle's canonical text without its mark.
func bareHandle(id stele.ID) string { return strings.TrimPrefix(id.String(), handleMark) }

// spelledHandle returns the handle in a text as the client spells it, without a prefix such
// as hdl: as the reference server answers.
func spelledHandle(id stele.ID, text string) string {
	handle := bareHandle(id)
	if at := len(text) - len(handle); at >= 0 && strings.EqualFold(text[at:], handle) {
		return text[at:]
	}
	return handle
}

// epitaph says in a line what became of a withdrawn record. The replacement is given as
// people see it.
func epitaph(t *stele.Tombstone, replacement string) string {
	said := "This handle was withdrawn"
	if !t.At.IsZero() {
		said += " on " + t.At.UTC().Format(time.DateOnly)
	}
	if t.Reason != "" {
		said += ": " + strings.Join(strings.Fields(t.Reason), " ")
	}
	if t.Replacement.IsValid() {
		said += "; use " + replacement + " instead"
	}
	return said
}

// readParameters reads a query. It leaves out what is broken in it, and returns an error that says what that is. A request that
// only reads may go on without it.
func readParameters(query string) (url.Values, error) {
	q, err := url.ParseQuery(query)
	if q == nil {
		q = url.Values{}
	}
	return q, err
}

// readSelection reads the parameters type and index.
func readSelection(q url.Values) (s handles.Selection, err error) {
	s.Types = q["type"]
	for _, text := range q["index"] {
		index, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return s, stele.Messagef("hdl.index-invalid", `index is not a number from 0 to {limit}: "{index}"`, uint32(1<<32-1), text)
		}
		s.Indexes = append(s.Indexes, uint32(index))
	}
	return s, nil
}

// addBody adds the parameters that stand in the body of a POST, of a form or as the
// fields of a JSON object.
func addBody(q url.Values, r *http.Request) error {
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if r.Body == nil || media != "application/json" && media != "application/x-www-form-urlencoded" {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxParameters+1))
	switch {
	case err != nil:
		return stele.Messagef("request.form-cut-off", "the body ended too early")
	case len(body) > maxParameters:
		return stele.Messagef("request.form-too-large", "the body has more than {limit} bytes", maxParameters)
	case media == "application/json":
		return addJSON(q, body)
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return stele.Messagef("request.body-not-a-form", "the body is not a form: names and values with = between and & after them, percent-encoded")
	}
	for name, values := range form {
		q[name] = append(q[name], values...)
	}
	return nil
}

// addJSON adds the fields of an object, each a value or a list of values.
func addJSON(q url.Values, body []byte) error {
	var object map[string]any
	if len(body) == 0 {
		return nil
	}
	if err := json.Unmarshal(body, &object); err != nil {
		return stele.Messagef("request.body-not-an-object", "the body is not a JSON object: {cause}", err)
	}
	for name, field := range object {
		list, ok := field.([]any)
		if !ok {
			list = []any{field}
		}
		for _, value := range list {
			switch value := value.(type) {
			case string:
				q.Add(name, value)
			case float64:
				q.Add(name, strconv.FormatFloat(value, 'f', -1, 64))
			case bool:
				q.Add(name, strconv.FormatBool(value))
			default:
				return stele.Messagef("request.field-not-plain", `the field "{field}" is neither a text, a number nor true or false, nor a list of them`, name)
			}
		}
	}
	return nil
}
