package remote_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/remote"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/scheme/all"
)

// Secrets are not sent in clear to another machine, not even if the token may be.
func TestSecretsInClear(t *testing.T) {
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	sent := false
	r, err := remote.New("http://192.0.2.1:8080", "", remote.Options{Schemes: schemes, PlainHTTP: true, Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		sent = true
		return nil, http.ErrServerClosed
	})})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Ingest(t.Context(), nil, registrar.ImportOptions{Secrets: true}); stele.KindOf(err) != stele.Forbidden || sent {
		t.Errorf("sent: %t, %v", sent, err)
	}
	for server, want := range map[string]bool{"https://id.example.org": true, "http://127.0.0.1:8080": true, "http://[::1]": true, "http://id.example.org": false, "http://192.0.2.1": false, "": false} {
		if got := remote.IsPrivate(server); got != want {
			t.Errorf("%q: %t", server, got)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
