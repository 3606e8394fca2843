package httpd

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

// ruled makes namespaces with rules.
func (s *site) ruled() {
	s.t.Helper()
	target := func(url, kind string, status int) stele.Target {
		return stele.Target{Service: stele.N2L, URL: url, Type: kind, Status: status, Order: 100, Preference: 10}
	}
	s.space("ark:12345/r", func(ns *stele.Namespace) {
		ns.Rules = []stele.Rule{{
			Pattern:  "{n:digit,3}",
			Targets:  []stele.Target{target("https://example.org/{n}.html", "text/html", 0), target("https://example.org/{n}.ttl", "text/turtle", 303)},
			Examples: []stele.RuleExample{{Name: "ark:12345/r007", Want: "https://example.org/007.html"}},
		}, {
			Pattern:  "old{x:any}",
			Reason:   "the old ones were <lost>",
			Targets:  []stele.Target{target("", "", 410)},
			Examples: []stele.RuleExample{{Name: "ark:12345/rold1", Want: "410"}},
		}, {
			Pattern:  "own{x:alnum}",
			Targets:  []stele.Target{target("https://localhost/ark:12345/rown{x}a", "", 0)},
			Examples: []stele.RuleExample{{Name: "ark:12345/rown1", Want: "https://localhost/ark:12345/rown1a"}},
		}}
	})
	s.space("20.500.12346/", func(ns *stele.Namespace) {
		ns.Rules = []stele.Rule{{
			Pattern:  "{n:alnum}",
			Targets:  []stele.Target{target("https://example.org/h/{n:lower}", "", 0)},
			Examples: []stele.RuleExample{{Name: "20.500.12346/abc", Want: "https://example.org/h/abc"}},
		}}
	})
}

func TestByRule(t *testing.T) {
	s := newSite(t)
	s.ruled()
	s.space("ark:12345")
	s.leads("/ark:12345/r007", "https://example.org/007.html", http.StatusFound)
	s.leads("/ark:/12345/r0-07?lang=de", "https://example.org/007.html?lang=de", http.StatusFound)
	s.leads("/ark:12345/r007", "https://example.org/007.ttl", http.StatusSeeOther, "Accept", "text/turtle")
	s.leads("/ark:12345/r007", "https://example.org/007.html", http.StatusFound, "Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	a := s.leads("/uri-res/N2L?ark:12345/r007", "https://example.org/007.html", http.StatusFound)
	if vary := a.get("Vary"); !strings.Contains(vary, "Accept") {
		t.Errorf("it varies by %q", vary)
	}
	s.fails("/ark:12345/r007", http.StatusNotAcceptable, "text/turtle", "text/html")
	s.fails("/ark:12345/rold9", http.StatusGone, "the old ones were \\u003clost\\u003e")
	if page := s.get("/ark:12345/rold9", "Accept", "text/html"); page.StatusCode != http.StatusGone || !strings.Contains(page.body, "&lt;lost&gt;") {
		t.Errorf("%d %s", page.StatusCode, page.body)
	}
	if a := s.get("/ark:12345/rown1", "Host", "localhost"); a.StatusCode != http.StatusLoopDetected {
		t.Errorf("%d to %s", a.StatusCode, a.get("Location"))
	}
	s.fails("/ark:12345/r1234", http.StatusNotFound)
	s.fails("/uri-res/N2C?ark:12345/r007", http.StatusNotFound, "rule 1 of ark:12345/r")
	s.fails("/.timemap/ark:12345/r007", http.StatusNotFound, "has no past")
	for target, text := range map[string]string{
		"/uri-res/N2Ls?ark:12345/r007":               "https://example.org/007.ttl\r\n",
		"/uri-res/N2Ns?ark:12345/r007":               "ark:12345/r007\r\n",
		"/uri-res/I=I?ark:12345/r007%20ark:12345/r8": "", // the second is unknown
	} {
		if a := s.get(target); !strings.Contains(a.body, text) {
			t.Errorf("%s: %d %s", target, a.StatusCode, a.body)
		}
	}
	// What is known of the name is which rule answers.
	for _, target := range []string{"/ark:12345/r007?explain", "/ark:12345/r007?info", "/ark:12345/r007??", "/.info/ark:12345/r007"} {
		for _, accept := range []string{"text/html", "application/json", "text/plain"} {
			a := s.get(target, "Accept", accept)
			if a.StatusCode != http.StatusOK || !strings.Contains(a.body, "rule 1 of ark:12345/r, {n:digit,3}; n=007") {
				t.Errorf("%s as %s: %d %s", target, accept, a.StatusCode, a.body)
			}
		}
	}
}

// What is registered, and what another reading of a path finds, comes before rules.
func TestByRuleComesLast(t *testing.T) {
	s := newSite(t)
	s.ruled()
	s.to("ark:12345/r008", "https://example.org/registered")
	s.leads("/ark:12345/r008", "https://example.org/registered", http.StatusFound)
	s.space("https://id.example.org/", func(ns *stele.Namespace) {
		ns.Rules = []stele.Rule{{
			Pattern:  "{all:any}",
			Targets:  []stele.Target{{Service: stele.N2L, URL: "https://example.org/all/{all}", Order: 100, Preference: 10}},
			Examples: []stele.RuleExample{{Name: "https://id.example.org/x", Want: "https://example.org/all/x"}},
		}}
	})
	s.space("sid.inpe.br/mtc-m21d")
	s.to("sid.inpe.br/mtc-m21d/2022/07.20.15.45", "https://example.org/ibi")
	s.leads("/sid.inpe.br/mtc-m21d/2022/07.20.15.45", "https://example.org/ibi", http.StatusFound)
	s.leads("/something/else", "https://example.org/all/something/else", http.StatusFound)
	s.leads("/", "", http.StatusOK)
}

// Handles for which a rule answers have values of type URL.
func TestHandlesByRule(t *testing.T) {
	s := newSite(t)
	s.ruled()
	s.leads("/20.500.12346/AbC", "https://example.org/h/abc", http.StatusFound)
	a := s.get("/api/handles/20.500.12346/AbC")
	if a.StatusCode != http.StatusOK || !strings.Contains(a.body, `"type":"URL"`) || !strings.Contains(a.body, `"https://example.org/h/abc"`) {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := s.get("/api/handles/20.500.12346/a-b"); a.StatusCode != http.StatusNotFound {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}
