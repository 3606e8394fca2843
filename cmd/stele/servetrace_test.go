package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// TestServeTrace: a collector gets spans of requests and of what they led to, without names and addresses, the last
// when the server ends. Without the setting nothing is sent, and a collector that is away does no harm.
func TestServeTrace(t *testing.T) {
	var mu sync.Mutex
	var got strings.Builder
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		octets, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		got.Write(octets)
	}))
	defer collector.Close()
	run := func(arguments ...string) (log string) {
		p := startServe(t, append([]string{"--data", newRegistry(t), "--http", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--trusted-proxies", "127.0.0.1"}, arguments...)...)
		httpGet(t, p.http+"/ark:12345/x1")
		getWithHeader(t, p.http+"/api/v1/records/ark:12345/x1", http.Header{"Traceparent": {"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}})
		_, numbers := httpGet(t, p.metrics+"/metrics")
		if has := strings.Contains(numbers, "stele_trace_dropped_total 0"); has != slices.Contains(arguments, "--trace") {
			t.Errorf("%q: the metrics of traces are there: %t", arguments, has)
		}
		if code := p.end(t, syscall.SIGTERM); code != 0 {
			t.Errorf("%q: it ends with %d: %s", arguments, code, p.stderr)
		}
		return p.stderr.String()
	}
	log := run("--log-requests", "--trace", collector.URL, "--trace-sample", "1")
	traced := got.String()
	for _, text := range []string{"http identifier", "http api", "registrar show", "stele.request", "\x4b\xf9\x2f\x35\x77\xb3\x4d\xa6\xa3\xce\x92\x9d\x0e\x0e\x47\x36"} {
		if !strings.Contains(traced, text) {
			t.Errorf("no span has %q: %q", text, traced)
		}
	}
	if strings.Contains(traced, "12345") || strings.Contains(traced, "127.0.0.1") {
		t.Errorf("spans have a name or an address: %q", traced)
	}
	if !strings.Contains(log, "msg=request") {
		t.Errorf("the log is\n%s", log)
	}
	got.Reset()
	run("--trace", collector.URL, "--trace-sample", "1")
	if n := strings.Count(got.String(), "stele.request"); n < 2 {
		t.Errorf("where requests are not logged, %d spans have the id of a request", n)
	}
	got.Reset()
	if run(); got.Len() > 0 {
		t.Errorf("without the setting there is %q", got.String())
	}
	run("--trace", collector.URL, "--trace-sample", "1", "--trace-names")
	if !strings.Contains(got.String(), "/ark:12345/x1") {
		t.Errorf("with names there is %q", got.String())
	}
	collector.Close()
	if log := run("--trace", collector.URL, "--trace-sample", "1"); strings.Count(log, "the collector of traces does not take spans") != 1 {
		t.Errorf("without a collector the log is\n%s", log)
	}
}
