package httpd

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/trace"
)

// contextLog is a log handler that keeps the id of the request of the last line.
type contextLog struct {
	slog.Handler
	last *string
}

func (l contextLog) Enabled(context.Context, slog.Level) bool { return true }

func (l contextLog) Handle(ctx context.Context, _ slog.Record) error {
	*l.last = trace.Request(ctx)
	return nil
}

// TestRequestID: answers that the server is to blame for have an id, and so have log lines; redirects need none.
func TestRequestID(t *testing.T) {
	made := 0
	s := newSpelled(t, func(o *Options) {
		o.RequestID = func() string { made++; return "made" }
		o.Identify = func(*http.Request) (auth.Principal, error) { return auth.Principal{}, errors.New("the disk is gone") }
	})
	s.leads("/ark:12345/x1", spelledTarget(s.id("ark:12345/x1")), http.StatusFound)
	if a := s.get("/ark:12345/unknown"); a.StatusCode != http.StatusNotFound || a.get(trace.Header) != "" || made != 0 {
		t.Errorf("a name that is not known: %d, %q, %d ids", a.StatusCode, a.get(trace.Header), made)
	}
	for _, accept := range []string{"text/html", "text/plain", "application/json"} {
		a := s.get("/ark:12345/x1", "Authorization", "Bearer x", "Accept", accept)
		if a.StatusCode != http.StatusInternalServerError || a.get(trace.Header) != "made" || !strings.Contains(a.body, "made") {
			t.Errorf("%s: %d, %q: %s", accept, a.StatusCode, a.get(trace.Header), a.body)
		}
		var p problem
		if accept == "application/json" && (json.Unmarshal([]byte(a.body), &p) != nil || p.Request != "made") {
			t.Errorf("the problem is %s", a.body)
		}
	}
	// Those that ask for something else than an identifier have one from the beginning.
	if a := s.get("/.info/ark:12345/unknown"); a.StatusCode != http.StatusNotFound || a.get(trace.Header) != "made" {
		t.Errorf("a page of a name that is not known: %d, %q", a.StatusCode, a.get(trace.Header))
	}
}

// TestRequestIDOfFault: a fault is logged with the id that its client gets.
func TestRequestIDOfFault(t *testing.T) {
	var seen string
	s := newSpelled(t, func(o *Options) {
		o.RequestID = func() string { return "made" }
		o.Identify = func(*http.Request) (auth.Principal, error) { panic("a fault") }
		o.Log = slog.New(contextLog{slog.DiscardHandler, &seen})
	})
	if a := s.get("/ark:12345/x1", "Authorization", "Bearer x"); a.StatusCode != http.StatusInternalServerError || a.get(trace.Header) != "made" || seen != "made" {
		t.Errorf("%d, %q, and the log has %q", a.StatusCode, a.get(trace.Header), seen)
	}
}

// TestRequestIDOfProxy: only what a trusted proxy says counts, and only if it is well-formed.
func TestRequestIDOfProxy(t *testing.T) {
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	const proxy, stranger = "10.1.2.3:4711", "203.0.113.9:4711"
	p := newProxies(t, EitherHeader)
	for _, tt := range []struct {
		from string
		head http.Header
		want string
	}{
		{proxy, http.Header{}, ""},
		{proxy, http.Header{"X-Request-Id": {"abc-1.2_3"}}, "abc-1.2_3"},
		{proxy, http.Header{"X-Request-Id": {"abc"}, "Traceparent": {parent}}, "abc"},
		{proxy, http.Header{"Traceparent": {parent}}, "4bf92f3577b34da6a3ce929d0e0e4736"},
		{proxy, http.Header{"X-Request-Id": {"a b"}, "Traceparent": {parent}}, "4bf92f3577b34da6a3ce929d0e0e4736"},
		{proxy, http.Header{"Traceparent": {parent, parent}}, ""},
		{proxy, http.Header{"Traceparent": {"00-x"}}, ""},
		{proxy, http.Header{"X-Request-Id": {"a", "b"}}, ""},
		{proxy, http.Header{"X-Request-Id": {"a\nlevel=ERROR msg=forged"}}, ""},
		{proxy, http.Header{"X-Request-Id": {strings.Repeat("x", 65)}}, ""},
		{proxy, http.Header{"X-Request-Id": {""}}, ""},
		{stranger, http.Header{"X-Request-Id": {"abc"}, "Traceparent": {parent}}, ""},
	} {
		r := httptest.NewRequest("GET", "/x", nil)
		r.RemoteAddr, r.Header = tt.from, tt.head
		got := "not asked"
		p.Before(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = trace.Request(r.Context()) })).ServeHTTP(httptest.NewRecorder(), r)
		if got != tt.want {
			t.Errorf("%s, %q: %q", tt.from, tt.head, got)
		}
	}
}
