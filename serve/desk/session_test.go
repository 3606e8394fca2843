package desk

import (
	"net/http"
	"net/netip"
	"net/url"
	"testing"
	"time"

	"github.com/stele-id/stele/auth"
)

func TestSignIn(t *testing.T) {
	s := newSite(t)
	b := s.browser()
	b.get("/.desk/").leads("/.desk/sign-in?next=%2F.desk%2F")
	b.get("/.desk/sign-in").has(200, "stele user link")
	credential, _, err := s.r.CreateLink(s.admin, "olga", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	b.get("/.desk/link/"+credential).has(200, "Sign in as olga") // looking at it does not use it
	b.get("/.desk/link/"+credential).has(200, "Sign in as olga")
	p := b.post("/.desk/link/"+credential, nil).leads("/.desk/")
	cookie := p.Cookies()[0]
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.Path != "/.desk" {
		t.Errorf("the cookie is %v", cookie)
	}
	b.get("/.desk/").has(200, "olga", "Maps of Pará")
	s.browser().post("/.desk/link/"+credential, nil).has(401, "was used already")
	s.browser().get("/.desk/link/nonsense").has(401, "was used already")

	// A browser that has a session gets another one with a link: nothing can be fixed before.
	second, _, err := s.r.CreateLink(s.admin, "olga", 0)
	if err != nil {
		t.Fatal(err)
	}
	if next := b.post("/.desk/link/"+second, nil).leads("/.desk/").Cookies()[0]; next.Value == cookie.Value {
		t.Error("the credential of the session is the old one")
	}
	old := s.browser()
	r := must(http.NewRequest("GET", s.url+"/.desk/", nil))(t)
	r.AddCookie(cookie)
	old.do(r).leads("/.desk/sign-in")

	// A disabled user is out at once.
	must(s.r.SetUser(s.admin, "olga", func(u *auth.User) error { u.Disabled = true; return nil }))(t)
	b.get("/.desk/").leads("/.desk/sign-in")
}

func TestSignOut(t *testing.T) {
	s := newSite(t)
	b, other := s.as("ed"), s.as("ed")
	b.get("/.desk/account").has(200, "this one")
	b.post("/.desk/account/end-others", nil).leads("/.desk/account")
	other.get("/.desk/").leads("/.desk/sign-in")
	b.post("/.desk/sign-out", nil).leads("/.desk/sign-in")
	b.get("/.desk/").leads("/.desk/sign-in")
}

// TestDemo: one click signs in on loopback only, and only in a demonstration.
func TestDemo(t *testing.T) {
	plain := newSite(t)
	plain.browser().post("/.desk/sign-in/demo", nil).has(403)
	away := newSite(t, func(o *Options) {
		o.Demo, o.ClientAddr = "admin", func(*http.Request) netip.Addr { return netip.MustParseAddr("192.0.2.1") }
	})
	away.browser().post("/.desk/sign-in/demo", nil).has(403)
	forged := newSite(t, func(o *Options) { o.Demo, o.OwnHost = "admin", func(*http.Request) bool { return false } })
	forged.browser().post("/.desk/sign-in/demo", nil).has(403)
	demo := newSite(t, func(o *Options) { o.Demo = "admin" })
	b := demo.browser()
	r := must(http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/.desk/sign-in/demo", nil))(t)
	r.Header.Set("X-Forwarded-For", "192.0.2.1")
	b.do(r).has(403) // by a proxy on this machine
	b.get("/.desk/sign-in").has(200, "demonstration")
	b.post("/.desk/sign-in/demo", url.Values{"next": {"/.desk/names"}}).leads("/.desk/names")
	demo.browser().post("/.desk/sign-in/demo", url.Values{"next": {"//evil.example/"}}).leads("/.desk/")
}
