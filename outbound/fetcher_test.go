package outbound

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

func TestFetcher(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/there":
			http.Redirect(w, r, "/file", http.StatusFound)
		case "/circle":
			http.Redirect(w, r, "/circle", http.StatusFound)
		case "/metadata":
			http.Redirect(w, r, "http://169.254.169.254/latest/", http.StatusFound)
		case "/local":
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		default:
			if r.Header.Get("Referer") != "" || r.Header.Get("Cookie") != "" {
				t.Errorf("sent: %v", r.Header)
			}
			http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
			_, _ = io.WriteString(w, "file")
		}
	}))
	defer s.Close()
	rule, err := ParseRule([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	c := NewFetcher(&Dialer{Rule: rule, Timeout: time.Minute}, time.Minute)
	for path, want := range map[string]stele.Kind{"/file": 0, "/there": 0, "/circle": stele.Invalid, "/metadata": stele.Forbidden, "/local": stele.Forbidden} {
		a, err := c.Get(s.URL + path)
		if err == nil {
			text, _ := io.ReadAll(a.Body)
			a.Body.Close()
			if want != 0 || string(text) != "file" {
				t.Errorf("%s: %s", path, text)
			}
			continue
		}
		if want == 0 || !errors.Is(err, want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := NewFetcher(&Dialer{}, time.Minute).Get(s.URL + "/file"); !errors.Is(err, stele.Forbidden) {
		t.Errorf("to loopback: %v", err)
	}
}
