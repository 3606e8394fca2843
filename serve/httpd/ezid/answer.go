package ezid

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/anvl"
	"github.com/stele-id/stele/document/ezidrecord"
	"github.com/stele-id/stele/internal/limit"
	"github.com/stele-id/stele/trace"
)

// The words of EZID that follow "error: ". Clients look for them.
const (
	badRequest   = "bad request"
	unauthorized = "unauthorized"
	forbidden    = "forbidden"
	notMethod    = "method not allowed"
	tooMany      = "concurrency limit exceeded"
	unavailable  = "service unavailable"
	broken       = "internal server error"
)

// outcome is what a failure looks like from outside.
type outcome struct {
	status int
	word   string
	why    bool // the reason follows the word
}

// outcomes is the one table from kinds of failure to statuses and words, as EZID has them: what is not there is a bad request, and so
// is what exists already. Failures that EZID does not have are in words of the same form.
var outcomes = [...]outcome{
	stele.Internal:        {http.StatusInternalServerError, broken, false},
	stele.Invalid:         {http.StatusBadRequest, badRequest, true},
	stele.NotFound:        {http.StatusBadRequest, badRequest, true},
	stele.Gone:            {http.StatusBadRequest, badRequest, true},
	stele.Conflict:        {http.StatusBadRequest, badRequest, true},
	stele.Forbidden:       {http.StatusForbidden, forbidden, false},
	stele.Unauthenticated: {http.StatusUnauthorized, unauthorized, false},
	stele.Exhausted:       {http.StatusBadRequest, badRequest, true},
	stele.Unavailable:     {http.StatusServiceUnavailable, unavailable, false},
}

// bad is a bad request with a status of HTTP's own.
type bad struct {
	status int
	detail *stele.Message
}

func (e *bad) Error() string { return e.detail.Error() }

// Unwrap returns the message.
func (e *bad) Unwrap() error { return e.detail }

func badf(status int, code, text string, args ...any) error {
	return &bad{status, stele.Messagef(code, text, args...)}
}

// notAllowed is a method that is not for a path.
type notAllowed struct{ methods map[string]operation }

func (*notAllowed) Error() string { return notMethod }

// outcomeOf returns how an error looks from outside.
func outcomeOf(err error) outcome {
	if e, ok := errors.AsType[*bad](err); ok {
		return outcome{e.status, badRequest, true}
	}
	if errors.Is(err, stele.ErrSealed) { // the reason is the operator's: it may name where the registry moves to
		return outcomes[stele.Unavailable]
	}
	if errors.Is(err, auth.ErrInClear) || errors.Is(err, stele.ErrFrozen) {
		return outcome{http.StatusForbidden, forbidden, true}
	}
	if _, ok := errors.AsType[*notAllowed](err); ok {
		return outcome{http.StatusMethodNotAllowed, notMethod, false}
	}
	if e, ok := errors.AsType[*limit.Refusal](err); ok {
		if e.Kind == stele.Exhausted {
			return outcome{http.StatusTooManyRequests, tooMany, false}
		}
		return outcome{http.StatusServiceUnavailable, tooMany, false}
	}
	if _, ok := errors.AsType[*stele.Error](err); !ok && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return outcomes[stele.Unavailable]
	}
	if kind := stele.KindOf(err); int(kind) < len(outcomes) {
		return outcomes[kind]
	}
	return outcomes[stele.Internal]
}

// reason returns what is wrong, in a line. Problems of a record are told by the elements that they are about.
func reason(profile string, err error) string {
	problems, ok := errors.AsType[stele.Problems](err)
	if !ok {
		return brief(stele.Reason(err).Error())
	}
	var texts []string
	for _, p := range problems {
		text := p.Err.Error()
		if name := ezidrecord.ElementAt(profile, p.Path); name != "" {
			text = name + ": " + text
		} else if p.Path != "" {
			text = p.Path + ": " + text
		}
		if len(texts) == 5 {
			texts = append(texts, "and "+strconv.Itoa(len(problems)-5)+" more")
			break
		}
		texts = append(texts, text)
	}
	return brief(strings.Join(texts, "; "))
}

// brief cuts a text that stands in an answer.
func brief(text string) string {
	const most = 2000
	if len(text) > most {
		text = text[:most] + "..."
	}
	return strings.ToValidUTF8(text, "?")
}

// fail answers with an error.
func (c *call) fail(err error) {
	o := outcomeOf(err)
	_, limited := errors.AsType[*limit.Refusal](err)
	if o.status >= http.StatusInternalServerError && !limited && !errors.Is(err, stele.ErrSealed) && c.r.Context().Err() == nil { // else the client has left
		c.h.o.Log.ErrorContext(c.ctx, "a request of a client of EZID failed", "operation", c.operation, "status", o.status, "error", err.Error())
	}
	head := c.w.Header()
	trace.Tell(c.ctx, head)
	switch o.status {
	case http.StatusUnauthorized:
		head.Set("WWW-Authenticate", `Basic realm="EZID"`)
	case http.StatusMethodNotAllowed:
		e, _ := errors.AsType[*notAllowed](err)
		head.Set("Allow", strings.Join(slices.Sorted(maps.Keys(e.methods)), ", "))
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		after := 5 * time.Second
		if e, ok := errors.AsType[*limit.Refusal](err); ok {
			after = e.After
		}
		head.Set("Retry-After", strconv.FormatInt(int64((after+time.Second-1)/time.Second), 10))
	}
	if !c.drained && c.r.ProtoMajor < 2 {
		head.Set("Connection", "close") // the server does not wait for the rest of the body
	}
	text := o.word
	if o.why {
		profile := ""
		if e, ok := errors.AsType[*inProfile](err); ok {
			profile = e.profile
		}
		text += " - " + reason(profile, err)
	}
	c.write(o.status, anvl.Append(nil, "error", text))
}

// inProfile is an error about a record whose elements are those of a profile.
type inProfile struct {
	error
	profile string
}

// Unwrap returns the error.
func (e *inProfile) Unwrap() error { return e.error }

// success answers that something was done, with elements by their names.
func (c *call) success(status int, text string, elements map[string]string) error {
	b := anvl.Append(nil, "success", text)
	for _, name := range slices.Sorted(maps.Keys(elements)) {
		b = anvl.Append(b, name, elements[name])
	}
	release := func() {}
	if len(b) > limit.Small && c.r.Method != http.MethodHead && c.h.o.Held != nil {
		var err error
		if release, err = c.h.o.Held.Take(c.address(), int64(len(b))); err != nil {
			return err
		}
	}
	defer release()
	if status == http.StatusCreated || c.r.Method != http.MethodGet && c.r.Method != http.MethodHead {
		c.tellVersion()
	}
	c.write(status, b)
	return nil
}

// tellVersion writes the version of a state that includes the write into the head. If it can't be read the write is done all
// the same.
func (c *call) tellVersion() {
	if c.h.o.Version == nil {
		return
	}
	if n, err := c.h.o.Version(context.WithoutCancel(c.ctx)); err == nil {
		c.w.Header()[stele.VersionHeader] = []string{n.String()}
	}
}

// write writes an answer. One that is a line has no end of line, as at EZID. No cache keeps it.
func (c *call) write(status int, body []byte) {
	if i := slices.Index(body, '\n'); i == len(body)-1 {
		body = body[:i]
	}
	head := c.w.Header()
	head.Set("Content-Type", "text/plain; charset=UTF-8")
	head.Set("Content-Length", strconv.Itoa(len(body)))
	head.Set("Cache-Control", "private, no-store")
	head.Set("Vary", "Authorization, Cookie")
	head.Set("X-Content-Type-Options", "nosniff")
	c.w.WriteHeader(status)
	if c.r.Method != http.MethodHead {
		_, _ = c.w.Write(body) // if this fails the client is gone
	}
}
