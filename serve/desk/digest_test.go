package desk

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// confirmed gives a user an address.
func (s *site) confirmed(user string) {
	s.t.Helper()
	var credential string
	as := auth.With(s.t.Context(), must(s.users.Principal(s.t.Context(), user))(s.t))
	must(s.r.AskAddress(as, user+"@example.org", "en", func(c string, _ time.Time) ([]stele.CellChange, error) { credential = c; return nil, nil }))(s.t)
	must(s.r.ConfirmAddress(s.admin, user, credential))(s.t)
}

func (s *site) digest(user string) auth.DigestRate {
	s.t.Helper()
	return must(s.r.Preferences(auth.With(s.t.Context(), auth.Principal{Name: user})))(s.t).Digest
}

// TestDigestChoice: users of every role choose how often their own digests come, if they have an address.
func TestDigestChoice(t *testing.T) {
	s, _ := newPost(t)
	for _, user := range []string{"admin", "olga", "ed", "ruth", "sam"} {
		b := s.as(user)
		if p := b.get("/.desk/settings").has(200); strings.Contains(p.main(), "Digest") {
			t.Errorf("%s has no address, and may choose digests", user)
		}
		s.confirmed(user)
		b.get("/.desk/settings").has(200, "Digest", `value="weekly" checked="checked"`)
		b.post("/.desk/settings/digest", url.Values{"digest": {"hourly"}}).has(400, "does not say how often")
		b.follow(b.post("/.desk/settings/digest", url.Values{"digest": {"daily"}, "user": {"olga"}})).has(200, "Saved.", `value="daily" checked="checked"`)
		if s.digest(user) != auth.DigestDaily || user == "admin" && s.digest("olga") != "" {
			t.Errorf("%s chose %q", user, s.digest(user))
		}
		b.post("/.desk/settings", url.Values{"language": {"pt-BR"}}).leads("/.desk/settings")
		if b.get("/.desk/settings").has(200, "Todos os dias", `value="daily" checked="checked"`); s.digest(user) != auth.DigestDaily {
			t.Errorf("the language of %s changes the digest", user)
		}
	}
	s.browser().post("/.desk/settings/digest", url.Values{"digest": {"off"}}).has(401)
	newSite(t).as("ed").post("/.desk/settings/digest", url.Values{"digest": {"off"}}).has(404)
}

// TestEndDigests: the link in a digest ends them without a session, by POST only, also if a mail program sends it.
func TestEndDigests(t *testing.T) {
	s, _ := newPost(t)
	out := s.browser()
	out.get("/.desk/digest/ed/x").has(401, "this link is not valid")
	path := "/.desk/digest/ed/" + must(s.r.DigestCredential(s.admin, "ed"))(t)
	out.get(path).has(200, "Send no more digests", `action="`+path+`"`)
	for _, wrong := range []string{strings.Replace(path, "/ed/", "/olga/", 1), path[:len(path)-3] + "AAA", "/.desk/digest/%2e%2e/x"} {
		if p := out.post(wrong, nil); p.StatusCode == 200 {
			t.Errorf("%s: %s", wrong, p.Status)
		}
	}
	if s.digest("ed") != "" || s.digest("olga") != "" {
		t.Error("a GET or a wrong link ends digests")
	}
	for _, kind := range []string{"application/x-www-form-urlencoded", "multipart/form-data; boundary=x"} {
		r := must(http.NewRequest("POST", s.url+path, strings.NewReader("List-Unsubscribe=One-Click")))(t)
		r.Header.Set("Content-Type", kind)
		r.Header.Set("Origin", "https://mail.example")
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		p := out.do(r).has(200, "No more digests are sent to ed")
		if len(p.Cookies()) != 0 || s.digest("ed") != auth.DigestOff {
			t.Errorf("%s: %v, %q", kind, p.Cookies(), s.digest("ed"))
		}
	}
	out.lang = "pt-BR"
	out.get(path).has(200, "Não enviar mais resumos")
	if b := s.as("ed"); s.digest("ed") == auth.DigestOff {
		s.confirmed("ed")
		b.get("/.desk/settings").has(200, `value="off" checked="checked"`)
	}
	for range 2 * tryBurst {
		out.get(path).has(200)
	}
	status := 0
	for range 2 * tryBurst {
		status = out.get("/.desk/digest/ed/x").StatusCode
	}
	if status != http.StatusTooManyRequests {
		t.Errorf("guesses are not limited: %d", status)
	}
}
