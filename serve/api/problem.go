package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/internal/limit"
	"github.com/stele-id/stele/trace"
)

// outcome is what a kind of failure looks like from outside.
type outcome struct {
	status int
	name   string // follows /api/v1# in the problem's type; it never changes
	title  string
}

// outcomes is the one table from kinds of failure to status codes.
var outcomes = [...]outcome{
	stele.Internal:        {http.StatusInternalServerError, apijson.KindName(stele.Internal), "Something went wrong here"},
	stele.Invalid:         {http.StatusBadRequest, apijson.KindName(stele.Invalid), "The request can't be right"},
	stele.NotFound:        {http.StatusNotFound, apijson.KindName(stele.NotFound), "There is no such thing"},
	stele.Gone:            {http.StatusGone, apijson.KindName(stele.Gone), "It was withdrawn"},
	stele.Conflict:        {http.StatusConflict, apijson.KindName(stele.Conflict), "It is not in the state that the request supposes"},
	stele.Forbidden:       {http.StatusForbidden, apijson.KindName(stele.Forbidden), "You may not do this"},
	stele.Unauthenticated: {http.StatusUnauthorized, apijson.KindName(stele.Unauthenticated), "Say who you are"},
	stele.Exhausted:       {http.StatusTooManyRequests, apijson.KindName(stele.Exhausted), "A limit is reached"},
	stele.Unavailable:     {http.StatusServiceUnavailable, apijson.KindName(stele.Unavailable), "Not at present; try again later"},
}

// refusals are failures of HTTP itself, by their status: no [stele.Kind] has them. A status
// that a kind has as well stands for that kind.
var refusals = map[int]outcome{
	http.StatusMethodNotAllowed:      {http.StatusMethodNotAllowed, "method-not-allowed", "This is not done here"},
	http.StatusRequestTimeout:        {http.StatusRequestTimeout, "too-slow", "The request took too long to arrive"},
	http.StatusPreconditionFailed:    {http.StatusPreconditionFailed, apijson.PreconditionFailed, "It has another version"},
	http.StatusRequestEntityTooLarge: {http.StatusRequestEntityTooLarge, "too-large", "The request is too large"},
	http.StatusRequestURITooLong:     {http.StatusRequestURITooLong, "address-too-long", "The address is too long"},
	http.StatusUnsupportedMediaType:  {http.StatusUnsupportedMediaType, "unsupported-media-type", "The request has a form that is not read here"},
	http.StatusUnprocessableEntity:   {http.StatusUnprocessableEntity, "key-reused", "The idempotency key stands for another request"},
	http.StatusPreconditionRequired:  {http.StatusPreconditionRequired, "precondition-required", "Say which version you have seen"},
}

// refusal is a failure of HTTP itself.
type refusal struct {
	status int
	detail *stele.Message // what is wrong and what to do
	after  time.Duration  // when to try again; 0 says nothing
}

func (e *refusal) Error() string { return e.detail.Error() }

// Unwrap returns the message.
func (e *refusal) Unwrap() error { return e.detail }

// refusef makes a failure of HTTP itself.
func refusef(status int, code, text string, args ...any) error {
	return &refusal{status: status, detail: stele.Messagef(code, text, args...)}
}

// invalidf makes the error of a request that can't be right.
func invalidf(code, text string, args ...any) error {
	return &stele.Error{Kind: stele.Invalid, Err: stele.Messagef(code, text, args...)}
}

// outcomeOf returns how an error looks from outside.
func outcomeOf(err error) outcome {
	if refused, ok := errors.AsType[*refusal](err); ok {
		if o, ok := refusals[refused.status]; ok {
			return o
		}
		for _, o := range outcomes {
			if o.status == refused.status {
				return o
			}
		}
	}
	if limited, ok := errors.AsType[*limit.Refusal](err); ok {
		return outcomes[limited.Kind]
	}
	if _, ok := errors.AsType[*stele.Error](err); !ok && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return outcomes[stele.Unavailable]
	}
	if kind := stele.KindOf(err); int(kind) < len(outcomes) {
		return outcomes[kind]
	}
	return outcomes[stele.Internal]
}

// problemOf returns an error as its reader sees it. What went wrong inside is not for
// the public.
func problemOf(err error) apijson.Problem {
	o := outcomeOf(err)
	p := apijson.Problem{Type: Root + "#" + o.name, Title: o.title, Status: o.status}
	if o.status == http.StatusInternalServerError {
		p.Detail = "something went wrong here, and was noted; tell who runs this server"
		return p
	}
	p.Detail = apijson.Legible(err.Error())
	if e, ok := errors.AsType[*stele.Error](err); ok {
		p.Operation = apijson.Legible(e.Op)
		if e.ID.IsValid() {
			p.ID = e.ID.String()
		}
		if e.Err != nil {
			p.Detail = apijson.Legible(e.Err.Error())
		}
	}
	if faults, ok := errors.AsType[stele.Problems](err); ok {
		p.Problems = apijson.FaultsOf(faults)
	} else {
		p.Coded = apijson.CodedOf(err)
	}
	return p
}

// soon is when a client should retry what is unavailable, and later what is exhausted.
const soon, later = 5 * time.Second, time.Minute

// retryAfter returns when an answer of this status says to try again.
func retryAfter(status int, err error) time.Duration {
	if refused, ok := errors.AsType[*refusal](err); ok && refused.after > 0 {
		return refused.after
	}
	if limited, ok := errors.AsType[*limit.Refusal](err); ok {
		return limited.After
	}
	switch status {
	case http.StatusServiceUnavailable:
		return soon
	case http.StatusTooManyRequests:
		return later
	}
	return 0
}

// fail answers with an error, or ends an answer that has begun.
func (c *call) fail(err error) {
	p := problemOf(err)
	_, limited := errors.AsType[*limit.Refusal](err)
	if p.Status >= http.StatusInternalServerError && !limited && c.r.Context().Err() == nil { // else the client has left
		c.h.o.Log.ErrorContext(c.ctx, "a request failed", "operation", c.operation(), "status", p.Status, "error", apijson.Legible(err.Error()))
	}
	if c.began {
		c.abort()
		return
	}
	if p.Status == http.StatusServiceUnavailable && !limited && !c.who.IsKnown() { // disks and folders are not for the public
		p.Detail = "the registry can't answer at present; try again in a few seconds"
	}
	head := c.w.Header()
	head["Cache-Control"] = notKept
	p.Request = trace.Tell(c.ctx, head)
	delete(head, "Etag")
	switch p.Status {
	case http.StatusUnauthorized:
		head.Set("WWW-Authenticate", `Bearer realm="stele"`)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		seconds := (retryAfter(p.Status, err) + time.Second - 1) / time.Second
		head.Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
	}
	if c.mayHaveBody() && !c.drained {
		c.hurry()
	}
	// It is made of texts and numbers, which can always be written.
	text, _ := json.Marshal(p)
	c.write(p.Status, apijson.ProblemJSON, append(text, '\n'))
}

// operation names the operation for the log.
func (c *call) operation() string {
	if c.op == nil {
		return ""
	}
	return c.op.name
}

// recover keeps a fault in one answer from ending the others, and from being shown to the
// public. The stack goes to the log.
func (c *call) recover() {
	fault := recover()
	if fault == nil {
		return
	}
	c.h.o.Log.ErrorContext(c.ctx, "a request made the server fail; please report it",
		"operation", c.operation(), "fault", fmt.Sprint(fault), "stack", string(debug.Stack()))
	c.fail(&stele.Error{Kind: stele.Internal, Err: stele.Messagef("server.fault", "a fault")})
}

// under puts a path before those of the problems in an error: the document stands
// inside another one.
func under(path string, err error) error {
	e, ok := errors.AsType[*stele.Error](err)
	if !ok {
		return err
	}
	faults, ok := errors.AsType[stele.Problems](err)
	if !ok {
		return err
	}
	moved := make(stele.Problems, len(faults))
	for i, f := range faults {
		switch {
		case f.Path == "":
			moved[i] = stele.Problem{Path: path, Err: f.Err}
		case f.Path[0] == '[':
			moved[i] = stele.Problem{Path: path + f.Path, Err: f.Err}
		default:
			moved[i] = stele.Problem{Path: path + "." + f.Path, Err: f.Err}
		}
	}
	return &stele.Error{Op: e.Op, ID: e.ID, Kind: e.Kind, Err: moved}
}
