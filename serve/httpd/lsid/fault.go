package lsid

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/limit"
	"github.com/stele-id/stele/trace"
)

// code is an error code of the protocol (section 5).
type code int

const (
	malformed       code = 200
	unknown         code = 201
	noData          code = 300
	badRange        code = 301
	noMetadata      code = 400
	noFormat        code = 401
	internal        code = 500
	notImplemented  code = 501
	configuration   code = 521
	unauthenticated code = 700
	badMessage      code = 710
	noMethod        code = 711
	badCall         code = 712
)

// status is the status of an answer to HTTP GET with an error: the one table. Clients look for a status of 400 or more
// and for the header with the code.
func (c code) status() int {
	switch c {
	case unknown, noData, noMetadata, noMethod:
		return http.StatusNotFound
	case badRange:
		return http.StatusRequestedRangeNotSatisfiable
	case noFormat:
		return http.StatusNotAcceptable
	case notImplemented:
		return http.StatusNotImplemented
	case unauthenticated:
		return http.StatusUnauthorized
	case malformed, badMessage, badCall:
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

// fault is an error of the protocol.
type fault struct {
	code code
	text string
}

func (f *fault) Error() string { return f.text }

// failf makes a fault. Its text is in English: the protocol has no languages.
func failf(c code, format string, args ...any) error {
	return &fault{c, fmt.Sprintf(format, args...)}
}

// errSealed is what a client learns of a registry that takes no writes ([stele.ErrSealed]). The reason names places that
// are for the operator.
var errSealed error = &fault{internal, "the registry takes no changes at present; please try again later"}

// isConflict reports whether a change clashes with what is stored, or with that of another client. A sealed registry
// refuses every change, which says nothing of the name.
func isConflict(err error) bool {
	return errors.Is(err, stele.Conflict) && !errors.Is(err, stele.ErrSealed)
}

// codeOf returns the code of an error. Kinds of the registry decide where it is not one of the protocol.
func codeOf(err error) code {
	if f, ok := errors.AsType[*fault](err); ok {
		return f.code
	}
	if _, ok := errors.AsType[*limit.Refusal](err); ok {
		return internal // the same call is right at another time
	}
	switch stele.KindOf(err) {
	case stele.Unauthenticated, stele.Forbidden:
		return unauthenticated
	case stele.NotFound, stele.Gone:
		return unknown
	case stele.Invalid, stele.Conflict, stele.Exhausted:
		return badCall
	}
	return internal
}

// fail answers with an error. What went wrong inside is for the log, and not for the public.
func (c *call) fail(err error) {
	if errors.Is(err, stele.ErrSealed) {
		err = errSealed
	}
	code, text := codeOf(err), oneLine(err.Error())
	var after time.Duration
	if limited, ok := errors.AsType[*limit.Refusal](err); ok {
		text, after = oneLine(limited.Error()), limited.After
	} else if _, ours := errors.AsType[*fault](err); code == internal && !ours {
		if c.r.Context().Err() == nil { // else the client has left
			c.o.Log.ErrorContext(c.r.Context(), "an LSID request failed", "operation", c.operation, "error", err.Error())
		}
		text = "something went wrong here; please try again later"
	}
	head := c.w.Header()
	head["Cache-Control"] = []string{"no-store"}
	trace.Tell(c.r.Context(), head)
	if after > 0 {
		head.Set("Retry-After", strconv.FormatInt(int64((after+time.Second-1)/time.Second), 10))
	}
	if c.soap {
		c.sendFault(code, text)
		return
	}
	head["LSID-Error-Code"] = []string{strconv.Itoa(int(code))} // some clients compare letters
	status := code.status()
	if after > 0 {
		status = http.StatusTooManyRequests
	}
	if status == http.StatusUnauthorized {
		head.Set("Www-Authenticate", `Bearer realm="stele"`)
	}
	c.site.Send(status, "text/plain; charset=utf-8", []byte(text))
}

// oneLine returns a text on one line.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
