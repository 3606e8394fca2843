package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/trace"
)

// TestProblems answers with an error of every kind.
func TestProblems(t *testing.T) {
	s := newSite(t)
	id := s.id("ark:12345/x1")
	reason := errors.New("this is why\r\nX-Evil: 1")
	for _, tt := range []struct {
		err    error
		status int
		name   string
		detail string
	}{
		{&stele.Error{Op: "op", ID: id, Kind: stele.Invalid, Err: reason}, 400, "invalid", "this is why  X-Evil: 1"},
		{&stele.Error{Op: "op", ID: id, Kind: stele.NotFound, Err: reason}, 404, "not-found", "this is why  X-Evil: 1"},
		{&stele.Error{Op: "op", ID: id, Kind: stele.Gone, Err: reason}, 410, "gone", "this is why  X-Evil: 1"},
		{&stele.Error{Op: "op", ID: id, Kind: stele.Conflict, Err: reason}, 409, "conflict", "this is why  X-Evil: 1"},
		{&stele.Error{Op: "op", ID: id, Kind: stele.Forbidden, Err: reason}, 403, "forbidden", "this is why  X-Evil: 1"},
		{&stele.Error{Op: "op", ID: id, Kind: stele.Unauthenticated, Err: reason}, 401, "unauthenticated", "this is why  X-Evil: 1"},
		{&stele.Error{Op: "op", ID: id, Kind: stele.Exhausted, Err: reason}, 429, "exhausted", "this is why  X-Evil: 1"},
		{&stele.Error{Op: "op", ID: id, Kind: stele.Unavailable, Err: reason}, 503, "unavailable", "this is why  X-Evil: 1"},
		{&stele.Error{Op: "op", ID: id, Kind: stele.Internal, Err: reason}, 500, "internal", "something went wrong here"},
		{&stele.Error{Op: "op", ID: id, Kind: stele.Kind(200), Err: reason}, 500, "internal", "something went wrong here"},
		{errors.New("nobody classified it"), 500, "internal", "something went wrong here"},
		{fmt.Errorf("further: %w", context.Canceled), 503, "unavailable", "further: context canceled"},
		{failed("op", id, "x.y", "it has version {version}", 3), 412, "precondition-failed", "it has version 3"},
		{conditions{tagOf: (&Handler{}).tagOf}.unconditional("op", id, 3), 428, "precondition-required", "with version 3"},
		{refusef(http.StatusRequestTimeout, "x.y", "too slow"), 408, "too-slow", "too slow"},
		{refusef(http.StatusRequestEntityTooLarge, "x.y", "too large"), 413, "too-large", "too large"},
		{refusef(http.StatusRequestURITooLong, "x.y", "too long"), 414, "address-too-long", "too long"},
		{refusef(http.StatusUnsupportedMediaType, "x.y", "no JSON"), 415, "unsupported-media-type", "no JSON"},
		{refusef(http.StatusUnprocessableEntity, "x.y", "another"), 422, "key-reused", "another"},
		{refusef(http.StatusMethodNotAllowed, "x.y", "not here"), 405, "method-not-allowed", "not here"},
		{refusef(http.StatusBadRequest, "x.y", "bad"), 400, "invalid", "bad"},
		{refusef(http.StatusUnauthorized, "x.y", "who"), 401, "unauthenticated", "who"},
		{refusef(http.StatusTeapot, "x.y", "tea"), 500, "internal", "something went wrong"},
	} {
		w := httptest.NewRecorder()
		c := &call{h: s.handler, w: w, r: httptest.NewRequest("GET", "/", nil), ctx: trace.WithRequest(t.Context(), "req-1"), op: &operation{name: "test"}, who: auth.Principal{Name: "ann"}}
		c.fail(tt.err)
		a := reply{w.Result(), w.Body.String()}
		p := a.want(t, tt.status).problem(t)
		if p.Request != "req-1" || a.get(trace.Header) != "req-1" {
			t.Errorf("%v: the request is %q, %q", tt.err, p.Request, a.get(trace.Header))
		}
		if p.Type != Root+"#"+tt.name || p.Title == "" || !strings.Contains(p.Detail, tt.detail) {
			t.Errorf("%v: got %+v", tt.err, p)
		}
		if _, ok := errors.AsType[*stele.Error](tt.err); ok && tt.status != 500 && (p.ID != id.String() || p.Operation != "op") {
			t.Errorf("%v: got %+v", tt.err, p)
		}
		if retry := a.get("Retry-After") != ""; retry != (tt.status == 429 || tt.status == 503) {
			t.Errorf("%v: Retry-After is %q", tt.err, a.get("Retry-After"))
		}
		if asks := a.get("WWW-Authenticate") != ""; asks != (tt.status == 401) {
			t.Errorf("%v: WWW-Authenticate is %q", tt.err, a.get("WWW-Authenticate"))
		}
		if a.get("X-Evil") != "" || strings.Contains(a.body, "this is why") && tt.status == 500 {
			t.Errorf("%v: %v %s", tt.err, a.Header, a.body)
		}
	}
	if log := s.log.String(); !strings.Contains(log, "this is why  X-Evil") || strings.Contains(log, "\nX-Evil") {
		t.Errorf("the log has %s", log)
	}
}

// TestUnavailable holds that the public does not see what a store says of its disk.
func TestUnavailable(t *testing.T) {
	s := newSite(t)
	s.ask(theReader, "GET", Root+"/me", "").want(t, 200) // so that tokens are known
	s.store.Close()
	for who, told := range map[string]bool{"": false, theReader: true} {
		a := s.ask(who, "GET", records+"ark:12345/x1", "").want(t, 503)
		if p := a.problem(t); strings.Contains(p.Detail, "store") != told || a.get("Retry-After") == "" {
			t.Errorf("%q is told %s", who, a.body)
		}
	}
}

// TestProblemsInDocuments holds that an answer lists all problems of a document, with their
// paths.
func TestProblemsInDocuments(t *testing.T) {
	s := newSite(t)
	p := s.ask(theEditor, "PUT", records+"ark:12345/p1", `{"targets":[{"url":"https://example.org/"},{"url":"ftp:x","ttl":-1}],"colour":"red"}`).want(t, 400).problem(t)
	var paths []string
	for _, f := range p.Problems {
		paths = append(paths, f.Path)
		if f.Detail == "" {
			t.Errorf("%s: nothing is said", f.Path)
		}
	}
	slices.Sort(paths)
	if want := []string{"colour", "targets[1].ttl", "targets[1].url"}; !slices.Equal(paths, want) {
		t.Errorf("got %v, want %v", paths, want)
	}
	err := under("record", &stele.Error{Kind: stele.Invalid, Err: stele.Problems{{Path: "url", Err: errors.New("x")}, {Err: errors.New("y")}, {Path: "[0]", Err: errors.New("z")}}})
	if got := err.Error(); got != "record.url: x; record: y; record[0]: z" {
		t.Errorf("got %q", got)
	}
}

// TestProblemTypes holds that each kind of failure has a name of its own, which leads to
// its line on the page.
func TestProblemTypes(t *testing.T) {
	s := newSite(t)
	page := s.ask("", "GET", Root, "").want(t, 200).body
	seen := make(map[string]bool)
	check := func(o outcome) {
		if seen[o.name] || !strings.Contains(page, `<tr id="`+o.name+`">`) {
			t.Errorf("%s is there twice, or is not on the page", o.name)
		}
		seen[o.name] = true
	}
	for _, o := range outcomes {
		check(o)
	}
	for status, o := range refusals {
		if check(o); status != o.status {
			t.Errorf("%d is %d", status, o.status)
		}
	}
}

// TestFaults holds that a client never sees the cause of a fault, and that a stream that
// fails is cut off.
func TestFaults(t *testing.T) {
	s := newSite(t)
	fault := func(before func(*call)) func(*call) error {
		return func(c *call) error {
			before(c)
			var none []int
			return fmt.Errorf("%d", none[1])
		}
	}
	s.handler.places["fault"] = place{itself: map[string]*operation{"GET": {name: "fault", serve: fault(func(*call) {})}}}
	a := s.ask("", "GET", Root+"/fault", "").want(t, 500)
	if strings.Contains(a.body, "index") || !strings.Contains(s.log.String(), "index out of range") {
		t.Errorf("told %s, and in the log %s", a.body, s.log.String())
	}
	// A stream that fails can't be taken for whole.
	s.handler.places["stream"] = place{itself: map[string]*operation{"GET": {name: "stream", serve: fault(func(c *call) {
		_ = c.stream(apijson.Lines).line("beginning")
		_ = c.out.flush()
	})}}}
	for _, version := range []int{1, 2} {
		server := httptest.NewUnstartedServer(s.handler)
		server.EnableHTTP2 = version == 2
		server.StartTLS()
		defer server.Close()
		got, err := server.Client().Get(server.URL + Root + "/stream")
		if err != nil {
			t.Fatal(err)
		}
		defer got.Body.Close()
		if text, err := io.ReadAll(got.Body); err == nil || got.ProtoMajor != version {
			t.Errorf("%s: a stream that failed seems whole: %q", got.Proto, text)
		}
	}
}

// TestConnections holds that a connection is used again after a refused request if its body
// was read, and not if it was not.
func TestConnections(t *testing.T) {
	s := newSite(t)
	url := s.serve()
	for _, tt := range []struct {
		path, media string
		status      int
		closed      bool
	}{
		{"/records/ark:12345/x1", apijson.JSON, 428, true}, // it was not needed
		{"/records/ark:12345/none", apijson.JSON, 400, false},
		{"/records/ark:12345/none", "text/plain", 415, true},
	} {
		r, err := http.NewRequest("PUT", url+Root+tt.path, strings.NewReader(`{"colour":"red"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Authorization": {"Bearer " + s.tokens[theEditor]}, "Content-Type": {tt.media}}
		a, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		if a.StatusCode != tt.status || a.Close != tt.closed {
			t.Errorf("%s: %d, and the connection closed: %t", tt.path, a.StatusCode, a.Close)
		}
	}
}
