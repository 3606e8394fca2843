package httpd

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/web"
)

func TestHome(t *testing.T) {
	s := newSpelled(t, func(o *Options) { o.Examples = []Example{{"ark:/12345/x1", "a name to try"}} })
	for _, target := range []string{"/", "http://id.example.org", "http://id.example.org/", "/?x=1"} {
		a := s.get(target, "Accept", firefox)
		if a.StatusCode != http.StatusOK || a.get("Content-Type") != htmlType || !strings.Contains(a.body, "a name to try") || !strings.Contains(a.body, "/.info/ark:12345/x1") {
			t.Errorf("%s: %d\n%s", target, a.StatusCode, a.body)
		}
	}
}

func TestService(t *testing.T) {
	var ready error
	var log bytes.Buffer
	s := newSite(t, func(o *Options) {
		o.Ready = func(context.Context) error { return ready }
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
	})
	for target, body := range map[string]string{"/healthz": "ok\n", "/readyz": "ok\n", "/robots.txt": "User-agent"} {
		if a := s.get(target); a.StatusCode != http.StatusOK || !strings.HasPrefix(a.body, body) {
			t.Errorf("%s: %d %s", target, a.StatusCode, a.body)
		}
	}
	ready = errors.New("the disk is full")
	if a := s.get("/readyz"); a.StatusCode != http.StatusServiceUnavailable || strings.Contains(a.body, "disk") {
		t.Errorf("/readyz: %d %s", a.StatusCode, a.body)
	}
	s.get("/readyz")
	if strings.Count(log.String(), "the disk is full") != 1 {
		t.Errorf("the log has %q", &log)
	}
	ready = nil
	s.get("/readyz")
	ready = errors.New("the disk is full again")
	s.get("/readyz")
	if !strings.Contains(log.String(), "full again") {
		t.Errorf("the log has %q", &log)
	}
	if a := s.get("/healthz"); a.StatusCode != http.StatusOK {
		t.Errorf("/healthz: %d", a.StatusCode)
	}
	for _, target := range []string{"/favicon.ico", "/.well-known/security.txt", web.AssetPath + "none.css", "/api", "/api/", "/api/v1/records/x"} {
		if a := s.get(target); a.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", target, a.StatusCode)
		}
	}
}

// The files that pages name are there.
func TestAssets(t *testing.T) {
	s := newSite(t)
	page := s.get("/", "Accept", firefox).body
	found := 0
	for part := range strings.SplitSeq(page, `"`) {
		if !strings.HasPrefix(part, web.AssetPath) {
			continue
		}
		found++
		a := s.get(part)
		if a.StatusCode != http.StatusOK || a.get("Content-Type") == "" || !strings.Contains(a.get("Cache-Control"), "immutable") {
			t.Errorf("%s: %d %v", part, a.StatusCode, a.Header)
		}
	}
	if found == 0 {
		t.Error("the page names no files")
	}
	// They are sent compressed to clients that accept it.
	style := web.AssetPath + regexp.MustCompile(`stele\.[0-9a-f]+\.css`).FindString(page)
	plain := s.get(style, "Accept-Encoding", "identity")
	for accepted, want := range map[string]bool{"gzip": true, "br;q=1.0, GZIP;q=0.5": true, "*": true, "br, *;q=0.1": true, "gzip;q=0": false, "gzip;q=0, *": false, "br": false, "gzip;x=1": false} {
		a := s.get(style, "Accept-Encoding", accepted)
		if !strings.Contains(a.get("Vary"), "Accept-Encoding") || (a.get("Content-Encoding") == "gzip") != want {
			t.Fatalf("%q: %v", accepted, a.Header)
		}
		if !want {
			if a.body != plain.body {
				t.Errorf("%q: the file is another one", accepted)
			}
			continue
		}
		r, err := gzip.NewReader(strings.NewReader(a.body))
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(r); err != nil || string(body) != plain.body || a.get("ETag") == plain.get("ETag") || a.get("Content-Length") != strconv.Itoa(len(a.body)) {
			t.Errorf("%q: %v, %v", accepted, err, a.Header)
		}
		if a := s.get(style, "Accept-Encoding", accepted, "If-None-Match", a.get("ETag")); a.StatusCode != http.StatusNotModified || a.body != "" {
			t.Errorf("%q: %d", accepted, a.StatusCode)
		}
		if a := s.get(style, "Accept-Encoding", accepted, "If-Match", `"another"`); a.StatusCode != http.StatusPreconditionFailed || a.get("Content-Encoding") != "" {
			t.Errorf("%q: a problem is sent as %v", accepted, a.Header)
		}
	}
}

func TestObserve(t *testing.T) {
	var seen []Observation
	s := newSpelled(t, func(o *Options) { o.Observe = func(x Observation) { seen = append(seen, x) } })
	s.pass(1)
	for _, test := range []struct {
		method, target string
		want           Observation
	}{
		{"GET", "/ark:12345/x1", Observation{Method: "GET", Route: "identifier", Scheme: "ark", Status: http.StatusFound}},
		{"HEAD", "/10.1000/182", Observation{Method: "HEAD", Route: "identifier", Scheme: "hdl", Status: http.StatusFound}},
		{"GET", "/ark:12345/unknown", Observation{Method: "GET", Route: "identifier", Scheme: "ark", Status: http.StatusNotFound}},
		{"GET", "/urn:isbn:1", Observation{Method: "GET", Route: "identifier", Scheme: "urn", Status: http.StatusNotFound}},
		{"BREW", "/x", Observation{Method: "other", Route: "identifier", Status: http.StatusMethodNotAllowed}},
		{"GET", "/healthz", Observation{Method: "GET", Route: "health", Status: http.StatusOK, Bytes: 3}},
		{"GET", "/.info/ark:12345/x1", Observation{Method: "GET", Route: "info", Scheme: "ark", Status: http.StatusOK}},
		{"GET", "/", Observation{Method: "GET", Route: "home", Status: http.StatusOK}},
	} {
		seen = nil
		a := s.ask(test.method, test.target)
		if len(seen) != 1 {
			t.Fatalf("%s %s: seen %v", test.method, test.target, seen)
		}
		if seen[0].Bytes != int64(len(a.body)) {
			t.Errorf("%s %s: %d bytes were seen, and there are %d", test.method, test.target, seen[0].Bytes, len(a.body))
		}
		seen[0].Bytes = test.want.Bytes
		if seen[0] != test.want {
			t.Errorf("%s %s: seen %+v", test.method, test.target, seen[0])
		}
	}
}

// A fault in one answer does not end others.
func TestFault(t *testing.T) {
	var log bytes.Buffer
	s := newSite(t, func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		o.Ready = func(context.Context) error { panic("a secret") }
	})
	a := s.get("/readyz")
	if a.StatusCode != http.StatusInternalServerError || strings.Contains(a.body, "secret") || strings.Contains(a.body, "goroutine") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if !strings.Contains(log.String(), "a secret") {
		t.Errorf("the log has %q", &log)
	}
}

// First segments that begin with a dot are the server's own, those too that it does not
// use yet: a record that an older program took under such a name is not found there.
func TestDotSegments(t *testing.T) {
	s := newSite(t, func(o *Options) { o.Host = "purl.org" })
	old, err := stele.NewID("purl", "https://purl.org/.desk/a")
	if err != nil {
		t.Fatal(err)
	}
	record := &stele.Record{ID: old, State: stele.Active, Version: 1, Created: s.now(), Modified: s.now(),
		Targets: []stele.Target{{Service: stele.N2L, URL: "https://example.org/"}}}
	if err := s.store.Apply(t.Context(), &stele.Commit{Records: []*stele.Record{record}}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/.desk/a", "/%2Edesk/a", "/%2edesk/a", "/.ezid", "/.oai?verb=Identify", "/.log/", "/.docs"} {
		if a := s.get(path); a.StatusCode != http.StatusNotFound || a.Header.Get("Location") != "" {
			t.Errorf("%s: %d %s", path, a.StatusCode, a.Header.Get("Location"))
		}
	}
}

func TestValidate(t *testing.T) {
	for _, o := range []Options{{Base: "id.example.org"}, {Base: "https://id.example.org/"}, {Base: "javascript:x"}, {Base: "https://id.example.org\r\nX: y"},
		{Global: map[string]string{"ark": "https://n2t.net/"}}, {Global: map[string]string{"ark": "https://{id}.n2t.net/"}}, {Global: map[string]string{"ark": "ftp://n2t.net/{id}"}},
		{Global: map[string]string{"ark": "https://n2t.net{id}"}}, {Global: map[string]string{"ark": "https://u@n2t.net/{id}"}}} {
		if o.Validate() == nil {
			t.Errorf("%q %v is taken", o.Base, o.Global)
		}
	}
	o := Options{Base: "http://127.0.0.1:8080", Global: map[string]string{"ark": "https://n2t.net/{id}", "urn": "https://example.org/?u={id}&x=1"}}
	if err := o.Validate(); err != nil {
		t.Error(err)
	}
}

// TestDNSOverHTTPS: what comes to /dns-query is for the name server, if there is one, by
// whatever method; below it there is nothing.
func TestDNSOverHTTPS(t *testing.T) {
	dns := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.Method + " " + r.RequestURI))
	})
	for _, tt := range []struct {
		handler http.Handler
		method  string
		target  string
		status  int
		body    string
	}{
		{dns, http.MethodGet, "/dns-query?dns=AAAA", http.StatusOK, "GET /dns-query?dns=AAAA"},
		{dns, http.MethodPost, "/dns-query", http.StatusOK, "POST /dns-query"},
		{dns, http.MethodGet, "/dns-query/x", http.StatusNotFound, ""},
		{dns, http.MethodPost, "/dns-query/x", http.StatusMethodNotAllowed, ""},
		{nil, http.MethodGet, "/dns-query?dns=AAAA", http.StatusNotFound, ""},
		{nil, http.MethodPost, "/dns-query", http.StatusMethodNotAllowed, ""},
	} {
		s := newSite(t, func(o *Options) { o.DNS = tt.handler })
		if a := s.ask(tt.method, tt.target); a.StatusCode != tt.status || tt.body != "" && a.body != tt.body {
			t.Errorf("%s %s: %d %s", tt.method, tt.target, a.StatusCode, a.body)
		}
	}
}
