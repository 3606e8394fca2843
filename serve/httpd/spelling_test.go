package httpd

import (
	"encoding/json"
	"strings"
	"testing"
)

// DOIs and handles are shown in the letters in which their owners registered them, whatever
// the letters of the request, and are found in any.
func TestOwnersSpelling(t *testing.T) {
	s := newSite(t)
	s.space("10.5072/")
	s.space("20.500.99999/")
	s.add(`{"id":"https://doi.org/10.5072/Rivers-Of-Pará","url":"https://example.org/1","metadata":{"who":"Lima, Ana","what":"Rivers"}}`,
		`{"id":"hdl:20.500.99999/aBc-1","url":"https://example.org/2","metadata":{"who":"Lima, Ana","what":"A thing"}}`,
		`{"id":"10.5072/Old-One","url":"https://example.org/3","metadata":{"what":"Old"}}`,
		`{"id":"10.5072/PLAIN","url":"https://example.org/4"}`)
	if _, err := s.registry.Withdraw(s.admin, s.id("10.5072/old-one"), 0, "wrong", s.id("20.500.99999/ABC-1")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path, accept string
		has          []string
		not          string
	}{
		{"/10.5072/rivers-of-par%C3%A1", "text/x-bibliography", []string{"https://doi.org/10.5072/Rivers-Of-Par%C3%A1"}, "RIVERS-OF"},
		{"/10.5072/RIVERS-OF-PAR%C3%A1", "application/x-bibtex", []string{"doi = {10.5072/Rivers-Of-Pará}"}, "doi = {10.5072/RIVERS"},
		{"/10.5072/rivers-of-par%C3%A1", "application/vnd.citationstyles.csl+json", []string{`"id":"10.5072/Rivers-Of-Pará"`, `"DOI":"10.5072/Rivers-Of-Pará"`}, `"DOI":"10.5072/RIVERS`},
		{"/10.5072/rivers-of-par%C3%A1", "application/vnd.datacite.datacite+xml", []string{`>10.5072/Rivers-Of-Pará<`}, ">10.5072/RIVERS"},
		{"/10.5072/rivers-of-par%C3%A1", "application/vnd.datacite.datacite+json", []string{`"doi":"10.5072/Rivers-Of-Pará"`}, `"doi":"10.5072/RIVERS`},
		{"/10.5072/rivers-of-par%C3%A1", "application/ld+json", []string{`"value":"10.5072/Rivers-Of-Pará"`}, `"value":"10.5072/RIVERS`},
		{"/10.5072/rivers-of-par%C3%A1", "application/json", []string{`"id":"10.5072/RIVERS-OF-PARá"`, `"spelling":"https://doi.org/10.5072/Rivers-Of-Pará"`}, "\x00"},
		{"/.info/10.5072/rivers-of-par%C3%A1", "text/html", []string{"10.5072/Rivers-Of-Pará", "doi:10.5072/Rivers-Of-Pará"}, "doi:10.5072/RIVERS"},
		{"/.info/10.5072/old-one", "text/html", []string{">Canonical form</th><td><code><bdi>10.5072/OLD-ONE<", ">As its owner writes it</th><td><code><bdi>10.5072/Old-One<", `class="take"><bdi>https://id.example.org/10.5072/Old-One<`}, "\x00"},

		{"/20.500.99999/ABC-1", "text/x-bibliography; style=ieee", []string{"https://id.example.org/20.500.99999/aBc-1"}, "ABC-1"},
		{"/20.500.99999/abc-1", "application/x-bibtex", []string{"url = {https://id.example.org/20.500.99999/aBc-1}"}, "ABC-1"},
		{"/20.500.99999/abc-1", "application/x-research-info-systems", []string{"ID  - 20.500.99999/aBc-1", "UR  - https://id.example.org/20.500.99999/aBc-1"}, "ABC-1"},
		{"/20.500.99999/abc-1?noredirect&type=URL", "text/plain", []string{"Handle Values for: 20.500.99999/aBc-1"}, "ABC-1"},
		{"/20.500.99999/abc-1?noredirect", "text/html", []string{"hdl:20.500.99999/aBc-1"}, "hdl:20.500.99999/ABC-1"},

		{"/10.5072/OLD-ONE", "text/plain", []string{"identifier: 10.5072/Old-One\n", "replacement: 20.500.99999/aBc-1\n"}, "ABC-1"},
		{"/10.5072/old-one", "application/problem+json", []string{`"identifier":"10.5072/Old-One"`, `"replacement":"20.500.99999/aBc-1"`}, `"20.500.99999/ABC-1"`},
		{"/10.5072/old-one", "text/html", []string{"10.5072/Old-One", ">20.500.99999/aBc-1<"}, ">20.500.99999/ABC-1<"},
		{"/api/handles/10.5072/old-one", "", []string{"use 20.500.99999/aBc-1 instead"}, "ABC-1"},

		{"/10.5072/plain", "text/x-bibliography", []string{"https://doi.org/10.5072/PLAIN"}, "plain"},
	} {
		a := s.get(tt.path, "Accept", tt.accept)
		for _, text := range tt.has {
			if !strings.Contains(a.body, text) {
				t.Errorf("%s as %s: no %q in\n%s", tt.path, tt.accept, text, a.body)
			}
		}
		if strings.Contains(a.body, tt.not) {
			t.Errorf("%s as %s: %q in\n%s", tt.path, tt.accept, tt.not, a.body)
		}
	}
	// So are the URLs in Link headers, of mementos and in TimeMaps, whichever way the
	// record came: the short one to a redirect has no description.
	for _, tt := range []struct{ path, has, not string }{
		{"/10.5072/RIVERS-OF-PAR%C3%A1", `<https://id.example.org/10.5072/Rivers-Of-Par%C3%A1>; rel="cite-as"`, "RIVERS"},
		{"/20.500.99999/ABC-1", `<https://id.example.org/20.500.99999/aBc-1>; rel="cite-as"`, "ABC-1"},
		{"/20.500.99999/ABC-1", `<https://id.example.org/.info/20.500.99999/aBc-1?format=linkset>; rel="linkset"`, "ABC-1"},
		{"/20.500.99999/ABC-1", `<https://id.example.org/.timemap/20.500.99999/aBc-1>; rel="timemap"`, "ABC-1"},
		{"/.info/20.500.99999/ABC-1", `<https://id.example.org/20.500.99999/aBc-1>; rel="cite-as"`, `<https://id.example.org/20.500.99999/ABC-1>; rel="cite-as"`},
		{"/.timemap/20.500.99999/ABC-1", `<https://id.example.org/20.500.99999/aBc-1>; rel="original timegate"`, "ABC-1"},
		{"/.timemap/20.500.99999/ABC-1", `/20.500.99999/aBc-1>; rel="first last memento"`, "ABC-1"},
		{"/.memento/20990101000000/20.500.99999/ABC-1", `<https://id.example.org/20.500.99999/aBc-1>; rel="original timegate"`, "ABC-1"},
		{"/.info/20.500.99999/ABC-1?format=linkset", `"cite-as":[{"href":"https://id.example.org/20.500.99999/aBc-1"}]`, `"cite-as":[{"href":"https://id.example.org/20.500.99999/ABC-1"}]`},
		{"/10.5072/Plain", `<https://id.example.org/10.5072/PLAIN>; rel="cite-as"`, "Plain"},
	} {
		for range 3 {
			a := s.get(tt.path)
			text := a.get("Link") + a.get("Location") + a.body
			if !strings.Contains(text, tt.has) || strings.Contains(text, tt.not) {
				t.Errorf("%s: %s", tt.path, text)
			}
		}
	}
	// A redacted record does not tell the spelling of its owner either.
	if _, err := s.registry.Redact(s.admin, s.id("20.500.99999/abc-1"), 0, "a court said so"); err != nil {
		t.Fatal(err)
	}
	for _, accept := range []string{"text/x-bibliography", "application/x-bibtex", "text/html", "text/plain", "application/json"} {
		if a := s.get("/20.500.99999/ABC-1", "Accept", accept); strings.Contains(a.body, "aBc") {
			t.Errorf("redacted, as %s:\n%s", accept, a.body)
		}
	}
	var told struct{ ID, Spelling string }
	a := s.get("/10.5072/plain", "Accept", "application/json")
	if err := json.Unmarshal([]byte(a.body), &told); err != nil || told.ID != "10.5072/PLAIN" || told.Spelling != "" {
		t.Errorf("%+v %v", told, err)
	}
}
