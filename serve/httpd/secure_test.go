package httpd

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestSecurity(t *testing.T) {
	inner := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "inner") })
	public := Security{Redirect: true, Base: "https://id.example.org", Port: 8443, Remember: time.Hour}
	open := Security{Redirect: true, Port: 8443, OwnName: named("a.example")}
	for _, tt := range []struct {
		name           string
		s              Security
		method, target string
		lines          []string
		status         int
		location       string
	}{
		{"a name", public, "GET", "http://other.example/ark:12345/x1?info", nil, 308, "https://id.example.org/ark:12345/x1?info"},
		{"its head", public, "HEAD", "/ark:12345/x1", nil, 308, "https://id.example.org/ark:12345/x1"},
		{"slashes and bytes", public, "GET", "/a//b%2Fc/../%zz?", nil, 308, "https://id.example.org/a//b%2Fc/../%25zz?"},
		{"the home page", public, "GET", "/", nil, 308, "https://id.example.org/"},
		{"a host that is none", public, "GET", "//evil.example/x", nil, 308, "https://id.example.org//evil.example/x"},
		{"bytes of no URL", public, "GET", "/\xff\"<>", nil, 308, "https://id.example.org/%FF%22%3C%3E"},
		{"health", public, "GET", "/healthz", nil, 200, ""},
		{"readiness", public, "GET", "/readyz", nil, 200, ""},
		{"a write", public, "PUT", "/api/v1/records/ark:12345/x1", nil, 403, ""},
		{"a token", public, "GET", "/api/v1/me", []string{"Authorization: Bearer x"}, 403, ""},
		{"a body", public, "GET", "/x", []string{"Content-Length: 1"}, 403, ""},
		{"as it was asked for", open, "GET", "/x", []string{"Host: a.example:8080"}, 308, "https://a.example:8443/x"},
		{"an address", open, "GET", "/x", []string{"Host: [2001:db8::1]:8080"}, 308, "https://[2001:db8::1]:8443/x"},
		{"an address, at the usual port", Security{Redirect: true, Port: 443}, "GET", "/x", []string{"Host: [2001:db8::1]"}, 308, "https://[2001:db8::1]/x"},
		{"at the usual port", Security{Redirect: true, OwnName: named("a.example")}, "GET", "/x", []string{"Host: a.example"}, 308, "https://a.example/x"},
		{"a base in clear", Security{Redirect: true, Base: "http://id.example.org", OwnName: named("a.example")}, "GET", "/x", []string{"Host: a.example"}, 308, "https://a.example/x"},
		{"no host", open, "GET", "/x", []string{"Host: "}, 403, ""},
		{"another server's host", open, "GET", "/x", []string{"Host: evil.example"}, 403, ""},
		{"an evil host", open, "GET", "/x", []string{"Host: a.example/@b"}, 403, ""},
		{"no redirect", Security{Remember: time.Hour}, "GET", "/x", nil, 200, ""},
		{"nothing asked for", Security{}, "GET", "/x", nil, 200, ""},
	} {
		r := reached(httptest.NewRequest(tt.method, "/", nil), "[2001:db8::1]:8080")
		r.RequestURI = tt.target
		for _, line := range tt.lines {
			switch name, value, _ := strings.Cut(line, ": "); name {
			case "Host":
				r.Host = value
			case "Content-Length":
				r.ContentLength = 1
			default:
				r.Header.Set(name, value)
			}
		}
		w := httptest.NewRecorder()
		tt.s.Before(inner).ServeHTTP(w, r)
		if got := w.Header().Get("Location"); w.Code != tt.status || got != tt.location {
			t.Errorf("%s: %d to %q, want %d to %q", tt.name, w.Code, got, tt.status, tt.location)
		}
		if w.Header()["Strict-Transport-Security"] != nil {
			t.Errorf("%s: what comes in clear is told to come by https", tt.name)
		}
	}
}

func TestRemember(t *testing.T) {
	inner := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for remember, want := range map[time.Duration]string{0: "", time.Hour: "max-age=3600"} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "https://id.example.org/", nil) // with TLS
		Security{Redirect: true, Remember: remember}.Before(inner).ServeHTTP(w, r)
		if got := w.Header().Get("Strict-Transport-Security"); w.Code != http.StatusOK || got != want {
			t.Errorf("%d, %q, want %q", w.Code, got, want)
		}
	}
}

// Behind a proxy that speaks TLS, links are those of the client.
func TestSecureBehindProxy(t *testing.T) {
	own := named("id.example.org")
	s := newSpelled(t, func(o *Options) { o.Base, o.OwnName = "", own })
	h := newProxies(t, EitherHeader).Before(Security{Redirect: true, OwnName: own}.Before(s.handler))
	ask := func(proto string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", "/.info/ark:12345/x1", nil)
		r.RemoteAddr, r.Host = "10.0.0.1:1", "127.0.0.1:8080"
		r.Header.Set("X-Forwarded-Proto", proto)
		r.Header.Set("X-Forwarded-Host", "id.example.org")
		r.Header.Set("Accept", "text/html")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	if w := ask("http"); w.Code != http.StatusPermanentRedirect || w.Header().Get("Location") != "https://id.example.org/.info/ark:12345/x1" {
		t.Errorf("in clear: %d to %s", w.Code, w.Header().Get("Location"))
	}
	if w := ask("https"); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "https://id.example.org/ark:12345/x1") || strings.Contains(w.Body.String(), "127.0.0.1") {
		t.Errorf("by https: %d\n%s", w.Code, w.Body)
	}
}
