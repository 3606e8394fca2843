package httpd

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stele-id/stele/web"
	"github.com/stele-id/stele/web/language"
	"github.com/stele-id/stele/web/webtest"
)

// TestLanguages: pages are in the language that a cookie, the browser or the site chooses, and a
// shared cache never mixes them up. Redirects and answers for programs do not depend on it.
func TestLanguages(t *testing.T) {
	s := newPast(t)
	for _, path := range []string{"/", "/.about", "/.urn", "/.info/ark:12345/x1", "/.info/ark:12345/x1?version=1", "/ark:12345/none", "/ark:/12/x", "/ark:12345/x1?explain", "/ark:12345/redacted", "/.info/ark:12345/redacted", "/ark:12345/x1?+s=nonsense", "/.info/ark:12345/x1?version=99", "/.info/ark:12345/x1?format=none", "/.memento/1/ark:12345/x1", "/uri-res/N2X?urn:x1:a", "/.urn?uri=javascript:1", "/.nothing"} {
		for _, tt := range []struct{ accept, cookie, want string }{
			{"", "", "en"}, {"pt-BR,pt;q=0.9,en;q=0.8", "", "pt-BR"}, {"pt", "", "pt-BR"}, {"de", "", "en"},
			{"en", "pt-BR", "pt-BR"}, {"pt-BR", "en", "en"}, {"pt-BR", "xx", "pt-BR"},
		} {
			head := []string{"Accept", firefox}
			if tt.accept != "" {
				head = append(head, "Accept-Language", tt.accept)
			}
			if tt.cookie != "" {
				head = append(head, "Cookie", language.Cookie+"="+tt.cookie)
			}
			a := s.get(path, head...)
			if a.get("Content-Language") != tt.want || !strings.Contains(a.body, `<html lang="`+tt.want+`">`) {
				t.Errorf("%s for %v is in %q", path, tt, a.get("Content-Language"))
			}
			for _, text := range webtest.English(a.body) {
				t.Errorf("%s in Portuguese has %s", path, text)
			}
			for _, name := range []string{"Accept-Language", "Cookie"} {
				if !strings.Contains(a.get("Vary"), name) {
					t.Errorf("%s varies by %q only", path, a.get("Vary"))
				}
			}
			other := map[string]string{"en": "pt-BR", "pt-BR": "en"}[tt.want]
			if link := `href="/.language/` + other + "?next=" + url.QueryEscape(path) + `" lang="` + other + `" hreflang="` + other + `"`; !strings.Contains(a.body, link) {
				t.Errorf("%s has no %s:\n%s", path, link, a.body)
			}
		}
	}
	for _, accept := range []string{"application/json", "text/plain"} {
		en, pt := s.get("/ark:12345/none", "Accept", accept), s.get("/ark:12345/none", "Accept", accept, "Accept-Language", "pt-BR", "Cookie", language.Cookie+"=pt-BR")
		if en.body != pt.body || strings.Contains(pt.get("Vary"), "Cookie") {
			t.Errorf("%s: programs are answered in the language of readers: %s", accept, pt.body)
		}
	}
	if a := s.get("/ark:12345/x1", "Accept", firefox); a.StatusCode != http.StatusFound || strings.Contains(a.get("Vary"), "Cookie") {
		t.Errorf("a redirect: %d, %q", a.StatusCode, a.get("Vary"))
	}
}

func TestChooseLanguage(t *testing.T) {
	s := newPast(t)
	for next, want := range map[string]string{
		"/.info/ark:12345/x1?version=1": "/.info/ark:12345/x1?version=1", "": "/", "//evil.example/": "/", "https://evil.example/": "/", "/\\evil.example": "/",
		"/a\r\nSet-Cookie: x": "/", "/.language/en?next=/": "/", "/é": "/",
	} {
		a := s.get("/.language/pt-BR?next=" + url.QueryEscape(next))
		if a.StatusCode != http.StatusSeeOther || a.get("Location") != "https://id.example.org"+want || !strings.HasPrefix(a.get("Set-Cookie"), language.Cookie+"=pt-BR; Path=/; Max-Age=31536000; HttpOnly; Secure; SameSite=Lax") || a.get("Cache-Control") != "no-store" {
			t.Errorf("%q: %d %v", next, a.StatusCode, a.Header)
		}
	}
	if a := s.get("/.language/xx?next=/"); a.StatusCode != http.StatusNotFound || a.get("Set-Cookie") != "" {
		t.Errorf("%d %v", a.StatusCode, a.Header)
	}
}

func TestVersionPage(t *testing.T) {
	s := newPast(t)
	a := s.get("/.info/ark:12345/x1?version=1", "Accept", firefox)
	if a.StatusCode != http.StatusOK || !strings.Contains(a.body, "This is version 1") || !strings.Contains(a.body, "https://example.org/day1") || !strings.Contains(a.body, `href="https://id.example.org/.info/ark:12345/x1"`) {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	for query, want := range map[string]int{"version=99": 404, "version=x": 400, "version=": 400} {
		if a := s.get("/.info/ark:12345/x1?"+query, "Accept", firefox); a.StatusCode != want {
			t.Errorf("%s: %d, want %d", query, a.StatusCode, want)
		}
	}
}

// TestProtocol: a browser that has this server as the handler of urn: links follows them here, to
// names only. Without a link there is the page that registers the handler, with a script.
func TestProtocol(t *testing.T) {
	s := newPast(t)
	for uri, want := range map[string]string{
		"urn:isbn:9780140449136": "/urn:isbn:9780140449136", "web+urn:isbn:9780140449136": "/urn:isbn:9780140449136", "WEB+URN:ISBN:978-0-14-044913-6": "/urn:isbn:9780140449136",
		"web+ark:/12345/x1": "/ark:12345/x1", " urn:x1:a ": "/urn:x1:a",
	} {
		s.leads("/.urn?uri="+url.QueryEscape(uri), "https://id.example.org"+want, http.StatusSeeOther)
	}
	for uri, want := range map[string]string{
		"nonsense": "another link", "javascript:alert(1)": "another link", "web+javascript:alert(1)": "another link", "https://evil.example/urn:isbn:9780140449136": "another link",
		"web+https://evil.example/": "another link", "//evil.example": "another link", "web+web+urn:isbn:9780140449136": "another link", "data:text/html,urn:x1:a": "another link",
		"urn:x1:" + strings.Repeat("a", 5000): "more than 4096 bytes", "urn:x1:a\r\nSet-Cookie: x=1": "be read as a name", "urn:x1:a\x00b": "be read as a name", "urn:": "be read as a name", "web+urn:": "be read as a name",
	} {
		a := s.get("/.urn?uri="+url.QueryEscape(uri), "Accept", firefox)
		if a.StatusCode != http.StatusBadRequest || a.get("Location") != "" || a.get("Set-Cookie") != "" || a.get("Content-Security-Policy") != web.Policy || !strings.Contains(a.body, want) || len(a.body) > 20_000 {
			t.Errorf("%.40q: %d %v\n%s", uri, a.StatusCode, a.Header, a.body)
		}
	}
	for _, query := range []string{"", "?uri=", "?uri=%20", "?other=1"} {
		a := s.get("/.urn"+query, "Accept", firefox)
		if a.StatusCode != http.StatusOK || a.get("Content-Security-Policy") != web.ScriptPolicy || !strings.Contains(a.body, `data-protocol="web+urn"`) || !strings.Contains(a.body, "https://id.example.org/.urn?uri=%s") {
			t.Errorf("%q: %d %v\n%s", query, a.StatusCode, a.Header, a.body)
		}
	}
	if a := s.get("/", "Accept", firefox); !strings.Contains(a.body, `href="/.urn"`) || strings.Contains(a.body, "<script") || a.get("Content-Security-Policy") != web.Policy {
		t.Errorf("the first page: %v\n%s", a.Header, a.body)
	}
}
