package httpd

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/limit"
)

// credentials are those that clients of handles send to every server, and that are not valid
// here.
func credentials(token string) map[string]string {
	return map[string]string{
		"a wrong secret":    token[:len(token)-4] + "AAAA",
		"no token":          "Bearer x",
		"a password":        "Basic MzAwJTNBMjAuNTAwLjk5OTk5L1VTRVIwMTpzZWNyZXQ=",
		"a handle's key":    `Handle version="0", sessionId="node01", id="300%3A20.500.99999/USER01", type="HS_PUBKEY", cnonce="AAAA", alg="SHA256", signature="AAAA"`,
		"a certificate":     `Handle clientCert="true"`,
		"nothing":           "",
		"nothing of a kind": "\x7f=;,",
	}
}

// A read that the public may make is answered whatever credentials come with it, and as
// without any.
func TestHandlesCredentials(t *testing.T) {
	g := newGuarded(t)
	g.space("20.500.99999/", func(ns *stele.Namespace) { ns.Owner = "ann" })
	g.add(`{"id":"20.500.99999/OPEN","url":"https://example.org/1"}`, `{"id":"20.500.99999/HIDDEN","url":"https://example.org/1","readers":["user:ann"]}`)
	token := g.token("ann")
	for name, value := range credentials(token) {
		for _, path := range []string{"OPEN", "OPEN?type=URL", "HIDDEN", "NOTHING"} {
			want := g.get("/api/handles/20.500.99999/" + path)
			got := g.get("/api/handles/20.500.99999/"+path, "Authorization", value)
			if got.StatusCode != want.StatusCode || got.body != want.body || got.get("Cache-Control") != want.get("Cache-Control") || got.get("WWW-Authenticate") != "" {
				t.Errorf("%s: %s: %d %s\nwant %d %s", name, path, got.StatusCode, got.body, want.StatusCode, want.body)
			}
		}
	}
	if a := g.get("/api/handles/20.500.99999/HIDDEN", "Authorization", token); a.StatusCode != http.StatusOK || a.get("Cache-Control") != "private, no-store" {
		t.Errorf("a token that proves something: %d %s", a.StatusCode, a.body)
	}
	g.pass(25 * time.Hour)
	if a := g.get("/api/handles/20.500.99999/OPEN", "Authorization", token); a.StatusCode != http.StatusOK {
		t.Errorf("an expired token: %d %s", a.StatusCode, a.body)
	}
}

// The rate of guessing tokens is limited here too; credentials that can't be our tokens cost
// nothing.
func TestHandlesGuessed(t *testing.T) {
	g := newGuarded(t)
	g.space("20.500.99999/")
	g.add(`{"id":"20.500.99999/OPEN","url":"https://example.org/1"}`)
	wrong := g.token("ann")
	wrong = wrong[:len(wrong)-4] + "AAAA"
	g.handler.o.Costs = limit.NewRate(1, 3)
	read := func(credential string) answer {
		r := httptest.NewRequest(http.MethodGet, "/api/handles/20.500.99999/OPEN", nil)
		r.Header.Set("Authorization", credential)
		w := httptest.NewRecorder()
		g.handler.ServeHTTP(w, r)
		return answer{w.Result(), w.Body.String()}
	}
	for range 20 {
		if a := read("Basic YTpi"); a.StatusCode != http.StatusOK {
			t.Fatalf("a password: %d %s", a.StatusCode, a.body)
		}
	}
	var a answer
	for range 10 {
		a = read(wrong)
	}
	if a.StatusCode != http.StatusTooManyRequests || a.get("Retry-After") == "" {
		t.Errorf("the tenth wrong token: %d %s", a.StatusCode, a.body)
	}
	wantRefusal(t, a, handleBusy)
}

// wantRefusal fails if an answer is not an error in the form of the Handle System's REST
// interface.
func wantRefusal(t *testing.T, a answer, code handleCode) {
	t.Helper()
	var told struct {
		Code    handleCode `json:"responseCode"`
		Message string     `json:"message"`
	}
	if err := json.Unmarshal([]byte(a.body), &told); err != nil || told.Code != code || told.Message == "" || a.get("Content-Type") != "application/json;charset=utf-8" || a.get("Cache-Control") == "" {
		t.Errorf("want code %d: %d %q %s", code, a.StatusCode, a.get("Content-Type"), a.body)
	}
}

// A handle client can read every error below /api/handles, also a client that would like a
// page.
func TestHandlesErrors(t *testing.T) {
	held := limit.NewHeld(limit.Small+1, 0)
	release, err := held.Take("somebody", limit.Small+1)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	s := newSite(t, func(o *Options) {
		o.Held = held
		o.Await = func(context.Context, stele.Position) error { panic("a fault") }
	})
	s.space("20.500.99999/")
	s.add(`{"id":"20.500.99999/LARGE","values":[{"index":1,"type":"X","data":"` + strings.Repeat("QUFB", 20_000) + `"}]}`)
	for _, tt := range []struct {
		what, path string
		head       []string
		status     int
		code       handleCode
	}{
		{"a version that is none", "/api/handles/20.500.99999/A", []string{stele.VersionHeader, "x"}, 400, handleProtocol},
		{"a fault", "/api/handles/20.500.99999/A", []string{stele.VersionHeader, "1"}, 500, handleError},
		{"a long address", "/api/handles/20.500.99999/" + strings.Repeat("A", maxTarget), nil, 414, handleProtocol},
		{"another endpoint", "/api/site", nil, 404, handleProtocol},
		{"an answer that is too large to hold", "/api/handles/20.500.99999/LARGE", nil, 503, handleBusy},
	} {
		for _, accept := range []string{"", "text/html", "application/json", "text/plain"} {
			a := s.get(tt.path, append(slices.Clone(tt.head), "Accept", accept)...)
			if a.StatusCode != tt.status {
				t.Errorf("%s: %d", tt.what, a.StatusCode)
			}
			wantRefusal(t, a, tt.code)
		}
	}
	if a := s.get("/api/site?callback=f"); !strings.HasPrefix(a.body, `f({"responseCode":4,"message":"Unknown HTTP API endpoint GET /api/site"`) {
		t.Errorf("a callback: %s", a.body)
	}
}

// Values are listed in the order of their indexes, whatever the order of the record. A value
// without a TTL has that of the Handle System, a day; 0 is one.
func TestHandlesOrder(t *testing.T) {
	s := newSite(t)
	s.space("20.500.99999/")
	s.add(`{"id":"20.500.99999/O","values":[{"index":300,"type":"C","data":"Yw=="},{"index":2,"type":"A","data":"YQ==","ttl":0},{"index":7,"type":"B","data":"Yg==","ttl":5}],"url":"https://example.org/o"}`)
	var told struct {
		Values []struct {
			Index int    `json:"index"`
			Type  string `json:"type"`
			TTL   int    `json:"ttl"`
		} `json:"values"`
	}
	if a := s.get("/api/handles/20.500.99999/O"); json.Unmarshal([]byte(a.body), &told) != nil || len(told.Values) != 4 {
		t.Fatal(a.body)
	}
	for i, want := range []struct{ index, ttl int }{{1, 3600}, {2, 0}, {7, 5}, {300, 86400}} {
		if v := told.Values[i]; v.Index != want.index || v.TTL != want.ttl {
			t.Errorf("value %d is %+v", i, v)
		}
	}
	body := s.get("/20.500.99999/O?noredirect", "Accept", "text/plain").body
	var order []string
	for line := range strings.Lines(body) {
		index, _, _ := strings.Cut(line, "\t")
		order = append(order, index)
	}
	if want := []string{"1", "2", "7", "300"}; !slices.Equal(order[2:], want) {
		t.Errorf("as text: %s", body)
	}
}
