package server

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/config"
	"github.com/stele-id/stele/web"
)

// TestFace: the settings of the site are on its pages, and wrong ones keep the server from starting.
func TestFace(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	logo := write("logo.svg", `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><path d="M0 0h8v8z"/></svg>`)
	write("about.pt-BR.md", "# Sobre\n\nGuardamos **nomes** <script>.")
	values := config.Values{SiteName: "National Library", SiteContact: "ids@example.org", SiteLogo: logo, SiteColour: "#00538a", SiteColourDark: "#8ec8f5",
		SiteTexts: dir, Languages: []string{"pt-BR", "en"}}
	s := &server{Config: &config.Config{Values: values}}
	pages, languages, err := s.pages()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	l := languages.Match(nil, "fr", "") // a reader of a language that there is not
	if err := pages.About(&b, &web.About{Frame: web.Frame{Language: l}, Text: pages.Text(l, "about")}); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{`lang="pt-BR"`, "National Library", "mailto:ids@example.org", "<strong>nomes</strong> &lt;script&gt;", pages.LogoPath(), "face."} {
		if text == "" || !strings.Contains(b.String(), text) {
			t.Errorf("the page has no %q:\n%s", text, b.String())
		}
	}
	for name, change := range map[string]func(*config.Values){
		"colour too light": func(v *config.Values) { v.SiteColour = "#dddddd" },
		"colour too dark":  func(v *config.Values) { v.SiteColourDark = "#222222" },
		"no logo":          func(v *config.Values) { v.SiteLogo = filepath.Join(dir, "none.png") },
		"logo with script": func(v *config.Values) { v.SiteLogo = write("bad.svg", `<svg><script>alert(1)</script></svg>`) },
		"logo too large": func(v *config.Values) {
			v.SiteLogo = write("large.svg", "<svg>"+strings.Repeat(" ", web.MaxLogo)+"</svg>")
		},
		"no texts": func(v *config.Values) { v.SiteTexts = t.TempDir() },
		"language": func(v *config.Values) { v.Languages = []string{"tlh"} },
	} {
		wrong := values
		change(&wrong)
		if _, _, err := (&server{Config: &config.Config{Values: wrong}}).pages(); stele.KindOf(err) != stele.Invalid || err == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
