package remote

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/trace"
)

const maxProblem = 1 << 20 // bytes of a problem

// refused makes the failure of an answer whose status is not a success. If the server is at
// fault, the error has the id by which its operator finds the request.
func (r *Registry) refused(resp *http.Response) *failure {
	f := r.read(resp)
	if id := resp.Header.Get(trace.Header); resp.StatusCode >= http.StatusInternalServerError && trace.IsRequest(id) {
		if e, ok := errors.AsType[*stele.Error](f.answered); ok && e.Err != nil {
			e.Err = &requestError{e.Err, id}
		}
	}
	return f
}

// requestError is an error with the id of the request that failed.
type requestError struct {
	error
	id string
}

func (e *requestError) Error() string {
	return e.error.Error() + "; tell the operator of the server that it was request " + e.id
}

// Unwrap returns the error without the id.
func (e *requestError) Unwrap() error { return e.error }

// read makes the failure of what an answer says.
func (r *Registry) read(resp *http.Response) *failure {
	f := &failure{status: resp.StatusCode, after: retryAfter(resp.Header)}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxProblem))
	var p apijson.Problem
	if err == nil && media == apijson.ProblemJSON && json.Unmarshal(data, &p) == nil {
		f.answered, f.problem = r.problem(&p, resp.StatusCode), true
		return f
	}
	f.answered = r.foreign(resp)
	// The words of Go's server; nginx has "The plain HTTP request was sent to HTTPS port".
	if resp.StatusCode == http.StatusBadRequest && (bytes.Contains(data, []byte("HTTP request to an HTTPS server")) || bytes.Contains(data, []byte("plain HTTP request was sent to HTTPS port"))) {
		f.answered = &stele.Error{Op: "ask " + r.site, Kind: stele.Invalid, Err: r.otherProtocol()}
	}
	return f
}

// foreign returns the error of an answer that does not come from a registry.
func (r *Registry) foreign(resp *http.Response) error {
	kind, what := kindOf(resp.StatusCode), "does not answer as a registry does"
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		kind, what = stele.Invalid, "sends on to another address"
		if to, err := resp.Location(); err == nil {
			what = fmt.Sprintf("sends on to %.200q, and the token is for this server only; if it is the same registry, name that", to.Scheme+"://"+to.Host)
		}
	case kind == stele.NotFound:
		kind, what = stele.Invalid, "has no API of a registry"
	case kind == stele.Unavailable:
		what = "is not reached by its proxy; try again"
	}
	return &stele.Error{Op: "ask " + r.site, Kind: kind, Err: stele.Messagef("api.server-answers-otherwise", "the server {reason} (status {status})", what, resp.StatusCode)}
}

// problem makes the error of a problem: the same that a registrar would have returned. The
// status decides about types that the client does not know.
func (r *Registry) problem(p *apijson.Problem, status int) error {
	kind, ok := p.Kind()
	if !ok {
		kind = kindOf(status)
	}
	e := &stele.Error{Op: apijson.Legible(p.Operation), Kind: kind}
	if strings.ToLower(e.Op) != e.Op {
		e.Op = "" // the API's own name of what was tried
	}
	if p.ID != "" {
		// An identifier that the client can't read becomes a part of the operation.
		if id, err := r.o.Schemes.Parse(p.ID); err == nil {
			e.ID = id
		} else {
			e.Op = strings.TrimSpace(e.Op + " " + apijson.Legible(p.ID))
		}
	}
	switch {
	case len(p.Problems) > 0:
		e.Err = apijson.ProblemsOf(p.Problems)
	case p.Detail != "":
		e.Err = p.Message(p.Detail)
	case p.Title != "":
		e.Err = stele.ReceivedMessage("", apijson.Legible(p.Title), nil)
	}
	if p.TypeName() == apijson.PreconditionFailed {
		e.Err = &preconditionError{error: e.Err}
	}
	return e
}

// preconditionError says that a record or namespace has another version than the request
// names.
type preconditionError struct {
	error
	retried bool // an earlier attempt, whose answer was lost, may have made that version
}

// isPrecondition reports whether err is a preconditionError.
func isPrecondition(err error) bool {
	_, ok := errors.AsType[*preconditionError](err)
	return ok
}

// mayBeOwn reports whether this client may have made the other version.
func mayBeOwn(err error) bool {
	p, ok := errors.AsType[*preconditionError](err)
	return ok && p.retried
}

// under sets the operation of an error that has none, and its identifier.
func under(op string, id stele.ID, err error) error {
	e, ok := errors.AsType[*stele.Error](err)
	if !ok || e.Op != "" {
		return err // nil too
	}
	c := *e
	c.Op = op
	if !c.ID.IsValid() {
		c.ID = id
	}
	return &c
}

// kindOf returns the kind of failure of an answer without a problem document.
func kindOf(status int) stele.Kind {
	switch status {
	case http.StatusNotFound:
		return stele.NotFound
	case http.StatusGone:
		return stele.Gone
	case http.StatusConflict, http.StatusPreconditionFailed, http.StatusPreconditionRequired:
		return stele.Conflict
	case http.StatusForbidden:
		return stele.Forbidden
	case http.StatusUnauthorized, http.StatusProxyAuthRequired:
		return stele.Unauthenticated
	case http.StatusTooManyRequests:
		return stele.Exhausted
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusRequestTimeout:
		return stele.Unavailable
	}
	if status >= 500 {
		return stele.Internal
	}
	return stele.Invalid
}

// retryAfter reads Retry-After (RFC 9110, section 10.2.3), in seconds; a date would need
// a clock.
func retryAfter(header http.Header) time.Duration {
	n, err := strconv.ParseUint(header.Get("Retry-After"), 10, 31)
	if err != nil {
		return 0
	}
	return time.Duration(n) * time.Second
}
