package httpd

import (
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/stele-id/stele/trace"
)

// Observation describes an answer, for counting and for logs. It has nothing of the client,
// nor of the name that it asked for.
type Observation struct {
	Method   string // GET, HEAD or OPTIONS; "other" for the rest
	Route    string // what was asked for: "identifier", "info", "asset" and so on
	Scheme   string // of the identifier, if one was read
	Status   int
	Bytes    int64 // of the body
	Duration time.Duration
}

// watched is a ResponseWriter that sees what is written.
type watched struct {
	http.ResponseWriter
	route, scheme string
	status        int
	bytes         int64
}

// note records for the observer what was asked for. An empty value leaves the old one.
func note(w http.ResponseWriter, route, scheme string) {
	if paid, ok := w.(*charged); ok {
		w = paid.ResponseWriter
	}
	if own, ok := w.(*personal); ok {
		w = own.ResponseWriter
	}
	if seen, ok := w.(*watched); ok {
		if route != "" {
			seen.route = route
		}
		if scheme != "" {
			seen.scheme = scheme
		}
	}
}

func (w *watched) WriteHeader(status int) {
	if w.status == 0 || w.status < http.StatusOK {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *watched) Write(b []byte) (int, error) {
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

// WriteString is Write without a copy.
func (w *watched) WriteString(s string) (int, error) {
	n, err := io.WriteString(w.ResponseWriter, s)
	w.bytes += int64(n)
	return n, err
}

// Unwrap is for [http.ResponseController].
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *watched) observation(r *http.Request, took time.Duration) Observation {
	o := Observation{Method: r.Method, Route: w.route, Scheme: w.scheme, Status: w.status, Bytes: w.bytes, Duration: took}
	if r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions {
		o.Method = "other"
	}
	if o.Status == 0 {
		o.Status = http.StatusOK
	}
	return o
}

// traced begins the span of a request, which is nil if it is not recorded.
func (h *Handler) traced(r *http.Request) (*http.Request, *trace.Span) {
	if h.o.Tracer == nil {
		return r, nil
	}
	ctx, span := h.o.Tracer.Begin(r.Context(), trace.Server, "http")
	if span == nil {
		return r, nil
	}
	had := trace.Request(ctx) != "" // then the span has it
	r = h.named(r.WithContext(ctx))
	if !had {
		span.Text("stele.request", trace.Request(r.Context()))
	}
	return r, span
}

// pathOf returns the path of a request for an identifier, and nothing for all else: what the desk's links have in their path signs their
// reader in. A path that begins with a dot is never one of an identifier, however it is spelt.
func (o *Observation) pathOf(r *http.Request) string {
	switch o.Route {
	case "identifier", "info", "timemap", "memento":
	default:
		return ""
	}
	path := readTarget(r).path
	if o.Route == "identifier" && isDotted(strings.TrimLeft(path, "/")) {
		return ""
	}
	return "/" + path
}

// describe ends the span of a request with what its answer was. Names of attributes are those of
// OpenTelemetry's conventions for HTTP.
func (o *Observation) describe(span *trace.Span, r *http.Request) {
	span.Name = "http " + o.Route
	span.About("url.path", o.pathOf(r))
	span.Text("http.request.method", o.Method)
	span.Text("http.route", o.Route)
	span.Text("stele.scheme", o.Scheme)
	span.Number("http.response.status_code", int64(o.Status))
	span.Number("http.response.body.size", o.Bytes)
	if o.Status >= http.StatusInternalServerError {
		span.Fail()
	}
	span.End(nil)
}
