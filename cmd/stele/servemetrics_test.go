package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele/serve/httpd"
)

// TestMetrics: answers are counted by few labels, and readiness is told.
func TestMetrics(t *testing.T) {
	var trouble error
	m := newMetrics(func(context.Context) error { return trouble })
	for i, status := range []int{301, 302, 303, 404, 302} {
		m.observe(httpd.Observation{Method: "GET", Route: "identifier", Scheme: "ark", Status: status, Bytes: int64(i), Duration: time.Millisecond})
	}
	ask := func(path string) (int, string) {
		w := httptest.NewRecorder()
		m.handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code, w.Body.String()
	}
	_, body := ask("/metrics")
	for _, want := range []string{
		`stele_http_requests_total{method="GET",route="identifier",scheme="ark",status="3xx"} 4`,
		`stele_http_requests_total{method="GET",route="identifier",scheme="ark",status="4xx"} 1`,
		`stele_http_response_bytes_total{route="identifier"} 10`,
		`stele_http_request_duration_seconds_bucket{route="identifier",le="0.001"} 5`,
		"\nstele_ready 1\n",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("there is no %q", want)
		}
	}
	trouble = errors.New("the disk is full\x1b[31m")
	if _, body := ask("/metrics"); !strings.Contains(body, "\nstele_ready 0\n") {
		t.Error("the trouble is not told")
	}
	if code, body := ask("/readyz"); code != http.StatusServiceUnavailable || body != "the disk is full\\x1b[31m\n" {
		t.Errorf("readiness is %d %q", code, body)
	}
}

func BenchmarkObserve(b *testing.B) {
	m := newMetrics(func(context.Context) error { return nil })
	o := httpd.Observation{Method: "GET", Route: "identifier", Scheme: "ark", Status: 302, Bytes: 30, Duration: 20 * time.Microsecond}
	b.ReportAllocs()
	for b.Loop() {
		m.observe(o)
	}
}
