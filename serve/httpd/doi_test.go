package httpd

import (
	"net/http"
	"strings"
	"testing"
)

// What clients of DOIs ask doi.org for is answered here: the table of DataCite's and Crossref's
// content negotiation, written as their clients write it.
func TestDOIClients(t *testing.T) {
	s := newSite(t)
	s.space("10.5072/")
	s.add(`{"id":"10.5072/Rivers-1","targets":[{"url":"https://example.org/rivers","type":"text/html"}],"metadata":{"who":"Lima, Ana; Souza, Pedro Henrique","what":"Rivers of Pará","when":"2020","type":"article","journal":"Journal of Rivers","volume":"12","issue":"3","pages":"45-67","publisher":"Editora Exemplo"}}`)
	const (
		apa  = "Lima, A., & Souza, P. H. (2020). Rivers of Pará. Journal of Rivers, 12(3), 45–67. https://doi.org/10.5072/Rivers-1\n"
		ieee = "[1] A. Lima and P. H. Souza, “Rivers of Pará,” Journal of Rivers, vol. 12, no. 3, pp. 45–67, 2020, doi: 10.5072/Rivers-1.\n"
	)
	for _, tt := range []struct{ accept, media, has string }{
		{"text/x-bibliography", "text/x-bibliography; charset=utf-8", apa},
		{"text/x-bibliography; style=apa", "text/x-bibliography; charset=utf-8", apa},
		{"text/x-bibliography; style = apa; locale = en-US", "text/x-bibliography; charset=utf-8", apa},
		{"text/x-bibliography ; style = ieee ; locale = en-US", "text/x-bibliography; charset=utf-8", ieee},
		{"text/bibliography", "text/bibliography; charset=utf-8", apa},
		{"text/bibliography; style=ieee", "text/bibliography; charset=utf-8", ieee},
		{"text/x-bibliography; style=no-such-style, text/x-bibliography; style=ieee; q=0.5", "text/x-bibliography; charset=utf-8", ieee},
		{"text/x-bibliography; style=datacite", "text/x-bibliography; charset=utf-8", "Lima, Ana; Souza, Pedro Henrique (2020): Rivers of Pará. Editora Exemplo. JournalArticle. https://doi.org/10.5072/Rivers-1\n"},
		{"application/x-research-info-systems", "application/x-research-info-systems; charset=utf-8", "TY  - JOUR\r\n"},
		{"application/x-research-info-systems", "application/x-research-info-systems; charset=utf-8", "\r\nSP  - 45\r\nEP  - 67\r\n"},
		{"application/x-research-info-systems", "application/x-research-info-systems; charset=utf-8", "\r\nDO  - 10.5072/Rivers-1\r\n"},
		{"application/x-bibtex", "application/x-bibtex; charset=utf-8", "doi = {10.5072/Rivers-1}"},
		{"application/vnd.citationstyles.csl+json", "application/vnd.citationstyles.csl+json", `"DOI":"10.5072/Rivers-1"`},
		{"application/vnd.citationstyles.csl+json;q=1.0, application/json;q=0.5", "application/vnd.citationstyles.csl+json", `"given":"Pedro Henrique"`},
		{"application/vnd.datacite.datacite+json", "application/vnd.datacite.datacite+json", `"doi":"10.5072/Rivers-1"`},
		{"application/vnd.datacite.datacite+json", "application/vnd.datacite.datacite+json", `"firstPage":"45","lastPage":"67"`},
		{"application/vnd.datacite.datacite+xml", "application/vnd.datacite.datacite+xml; charset=utf-8", `<identifier identifierType="DOI">10.5072/Rivers-1</identifier>`},
		{"application/rdf+xml", "application/rdf+xml; charset=utf-8", "<schema:ScholarlyArticle rdf:about="},
		{"application/rdf+xml;q=0.5, application/vnd.citationstyles.csl+json;q=1.0", "application/vnd.citationstyles.csl+json", `"container-title":"Journal of Rivers"`},
		{"text/turtle", "text/turtle; charset=utf-8", "schema:ScholarlyArticle"},
		{"application/vnd.schemaorg.ld+json", "application/ld+json", "ScholarlyArticle"},
	} {
		for _, name := range []string{"/10.5072/rivers-1", "/doi:10.5072/RIVERS-1"} {
			a := s.get(name, "Accept", tt.accept)
			if a.StatusCode != http.StatusOK || a.get("Content-Type") != tt.media || !strings.Contains(a.body, tt.has) {
				t.Errorf("%s as %s: %d %s\n%s\nwant %s", name, tt.accept, a.StatusCode, a.get("Content-Type"), a.body, tt.has)
			}
		}
	}
	if a := s.get("/10.5072/rivers-1", "Accept", "text/x-bibliography; style=no-such-style"); a.StatusCode != http.StatusNotAcceptable || !strings.Contains(a.body, "text/x-bibliography; style=ieee") {
		t.Errorf("an unknown style: %d %s", a.StatusCode, a.body)
	}
	if a := s.get("/.info/10.5072/rivers-1?format=citation&style=ieee"); a.body != ieee {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	for _, bad := range []string{"format=citation&style=x", "format=bibtex&style=apa"} {
		if a := s.get("/.info/10.5072/rivers-1?" + bad); a.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d", bad, a.StatusCode)
		}
	}
	s.leads("/10.5072/rivers-1", "https://example.org/rivers", http.StatusFound, "Accept", firefox)
}
