package httpd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/internal/limit"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/trace"
)

// statuses is the one table from kinds of failure to status codes.
var statuses = [...]int{
	stele.Internal:        http.StatusInternalServerError,
	stele.Invalid:         http.StatusBadRequest,
	stele.NotFound:        http.StatusNotFound,
	stele.Gone:            http.StatusGone,
	stele.Conflict:        http.StatusConflict,
	stele.Forbidden:       http.StatusForbidden,
	stele.Unauthenticated: http.StatusUnauthorized,
	stele.Exhausted:       http.StatusTooManyRequests,
	stele.Unavailable:     http.StatusServiceUnavailable,
}

// statusOf returns the status code of an error.
func statusOf(err error) int {
	if refused, ok := errors.AsType[*refusal](err); ok {
		return refused.status
	}
	if limited, ok := errors.AsType[*limit.Refusal](err); ok {
		return statuses[limited.Kind]
	}
	switch {
	case errors.Is(err, resolver.ErrLoop):
		return http.StatusLoopDetected
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable
	}
	if kind := stele.KindOf(err); int(kind) < len(statuses) {
		return statuses[kind]
	}
	return http.StatusInternalServerError
}

// refusal is an error of HTTP itself, which no kind has.
type refusal struct {
	status int
	detail *stele.Message // whole sentences
}

func (e *refusal) Error() string { return e.detail.Error() }

// Unwrap returns the message.
func (e *refusal) Unwrap() error { return e.detail }

// refused makes a failure of HTTP itself, whose text is made by [stele.Messagef].
func refused(status int, code, text string, args ...any) *refusal {
	return &refusal{status, stele.Messagef(code, text, args...)}
}

// problem is an error as its reader sees it: RFC 9457, and what the page has.
type problem struct {
	Title    string   `json:"title"`
	Status   int      `json:"status"`
	Detail   string   `json:"detail,omitempty"`
	Code     string   `json:"code,omitempty"`       // which problem it is, for programs; docs/messages.txt lists them
	Asked    string   `json:"asked,omitempty"`      // what was looked for, as it was written
	ID       string   `json:"identifier,omitempty"` // in canonical form
	Scheme   string   `json:"scheme,omitempty"`
	Position *int     `json:"position,omitempty"` // byte of what was asked where it stops being an identifier
	Nearest  []string `json:"nearest,omitempty"`  // what may have been meant
	Accepted []string `json:"available,omitempty"`
	Request  string   `json:"request,omitempty"` // id of the request, for the operator

	Reason         string `json:"reason,omitempty"` // of a tombstone
	Withdrawn      string `json:"withdrawn,omitempty"`
	Replacement    string `json:"replacement,omitempty"`
	ReplacementURL string `json:"replacementUrl,omitempty"`

	said     error // what Detail says, for pages in other languages; nil if Detail is empty
	near     []link
	missing  bool                 // it is not registered, or not an identifier
	mistyped bool                 // its check character does not hold
	res      *resolver.Resolution // of a tombstone
}

// link is a name and its URL here.
type link struct{ text, url string }

// fail answers with an error: a page for browsers, a problem document (RFC 9457) for clients
// that ask for JSON, and otherwise plain text.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	h.failAbout(w, r, "", err)
}

// failAbout is fail for a request that asks for an identifier, as it was written.
func (h *Handler) failAbout(w http.ResponseWriter, r *http.Request, asked string, err error) {
	if decline(r) {
		return
	}
	if isHandleREST(readTarget(r)) {
		h.failHandle(w, r, err)
		return
	}
	p := problem{Status: statusOf(err), Asked: legible(asked)}
	p.Title = http.StatusText(p.Status)
	if p.Status >= http.StatusInternalServerError {
		r = h.named(r)
	}
	switch {
	case p.Status >= http.StatusInternalServerError && p.Status != http.StatusLoopDetected:
		h.hide(w, r, &p, err)
	default:
		h.tell(r, &p, err)
		note(w, "", p.Scheme)
	}
	h.writeProblem(w, r, &p)
}

// refuse answers that a limit is reached; with any other error it is fail. The answer is
// small, whatever the client likes, and replaces one for which the head was made already.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if decline(r) {
		return
	}
	limited, ok := errors.AsType[*limit.Refusal](err)
	if !ok { // the client is gone, or the error is not a limit
		h.fail(w, r, err)
		return
	}
	p := problem{Status: statusOf(err), Detail: limited.Error()}
	if p.Status >= http.StatusInternalServerError {
		r = h.named(r)
	}
	p.Request = trace.Request(r.Context())
	p.Title = http.StatusText(p.Status)
	p.Code, _ = stele.CodeOf(err)
	head := w.Header()
	for name := range head {
		if name != "Strict-Transport-Security" && name != "Connection" && name != "Vary" {
			delete(head, name)
		}
	}
	vary(head)
	head["Cache-Control"], head["Access-Control-Allow-Origin"] = notKept, anyOrigin
	head.Set("Retry-After", strconv.FormatInt(int64((limited.After+time.Second-1)/time.Second), 10))
	if isHandleREST(readTarget(r)) {
		h.failHandle(w, r, err)
		return
	}
	var b bytes.Buffer
	form := textType
	if h.problemForm(r) == problemType {
		form = problemType
		text, _ := json.Marshal(&p) // of texts and numbers
		b.Write(append(text, '\n'))
	} else {
		p.appendText(&b)
	}
	h.write(w, r, p.Status, form, b.Bytes())
}

// hide keeps from the public what went wrong inside; it goes to the log.
func (h *Handler) hide(w http.ResponseWriter, r *http.Request, p *problem, err error) {
	if p.Status == http.StatusServiceUnavailable {
		w.Header()["Retry-After"] = soon
		p.say(stele.Messagef("resolver.unavailable", "The registry can't answer at present. Please try again in a few seconds."))
	} else {
		p.say(stele.Messagef("resolver.failed", "Something went wrong here. It was noted."))
	}
	p.Code = ""
	if r.Context().Err() == nil { // else the client has left
		h.o.Log.ErrorContext(r.Context(), "a request failed", "status", p.Status, "error", err.Error())
	}
}

// tell fills in what is wrong with a request.
func (h *Handler) tell(r *http.Request, p *problem, err error) {
	p.Detail, p.said = legible(err.Error()), err
	p.Code, _ = stele.CodeOf(err)
	if e, ok := errors.AsType[*stele.Error](err); ok {
		if e.ID.IsValid() {
			p.ID, p.Scheme = e.ID.String(), e.ID.Scheme()
		}
		if e.Err != nil {
			p.Detail, p.said = legible(e.Err.Error()), e.Err
		}
	}
	var near []stele.ID
	if unknown, ok := errors.AsType[*resolver.UnknownError](err); ok {
		near, p.mistyped, p.missing = unknown.Nearest, unknown.Mistyped, true
	}
	if syntax, ok := errors.AsType[*stele.SyntaxError](err); ok {
		p.Detail, p.Scheme, p.Position, p.missing = legible(syntax.Reason.Error()), syntax.Scheme, &syntax.Pos, true
		p.said = syntax.Reason
		if p.Asked != "" {
			p.Detail = fmt.Sprintf("%q is not an identifier: at byte %d: %s", brief(p.Asked), syntax.Pos, p.Detail)
		}
		// Only registered suggestions are shown; an error of this search is ignored.
		near, _ = h.o.Resolver.Registered(r.Context(), syntax.Suggestions, auth.From(r.Context()))
	}
	for _, id := range near {
		p.Nearest = append(p.Nearest, id.String())
		p.near = append(p.near, link{id.String(), h.self(r, id)})
	}
}

// say sets what a problem says.
func (p *problem) say(m *stele.Message) { p.Detail, p.Code, p.said = m.Error(), m.Code, m }

// brief cuts a text that is quoted.
func brief(text string) string {
	const most = 100
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// legible returns a text without control characters and broken characters.
func legible(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// The forms in which errors are written.
const (
	htmlType    = "text/html; charset=utf-8"
	problemType = "application/problem+json"
	textType    = "text/plain; charset=utf-8"
)

// writeProblem writes a problem in the form that the client likes.
func (h *Handler) writeProblem(w http.ResponseWriter, r *http.Request, p *problem) {
	p.Request = trace.Request(r.Context())
	head := w.Header()
	vary(head)
	delete(head, "Content-Encoding") // that of what was to be sent
	if head["Cache-Control"] == nil {
		head["Cache-Control"] = notKept
	}
	form := h.problemForm(r)
	var b bytes.Buffer
	switch form {
	case htmlType:
		if err := h.problemPage(&b, r, p); err != nil {
			h.o.Log.ErrorContext(r.Context(), "a page could not be made", "error", err.Error())
			b.Reset()
			form = textType
			p.appendText(&b)
		} else {
			spoken(head, h.o.Pages.Language(r))
		}
	case problemType:
		// It is made of texts and numbers, which can always be written.
		text, _ := json.Marshal(p)
		b.Write(append(text, '\n'))
	default:
		p.appendText(&b)
	}
	head["Access-Control-Allow-Origin"] = anyOrigin
	h.write(w, r, p.Status, form, b.Bytes())
}

// problemForm chooses the form by the Accept header: whatever is JSON likes its
// errors in JSON.
func (h *Handler) problemForm(r *http.Request) string {
	form, best := textType, 0
	for _, p := range h.accepts.of(r.Header, "Accept") {
		if p.Q <= best {
			continue
		}
		name, _, _ := strings.Cut(p.Range, ";")
		switch {
		case name == "text/html" || name == "application/xhtml+xml":
			form, best = htmlType, p.Q
		case strings.HasSuffix(name, "json"):
			form, best = problemType, p.Q
		case name == "text/plain":
			form, best = textType, p.Q
		}
	}
	return form
}

// appendText writes the problem for a terminal.
func (p *problem) appendText(b *bytes.Buffer) {
	fmt.Fprintf(b, "%d %s\n", p.Status, p.Title)
	for _, line := range [...]struct{ name, value string }{
		{"asked", p.Asked}, {"identifier", p.ID}, {"detail", p.Detail}, {"code", p.Code}, {"reason", p.Reason}, {"withdrawn", p.Withdrawn}, {"replacement", p.Replacement},
		{"did you mean", strings.Join(p.Nearest, " or ")}, {"available", strings.Join(p.Accepted, ", ")}, {"request", p.Request},
	} {
		if line.value != "" {
			fmt.Fprintf(b, "%s: %s\n", line.name, line.value)
		}
	}
}
