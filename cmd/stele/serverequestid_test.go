package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/stele-id/stele/document/apijson"
)

// getWithHeader asks with headers, and returns the answer and its body.
func getWithHeader(t *testing.T, url string, header http.Header) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header = header
	a, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a, string(body)
}

// TestServeRequestIDs: a client that was refused has an id by which the operator finds the line in the log. The id is
// that of a trusted proxy, if there is one.
func TestServeRequestIDs(t *testing.T) {
	data := newRegistry(t)
	trusting := startServe(t, "--data", data, "--http", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--log-requests", "--trusted-proxies", "127.0.0.1")
	a, body := getWithHeader(t, trusting.http+"/api/v1/me", http.Header{"X-Request-Id": {"from-the-proxy"}})
	var p apijson.Problem
	if err := json.Unmarshal([]byte(body), &p); err != nil || p.Request != "from-the-proxy" || a.Header.Get("X-Request-Id") != p.Request {
		t.Errorf("the id of the proxy: %v, %v, %s", err, a.Header, body)
	}
	a, body = getWithHeader(t, trusting.http+"/api/v1/me", http.Header{"X-Request-Id": {"two words"}})
	if id := a.Header.Get("X-Request-Id"); len(id) != 16 || !strings.Contains(body, id) {
		t.Errorf("an id that can't be one: %q, %s", id, body)
	}
	if a, _ = getWithHeader(t, trusting.metrics+"/metrics", http.Header{}); len(a.Header.Get("X-Request-Id")) != 16 {
		t.Errorf("metrics: %v", a.Header)
	}
	if code := trusting.end(t, syscall.SIGTERM); code != 0 {
		t.Errorf("it ends with %d", code)
	}
	if log := trusting.stderr.String(); !strings.Contains(log, " request=from-the-proxy\n") || strings.Contains(log, "two words") {
		t.Errorf("the log is\n%s", log)
	}
	careful := startServe(t, "--data", data, "--http", "127.0.0.1:0", "--log-requests")
	a, _ = getWithHeader(t, careful.http+"/api/v1/me", http.Header{"X-Request-Id": {"from-the-proxy"}, "Traceparent": {"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}})
	if id := a.Header.Get("X-Request-Id"); len(id) != 16 || id == "from-the-proxy" {
		t.Errorf("a client chose its id: %q", id)
	}
	careful.end(t, syscall.SIGTERM)
}
