package api

import (
	"net/http"
	"strings"
	"testing"
)

// TestPathTricks holds that no spelling of a path leads around what an operation asks
// for: each leads nowhere, or to the operation that it names.
func TestPathTricks(t *testing.T) {
	s := newSite(t)
	for _, tt := range []struct {
		target string
		status int // as the public
	}{
		{"/api/v1/users", 401},
		{"/api/v1/users/ann", 401},
		{"/api/v1//users", 404},
		{"/api/v1/users/", 404},
		{"/api/v1/users;x", 404},
		{"/api/v1/users%2Fann", 404},
		{"/api/v1/%75sers", 404},
		{"/api/v1/USERS", 404},
		{"/api/v1/./users", 404},
		{"/api/v1/x/../users", 404},
		{"/api/v1/%2e%2e/users", 404},
		{"/api/v1/users#", 404},
		{"/api/v1\\users", 404},
		{"/api/v1/users%00", 404},
		{"/api/v1/users%", 404},
		{"/api/v1/users/%", 400},
		{"/api/v1/records/../users", 400},
		{"/api/v1/records/%2e%2e/users", 400},
		{"/api/v1/records/..%2fusers", 400},
		{"/api/v1/records/%252e%252e/users", 400},
		{"/api/v1/openapi.json/../users", 404},
		{"/api/v1x/users", 404},
		{"/api/v1", 200},
		{"/api/v1/", 200},
		{"/api/v1/?", 200},
		{"/api/v1?x=1", 400},
		{"http://id.example.org/api/v1/users", 401},
		{"http://evil.example/api/v1/users", 401},
		{"http://id.example.org", 404},
		{"*", 404},
		{"api/v1/users", 404},
		{"/api/v1/records/ark:12345/hidden", 404},
		{"/api/v1/records/ark:12345/h%69dden", 404},
		{"/api/v1/records/ark:12345/x1/../hidden", 404},
		{"/api/v1/records/ark:12345//hidden", 404},
		{"/api/v1/records/ark:12345/hidden?", 404},
		{"/api/v1/records/ark:12345/hidden%3Fx", 404},
		{"/api/v1/records/ark%253A12345/x1", 400},
		{"/api/v1/records/" + strings.Repeat("x", maxTarget), 414},
	} {
		a := s.ask("", "GET", tt.target, "")
		if a.StatusCode != tt.status {
			t.Errorf("%.60s: %d, want %d: %s", tt.target, a.StatusCode, tt.status, a.body)
		}
		if strings.Contains(a.body, "https://example.org/hidden") {
			t.Errorf("%s tells %s", tt.target, a.body)
		}
	}
	// Two slashes are part of a name.
	if p := s.ask("", "GET", "/api/v1/records/https://purl.org/a//b", "").want(t, 404).problem(t); p.ID != "http://purl.org/a//b" && p.ID != "https://purl.org/a//b" {
		t.Errorf("read as %q", p.ID)
	}
}

func TestMethods(t *testing.T) {
	s := newSite(t)
	for _, tt := range []struct{ method, target, allow string }{
		{"POST", "/records/ark:12345/x1", "DELETE, GET, HEAD, OPTIONS, PATCH, PUT"},
		{"DELETE", "/records", "GET, HEAD, OPTIONS, POST"},
		{"GET", "/withdraw/ark:12345/x1", "OPTIONS, POST"},
		{"TRACE", "/me", "GET, HEAD, OPTIONS"},
		{"get", "/me", "GET, HEAD, OPTIONS"},
		{"BREW", "/me", "GET, HEAD, OPTIONS"},
	} {
		a := s.ask(theAdmin, tt.method, Root+tt.target, "").want(t, 405)
		if a.get("Allow") != tt.allow {
			t.Errorf("%s %s: Allow is %q", tt.method, tt.target, a.get("Allow"))
		}
		a.problem(t)
		a = s.ask("", "OPTIONS", Root+tt.target, "").want(t, 204)
		if a.get("Allow") != tt.allow || a.get("Access-Control-Allow-Methods") != "" {
			t.Errorf("OPTIONS %s: %v", tt.target, a.Header)
		}
	}
	if a := s.ask("", "HEAD", Root+"/openapi.json", "").want(t, 200); a.body != "" {
		t.Errorf("HEAD has a body: %.60s", a.body)
	}
	if a := s.ask("", "HEAD", Root+"/users", "").want(t, 401); a.body != "" {
		t.Errorf("HEAD has a body: %.60s", a.body)
	}
}

// TestHeaders holds the headers for caches and browsers.
func TestHeaders(t *testing.T) {
	s := newSite(t)
	for _, tt := range []struct {
		who, method, target, body string
		cache, origin             string
	}{
		{"", "GET", "/records/ark:12345/x1", "", "no-cache", "*"},
		{"", "GET", "/records/ark:12345/none", "", "no-store", "*"},
		{theReader, "GET", "/records/ark:12345/x1", "", "private, no-store", ""},
		{theReader, "GET", "/records/ark:12345/none", "", "private, no-store", ""},
		{theEditor, "PATCH", "/records/ark:12345/x1", `{"metadata":{"who":"Ann"}}`, "private, no-store", ""},
		{"", "PATCH", "/records/ark:12345/x1", `{}`, "no-store", ""},
	} {
		a := s.ask(tt.who, tt.method, Root+tt.target, tt.body, "Origin", "https://evil.example")
		if a.get("Cache-Control") != tt.cache || a.get("Access-Control-Allow-Origin") != tt.origin || a.get("Vary") != "Authorization" || a.get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s as %q: %v", tt.target, tt.who, a.Header)
		}
		if a.get("Set-Cookie") != "" || a.get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: %v", tt.target, a.Header)
		}
	}
	// A preflight gives no script the right to write, or to send a token.
	a := s.ask("", "OPTIONS", Root+"/records/ark:12345/x1", "", "Origin", "https://evil.example", "Access-Control-Request-Method", "PUT", "Access-Control-Request-Headers", "authorization").want(t, 204)
	for name := range a.Header {
		if strings.HasPrefix(name, "Access-Control-Allow-") {
			t.Errorf("%s: %s", name, a.get(name))
		}
	}
}

func TestAuthorization(t *testing.T) {
	s := newSite(t)
	token := s.tokens[theAdmin]
	for _, tt := range []struct {
		fields []string
		status int
	}{
		{nil, 401},
		{[]string{"Bearer " + token}, 200},
		{[]string{"bearer   " + token + " "}, 200},
		{[]string{"BEARER " + token}, 200},
		{[]string{"Bearer " + token, "Bearer " + token}, 401},
		{[]string{"Bearer"}, 401},
		{[]string{"Bearer "}, 401},
		{[]string{""}, 401},
		{[]string{token}, 401},
		{[]string{"Basic " + token}, 401},
		{[]string{"Bearer " + token + "x"}, 401},
		{[]string{"Bearer " + token + ", Bearer x"}, 401},
		{[]string{"Bearer " + strings.ToUpper(token)}, 401},
		{[]string{"Bearer " + strings.Repeat("x", 100_000)}, 401},
		{[]string{"Bearer \x00"}, 401},
	} {
		var head []string
		for _, f := range tt.fields {
			head = append(head, "Authorization", f)
		}
		a := s.ask("", "GET", Root+"/users", "", head...)
		if a.StatusCode != tt.status {
			t.Errorf("%.40q: %d, want %d", tt.fields, a.StatusCode, tt.status)
		}
		if strings.Contains(a.body, token[10:]) {
			t.Errorf("a token is told: %s", a.body)
		}
		if tt.status == http.StatusUnauthorized && a.get("WWW-Authenticate") == "" {
			t.Errorf("%.40q: nothing says how to be known", tt.fields)
		}
	}
	// A wrong token is refused even where the public is welcome.
	s.ask("", "GET", records+"ark:12345/x1", "", "Authorization", "Bearer x").want(t, 401)
	if log := s.log.String(); strings.Contains(log, token[18:]) {
		t.Error("the log has a token")
	}
}
