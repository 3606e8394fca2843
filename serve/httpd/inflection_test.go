package httpd

import (
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

// Clients of ARKs learn from THUMP-Status that a server has understood an inflection, and
// from a well-known place where it resolves ARKs (draft-kunze-ark-42, sections 5.2 and 5.6).
func TestInflections(t *testing.T) {
	s := newSite(t)
	s.space("ark:12345")
	s.to("ark:12345/x1", "https://example.org/1")
	s.to("ark:12345/gone", "https://example.org/gone")
	if _, err := s.registry.Withdraw(s.admin, s.id("ark:12345/gone"), 0, "lost", stele.ID{}); err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]string{
		"/ark:12345/x1?":       "0.6 200 OK",
		"/ark:12345/x1??":      "0.6 200 OK",
		"/ark:12345/x1?info":   "0.6 200 OK",
		"/ark:12345/gone?info": "0.6 410 Gone",
		"/ark:12345/x1":        "",
		"/ark:12345/x1?x=y":    "",
		"/ark:12345/none":      "",
	} {
		if got := s.get(target).get("THUMP-Status"); got != want {
			t.Errorf("%s: THUMP-Status %q, want %q", target, got, want)
		}
	}
	known := s.get("/ark:12345/x1?info", "If-None-Match", s.get("/ark:12345/x1?info").get("ETag"))
	if got := known.get("THUMP-Status"); known.StatusCode != 304 || got != "0.6 304 Not Modified" {
		t.Errorf("%d, THUMP-Status %q", known.StatusCode, got)
	}
	if a := s.get("/.well-known/stele"); a.StatusCode != 200 || !strings.Contains(a.body, "User-agent: Stele") {
		t.Errorf("what the link checker does: %s\n%s", a.Status, a.body)
	}
	if a := s.get("/.well-known/ark"); a.StatusCode != 200 || a.body != "/\n" || a.get("Content-Type") != textType {
		t.Errorf("the root of ARKs is %d %q %v", a.StatusCode, a.body, a.Header)
	}
	s.leads(s.get("/.well-known/ark").body[:1]+"ark:12345/x1", "https://example.org/1", 302)
}
