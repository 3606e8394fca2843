package httpd

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

// newRepresentations is a site and the paths of all sorts of representations there, each
// with the Accept header that asks for it.
func newRepresentations(t *testing.T) (s *site, paths [][2]string) {
	s = newPast(t)
	s.add(`{"id":"20.500.12345/VALUES","values":[{"index":1,"type":"URL","data":"aHR0cHM6Ly9leGFtcGxlLm9yZy9vbGQ="}]}`)
	for _, accept := range []string{"text/html", "application/json", "text/plain", "application/ld+json", "application/x-bibtex"} {
		for _, path := range []string{"/ark:12345/x1?noredirect", "/.info/ark:12345/x1", "/20.500.12345/VALUES?noredirect", "/20.500.12345/VALUES?noredirect&type=URL"} {
			paths = append(paths, [2]string{path, accept})
		}
	}
	for _, path := range []string{"/ark:12345/x1?info", "/.timemap/ark:12345/x1", "/uri-res/N2Ls?ark:12345/x1", "/uri-res/N2C?ark:12345/x1", "/uri-res/N2Ns?ark:12345/x1",
		"/api/handles/20.500.12345/VALUES", "/", "/robots.txt", "/ark:12345/x1?explain"} {
		paths = append(paths, [2]string{path, ""})
	}
	return s, append(paths, [2]string{"/.memento/20260102000000/ark:12345/x1", "application/json"})
}

// Every representation has a tag of its own, and is not sent to a client that has it, nor to
// one that expects another.
func TestConditions(t *testing.T) {
	s, paths := newRepresentations(t)
	for _, p := range paths {
		path, accept := p[0], p[1]
		a := s.get(path, "Accept", accept)
		tag := a.get("ETag")
		if a.StatusCode != http.StatusOK || len(tag) < 10 || tag[0] != '"' {
			t.Errorf("%s as %s: %d, the tag is %s", path, accept, a.StatusCode, tag)
			continue
		}
		for _, tt := range []struct {
			head []string
			want int
		}{
			{[]string{"If-None-Match", tag}, 304},
			{[]string{"If-None-Match", `"other", W/` + tag}, 304},
			{[]string{"If-None-Match", `"other"`}, 200},
			{[]string{"If-Match", tag}, 200},
			{[]string{"If-Match", "*"}, 200},
			{[]string{"If-Match", "W/" + tag}, 412},
			{[]string{"If-Match", `"other"`}, 412},
			{[]string{"If-Match", `"other"`, "If-None-Match", tag}, 412},
			{[]string{"If-Match", tag, "If-None-Match", tag}, 304},
		} {
			b := s.get(path, append(tt.head, "Accept", accept)...)
			if b.StatusCode != tt.want {
				t.Errorf("%s as %s, %v: %d, want %d", path, accept, tt.head, b.StatusCode, tt.want)
			}
			if b.StatusCode == 304 && (b.body != "" || b.get("ETag") != tag || b.get("Cache-Control") != a.get("Cache-Control") || b.get("Vary") != a.get("Vary")) {
				t.Errorf("%s as %s, %v: %v", path, accept, tt.head, b.Header)
			}
			if b.StatusCode == 412 && (b.get("ETag") != "" || b.get("Cache-Control") != "no-store" || strings.HasPrefix(path, "/api/handles") != strings.Contains(b.body, "responseCode")) {
				t.Errorf("%s as %s, %v: %v\n%s", path, accept, tt.head, b.Header, b.body)
			}
		}
	}
	// Conditions change nothing where no representation would be sent (RFC 9110, 13.2.1).
	for path, want := range map[string]int{"/ark:12345/x1": 302, "/ark:12345/nothing": 404, "/.memento/20260102000000/ark:12345/x1": 302, "/api/handles/20.500.12345/NOTHING": 404} {
		for _, name := range []string{"If-Match", "If-None-Match"} {
			if a := s.get(path, name, `"other"`); a.StatusCode != want {
				t.Errorf("%s: %d, want %d", path, a.StatusCode, want)
			}
		}
	}
}

// Two representations of one thing never share a tag.
func TestEntityTags(t *testing.T) {
	s, paths := newRepresentations(t)
	seen := make(map[string]string)
	for _, p := range paths {
		if !strings.HasPrefix(p[0], "/ark:12345/x1?noredirect") {
			continue
		}
		tag := s.get(p[0], "Accept", p[1]).get("ETag")
		if other, ok := seen[tag]; ok {
			t.Errorf("%s and %s have the tag %s", other, p[1], tag)
		}
		seen[tag] = p[1]
	}
	if entityTag("text/a", []byte("x")) == entityTag("text/b", []byte("x")) || entityTag("text/a", []byte("bx")) == entityTag("text/ab", []byte("x")) {
		t.Error("the media type does not count")
	}
}

// The order in which conditions count is that of the standard library, for all of them
// together.
func TestConditionsAsServeContent(t *testing.T) {
	modified := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tags := []string{"", `"a"`, `W/"a"`, `"b"`, `"b", "a"`, `"b",W/"a"`, "*"}
	dates := []string{"", httpDate(modified), httpDate(modified.Add(-time.Second)), httpDate(modified.Add(time.Second)), "yesterday", modified.Format(time.RFC850)}
	count := 0
	for _, dated := range []bool{true, false} {
		for _, match := range tags {
			for _, noneMatch := range tags {
				for _, since := range dates {
					for _, unmodified := range dates {
						r := httptest.NewRequest(http.MethodGet, "/", nil)
						for name, value := range map[string]string{"If-Match": match, "If-None-Match": noneMatch, "If-Modified-Since": since, "If-Unmodified-Since": unmodified} {
							if value != "" {
								r.Header.Set(name, value)
							}
						}
						w := httptest.NewRecorder()
						w.Header().Set("ETag", `"a"`)
						head := w.Header().Clone()
						at := time.Time{}
						if dated {
							at = modified
							head.Set("Last-Modified", httpDate(modified))
						}
						http.ServeContent(w, r, "x.txt", at, strings.NewReader("x"))
						if got := judge(r, head); got != w.Code {
							t.Fatalf("%v, dated %v: %d, and ServeContent says %d", r.Header, dated, got, w.Code)
						}
						count++
					}
				}
			}
		}
	}
	if count != 2*7*7*6*6 {
		t.Error(count)
	}
}

// If-Modified-Since never hides a change from a client, not even the second change in one
// second, or a change of the namespace.
func TestModifiedSince(t *testing.T) {
	s := newSite(t)
	s.space("ark:12345")
	s.to("ark:12345/x", "https://example.org/1")
	const path = "/.info/ark:12345/x"
	ask := func(since string) answer { t.Helper(); return s.get(path, "If-Modified-Since", since) }
	first := ask("")
	if got := ask(first.get("Last-Modified")); got.StatusCode != http.StatusNotModified || got.body != "" {
		t.Errorf("nothing changed: %d", got.StatusCode)
	}
	if got := ask("Wed, 31 Dec 2025 23:59:59 GMT"); got.StatusCode != http.StatusOK {
		t.Errorf("an older date: %d", got.StatusCode)
	}
	if got := s.get(path, "If-Modified-Since", first.get("Last-Modified"), "If-None-Match", `"other"`); got.StatusCode != http.StatusOK {
		t.Errorf("the tag counts before the date: %d", got.StatusCode)
	}
	if got := s.get(path, "If-Unmodified-Since", "Wed, 31 Dec 2025 23:59:59 GMT"); got.StatusCode != http.StatusPreconditionFailed {
		t.Errorf("If-Unmodified-Since: %d", got.StatusCode)
	}
	change := func(to string) {
		t.Helper()
		if _, err := s.registry.Update(s.admin, s.id("ark:12345/x"), 0, func(r *stele.Record) error { r.Targets[0].URL = to; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	s.pass(1300 * time.Millisecond)
	change("https://example.org/2")
	between := s.get(path)
	s.pass(200 * time.Millisecond)
	change("https://example.org/3")
	s.pass(time.Minute)
	if got := ask(between.get("Last-Modified")); got.StatusCode != http.StatusOK || !strings.Contains(got.body, "org/3") {
		t.Errorf("the second change in a second: %d", got.StatusCode)
	}
	last := s.get(path)
	if at, err := http.ParseTime(last.get("Last-Modified")); err != nil || at.After(s.now()) {
		t.Errorf("Last-Modified is %s", last.get("Last-Modified"))
	}
	key, err := s.registry.ParsePrefix("ark:12345")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.registry.SetNamespace(s.admin, key, 0, func(ns *stele.Namespace) error { ns.Title = "Another"; return nil }); err != nil {
		t.Fatal(err)
	}
	if got := ask(last.get("Last-Modified")); got.StatusCode != http.StatusOK {
		t.Errorf("the namespace changed: %d", got.StatusCode)
	}
}

// Scripts of other sites read what ?noredirect shows, in every form.
func TestNoRedirectForScripts(t *testing.T) {
	s, paths := newRepresentations(t)
	asked := 0
	for _, p := range paths {
		if !strings.Contains(p[0], "noredirect") {
			continue
		}
		asked++
		if a := s.get(p[0], "Accept", p[1], "Origin", "https://other.example"); a.get("Access-Control-Allow-Origin") != "*" || !strings.Contains(a.get("Access-Control-Expose-Headers"), "ETag") {
			t.Errorf("%s as %s: %q, %q", p[0], p[1], a.get("Access-Control-Allow-Origin"), a.get("Access-Control-Expose-Headers"))
		}
	}
	if asked < 10 {
		t.Error(asked)
	}
	a := s.ask(http.MethodOptions, "/ark:12345/x1?noredirect", "Origin", "https://other.example", "Access-Control-Request-Headers", "if-match")
	if !strings.Contains(a.get("Access-Control-Allow-Headers"), "If-Match") || !strings.Contains(a.get("Access-Control-Allow-Headers"), "If-Modified-Since") {
		t.Errorf("a question before: %v", a.Header)
	}
}
