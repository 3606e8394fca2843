package httpd

import (
	"net/http"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stele-id/stele/web"
	"github.com/stele-id/stele/web/documents"
)

func TestDocs(t *testing.T) {
	library, err := documents.New(fstest.MapFS{
		"index.md":       {Data: []byte("# Documents\n\n## Names\n\n- [The registry](registry.md): records\n")},
		"registry.md":    {Data: []byte("# The registry\n\n## Registering\n\n![p](pictures/p.png)\n")},
		"pictures/p.png": {Data: []byte("png")},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, func(o *Options) { o.Docs = library })
	for _, tt := range []struct {
		path, mediaType, has string
		status               int
	}{
		{"/.docs/", htmlType, `<a href="/.docs/registry">The registry</a>`, 200},
		{"/.docs/registry", htmlType, `<li><a href="/.docs/registry" aria-current="page">The registry</a>`, 200},
		{"/.docs/registry?x", htmlType, `<li><a href="#registering">Registering</a></li>`, 200},
		{"/.docs/pictures/p.png", "image/png", "png", 200},
		{"/.docs/none", htmlType, "", 404},
		{"/.docs/index", htmlType, "", 404},
		{"/.docs/registry.md", htmlType, "", 404},
		{"/.docs/../registry", htmlType, "", 404},
		{"/.docs/pictures/../pictures/p.png", htmlType, "", 404},
		{"/.docs/pictures/%2e%2e/p.png", htmlType, "", 404},
	} {
		got := s.ask(http.MethodGet, tt.path, "Accept", "text/html")
		if got.StatusCode != tt.status || got.get("Content-Type") != tt.mediaType || !strings.Contains(got.body, tt.has) {
			t.Errorf("%s: %s %s\n%s", tt.path, got.Status, got.get("Content-Type"), got.body)
		}
		if tt.mediaType == htmlType && got.get("Content-Security-Policy") != web.Policy {
			t.Errorf("%s: the policy is %q", tt.path, got.get("Content-Security-Policy"))
		}
	}
	if got := s.ask(http.MethodGet, "/.docs"); got.StatusCode != http.StatusMovedPermanently || got.get("Location") != "https://id.example.org/.docs/" {
		t.Errorf("%s to %s", got.Status, got.get("Location"))
	}
	first := s.ask(http.MethodGet, "/.docs/registry", "Accept-Language", "pt-BR")
	if !strings.Contains(first.body, `<html lang="pt-BR">`) || !strings.Contains(first.body, `<article class="prose document" lang="en">`) || !strings.Contains(first.get("Vary"), "Accept-Language") {
		t.Errorf("in Portuguese: %s\n%s", first.get("Vary"), first.body)
	}
	if english := s.ask(http.MethodGet, "/.docs/registry"); !strings.Contains(first.body, "Estes documentos estão em inglês.") || strings.Contains(english.body, "in English.") {
		t.Errorf("only a page in another language says that the document is in English:\n%s", english.body)
	}
	if got := s.ask(http.MethodGet, "/.docs/registry", "Accept-Language", "pt-BR", "If-None-Match", first.get("Etag")); got.StatusCode != http.StatusNotModified {
		t.Errorf("again: %s", got.Status)
	}
	if got := s.ask(http.MethodPost, "/.docs/registry"); got.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %s", got.Status)
	}
	if got := newSite(t).ask(http.MethodGet, "/.docs/"); got.StatusCode != http.StatusNotFound {
		t.Errorf("without documents: %s", got.Status)
	}
}
