package server

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/serve/httpd"
	"github.com/stele-id/stele/store/mem"
)

// TestMetrics: answers are counted by few labels, and readiness is reported.
func TestMetrics(t *testing.T) {
	var trouble error
	m := newMetrics("test", func(context.Context) error { return trouble })
	for i, status := range []int{301, 302, 303, 404, 302} {
		m.observe(httpd.Observation{Method: "GET", Route: "identifier", Scheme: "ark", Status: status, Bytes: int64(i), Duration: time.Millisecond})
	}
	ask := func(path string) (int, string) {
		w := httptest.NewRecorder()
		m.handler(nil).ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
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
	m := newMetrics("test", func(context.Context) error { return nil })
	o := httpd.Observation{Method: "GET", Route: "identifier", Scheme: "ark", Status: 302, Bytes: 30, Duration: 20 * time.Microsecond}
	b.ReportAllocs()
	for b.Loop() {
		m.observe(o)
	}
}

// Where metrics need a token, it is one of an administrator with the scope metrics; that
// one opens nothing else.
func TestMetricsNeedToken(t *testing.T) {
	store := mem.New(time.Now)
	defer store.Close()
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	directory := auth.NewDirectory(store, time.Now)
	registrars := registrar.New(store, schemes, registrar.Options{Now: time.Now, OnAccess: directory.Forget})
	local := auth.With(t.Context(), auth.Local())
	for _, u := range []auth.User{{Name: "root", Admin: true}, {Name: "ann"}} {
		if _, err := registrars.AddUser(local, u); err != nil {
			t.Fatal(err)
		}
	}
	m := newMetrics("test", func(context.Context) error { return nil })
	handler := m.handler(func(q *http.Request) (auth.Principal, error) {
		return identifyRequest(&registry.Registry{Directory: directory}, q)
	})
	for _, tt := range []struct {
		user             string
		scope            auth.Scope
		metrics, profile int
	}{
		{"", "", http.StatusUnauthorized, http.StatusUnauthorized},
		{"root", "", http.StatusOK, http.StatusOK},
		{"root", auth.ScopeMetrics, http.StatusOK, http.StatusForbidden},
		{"root", auth.ScopeBackup, http.StatusForbidden, http.StatusForbidden},
		{"root", auth.ScopeAdmin, http.StatusOK, http.StatusOK},
		{"ann", "", http.StatusForbidden, http.StatusForbidden},
		{"ann", auth.ScopeMetrics, http.StatusForbidden, http.StatusForbidden},
	} {
		credential := ""
		if tt.user != "" {
			request := auth.TokenRequest{User: tt.user}
			if tt.scope != "" {
				request.Scopes = []auth.Scope{tt.scope}
			}
			if credential, _, err = registrars.CreateToken(local, request); err != nil {
				t.Fatal(err)
			}
		}
		for path, want := range map[string]int{"/metrics": tt.metrics, "/readyz": tt.metrics, "/debug/pprof/cmdline": tt.profile} {
			r, w := httptest.NewRequest(http.MethodGet, path, nil), httptest.NewRecorder()
			if credential != "" {
				r.Header.Set("Authorization", "Bearer "+credential)
			}
			handler.ServeHTTP(w, r)
			if w.Code != want || (w.Code == http.StatusUnauthorized) != (w.Header().Get("WWW-Authenticate") != "") {
				t.Errorf("%q with the scope %q, %s: %d, want %d", tt.user, tt.scope, path, w.Code, want)
			}
		}
	}
}
