package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/internal/limit"
	"github.com/stele-id/stele/internal/terminal"
	"github.com/stele-id/stele/search"
	"github.com/stele-id/stele/serve/dnsd"
	"github.com/stele-id/stele/serve/httpd"
	"github.com/stele-id/stele/usage"
)

// metrics are what Prometheus may ask for. Labels have few values: kinds of
// requests, schemes, classes of status; never an identifier.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	bytes    *prometheus.CounterVec
	open     prometheus.Gauge
	ready    func(context.Context) error
	series   sync.Map                      // of requestLabels to *requestSeries
	last     atomic.Pointer[requestSeries] // of an answer shortly before
}

// requestLabels are what answers are counted by.
type requestLabels struct {
	route, scheme, method string
	class                 int // 2 for 2xx
}

// requestSeries are the numbers of some labels, found once.
type requestSeries struct {
	labels          requestLabels
	requests, bytes prometheus.Counter
	seconds         prometheus.Observer
}

// readyTimeout is how long the store may take to say whether it can write.
const readyTimeout = 2 * time.Second

// newMetrics makes metrics of a version of the program. Each reading of them calls ready.
func newMetrics(program string, ready func(context.Context) error) *metrics {
	labels := []string{"route", "scheme", "method", "status"}
	m := &metrics{
		registry: prometheus.NewRegistry(),
		ready:    ready,
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stele_http_requests_total", Help: "Requests answered, by what was asked for, the scheme of the identifier, the method and the class of the status.",
		}, labels),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stele_http_response_bytes_total", Help: "Bytes of answers' bodies.",
		}, []string{"route"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "stele_http_request_duration_seconds", Help: "How long answers took, by what was asked for.",
			Buckets: []float64{.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1, 5},
		}, []string{"route"}),
		open: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "stele_http_connections", Help: "Connections of the public that are open.",
		}),
	}
	isReady := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "stele_ready", Help: "1 if the server can do all that it should, as /readyz says; 0 if not.",
	}, func() float64 {
		ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
		defer cancel()
		if ready(ctx) != nil {
			return 0
		}
		return 1
	})
	build := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "stele_build_info", Help: "Always 1; the labels say which program this is.",
		ConstLabels: prometheus.Labels{"version": program, "goversion": runtime.Version()},
	}, func() float64 { return 1 })
	m.registry.MustRegister(m.requests, m.bytes, m.seconds, m.open, isReady, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// addHeld adds the metrics of answers that clients have not read.
func (m *metrics) addHeld(held *limit.Held) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "stele_http_held_bytes", Help: "Bytes of large answers that clients have not read yet.",
	}, func() float64 { return float64(held.Bytes()) }))
}

// addSearch adds the numbers of the search index, which status returns.
func (m *metrics) addSearch(status func() search.Status) {
	for name, g := range map[string]struct {
		help string
		of   func(s search.Status) uint64
	}{
		"change":  {"Up to which change the search index is.", func(s search.Status) uint64 { return s.Change }},
		"behind":  {"Changes of the registry that the search index does not have yet.", search.Status.Behind},
		"records": {"Records in the search index.", func(s search.Status) uint64 { return s.Documents }},
		"bytes":   {"Bytes of the search index on the disk.", func(s search.Status) uint64 { return s.Bytes }},
	} {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "stele_search_" + name, Help: g.help}, func() float64 { return float64(g.of(status())) }))
	}
}

// addUsage adds how the counter of use is.
func (m *metrics) addUsage(stats func() usage.Stats) {
	for name, g := range map[string]struct {
		help string
		of   func(s usage.Stats) uint64
	}{
		"dropped_total":  {"Uses of names that were not counted, because too many came at once or could not be written.", func(s usage.Stats) uint64 { return s.Dropped }},
		"kept_total":     {"Uses of names whose figures are written, double clicks and robots included.", func(s usage.Stats) uint64 { return s.Kept }},
		"overflow_total": {"Uses that were counted without the rules for double clicks and sessions, because too many readers came.", func(s usage.Stats) uint64 { return s.Overflow }},
		"failures_total": {"Attempts to write figures of use that failed.", func(s usage.Stats) uint64 { return s.Failed }},
	} {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "stele_usage_" + name, Help: g.help}, func() float64 { return float64(g.of(stats())) }))
	}
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "stele_usage_waiting", Help: "Figures of use that are to be written."}, func() float64 { return float64(stats().Waiting) }))
}

// observe counts an answer.
func (m *metrics) observe(o httpd.Observation) {
	labels := requestLabels{o.Route, o.Scheme, o.Method, o.Status / 100}
	if last := m.last.Load(); last != nil && last.labels == labels { // nearly all answers of a busy server are redirects of one scheme
		last.count(&o)
		return
	}
	found, ok := m.series.Load(labels)
	if !ok {
		found, _ = m.series.LoadOrStore(labels, &requestSeries{
			labels:   labels,
			requests: m.requests.WithLabelValues(labels.route, labels.scheme, labels.method, strconv.Itoa(labels.class)+"xx"),
			bytes:    m.bytes.WithLabelValues(labels.route),
			seconds:  m.seconds.WithLabelValues(labels.route),
		})
	}
	s := found.(*requestSeries)
	m.last.Store(s)
	s.count(&o)
}

// count counts an answer.
func (s *requestSeries) count(o *httpd.Observation) {
	s.requests.Inc()
	s.bytes.Add(float64(o.Bytes))
	s.seconds.Observe(o.Duration.Seconds())
}

// counted returns a function that counts connections before it calls another one.
func (m *metrics) counted(next func(net.Conn, http.ConnState)) func(net.Conn, http.ConnState) {
	return func(c net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			m.open.Inc()
		case http.StateClosed, http.StateHijacked:
			m.open.Dec()
		}
		next(c, state)
	}
}

// handler answers with metrics and profiles. If identify is not nil it authenticates the
// caller: metrics need the scope metrics then, and profiles the scope admin, of an
// administrator's token.
func (m *metrics) handler(identify func(*http.Request) (auth.Principal, error)) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry}))
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /readyz", m.readiness)
	if identify == nil {
		return mux
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scope := auth.ScopeMetrics
		if strings.HasPrefix(r.URL.Path, "/debug/") {
			scope = auth.ScopeAdmin
		}
		who, err := identify(r)
		switch {
		case err != nil && stele.KindOf(err) != stele.Unauthenticated:
			http.Error(w, "tokens can't be looked up now; try again in a moment", http.StatusServiceUnavailable)
		case err != nil, !who.IsKnown():
			w.Header().Set("WWW-Authenticate", `Bearer realm="stele"`)
			http.Error(w, "this needs the token of an administrator with the scope "+string(scope)+", as Authorization: Bearer TOKEN", http.StatusUnauthorized)
		case !who.Administers(scope):
			http.Error(w, "this needs the token of an administrator with the scope "+string(scope)+"; use another token", http.StatusForbidden)
		default:
			mux.ServeHTTP(w, r)
		}
	})
}

// readiness says why the server is not ready, which the public does not learn.
func (m *metrics) readiness(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if err := m.ready(r.Context()); err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintln(w, terminal.Printable(err.Error()))
		return
	}
	fmt.Fprintln(w, "ok")
}

// dnsNumbers are the counts of the name server, for Prometheus.
type dnsNumbers struct {
	server  func() *dnsd.Server // that answers now
	answers *prometheus.Desc
	other   []dnsCount
}

// dnsCount is one count.
type dnsCount struct {
	desc *prometheus.Desc
	of   func(*dnsd.Stats) uint64
}

// addDNS adds the counts of the name server.
func (m *metrics) addDNS(server func() *dnsd.Server) {
	n := &dnsNumbers{server: server, answers: prometheus.NewDesc("stele_dns_answers_total", "Answers of the name server, by response code.", []string{"rcode"}, nil)}
	add := func(name, help string, of func(*dnsd.Stats) uint64) {
		n.other = append(n.other, dnsCount{prometheus.NewDesc("stele_dns_"+name+"_total", help, nil, nil), of})
	}
	add("udp", "Messages answered over UDP.", func(s *dnsd.Stats) uint64 { return s.UDP })
	add("tcp", "Messages answered over TCP.", func(s *dnsd.Stats) uint64 { return s.TCP })
	add("tls", "Messages answered over TLS.", func(s *dnsd.Stats) uint64 { return s.TLS })
	add("https", "Messages answered over HTTPS.", func(s *dnsd.Stats) uint64 { return s.HTTPS })
	add("truncated", "Answers that did not fit and sent the client to TCP.", func(s *dnsd.Stats) uint64 { return s.Truncated })
	add("dropped", "Messages that deserved no answer.", func(s *dnsd.Stats) uint64 { return s.Dropped })
	add("held", "Answers held back by the rate limit.", func(s *dnsd.Stats) uint64 { return s.Held })
	add("slipped", "Answers shortened by the rate limit.", func(s *dnsd.Stats) uint64 { return s.Slipped })
	add("cookies", "Messages with a good server cookie.", func(s *dnsd.Stats) uint64 { return s.Cookies })
	add("hits", "Questions answered with what was packed before.", func(s *dnsd.Stats) uint64 { return s.Hits })
	add("misses", "Questions for which the registry was asked.", func(s *dnsd.Stats) uint64 { return s.Misses })
	add("busy", "Answers shortened since too much was to be signed.", func(s *dnsd.Stats) uint64 { return s.Busy })
	add("wrong_signatures", "Messages with a wrong signature (TSIG).", func(s *dnsd.Stats) uint64 { return s.Signatures })
	add("transfers", "Transfers of whole zones to secondaries.", func(s *dnsd.Stats) uint64 { return s.Whole })
	add("differences", "Transfers of what has changed to secondaries.", func(s *dnsd.Stats) uint64 { return s.Differences })
	add("transfers_refused", "Transfers that were refused.", func(s *dnsd.Stats) uint64 { return s.Declined })
	add("transfers_failed", "Transfers that failed.", func(s *dnsd.Stats) uint64 { return s.Broken })
	add("notices", "Notices of changes that were sent to secondaries.", func(s *dnsd.Stats) uint64 { return s.Notices })
	add("notices_confirmed", "Notices that a secondary confirmed.", func(s *dnsd.Stats) uint64 { return s.Confirmed })
	add("notices_refused", "Notices that a secondary refused.", func(s *dnsd.Stats) uint64 { return s.Unwanted })
	add("notices_given_up", "Notices that no secondary confirmed.", func(s *dnsd.Stats) uint64 { return s.GivenUp })
	add("connections", "TCP connections accepted.", func(s *dnsd.Stats) uint64 { return s.Connections })
	add("refused", "TCP connections closed at once, since there were too many.", func(s *dnsd.Stats) uint64 { return s.Refused })
	add("tap_dropped", "Questions of which the collector of dnstap could not be told in time.", func(s *dnsd.Stats) uint64 { return s.Untold })
	add("replaced", "TCP connections closed to make room for those of other clients.", func(s *dnsd.Stats) uint64 { return s.Replaced })
	m.registry.MustRegister(n)
}

// Describe tells Prometheus what there is.
func (n *dnsNumbers) Describe(to chan<- *prometheus.Desc) {
	to <- n.answers
	for _, c := range n.other {
		to <- c.desc
	}
}

// Collect tells Prometheus the counts.
func (n *dnsNumbers) Collect(to chan<- prometheus.Metric) {
	stats := n.server().Stats()
	for rcode, count := range stats.Rcodes {
		to <- prometheus.MustNewConstMetric(n.answers, prometheus.CounterValue, float64(count), rcode)
	}
	for _, c := range n.other {
		to <- prometheus.MustNewConstMetric(c.desc, prometheus.CounterValue, float64(c.of(&stats)))
	}
}

// expiryNumbers tells Prometheus when certificates end.
type expiryNumbers struct {
	certificates
	desc *prometheus.Desc
}

// addCertificates adds when certificates end.
func (m *metrics) addCertificates(c certificates) {
	m.registry.MustRegister(&expiryNumbers{c, prometheus.NewDesc("stele_certificate_expiry_timestamp_seconds", "When the certificate ends, in seconds since 1970.", []string{"name"}, nil)})
}

// Describe tells Prometheus what there is.
func (e *expiryNumbers) Describe(to chan<- *prometheus.Desc) { to <- e.desc }

// Collect tells Prometheus the times.
func (e *expiryNumbers) Collect(to chan<- prometheus.Metric) {
	for name, ends := range e.expiries() {
		to <- prometheus.MustNewConstMetric(e.desc, prometheus.GaugeValue, float64(ends.Unix()), name)
	}
}
