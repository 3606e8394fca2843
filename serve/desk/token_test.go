package desk

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// TestToken: a user makes a token for a program, with a fresh proof; it is shown once, may be used for
// what was chosen, and ends with the user.
func TestToken(t *testing.T) {
	s := newSite(t)
	b := s.as("olga")
	if p := b.get("/.desk/account/tokens/new").has(200, "Read: list and search", "90 days"); strings.Contains(p.text, `value="backup"`) || strings.Contains(p.text, `value="never"`) {
		t.Error("a user is offered what only an administrator may have")
	}
	s.as("admin").get("/.desk/account/tokens/new").has(200, `value="backup"`, `value="never"`)
	form := url.Values{"label": {"nightly import"}, "scope": {"read", "mint"}, "namespaces": {"ark:12345/x5\n"}, "expires": {"30"}}
	p := b.post("/.desk/account/tokens", form).has(200, "nightly import", "only time")
	credential := regexp.MustCompile(`stele_[0-9a-z]{12}_[\w-]{43}`).FindString(p.text)
	who, err := s.handler.o.Directory.Authenticate(t.Context(), credential)
	if err != nil || who.Name != "olga" || !who.Has(auth.ScopeMint) || who.Has(auth.ScopeWrite) || strings.Join(who.Namespaces(), " ") != "ark:12345/x5" || who.Expires.Sub(s.now).Hours() != 30*24 {
		t.Errorf("got %+v, %v", who, err)
	}
	if p := b.get("/.desk/account").has(200, "nightly import"); strings.Contains(p.text, credential) {
		t.Error("the token is shown twice")
	}

	// All problems at once, and nothing typed is lost.
	b.post("/.desk/account/tokens", url.Values{"namespaces": {"ark:12345/x5"}, "expires": {"soon"}}).has(422, `href="#label"`, `href="#scope"`, `href="#expires"`, "ark:12345/x5")
	for field, change := range map[string]url.Values{"namespaces": {"namespaces": {"ark:99999"}}, "scope": {"scope": {"everything"}}, "expires": {"expires": {"never"}}, "label": {"label": {strings.Repeat("x", 201)}}} {
		wrong := url.Values{"label": {"x"}, "scope": {"read"}, "expires": {"30"}}
		for name, values := range change {
			wrong[name] = values
		}
		b.post("/.desk/account/tokens", wrong).has(422, `href="#`+field+`"`)
	}

	// Without a fresh proof the form is kept, and no token is made.
	s.now = s.now.Add(auth.FreshProof)
	b.get("/.desk/account/tokens/new").has(403, "Prove that it is you")
	b.post("/.desk/account/tokens", form).has(403, "Prove that it is you", "nightly import", `value="mint"`)
	must(s.r.SetUser(s.admin, "olga", func(u *auth.User) error { u.Disabled = true; return nil }))(t)
	if _, err := s.handler.o.Directory.Authenticate(t.Context(), credential); stele.KindOf(err) != stele.Unauthenticated {
		t.Errorf("the token outlives its user: %v", err)
	}
}
