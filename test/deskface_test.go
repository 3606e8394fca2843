package test

import (
	"strings"
	"testing"
)

// TestFace looks at the public pages in both languages, on a telephone and a large screen, in light
// and dark, and has axe-core judge them (WCAG 2.2 AA). A reader switches the language by a link.
func TestFace(t *testing.T) {
	served := visitDemo(t)
	c := newCurator(t, "http://"+served.http, true)
	for _, tongue := range []struct{ tag, motto string }{{"en", "Names that outlive their addresses."}, {"pt-BR", "Nomes que sobrevivem aos seus endereços."}} {
		for _, page := range []struct{ name, path string }{
			{"public-home", "/"},
			{"public-record", "/.info/urn:paradisec:AB1:001:A"},
			{"public-withdrawn", "/doi:10.5072/rivers-draft"},
			{"public-mistyped", "/ark:12345/x5mx4dd26"},
			{"public-invalid", "/ark:/12/x"},
			{"public-explain", "/urn:paradisec:AB1:001:A?explain"},
			{"public-version", "/.info/urn:paradisec:AB1:001:A?version=1"},
			{"public-nothing", "/.nothing"},
			{"public-about", "/.about"},
			{"public-api", "/api/v1"},
			{"public-api-group", "/api/v1?group=names"},
			{"public-api-search", "/api/v1?q=mint"},
		} {
			c.open(c.site + page.path)
			if tongue.tag == "pt-BR" && page.name == "public-home" {
				c.click(`footer a[hreflang="pt-BR"]`)
			}
			if got := c.text("document.documentElement.lang"); got != tongue.tag {
				t.Errorf("%s is in %q, want %q", page.path, got, tongue.tag)
			}
			c.sees(tongue.motto)
			c.judge(page.name + "-" + tongue.tag)
		}
	}
	for _, problem := range c.complaints() {
		if !strings.Contains(problem, "the server responded with a status of 4") {
			t.Error(problem)
		}
	}
}
