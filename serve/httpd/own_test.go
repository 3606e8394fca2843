package httpd

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stele-id/stele/serve/httpd/describe"
)

// reached returns a request that came in at an address.
func reached(r *http.Request, at string) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(at))))
}

// named reports that some names are the server's.
func named(names ...string) func(string) bool {
	return func(name string) bool { return slices.Contains(names, name) }
}

func TestIsOwnHost(t *testing.T) {
	for _, tt := range []struct {
		host, at string
		want     bool
	}{
		{"id.example.org", "", true},
		{"ID.Example.org", "192.0.2.1:8080", true},
		{"id.example.org:8080", "192.0.2.1:8080", true},
		{"id.example.org:9999", "192.0.2.1:8080", false}, // another program may answer there
		{"id.example.org:8080", "", false},
		{"evil.example", "192.0.2.1:8080", false},
		{"id.example.org.evil.example", "192.0.2.1:8080", false},
		{"192.0.2.1:8080", "192.0.2.1:8080", true},
		{"192.0.2.1", "192.0.2.1:80", true},
		{"192.0.2.2:8080", "192.0.2.1:8080", false},
		{"192.0.2.1:8080", "[::ffff:192.0.2.1]:8080", true},
		{"[2001:db8::1]:8080", "[2001:db8::1]:8080", true},
		{"[2001:db8::2]:8080", "[2001:db8::1]:8080", false},
		{"localhost:8080", "127.0.0.1:8080", true},
		{"localhost:8080", "[::1]:8080", true},
		{"localhost:8080", "192.0.2.1:8080", false},
		{"localhost", "", false},
		{"2001:db8::1", "[2001:db8::1]:80", true},
		{"[2001:db8::1]", "[2001:db8::1]:80", true},
		{"", "127.0.0.1:8080", false},
		{`id.example.org"`, "127.0.0.1:8080", false},
	} {
		r := &http.Request{Host: tt.host}
		if tt.at != "" {
			r = reached(r, tt.at)
		}
		if got := IsOwnHost(r, named("id.example.org")); got != tt.want {
			t.Errorf("%q at %q: %t", tt.host, tt.at, got)
		}
	}
	if IsOwnHost(&http.Request{Host: "id.example.org"}, nil) {
		t.Error("a server without a name has one")
	}
}

// The Host of each redirect is judged, and a name that is not an address costs no allocation.
func TestIsOwnHostAllocations(t *testing.T) {
	r, names := reached(&http.Request{Host: "id.example.org"}, "192.0.2.1:80"), named("id.example.org")
	if got := testing.AllocsPerRun(100, func() { IsOwnHost(r, names) }); got > 0 {
		t.Errorf("%v allocations", got)
	}
}

// Without a public address no answer has a forged Host in it: not in its body, nor in
// Location, Link or another header.
func TestForgedHost(t *testing.T) {
	s := newPast(t)
	s.handler.o.Base = ""
	s.handler.names[1] = ""
	targets := []string{"/", "/.info", "/.info?id=ark:12345/x1", "/.info/ark:12345/x1", "/.info/ark:12345/none", "/.timemap/ark:12345/x1",
		"/.memento/20260101000000/ark:12345/x1", "/.memento/20260101120000/ark:12345/x1", "/.memento/nonsense", "/ark:12345/x1", "/ark:12345/x1?", "/ark:12345/x1?info",
		"/ark:12345/x1?explain", "/ark:12345/x1?noredirect", "/ark:12345/none", "/nonsense at all", "/20.500.12345/A?B", "/20.500.12345/A%3FB", "/hdl/20.500.12345/A%3FB?noredirect",
		"/ark:12345/redacted", "/api/handles/20.500.12345/A%3FB", "/api/v1/nothing", "/uri-res/N2L?ark:12345/x1", "/uri-res/N2Ls?ark:12345/x1", "/uri-res/N2C?ark:12345/x1",
		"/uri-res/N2Ns?ark:12345/x1", "/uri-res/N2S?ark:12345/x1", "/uri-res/N2P?ark:12345/x1", "/uri-res/N2Cs?ark:12345/x1", "/.well-known/stele/jwks/ark:12345", "/robots.txt", "/favicon.ico",
		"/healthz", "/readyz", "/dns-query", "/.desk", "http://evil.example/ark:12345/x1"}
	for _, f := range describe.Formats() {
		targets = append(targets, "/.info/ark:12345/x1?format="+f.Name)
	}
	secure := Security{Redirect: true}.Before(s.handler)
	for _, target := range targets {
		for _, accept := range []string{"", firefox, "application/json", "application/ld+json", "text/uri-list"} {
			for _, host := range []string{"evil.example", "evil.example:8080", "purl.org.evil.example", "127.0.0.1.evil.example"} {
				for name, h := range map[string]http.Handler{"": s.handler, "to https": secure} {
					r := reached(httptest.NewRequest(http.MethodGet, "http://id.example.org/", nil), "192.0.2.1:8080")
					r.RequestURI, r.Host = target, host
					r.Header.Set("Accept", accept)
					if strings.HasPrefix(target, "/ark:12345/x1") && accept == "" {
						r.Header.Set("Accept-Datetime", "Thu, 01 Jan 2026 12:00:00 GMT")
					}
					w := httptest.NewRecorder()
					h.ServeHTTP(w, r)
					// An answer may repeat to a client what it asked for, in full.
					body := strings.ReplaceAll(w.Body.String(), "http://evil.example/ark:12345/x1", "")
					if all := fmt.Sprint(w.Header()) + body; strings.Contains(all, "evil") {
						at := strings.Index(all, "evil")
						t.Errorf("%s of %s (%s) %s: ...%s...", target, host, accept, name, all[max(0, at-80):min(len(all), at+80)])
					}
				}
			}
		}
	}
}
