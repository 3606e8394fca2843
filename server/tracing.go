package server

import (
	"context"
	"crypto/rand"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stele-id/stele/links"
	"github.com/stele-id/stele/links/ask"
	"github.com/stele-id/stele/outbound"
	"github.com/stele-id/stele/serve/httpd"
	"github.com/stele-id/stele/trace"
	"github.com/stele-id/stele/trace/otlp"
)

// tracing is what tells requests apart, and what records them.
type tracing struct {
	ids      *trace.IDs
	tracer   *trace.Tracer  // nil without the setting trace
	exporter *otlp.Exporter // nil without the setting trace
}

// newIDs makes the source of the ids of requests.
func newIDs() *trace.IDs {
	var seed [32]byte
	_, _ = rand.Read(seed[:]) // it never fails
	return trace.NewIDs(seed)
}

// named returns a handler of operators that gives each request an id, and tells it in each answer. The
// handler of the public does so itself, where it is needed.
func (s *server) named(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = httpd.Named(r, s.ids.Request)
		trace.Tell(r.Context(), w.Header())
		next.ServeHTTP(w, r)
	})
}

// How long a collector may take to answer, and how long its answer may be.
const (
	collectorPatience  = 5 * time.Second
	maxCollectorAnswer = 64 << 10
)

// traced runs the server, and sends what it traces until all requests are answered.
func (s *server) traced(ctx, hurry context.Context) error {
	if s.Trace == "" {
		return s.run(ctx, hurry)
	}
	s.tracer = trace.NewTracer(trace.Options{Sample: s.TraceSample, Names: s.TraceNames, IDs: s.ids, Now: s.now})
	s.exporter = &otlp.Exporter{
		URL: s.Trace, Service: otlp.Service{Name: "stele", Version: s.o.Version, Instance: s.ids.Request()}, Log: s.log,
		// The operator names the collector, so it may be at any address.
		Do: outbound.NewClient(outbound.Rule{Any: true}, collectorPatience, maxCollectorAnswer).Do,
	}
	sending, stop := context.WithCancel(context.Background())
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		s.exporter.Run(sending, s.tracer.Waiting())
	}()
	defer func() {
		stop()
		<-sent // a few seconds at most
	}()
	return s.run(ctx, hurry)
}

// traceAsking returns a function that traces how targets are checked.
func (s *server) traceAsking(next func(context.Context, string, ask.Known) (*links.Answer, links.Report)) func(context.Context, string, ask.Known) (*links.Answer, links.Report) {
	if s.tracer == nil {
		return next
	}
	return func(ctx context.Context, target string, k ask.Known) (*links.Answer, links.Report) {
		ctx, span := s.tracer.Begin(ctx, trace.Client, "check target")
		answer, report := next(ctx, target, k)
		span.About("url.full", target)
		span.Number("http.response.status_code", int64(answer.Status))
		span.End(nil)
		return answer, report
	}
}

// addTracing adds how many spans were sent, and how many were not.
func (m *metrics) addTracing(t tracing) {
	if t.tracer == nil {
		return
	}
	for name, c := range map[string]struct {
		help string
		of   func() uint64
	}{
		"sent_total":    {"Spans of traces that the collector has taken.", func() uint64 { sent, _ := t.exporter.Sent(); return sent }},
		"lost_total":    {"Spans of traces that the collector did not take.", func() uint64 { _, lost := t.exporter.Sent(); return lost }},
		"dropped_total": {"Spans of traces that were dropped because too many waited, or because their trace had too many.", t.tracer.Dropped},
	} {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "stele_trace_" + name, Help: c.help}, func() float64 { return float64(c.of()) }))
	}
}
