package httpd

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

const (
	firefox = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	chrome  = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7"
	rdflib  = "text/turtle;q=1.0, application/rdf+xml;q=0.9, */*;q=0.1"
)

// newChoices is a site with records that have something to choose from.
func newChoices(t testing.TB) *site {
	s := newSite(t)
	s.space("ark:12345")
	s.add(`{"id":"ark:12345/plain","url":"https://example.org/plain","metadata":{"who":"Lima, Ana","what":"A tape","when":"1971"}}`,
		`{"id":"ark:12345/rich","targets":[
			{"service":"N2L","url":"https://example.org/rich.html","type":"text/html","language":"en"},
			{"service":"N2L","url":"https://example.org/rich.pt.html","type":"text/html","language":"pt"},
			{"service":"N2L","url":"https://example.org/rich.mp3","type":"audio/mpeg","preference":20},
			{"service":"N2L","url":"https://example.org/rich.json","type":"application/json","preference":30},
			{"service":"N2C","url":"https://example.org/rich.ttl","type":"text/turtle"},
			{"service":"N2C","url":"https://example.org/rich.xml","type":"application/xml","status":301},
			{"service":"N2P","url":"https://example.org/promise","type":"text/html"}]}`,
		`{"id":"ark:12345/sound","targets":[{"service":"N2L","url":"https://example.org/sound.mp3","type":"audio/mpeg"}]}`,
		`{"id":"ark:12345/bare","metadata":{"what":"Nothing to fetch"}}`)
	return s
}

func TestLanding(t *testing.T) {
	s := newChoices(t)
	for _, accept := range []string{"", "*/*", firefox, chrome, "text/html", "text/*", "image/png, */*;q=0.5", "text/html;q=0.9, application/ld+json;q=0.5", "nonsense", "audio/mpeg",
		strings.Repeat("a/b,", 4000), "application/xhtml+xml", "application/ld+json;q=0.2, */*"} {
		a := s.leads("/ark:12345/plain", "https://example.org/plain", http.StatusFound, "Accept", accept)
		if got := a.get("Vary"); got != "Accept, Accept-Language, Accept-Datetime, Authorization" {
			t.Errorf("%q: Vary is %q", accept, got)
		}
	}
	s.leads("/ark:12345/plain", "https://example.org/plain", http.StatusFound)
}

func TestTargets(t *testing.T) {
	s := newChoices(t)
	for _, test := range []struct{ accept, language, location string }{
		{"", "", "rich.html"},
		{firefox, "", "rich.html"},
		{firefox, "pt-BR,pt;q=0.9,en;q=0.5", "rich.pt.html"},
		{firefox, "de", "rich.html"},
		{"", "pt", "rich.pt.html"},
		{"audio/mpeg", "", "rich.mp3"},
		{"audio/*", "", "rich.mp3"},
		{"audio/wav", "", "rich.mp3"}, // another encoding of a recording
		{"application/json", "", "rich.json"},
		{"application/json, text/plain, */*", "", "rich.json"},
		{"text/turtle", "", "rich.ttl"},
		{rdflib, "", "rich.ttl"},
		{"application/xml", "", "rich.xml"},
	} {
		status := http.StatusFound
		if test.location == "rich.xml" {
			status = http.StatusSeeOther
		}
		s.leads("/ark:12345/rich", "https://example.org/"+test.location, status, "Accept", test.accept, "Accept-Language", test.language)
	}
}

func TestFormats(t *testing.T) {
	s := newChoices(t)
	for _, test := range []struct{ accept, served, text string }{
		{"application/json", "application/json", `"id":"ark:12345/plain"`},
		{"application/json, text/plain, */*", "application/json", `"id":"ark:12345/plain"`},
		{"application/ld+json", "application/ld+json", "schema.org"},
		{"application/vnd.schemaorg.ld+json", "application/ld+json", "schema.org"},
		{"text/turtle", "text/turtle; charset=utf-8", "schema"},
		{rdflib, "text/turtle; charset=utf-8", "schema"},
		{"application/linkset+json", "application/linkset+json", `"linkset"`},
		{"text/plain", "text/plain; charset=utf-8", "erc:"},
		{"application/vnd.citationstyles.csl+json", "application/vnd.citationstyles.csl+json", "A tape"},
		{"application/x-bibtex", "application/x-bibtex; charset=utf-8", "A tape"},
		{"application/x-bibtex;q=0.3, text/csv", "application/x-bibtex; charset=utf-8", "A tape"},
	} {
		a := s.get("/ark:12345/plain", "Accept", test.accept)
		if a.StatusCode != http.StatusOK || a.get("Content-Type") != test.served || !strings.Contains(a.body, test.text) {
			t.Errorf("%s: %d %s\n%s", test.accept, a.StatusCode, a.get("Content-Type"), a.body)
			continue
		}
		if a.get("Access-Control-Allow-Origin") != "*" || a.get("Last-Modified") == "" || a.get("Cache-Control") != "max-age=3600" || a.get("Vary") == "" {
			t.Errorf("%s: the head is %v", test.accept, a.Header)
		}
		tag := a.get("ETag")
		for _, known := range []string{tag, "W/" + tag, `"x", ` + tag, "*"} {
			if again := s.get("/ark:12345/plain", "Accept", test.accept, "If-None-Match", known); again.StatusCode != http.StatusNotModified || again.body != "" || again.get("ETag") != tag {
				t.Errorf("%s: If-None-Match %s gives %d", test.accept, known, again.StatusCode)
			}
		}
		if again := s.get("/ark:12345/plain", "Accept", test.accept, "If-None-Match", `"x"`); again.StatusCode != http.StatusOK {
			t.Errorf("%s: another tag gives %d", test.accept, again.StatusCode)
		}
		head := s.ask(http.MethodHead, "/ark:12345/plain", "Accept", test.accept)
		if head.StatusCode != http.StatusOK || head.get("ETag") != tag || head.get("Content-Length") != a.get("Content-Length") {
			t.Errorf("%s: HEAD gives %d, %v", test.accept, head.StatusCode, head.Header)
		}
	}
	// A redirect does not become 304.
	s.leads("/ark:12345/plain", "https://example.org/plain", http.StatusFound, "If-None-Match", "*")
}

func TestNotAcceptable(t *testing.T) {
	s := newChoices(t)
	for target, accept := range map[string]string{
		"/ark:12345/rich":                  "image/png",
		"/ark:12345/sound":                 "image/png, text/csv;q=0.5",
		"/ark:12345/bare":                  "image/*",
		"/ark:12345/plain?noredirect":      "image/png",
		"/ark:12345/rich?+t=image/png":     "*/*",
		"/ark:12345/rich?+s=N2C&t=image/*": "",
	} {
		a := s.get(target, "Accept", accept)
		if a.StatusCode != http.StatusNotAcceptable || !strings.Contains(a.body, "available: ") || !strings.Contains(a.body, "text/turtle") {
			t.Errorf("%s: %d\n%s", target, a.StatusCode, a.body)
		}
	}
	s.leads("/ark:12345/rich", "https://example.org/rich.html", http.StatusFound, "Accept", "image/png, */*;q=0.1")
	s.leads("/ark:12345/plain", "https://example.org/plain", http.StatusFound, "Accept", "image/png")
	// A page about a recording is a page; and a client that takes no recording gets none.
	for accept, served := range map[string]string{"text/html": htmlType, "audio/mpeg;q=0, */*": "application/ld+json"} {
		if a := s.get("/ark:12345/sound", "Accept", accept); a.StatusCode != http.StatusOK || a.get("Content-Type") != served {
			t.Errorf("%s: %d %s", accept, a.StatusCode, a.get("Content-Type"))
		}
	}
}

// The components of a URN choose service and type, for every scheme.
func TestComponents(t *testing.T) {
	s := newChoices(t)
	s.leads("/ark:12345/rich?+t=audio/mpeg", "https://example.org/rich.mp3", http.StatusFound)
	s.leads("/ark:12345/rich?+t=audio%2Fmpeg&s=n2l", "https://example.org/rich.mp3", http.StatusFound, "Accept", firefox)
	s.leads("/ark:12345/rich?+s=N2C", "https://example.org/rich.ttl", http.StatusFound)
	s.leads("/ark:12345/rich?+s=N2C&t=application/xml", "https://example.org/rich.xml", http.StatusMovedPermanently)
	s.leads("/ark:12345/rich?+s=N2P", "https://example.org/promise", http.StatusFound)
	s.fails("/ark:12345/rich?+s=N2S", http.StatusNotFound)
	s.fails("/ark:12345/rich?+s=X2", http.StatusBadRequest, "N2C")
	s.fails("/ark:12345/rich?+s=N2X", http.StatusNotFound, "no target for N2X")
	s.fails("/ark:12345/rich?+t=%zz", http.StatusBadRequest)
	s.fails("/ark:12345/rich?+t=//", http.StatusBadRequest)
	for target, served := range map[string]string{
		"/ark:12345/plain?+s=N2C":                      "application/ld+json",
		"/ark:12345/plain?+s=N2C&t=text/turtle":        "text/turtle; charset=utf-8",
		"/ark:12345/rich?+s=N2C&t=application/ld+json": "application/ld+json",
		"/ark:12345/plain?+s=N2P":                      textType,
		"/ark:12345/plain?+t=application/x-bibtex":     "application/x-bibtex; charset=utf-8",
		"/ark:12345/plain?info":                        textType,
		"/ark:12345/plain?":                            textType,
		"/ark:12345/plain??":                           textType,
		"/ark:12345/rich?noredirect":                   "application/json",
		"/ark:12345/bare":                              "application/ld+json",
	} {
		if a := s.get(target); a.StatusCode != http.StatusOK || a.get("Content-Type") != served {
			t.Errorf("%s: %d %s\n%s", target, a.StatusCode, a.get("Content-Type"), a.body)
		}
	}
	if a := s.get("/ark:12345/plain?info"); !strings.Contains(a.body, "erc:") || !strings.Contains(a.body, "erc-support:") {
		t.Errorf("?info gives\n%s", a.body)
	}
}

func TestExplain(t *testing.T) {
	s := newChoices(t)
	a := s.get("/ark:/12345/ri-ch?explain", "Accept", "application/json")
	var x struct {
		Identifier, Scheme, Answer, URL string
		Status                          int
		Steps                           []step
		Parts                           map[string]any
	}
	if err := json.Unmarshal([]byte(a.body), &x); err != nil || a.StatusCode != http.StatusOK {
		t.Fatalf("%v, %d: %s", err, a.StatusCode, a.body)
	}
	if x.Identifier != "ark:12345/rich" || x.Scheme != "ark" || x.Answer != "redirect" || x.Status != http.StatusFound || len(x.Steps) < 5 || x.Parts["naan"] != "12345" {
		t.Errorf("%s", a.body)
	}
	for _, target := range []string{"/ark:12345/rich?explain", "/ark:12345/unknown?explain", "/ark:123/x?explain", "/nothing at all?explain&x=1"} {
		for accept, served := range map[string]string{"": textType, firefox: htmlType, "application/json": "application/json"} {
			if a := s.get(target, "Accept", accept); a.StatusCode != http.StatusOK || a.get("Content-Type") != served || a.body == "" {
				t.Errorf("%s, %s: %d %s", target, accept, a.StatusCode, a.get("Content-Type"))
			}
		}
	}
	if a := s.get("/ark:12345/plain?explained"); a.StatusCode != http.StatusFound {
		t.Errorf("?explained: %d", a.StatusCode)
	}
}

// ?explain describes what the request without it gets.
func TestExplainForetells(t *testing.T) {
	s := newChoices(t)
	s.space("20.500.12345/")
	s.add(`{"id":"20.500.12345/URL","values":[{"index":1,"type":"URL","data":"aHR0cHM6Ly9leGFtcGxlLm9yZy92YWx1ZQ==","ttl":60}]}`,
		`{"id":"20.500.12345/LOOP1","values":[{"index":1,"type":"HS_ALIAS","data":"MjAuNTAwLjEyMzQ1L0xPT1Ay","ttl":60}]}`,
		`{"id":"20.500.12345/LOOP2","values":[{"index":1,"type":"HS_ALIAS","data":"MjAuNTAwLjEyMzQ1L0xPT1Ax","ttl":60}]}`,
		`{"id":"ark:12345/self","url":"https://id.example.org/.info/ark:12345/self"}`)
	for _, name := range []string{"ark:12345/plain", "ark:12345/rich", "ark:12345/sound", "ark:12345/bare", "ark:12345/none", "ark:12345/self",
		"20.500.12345/URL", "20.500.12345/LOOP1"} {
		for _, accept := range []string{"", "application/json", "application/ld+json", "application/vnd.citationstyles.csl+json", "application/json;q=0.5, audio/*", "application/problem+json", "application/json;q=0.1, application/xml"} {
			a := s.get("/"+name, "Accept", accept)
			var told struct {
				URL    string
				Status int
			}
			explained := s.get("/"+name+"?explain", "Accept", accept)
			if explained.get("Content-Type") == textType {
				_, status, _ := strings.Cut(explained.body, "\nstatus: ")
				told.Status, _ = strconv.Atoi(strings.TrimSpace(strings.Split(status, "\n")[0]))
				told.URL = a.get("Location")
				if !strings.Contains(explained.body, a.get("Location")) {
					told.URL = explained.body
				}
			} else if err := json.Unmarshal([]byte(explained.body), &told); err != nil {
				t.Fatal(err)
			}
			if told.Status != a.StatusCode || told.URL != a.get("Location") {
				t.Errorf("%s, Accept %q: foretold %d to %q, happened %d to %q", name, accept, told.Status, told.URL, a.StatusCode, a.get("Location"))
			}
		}
	}
}
