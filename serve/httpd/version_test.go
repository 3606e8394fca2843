package httpd

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

// TestVersionToken: wherever something of the registry is answered, it is from a state
// that the request asks for.
func TestVersionToken(t *testing.T) {
	waited := uint64(0)
	s := newSite(t, func(o *Options) {
		o.Await = func(_ context.Context, token stele.Position) error {
			version := token.Change
			waited = version
			if token.Generation[0] == 1 {
				return stele.FirstGeneration(time.Now()).Judge("the version token", token)
			}
			if version > 10 {
				return &stele.Error{Op: "await", Kind: stele.Unavailable, Err: errors.New("not yet")}
			}
			return nil
		}
	})
	rec := &stele.Record{ID: s.id("ark:12345/x1"), Targets: []stele.Target{{Service: stele.N2L, URL: "https://example.org/1"}}}
	if _, err := s.registry.Register(s.admin, rec); err != nil {
		t.Fatal(err)
	}
	ask := func(path, version string) *http.Response {
		waited = 0
		r := httptest.NewRequest(http.MethodGet, "https://id.example.org"+path, nil)
		if version != "" {
			r.Header.Set(stele.VersionHeader, version)
		}
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		return w.Result()
	}
	for _, path := range []string{"/ark:12345/x1", "/.info/ark:12345/x1", "/.timemap/ark:12345/x1", "/uri-res/N2L?ark:12345/x1", "/api/handles/20.500.12345/x"} {
		plain := ask(path, "").StatusCode
		if waited != 0 {
			t.Errorf("%s: nobody asked for it", path)
		}
		if got := ask(path, "10"); got.StatusCode != plain || waited != 10 {
			t.Errorf("%s: %s, waited for %d", path, got.Status, waited)
		}
		if got := ask(path, "11"); got.StatusCode != http.StatusServiceUnavailable || got.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %s, %v", path, got.Status, got.Header)
		}
		if got := ask(path, "0123456789abcdef0123456789abcdef.1"); got.StatusCode != http.StatusConflict {
			t.Errorf("%s: a token of another generation: %s", path, got.Status)
		}
		if got := ask(path, "1x"); got.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %s", path, got.Status)
		}
	}
	for _, path := range []string{"/healthz", "/robots.txt"} {
		if got := ask(path, "11"); got.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", path, got.Status)
		}
	}
}
