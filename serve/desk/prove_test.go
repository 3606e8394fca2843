package desk

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stele-id/stele/auth"
)

// TestProve: a step that needs a fresh proof shows a page with all that was typed; after the proof
// the step is done, and the session has another credential.
func TestProve(t *testing.T) {
	var done []string
	s := newSite(t, func(o *Options) { o.Demo = "admin" })
	s.handler.mux.HandleFunc("POST "+Root+"test/danger", s.handler.answer(func(c *call) error {
		if err := c.fresh(); err != nil {
			return err
		}
		if err := c.readForm(); err != nil {
			return err
		}
		done = append(done, c.r.PostForm.Get("what"))
		c.redirect(Root + "?done=saved")
		return nil
	}, true))
	form := url.Values{"what": {`Typed "for" an hour`}, "more": {"a", "b"}}

	b := s.browser()
	b.post("/.desk/sign-in/demo", nil).leads("/.desk/")
	first := b.cookie()
	b.post("/.desk/test/danger?x=1", form).leads("/.desk/?done")
	s.now = s.now.Add(auth.FreshProof)
	b.post("/.desk/test/danger?x=1", form).has(403, "Prove that it is you", "Typed &#34;for&#34; an hour", `action="/.desk/prove/demo?to=%2f.desk%2ftest%2fdanger%3fx%3d1"`, "stele user link admin")
	if len(done) != 1 {
		t.Fatal("the step was done without a proof")
	}
	p := b.post("/.desk/prove/demo?to=%2f.desk%2ftest%2fdanger%3fx%3d1", form)
	if p.StatusCode != http.StatusTemporaryRedirect || p.Header.Get("Location") != "/.desk/test/danger?x=1" {
		t.Fatalf("got %s %q", p.Status, p.Header.Get("Location"))
	}
	if b.cookie() == first {
		t.Error("the credential of the session is the old one")
	}
	b.post("/.desk/test/danger?x=1", form).leads("/.desk/?done")
	if p := b.post("/.desk/prove/demo?to=https://evil.example/", form); p.Header.Get("Location") != Root {
		t.Errorf("a proof leads to %q", p.Header.Get("Location"))
	}

	// A user of a demonstration proves nothing for another user, and a new link is a proof.
	olga := s.as("olga")
	s.now = s.now.Add(auth.FreshProof)
	if p := olga.post("/.desk/test/danger", form).has(403, "stele user link olga"); strings.Contains(p.text, "prove/demo") {
		t.Error("a click is offered as a proof")
	}
	olga.post("/.desk/prove/demo?to=/.desk/", form).has(403)
	credential, _, err := s.r.CreateLink(s.admin, "olga", 0)
	if err != nil {
		t.Fatal(err)
	}
	olga.post("/.desk/link/"+credential, nil).leads("/.desk/")
	olga.post("/.desk/test/danger", form).leads("/.desk/?done")
}

// cookie returns the credential of the browser's session.
func (b *browser) cookie() string {
	for _, c := range b.client.Jar.Cookies(&url.URL{Scheme: "http", Host: strings.TrimPrefix(b.url, "http://"), Path: Root}) {
		if strings.Contains(c.Name, "stele") && c.Name != "stele-language" {
			return c.Value
		}
	}
	return ""
}
