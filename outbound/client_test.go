package outbound

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

func TestClient(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/long":
			_, _ = io.WriteString(w, strings.Repeat("x", 1001))
		case "/away":
			http.Redirect(w, r, "/short", http.StatusTemporaryRedirect)
		default:
			_, _ = io.WriteString(w, "short")
		}
	}))
	defer s.Close()
	rule, err := ParseRule([]string{"127.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	c := NewClient(rule, time.Minute, 1000)
	for path, want := range map[string]struct {
		status int
		fails  bool
	}{"/short": {200, false}, "/long": {200, true}, "/away": {307, false}} {
		a, err := c.Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.ReadAll(a.Body)
		a.Body.Close()
		if a.StatusCode != want.status || (err != nil) != want.fails {
			t.Errorf("%s: %s, %v", path, a.Status, err)
		}
	}
	if _, err := NewClient(Rule{}, time.Minute, 1000).Get(s.URL); !errors.Is(err, stele.Forbidden) {
		t.Errorf("to loopback: %v", err)
	}
}
