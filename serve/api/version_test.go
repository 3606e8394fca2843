package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
)

// TestVersionToken: every answer to a write has the version of a state that includes it, in
// its head or, if it is a stream, in its trailer; and a client that asks for a version gets
// an answer that includes it, or an error that says to try again.
func TestVersionToken(t *testing.T) {
	var s *site
	waited := uint64(0)
	s = newSite(t, func(o *Options) {
		o.Version = func(ctx context.Context) (stele.Position, error) { return s.store.Position(ctx) }
		o.Await = func(ctx context.Context, token stele.Position) error {
			version := token.Change
			waited = version
			if last, err := s.store.LastChange(ctx); err != nil || last < version {
				return &stele.Error{Op: "await", Kind: stele.Unavailable, Err: errors.Join(err, errors.New("not yet"))}
			}
			return nil
		}
	})
	server := httptest.NewServer(s.handler)
	defer server.Close()
	ask := func(method, path, media, body, version string) (*http.Response, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL+Root+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+s.tokens[theAdmin])
		if media != "" {
			request.Header.Set("Content-Type", media)
		}
		if version != "" {
			request.Header.Set(stele.VersionHeader, version)
		}
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response, string(text)
	}
	last := func() string {
		p, err := s.store.Position(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return p.String()
	}
	for _, tt := range []struct{ method, path, media, body string }{
		{"PUT", "/records/ark:12345/v1", apijson.JSON, `{"id":"ark:12345/v1","url":"https://example.org/v1"}`},
		{"POST", "/records", apijson.JSON, `[{"id":"ark:12345/v4","url":"https://example.org/v4"}]`},
		{"PATCH", "/records/ark:12345/v1", apijson.MergePatch, `{"metadata":{"what":"x"}}`},
		{"POST", "/mint", apijson.JSON, `{"namespaces":["ark:12345/x5"],"count":2}`},
		{"PUT", "/namespaces/ark:12345/v2", apijson.JSON, `{"scheme":"ark","prefix":"ark:12345/v2"}`},
		{"POST", "/users", apijson.JSON, `{"name":"vera"}`},
	} {
		response, text := ask(tt.method, tt.path, tt.media, tt.body, "")
		if got := response.Header.Get(stele.VersionHeader); response.StatusCode/100 != 2 || got != last() {
			t.Errorf("%s %s: %s, version %q, want %s: %s", tt.method, tt.path, response.Status, got, last(), text)
		}
	}
	response, text := ask("POST", "/import", apijson.Lines, `{"id":"ark:12345/v3","url":"https://example.org/v3"}`+"\n", "")
	if got := response.Trailer.Get(stele.VersionHeader); response.StatusCode != http.StatusOK || got != last() || response.Header.Get(stele.VersionHeader) != "" {
		t.Errorf("import: %s, trailer %v, want %s: %s", response.Status, response.Trailer, last(), text)
	}
	response, _ = ask("GET", "/records/ark:12345/v1", "", "", "")
	if response.Header.Get(stele.VersionHeader) != "" || waited != 0 {
		t.Errorf("who reads is told %v, and waits for %d", response.Header, waited)
	}
	response, _ = ask("PUT", "/records/ark:12345/v1", apijson.JSON, `{"id":"ark:12345/v1"}`, "")
	if response.StatusCode != http.StatusPreconditionRequired || response.Header.Get(stele.VersionHeader) != "" {
		t.Errorf("a write that failed: %s, %v", response.Status, response.Header)
	}
	for _, tt := range []struct {
		version string
		status  int
	}{
		{last(), http.StatusOK},
		{"1", http.StatusOK},
		{"0", http.StatusOK},
		{"1000000", http.StatusServiceUnavailable},
		{"x", http.StatusBadRequest},
		{"-1", http.StatusBadRequest},
	} {
		response, text := ask("GET", "/records/ark:12345/v1", "", "", tt.version)
		if response.StatusCode != tt.status || tt.status == http.StatusServiceUnavailable && response.Header.Get("Retry-After") == "" {
			t.Errorf("version %s: %s, %v: %s", tt.version, response.Status, response.Header, text)
		}
	}
	// A write that asks for a version waits for it, too.
	if response, _ := ask("PUT", "/records/ark:12345/v9", apijson.JSON, `{"id":"ark:12345/v9"}`, "1000000"); response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a write: %s", response.Status)
	}
}
