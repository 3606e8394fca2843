package httpd

import (
	"io"
	"net/http"
	"testing"
)

// TestAPI holds what is handed over to the interface for programs: what begins with
// /api/v1, as it was sent, and nothing else.
func TestAPI(t *testing.T) {
	const mark = "handed over: "
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, mark+r.Method+" "+r.RequestURI)
	})
	s := newSite(t, func(o *Options) { o.API = echo })
	for _, tt := range []struct {
		method, target string
		over           bool
	}{
		{"GET", "/api/v1", true},
		{"GET", "/api/v1/", true},
		{"PUT", "/api/v1/records/ark:12345/x1", true},
		{"DELETE", "/api/v1/records/https://example.org//a/../b?reason=%20", true},
		{"BREW", "/api/v1/x", true},
		{"GET", "http://id.example.org/api/v1/records", true},
		{"GET", "//api/v1/records", false},
		{"GET", "/api//v1/records", false},
		{"GET", "/api/v1x", false},
		{"GET", "/api/v2", false},
		{"GET", "/api/V1/records", false},
		{"GET", "/API/v1/records", false},
		{"GET", "/api/%761/records", false},
		{"GET", "/%61pi/v1/records", false},
		{"GET", "/x/../api/v1/records", false},
		{"GET", "/./api/v1/records", false},
		{"GET", "/api/handles/10.5072/X", false},
	} {
		a := s.ask(tt.method, tt.target)
		if got := a.body == mark+tt.method+" "+tt.target; got != tt.over {
			t.Errorf("%s %s: %d %s", tt.method, tt.target, a.StatusCode, a.body)
		}
	}
	if a := newSite(t).ask("GET", "/api/v1/records"); a.StatusCode != http.StatusNotFound {
		t.Errorf("without an interface: %d", a.StatusCode)
	}
}
