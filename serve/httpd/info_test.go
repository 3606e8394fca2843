package httpd

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestInfo(t *testing.T) {
	s := newPast(t)
	for accept, served := range map[string]string{"": "application/json", "*/*": "application/json", firefox: htmlType, "application/json": "application/json",
		"application/ld+json": "application/ld+json", "text/plain": textType, "text/turtle, */*;q=0.1": "text/turtle; charset=utf-8"} {
		a := s.get("/.info/ark:/12345/x1", "Accept", accept)
		if a.StatusCode != http.StatusOK || a.get("Content-Type") != served || a.get("ETag") == "" {
			t.Errorf("%s: %d %s\n%s", accept, a.StatusCode, a.get("Content-Type"), a.body)
		}
		if served == htmlType && a.get("Access-Control-Allow-Origin") != "" || served != htmlType && a.get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: Access-Control-Allow-Origin is %q", accept, a.get("Access-Control-Allow-Origin"))
		}
		if again := s.get("/.info/ark:/12345/x1", "Accept", accept, "If-None-Match", a.get("ETag")); again.StatusCode != http.StatusNotModified {
			t.Errorf("%s: %d though nothing changed", accept, again.StatusCode)
		}
	}
	page := s.get("/.info/ark:12345/x1", "Accept", firefox)
	for _, text := range []string{"https://example.org/day3", "/.info/ark:12345/x1?version=1", "?format=bibtex", "<svg", "ark:12345/x1"} {
		if !strings.Contains(page.body, text) {
			t.Errorf("the page has no %s", text)
		}
	}
	for name, want := range map[string]string{"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "strict-origin", "Link": "cite-as"} {
		if !strings.Contains(page.get(name), want) {
			t.Errorf("%s is %q", name, page.get(name))
		}
	}
	var all struct {
		Asked   string
		Record  struct{ ID string }
		History []past
		Formats map[string]string
	}
	a := s.get("/.info/ark:12345/x1/page")
	if err := json.Unmarshal([]byte(a.body), &all); err != nil {
		t.Fatal(err)
	}
	if all.Asked != "ark:12345/x1/page" || all.Record.ID != "ark:12345/x1" || len(all.History) != 3 || all.History[2].URL != "https://example.org/day1" || len(all.Formats) < 7 {
		t.Errorf("%s", a.body)
	}
	s.fails("/.info/ark:12345/unknown", http.StatusNotFound, `"asked":"ark:12345/unknown"`)
	s.fails("/.info/nonsense at all", http.StatusNotFound)
}

func TestInfoFormats(t *testing.T) {
	s := newChoices(t)
	for name, served := range map[string]string{"bibtex": "application/x-bibtex; charset=utf-8", "csl": "application/vnd.citationstyles.csl+json", "jsonld": "application/ld+json",
		"turtle": "text/turtle; charset=utf-8", "linkset": "application/linkset+json", "anvl": textType, "json": "application/json"} {
		a := s.get("/.info/ark:12345/rich?format="+name, "Accept", firefox)
		if a.StatusCode != http.StatusOK || a.get("Content-Type") != served {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.get("Content-Type"))
		}
	}
	s.fails("/.info/ark:12345/rich?format=word", http.StatusBadRequest)
}

func TestInfoForm(t *testing.T) {
	s := newSpelled(t)
	for query, location := range map[string]string{
		"?id=ark%3A%2F12345%2Fx1":                          "ark:12345/x1",
		"?id=https://doi.org/10.1000/182":                  "10.1000/182",
		"?id=20.500.12345%2F50%25+off%3F":                  "20.500.12345/50%25%20OFF%3F",
		"?id=http%3A%2F%2Fid.example.org%2Fnet%2Fa%2F%2Fb": "net/a//b",
		"?id=a%0d%0aSet-Cookie:%20x":                       "a%0D%0ASet-Cookie:%20x",
		"?id=+%0a+ark:/12345/x1%09%c2%a0":                  "ark:12345/x1",
		"?id=https://else.example/urn:paradisec:AB1:001:A": "urn:paradisec:ab1:001:a",
		"?id=//evil.example":                               "//evil.example",
	} {
		s.leads("/.info"+query, "https://id.example.org/.info/"+location, http.StatusSeeOther)
		s.leads("/.info/"+query, "https://id.example.org/.info/"+location, http.StatusSeeOther)
	}
	s.leads("/.info", "https://id.example.org/", http.StatusSeeOther)
	s.leads("/.info?id=", "https://id.example.org/", http.StatusSeeOther)
}

func TestTombstone(t *testing.T) {
	s := newChoices(t)
	s.pass(24 * time.Hour)
	if _, err := s.registry.Withdraw(s.admin, s.id("ark:12345/plain"), 0, "it was <b>wrong</b>", s.id("ark:12345/rich")); err != nil {
		t.Fatal(err)
	}
	a := s.fails("/ark:12345/plain", http.StatusGone, `"reason":"it was`, `"withdrawn":"2026-01-02T00:00:00Z"`, `"replacement":"ark:12345/rich"`, `"replacementUrl":"https://id.example.org/ark:12345/rich"`)
	if a.get("Cache-Control") != "max-age=3600" {
		t.Errorf("Cache-Control is %q", a.get("Cache-Control"))
	}
	for accept, want := range map[string]string{"": textType, firefox: htmlType, "application/ld+json": "application/ld+json", "application/x-bibtex": "application/x-bibtex; charset=utf-8",
		"text/plain": textType, "image/png": textType, "application/problem+json": problemType} {
		a := s.get("/ark:12345/plain", "Accept", accept)
		if a.StatusCode != http.StatusGone || a.get("Content-Type") != want {
			t.Errorf("%s: %d %s", accept, a.StatusCode, a.get("Content-Type"))
		}
		if want == htmlType && (!strings.Contains(a.body, "/ark:12345/rich") || strings.Contains(a.body, "<b>wrong")) {
			t.Errorf("the page is\n%s", a.body)
		}
		if strings.Contains(a.body, "https://example.org/plain") {
			t.Errorf("%s: tells where it was\n%s", accept, a.body)
		}
	}
	if a := s.ask(http.MethodHead, "/ark:12345/plain"); a.StatusCode != http.StatusGone {
		t.Errorf("HEAD: %d", a.StatusCode)
	}
	if a := s.get("/.info/ark:12345/plain", "Accept", firefox); a.StatusCode != http.StatusOK || !strings.Contains(a.body, "withdrawn") {
		t.Errorf(".info: %d", a.StatusCode)
	}
	if _, err := s.registry.Reinstate(s.admin, s.id("ark:12345/plain"), 0); err != nil {
		t.Fatal(err)
	}
	s.leads("/ark:12345/plain", "https://example.org/plain", http.StatusFound)
}

func TestProblemPages(t *testing.T) {
	s := newChoices(t)
	for target, status := range map[string]int{"/ark:12345/<script>": http.StatusNotFound, "/ark:12345/unknown": http.StatusNotFound, "/.well-known/x": http.StatusNotFound,
		"/api/v1/x": http.StatusNotFound, "/ark:12345/x?+s=XX": http.StatusBadRequest, "/" + strings.Repeat("x", maxTarget+1): http.StatusRequestURITooLong} {
		a := s.get(target, "Accept", chrome)
		if a.StatusCode != status || a.get("Content-Type") != htmlType || strings.Contains(a.body, "<script") || !strings.Contains(a.get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%.40s: %d %s", target, a.StatusCode, a.get("Content-Type"))
		}
	}
}

func TestRestricted(t *testing.T) {
	s := newSite(t)
	s.space("ark:12345")
	s.add(`{"id":"ark:12345/x1","url":"https://example.org/1","readers":["user:ann","group:staff"]}`)
	for _, who := range []struct {
		name, group string
		status      int
	}{{"ann", "", http.StatusFound}, {"bob", "staff", http.StatusFound}, {"bob", "", http.StatusNotFound}} {
		a := s.askAs(who.name, who.group, "/ark:12345/x1")
		if a.StatusCode != who.status {
			t.Errorf("%v: %d", who, a.StatusCode)
		}
		if a.StatusCode == http.StatusFound && a.get("Cache-Control") != "private, no-store" {
			t.Errorf("%v: Cache-Control is %q", who, a.get("Cache-Control"))
		}
	}
}
