package httpd

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

// newFuzzed is a site with a bit of everything, and the hosts to which it may
// lead.
func newFuzzed(t testing.TB) (*site, map[string]bool) {
	s := newSpelled(t, func(o *Options) {
		o.Global = map[string]string{"ark": "https://n2t.net/{id}", "lsid": "https://lsid.example.net/?q={id}"}
	})
	s.space("ark:99999", func(ns *stele.Namespace) { ns.Delegate = "https://delegate.example.org/{id}?r={rest}" })
	s.add(`{"id":"ark:12345/part","targets":[{"service":"N2L","url":"https://part.example.org","partial":true},{"service":"N2C","url":"https://copy.example.org/x?y=","type":"application/xml","partial":true}]}`,
		`{"id":"https://id.example.org/net/","targets":[{"service":"N2L","url":"https://part.example.org/p?q=","partial":true}]}`,
		`{"id":"urn:paradisec:part","targets":[{"service":"N2L","url":"https://part.example.org/p#f","partial":true}]}`,
		`{"id":"20.500.12345/val","values":[{"index":1,"type":"URL","data":"aHR0cHM6Ly92YWx1ZS5leGFtcGxlLm9yZy92","permissions":["public-read"]}]}`,
		`{"id":"ark:12345/gone","url":"https://repository.example.org/gone"}`)
	if _, err := s.registry.Withdraw(s.admin, s.id("ark:12345/gone"), 0, "it is gone", stele.ID{}); err != nil {
		t.Fatal(err)
	}
	hosts := map[string]bool{}
	for _, host := range []string{"repository.example.org", "part.example.org", "copy.example.org", "value.example.org", "delegate.example.org", "n2t.net", "lsid.example.net", "id.example.org"} {
		hosts[host] = true
	}
	return s, hosts
}

// FuzzRequest feeds whole requests to the handler. Whatever they are, there is an answer with
// a known status and clean headers, and it redirects only to registered or configured
// locations.
func FuzzRequest(f *testing.F) {
	s, hosts := newFuzzed(f)
	for _, sp := range spellings {
		f.Add([]byte("GET " + sp.target + " HTTP/1.1\r\nHost: id.example.org\r\n\r\n"))
	}
	for _, target := range []string{"/", "/.info/ark:12345/part/x", "/.info?id=ark:12345/part", "/.timemap/ark:12345/gone", "/.memento/20260101000000/ark:12345/gone", "/uri-res/N2L?urn:paradisec:part",
		"/api/handles/20.500.12345/val?type=URL", "/20.500.12345/val?noredirect", "/20.500.12345/val?urlappend=/../..//evil", "/20.500.12345/val?locatt=id:1", "/ark:12345/part/..%2f@evil?x", "/ark:12345/part@evil.example",
		"/ark:12345/part:80/", "/ark:12345/part.evil.example/", "/net/%0d%0aX:y", "/urn:paradisec:part?+s=N2C?=a=b", "/ark:99999/x?info", "/ark:77777/x?explain", "/urn:lsid:a.b:c:d", "/ark:12345/gone??", "//evil.example/", "/.web/x"} {
		for _, accept := range []string{"*/*", firefox, "application/xml", "application/ld+json;q=0.5, text/turtle"} {
			f.Add([]byte("GET " + target + " HTTP/1.1\r\nHost: id.example.org\r\nAccept: " + accept + "\r\nAccept-Language: pt-BR\r\n\r\n"))
		}
	}
	f.Add([]byte("GET http://id.example.org/ark:12345/x1 HTTP/1.1\r\nHost: other.example\r\nAccept-Datetime: Thu, 01 Jan 2026 00:00:00 GMT\r\n\r\n"))
	f.Add([]byte("HEAD /ark:12345/x1 HTTP/1.0\r\nIf-None-Match: *\r\n\r\n"))
	f.Add([]byte("POST /api/handles/20.500.12345/val HTTP/1.1\r\nHost: id.example.org\r\nContent-Length: 8\r\n\r\ntype=URL"))
	f.Add([]byte("OPTIONS * HTTP/1.1\r\nHost: id.example.org\r\n\r\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(string(raw))))
		if err != nil {
			return
		}
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		a := answer{Response: w.Result(), body: w.Body.String()}
		checkAnswer(t, r, a)
		if a.StatusCode == http.StatusInternalServerError {
			t.Errorf("%q is too much for the server: %s", raw, a.body)
		}
		location := a.get("Location")
		if location == "" || strings.HasPrefix(location, "/.") {
			return
		}
		u, err := url.Parse(location)
		if err != nil || u.Scheme != "https" && u.Host != r.Host || u.User != nil || !hosts[u.Host] {
			t.Errorf("%q leads to %q (%v)", raw, location, err)
		}
	})
}
