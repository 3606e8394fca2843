package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk/foreign"
)

// TestAskServer: a test of a file is a request without a token, whose redirect is read and not followed; a server that is busy is asked again.
func TestAskServer(t *testing.T) {
	busy := 1
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the request has a token")
		}
		switch r.URL.Path {
		case "/https://w3id.org/to":
			w.Header().Set("Location", "https://example.org/to")
			w.WriteHeader(http.StatusSeeOther)
		case "/https://w3id.org/own":
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(http.StatusFound)
		case "/https://w3id.org/busy":
			if busy--; busy >= 0 {
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			w.Header().Set("Location", "https://example.org/busy")
			w.WriteHeader(http.StatusFound)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	p := new(program)
	p.remote.server = server.URL
	ask, done, err := p.askServer()
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	for name, want := range map[string]foreign.Answer{
		"https://w3id.org/to":   {URL: "https://example.org/to", Status: 303},
		"https://w3id.org/own":  {},
		"https://w3id.org/busy": {URL: "https://example.org/busy", Status: 302},
		"https://w3id.org/none": {},
	} {
		if got, err := ask(t.Context(), name); err != nil || got != want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	server.Close()
	ctx, stop := context.WithTimeout(t.Context(), checkPatience)
	defer stop()
	if _, err := ask(ctx, "https://w3id.org/to"); stele.KindOf(err) != stele.Unavailable {
		t.Errorf("a server that is away: %v", err)
	}
}
