package desk

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// TestSettings: the language that a user has set comes before the cookie and what the browser asks
// for, in every browser of the user, and no other user sees it.
func TestSettings(t *testing.T) {
	s := newSite(t)
	b, other, sam := s.as("ed"), s.as("ed"), s.as("sam")
	b.get("/.desk/settings").has(200, "Settings", "As the browser asks", `lang="pt-BR"`)
	b.post("/.desk/settings", url.Values{"language": {"pt-BR"}}).leads("/.desk/settings")
	b.lang, other.lang = "en", "en"
	for _, browser := range []*browser{b, other} {
		if p := browser.get("/.desk/settings").has(200, "Configurações"); p.Header.Get("Content-Language") != "pt-BR" {
			t.Errorf("the page is in %s", p.Header.Get("Content-Language"))
		}
	}
	if p := sam.get("/.desk/").has(200); p.Header.Get("Content-Language") != "en" {
		t.Error("sam's language was changed")
	}
	// The switch on each page changes what was set.
	b.post("/.desk/language", url.Values{"tag": {"en"}, "next": {"/.desk/"}}).leads("/.desk/")
	other.get("/.desk/").has(200, "Welcome, ed")
	b.post("/.desk/settings", url.Values{"language": {"xx"}}).leads("/.desk/settings")
	other.lang = "pt-BR"
	other.get("/.desk/").has(200, "Boas-vindas")

	if p := must(s.r.Preferences(auth.With(t.Context(), auth.Principal{Name: "ed"})))(t); p != (auth.Preferences{User: "ed"}) {
		t.Errorf("got %+v", p)
	}
	if _, err := s.r.Preferences(t.Context()); stele.KindOf(err) != stele.Unauthenticated {
		t.Errorf("the public reads preferences: %v", err)
	}
	if _, err := s.r.SetPreferences(auth.With(t.Context(), auth.Principal{Name: "ed"}), func(p *auth.Preferences) { p.Language = strings.Repeat("x", 36) }); stele.KindOf(err) != stele.Invalid {
		t.Errorf("got %v", err)
	}
	s.browser().get("/.desk/settings").leads("/.desk/sign-in")
}
