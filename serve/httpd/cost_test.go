package httpd

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/internal/limit"
)

// askFrom asks from an address. The head is given as names and values.
func (s *site) askFrom(address, target string, head ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "http://id.example.org/", nil)
	r.RequestURI, r.RemoteAddr = target, address+":1234"
	for i := 0; i+1 < len(head); i += 2 {
		r.Header.Add(head[i], head[i+1])
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w
}

// A client that asks for much work is refused until its budget is there again. Redirects are
// still answered, and so are other clients.
func TestCosts(t *testing.T) {
	s := newPast(t)
	wrong := func(*http.Request) (auth.Principal, error) {
		return auth.Principal{}, &stele.Error{Kind: stele.Unauthenticated, Err: errors.New("no such token")}
	}
	for name, tt := range map[string]struct {
		target string
		head   []string
		want   int // of requests that are granted from a budget of 20
	}{
		"page":        {"/.info/ark:12345/x1", []string{"Accept", firefox}, 10},
		"JSON":        {"/.info/ark:12345/x1", nil, 10},
		"format":      {"/.info/ark:12345/x1?format=bibtex", nil, 10},
		"timemap":     {"/.timemap/ark:12345/x1", nil, 19},
		"memento":     {"/.memento/20260101000000/ark:12345/x1", nil, 10},
		"timegate":    {"/ark:12345/x1", []string{"Accept-Datetime", "Thu, 01 Jan 2026 12:00:00 GMT"}, 10},
		"negotiation": {"/ark:12345/x1", []string{"Accept", "application/ld+json"}, 20},
		"inflection":  {"/ark:12345/x1?", nil, 20},
		"explain":     {"/ark:12345/x1?explain", nil, 20},
		"reverse":     {"/uri-res/L2Ns?https://example.org/day3", nil, 4},
		"wrong token": {"/ark:12345/x1", []string{"Authorization", "Bearer wrong"}, 20},
		"redirect":    {"/ark:12345/x1", nil, 50},
		"browser":     {"/ark:12345/x1", []string{"Accept", chrome}, 50},
		"unknown":     {"/ark:12345/none", nil, 50},
		"health":      {"/healthz", nil, 50},
	} {
		t.Run(name, func(t *testing.T) {
			s.handler.o.Costs, s.handler.o.Identify = limit.NewRate(10, 20), wrong
			granted := 0
			for range 50 {
				w := s.askFrom("192.0.2.1", tt.target, tt.head...)
				if w.Code != http.StatusTooManyRequests {
					granted++
					continue
				}
				if w.Header().Get("Retry-After") != "1" || w.Header().Get("Cache-Control") == "" || !strings.Contains(w.Body.String(), "limit.rate") {
					t.Fatalf("%v\n%s", w.Header(), w.Body)
				}
			}
			if granted < tt.want-1 || granted > tt.want+1 {
				t.Errorf("%d are granted, expected about %d", granted, tt.want)
			}
			if granted == 50 {
				return
			}
			if w := s.askFrom("192.0.2.1", "/ark:12345/x1"); w.Code != http.StatusFound {
				t.Errorf("a redirect: %d", w.Code)
			}
			if w := s.askFrom("192.0.2.2", tt.target, tt.head...); w.Code == http.StatusTooManyRequests {
				t.Error("another client is refused")
			}
			s.pass(5 * time.Second)
			if w := s.askFrom("192.0.2.1", tt.target, tt.head...); w.Code == http.StatusTooManyRequests {
				t.Error("refused after a while too")
			}
		})
	}
}

// A refusal takes the place of the whole answer: nothing of its head is left, which could
// be kept by a cache.
func TestHeldAnswers(t *testing.T) {
	s := newPast(t)
	s.handler.o.Held = limit.NewHeld(64<<10, 32<<10)
	release, err := s.handler.o.Held.Take("192.0.2.1", 30<<10)
	if err != nil {
		t.Fatal(err)
	}
	w := s.askFrom("192.0.2.1", "/.info/ark:12345/x1", "Accept", firefox)
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), "limit.unread-client") {
		t.Errorf("%d %v\n%s", w.Code, w.Header(), w.Body)
	}
	for _, name := range []string{"ETag", "Link", "Last-Modified", "Content-Security-Policy"} {
		if got := w.Header().Get(name); got != "" {
			t.Errorf("%s of what was refused is left: %s", name, got)
		}
	}
	if got := w.Header().Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control is %s", got)
	}
	other, err := s.handler.o.Held.Take("192.0.2.2", 30<<10)
	if err != nil {
		t.Fatal(err)
	}
	w = s.askFrom("192.0.2.3", "/.info/ark:12345/x1", "Accept", firefox+", application/json")
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "limit.unread-total") {
		t.Errorf("%d\n%s", w.Code, w.Body)
	}
	if w := s.askFrom("192.0.2.3", "/ark:12345/x1"); w.Code != http.StatusFound {
		t.Errorf("a redirect: %d", w.Code)
	}
	release()
	other()
	if w := s.askFrom("192.0.2.1", "/.info/ark:12345/x1", "Accept", firefox); w.Code != http.StatusOK {
		t.Errorf("when they are read: %d", w.Code)
	}
	if got := s.handler.o.Held.Bytes(); got != 0 {
		t.Errorf("%d bytes are held", got)
	}
}

// Large answers wait for their turn, which ends before they are written: a client that
// does not read does not hold up others.
func TestTurnsOfAnswers(t *testing.T) {
	s := newPast(t)
	turns := limit.NewTurns(1, 0, time.Minute)
	s.handler.o.Turns = turns
	w := &during{ResponseRecorder: httptest.NewRecorder(), call: func() {
		if got := s.askFrom("192.0.2.2", "/.info/ark:12345/x1"); got.Code != http.StatusOK {
			t.Errorf("while another is written: %d", got.Code)
		}
	}}
	r := httptest.NewRequest(http.MethodGet, "http://id.example.org/", nil)
	r.RequestURI = "/.info/ark:12345/x1"
	s.handler.ServeHTTP(w, r)
	if w.call != nil {
		t.Error("nothing was written")
	}
	leave, err := turns.Enter(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	got := s.askFrom("192.0.2.2", "/.info/ark:12345/x1", "Accept", "application/json")
	var p struct{ Code string }
	if err := json.Unmarshal(got.Body.Bytes(), &p); err != nil || got.Code != http.StatusServiceUnavailable || p.Code != "limit.busy" || got.Header().Get("Retry-After") == "" {
		t.Errorf("while another is made: %d %s", got.Code, got.Body)
	}
	leave()
}

// during is a client that does something before it reads.
type during struct {
	*httptest.ResponseRecorder
	call func()
}

func (w *during) Write(b []byte) (int, error) {
	if call := w.call; call != nil {
		w.call = nil
		call()
	}
	return w.ResponseRecorder.Write(b)
}
