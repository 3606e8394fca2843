package desk

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/auth/issuer"
	"github.com/stele-id/stele/auth/issuer/issuertest"
	"github.com/stele-id/stele/outbound"
)

// lines are the lines of a log.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := l.b.String()
	l.b.Reset()
	return text
}

// issuerSite is a desk with an OpenID provider.
type issuerSite struct {
	*site
	provider *issuertest.Provider
	log      *lines
}

func newIssuerSite(t *testing.T, enter string, change ...func(*issuer.Settings)) *issuerSite {
	t.Helper()
	s := &issuerSite{log: &lines{}}
	now := func() time.Time {
		if s.site == nil {
			return time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
		}
		return s.now
	}
	s.provider = issuertest.Start(t, now)
	settings := issuer.Settings{Name: "campus", Label: "Campus", URL: s.provider.URL, Client: issuertest.Client, Secret: issuertest.Secret, GroupsClaim: "groups",
		Groups: []issuer.GroupRule{{Value: "lib:staff", Group: "curators"}, {Value: "press", Group: "press"}}, Enter: must(issuer.ParseEnter(enter))(t)}
	for _, f := range change {
		f(&settings)
	}
	o := issuer.Options{Settings: settings, Rule: must(outbound.ParseRule([]string{"127.0.0.0/8"}))(t), Now: now, Random: rand.Reader}
	s.site = newSite(t, func(d *Options) {
		d.Log = slog.New(slog.NewTextHandler(s.log, nil))
		o.Base = "http://desk.example" // the tests take the path alone
		d.Issuers = []*issuer.Issuer{issuer.New(o)}
	})
	return s
}

// visit goes to the provider from a page of ours, and returns the path to which that leads back.
func (s *issuerSite) visit(p page) string {
	s.t.Helper()
	p.leads(s.provider.URL + "/authorize")
	return s.atProvider(p.Header.Get("Location"))
}

// atProvider opens a URL of the provider, and returns the path to which it leads back.
func (s *issuerSite) atProvider(link string) string {
	s.t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	a, err := client.Get(link)
	if err != nil {
		s.t.Fatal(err)
	}
	a.Body.Close()
	path, ok := strings.CutPrefix(a.Header.Get("Location"), "http://desk.example")
	if !ok {
		s.t.Fatalf("the provider leads to %q", a.Header.Get("Location"))
	}
	return path
}

func (s *issuerSite) user(name string) auth.User {
	s.t.Helper()
	return must(s.r.User(s.admin, name))(s.t)
}

// link returns the URL of the provider on a page.
func (s *issuerSite) link(p page) string {
	s.t.Helper()
	_, rest, ok := strings.Cut(p.text, `href="`+s.provider.URL)
	if !ok {
		s.t.Fatalf("no link to the provider:\n%s", p.main())
	}
	rest, _, _ = strings.Cut(rest, `"`)
	return s.provider.URL + strings.ReplaceAll(rest, "&amp;", "&")
}

// TestIssuerMakes: a claim lets people enter, a user is made, and groups follow the claim at each
// sign-in, except those that an administrator gave.
func TestIssuerMakes(t *testing.T) {
	s := newIssuerSite(t, "claim:affiliation=staff")
	s.provider.SignIn(map[string]any{"sub": "1001", "preferred_username": "Ann.Lee@example.org", "groups": []string{"lib:staff", "lib:other"}}, map[string]any{"affiliation": []string{"member", "staff"}})
	b := s.browser()
	b.get("/.desk/sign-in?next=/.desk/names").has(200, "Sign in with Campus", "/.desk/issuer/campus?next=%2F.desk%2Fnames")
	back := s.visit(b.get("/.desk/issuer/campus?next=/.desk/names"))
	asked := s.provider.Asked()
	if asked.Get("code_challenge_method") != "S256" || len(asked.Get("nonce")) < 32 || len(asked.Get("state")) < 32 || !strings.Contains(asked.Get("scope"), "openid") {
		t.Errorf("the provider was asked %v", asked)
	}
	b.get(back).leads("/.desk/names")
	b.get("/.desk/account").has(200, "ann.lee@campus", "through Campus", "Link an account at Campus")
	if u := s.user("ann.lee@campus"); !slices.Equal(u.Groups, []string{"curators"}) || u.Admin {
		t.Errorf("got %+v", u)
	}
	b.get(back).has(401, "begin again") // the cookie was used

	// The administrator gives a group; the provider gives another one, and takes the first away.
	must(s.r.SetUser(s.admin, "ann.lee@campus", func(u *auth.User) error { u.Groups = append(u.Groups, "staff"); return nil }))(t)
	s.provider.SignIn(map[string]any{"sub": "1001", "preferred_username": "renamed", "groups": "press"}, map[string]any{"affiliation": "staff"})
	again := s.browser()
	again.get(s.visit(again.get("/.desk/issuer/campus"))).leads("/.desk/")
	if u := s.user("ann.lee@campus"); !slices.Equal(u.Groups, []string{"press", "staff"}) {
		t.Errorf("the groups are %v", u.Groups)
	}
	// Another person with the same name is another user, whatever the address of mail.
	s.provider.SignIn(map[string]any{"sub": "1002", "preferred_username": "ann.lee", "email": "ann@example.org", "groups": []string{}}, map[string]any{"affiliation": "staff"})
	other := s.browser()
	other.get(s.visit(other.get("/.desk/issuer/campus"))).leads("/.desk/")
	other.get("/.desk/account").has(200, "ann.lee-2@campus")
	// Without the claim nobody is made; with it, who is known enters all the same.
	s.provider.SignIn(map[string]any{"sub": "1003", "preferred_username": "eve", "affiliation": "alumni", "groups": []string{}}, nil)
	eve := s.browser()
	eve.get(s.visit(eve.get("/.desk/issuer/campus"))).has(403, "linked to no user", "Sign in with Campus")
	// A user who is disabled does not enter.
	must(s.r.SetUser(s.admin, "ann.lee-2@campus", func(u *auth.User) error { u.Disabled = true; return nil }))(t)
	s.provider.SignIn(map[string]any{"sub": "1002", "groups": []string{}}, map[string]any{"affiliation": "staff"})
	off := s.browser()
	off.get(s.visit(off.get("/.desk/issuer/campus"))).has(403, "is disabled")
	off.get("/.desk/").leads("/.desk/sign-in")
}

// TestIssuerLinks: users link an account on their page, or with a one-time link, and leave it.
func TestIssuerLinks(t *testing.T) {
	s := newIssuerSite(t, "invited")
	s.provider.SignIn(map[string]any{"sub": "7", "groups": []string{"press"}}, map[string]any{"name": "Olga P."})
	b := s.browser()
	b.get(s.visit(b.get("/.desk/issuer/campus"))).has(403, "linked to no user")
	olga := s.as("olga")
	p := olga.post("/.desk/account/issuer", url.Values{"issuer": {"campus"}}).has(200, "Continue at Campus", "from now on")
	olga.get(s.atProvider(s.link(p))).leads("/.desk/account?done=issuer-joined")
	olga.get("/.desk/account").has(200, "Olga P.", "Unlink")
	b.get(s.visit(b.get("/.desk/issuer/campus"))).leads("/.desk/")
	b.get("/.desk/").has(200, "olga")
	if u := s.user("olga"); !slices.Equal(u.Groups, []string{"press"}) {
		t.Errorf("the groups are %v", u.Groups)
	}

	// The account is olga's: ed can't have it, nor by a link.
	ed := s.as("ed")
	p = ed.post("/.desk/account/issuer", url.Values{"issuer": {"campus"}})
	ed.get(s.atProvider(s.link(p))).has(409, "signs another user in")
	credential, _, err := s.r.CreateLink(s.admin, "ruth", 0)
	if err != nil {
		t.Fatal(err)
	}
	ruth := s.browser()
	ruth.get("/.desk/link/"+credential).has(200, "Sign in with Campus")
	p = ruth.post("/.desk/link/"+credential+"/issuer", url.Values{"issuer": {"campus"}}).has(200, "Your link is used then")
	back := s.atProvider(s.link(p))
	ruth.get(back).has(409, "signs another user in")
	s.provider.SignIn(map[string]any{"sub": "8"}, nil)
	p = ruth.post("/.desk/link/"+credential+"/issuer", url.Values{"issuer": {"campus"}}).has(200)
	ruth.get(s.atProvider(s.link(p))).leads("/.desk/")
	ruth.get("/.desk/").has(200, "ruth")
	s.browser().get("/.desk/link/"+credential).has(401, "was used already")

	// An administrator sees the account and takes it away.
	admin := s.as("admin")
	ruthID := auth.IdentityID(s.provider.URL, "8")
	admin.get("/.desk/person?name=ruth").has(200, "Other ways to sign in", ruthID)
	admin.post("/.desk/person/unlink", url.Values{"name": {"ruth"}, "id": {ruthID}}).leads("/.desk/person?name=ruth")
	admin.post("/.desk/person/unlink", url.Values{"name": {"ruth"}, "id": {ruthID}}).has(404)

	// What was begun in one session is not ended in another one.
	p = ed.post("/.desk/account/issuer", url.Values{"issuer": {"campus"}})
	back = s.atProvider(s.link(p))
	ed.post("/.desk/sign-out", nil).leads("/.desk/sign-in")
	ed.get(back).has(403, "begin again")

	s.now = s.now.Add(time.Minute) // attempts are limited
	// An account that was unlinked signs nobody in, and its groups are gone; linking it again is possible.
	id := auth.IdentityID(s.provider.URL, "7")
	s.as("sam").post("/.desk/account/issuer/leave", url.Values{"id": {id}}).has(404)
	olga.post("/.desk/account/issuer/leave", url.Values{"id": {id}}).leads("/.desk/account?done=issuer-left")
	if u := s.user("olga"); len(u.Groups) > 0 {
		t.Errorf("the groups are %v", u.Groups)
	}
	s.provider.SignIn(map[string]any{"sub": "7"}, nil)
	out := s.browser()
	out.get(s.visit(out.get("/.desk/issuer/campus"))).has(403, "was taken from its user")
	p = olga.post("/.desk/account/issuer", url.Values{"issuer": {"campus"}})
	olga.get(s.atProvider(s.link(p))).leads("/.desk/account?done=issuer-joined")
	out.get(s.visit(out.get("/.desk/issuer/campus"))).leads("/.desk/")

	// Linking is a dangerous step, for which the account proves who the user is.
	s.now = s.now.Add(11 * time.Minute)
	olga.post("/.desk/account/issuer", url.Values{"issuer": {"campus"}}).has(403, "Prove that it is you", "/.desk/issuer/campus?again=yes")
	back = s.visit(olga.get("/.desk/issuer/campus?again=yes"))
	if q := s.provider.Asked(); q.Get("max_age") != "0" || q.Get("prompt") != "login" {
		t.Errorf("the provider was asked %v", q)
	}
	olga.get(back).leads("/.desk/account?done=proved")
	olga.post("/.desk/account/issuer", url.Values{"issuer": {"campus"}}).has(200)
	s.now = s.now.Add(11 * time.Minute)
	s.provider.SignIn(map[string]any{"sub": "8"}, nil) // the account of ruth proves nothing of olga
	olga.get(s.visit(olga.get("/.desk/issuer/campus?again=yes"))).has(403, "does not sign")
	s.provider.SignIn(map[string]any{"sub": "7"}, nil)
	s.provider.Falsify(func(c map[string]any) { c["auth_time"] = s.now.Add(-time.Hour).Unix() })
	olga.get(s.visit(olga.get("/.desk/issuer/campus?again=yes"))).has(401, "is not accepted")
}

// TestIssuerKnownOnly: with none, a one-time link does not lead to an issuer.
func TestIssuerKnownOnly(t *testing.T) {
	s := newIssuerSite(t, "none")
	credential, _, err := s.r.CreateLink(s.admin, "ruth", 0)
	if err != nil {
		t.Fatal(err)
	}
	b := s.browser()
	if p := b.get("/.desk/link/" + credential).has(200); strings.Contains(p.text, "Campus") {
		t.Error("the link leads to an issuer")
	}
	p := b.post("/.desk/link/"+credential+"/issuer", url.Values{"issuer": {"campus"}})
	b.get(s.atProvider(s.link(p))).has(403, "use the link itself")
	b.get("/.desk/issuer/elsewhere").has(404)
	b.get("/.desk/issuer/elsewhere/back").has(404)
}

// TestIssuerHostile: an answer that does not fit is refused with a sentence, and the log has the
// cause.
func TestIssuerHostile(t *testing.T) {
	s := newIssuerSite(t, "claim:ok=yes")
	good := map[string]any{"sub": "1", "ok": "yes", "preferred_username": "u", "groups": []string{}}
	s.provider.SignIn(good, nil)
	for name, wrong := range map[string]func(c map[string]any){
		"nonce":          func(c map[string]any) { c["nonce"] = "another" },
		"issuer":         func(c map[string]any) { c["iss"] = "https://evil.example" },
		"audience":       func(c map[string]any) { c["aud"] = "another" },
		"expired":        func(c map[string]any) { c["exp"] = s.now.Add(-time.Minute).Unix() },
		"no subject":     func(c map[string]any) { delete(c, "sub") },
		"a long subject": func(c map[string]any) { c["sub"] = strings.Repeat("x", 300) },
	} {
		s.provider.Falsify(wrong)
		s.refused(name, func(b *browser) page { return b.get(s.visit(b.get("/.desk/issuer/campus"))) })
	}
	s.provider.Falsify(nil)
	for name, head := range map[string]string{"alg none": `{"alg":"none"}`, "alg HS256": `{"alg":"HS256"}`} {
		s.provider.Forge(func(c map[string]any) string {
			payload, _ := json.Marshal(c)
			return base64.RawURLEncoding.EncodeToString([]byte(head)) + "." + base64.RawURLEncoding.EncodeToString(payload) + "."
		})
		s.refused(name, func(b *browser) page { return b.get(s.visit(b.get("/.desk/issuer/campus"))) })
	}
	s.provider.Forge(nil)
	s.refused("a changed state", func(b *browser) page {
		return b.get(strings.Replace(s.visit(b.get("/.desk/issuer/campus")), "state=", "state=x", 1))
	})
	s.refused("another issuer in the answer", func(b *browser) page {
		return b.get(strings.Replace(s.visit(b.get("/.desk/issuer/campus")), "iss=http", "iss=https", 1))
	})
	s.refused("no cookie", func(b *browser) page { return s.browser().get(s.visit(b.get("/.desk/issuer/campus"))) })
	s.refused("a cookie of another visit", func(b *browser) page {
		first := s.visit(b.get("/.desk/issuer/campus"))
		b.get("/.desk/issuer/campus")
		return b.get(first)
	})
	s.refused("a replayed code", func(b *browser) page {
		path := s.visit(b.get("/.desk/issuer/campus"))
		u := must(url.Parse(b.url + "/.desk/issuer"))(t)
		kept := b.client.Jar.Cookies(u)
		b.get(path).leads("/.desk/")
		thief := s.browser()
		r := must(http.NewRequest("GET", s.url+path, nil))(t)
		for _, c := range kept {
			r.AddCookie(c)
		}
		return thief.do(r)
	})
	s.refused("too late", func(b *browser) page {
		path := s.visit(b.get("/.desk/issuer/campus"))
		r := must(http.NewRequest("GET", s.url+path, nil))(t)
		for _, c := range b.client.Jar.Cookies(must(url.Parse(b.url + "/.desk/issuer"))(t)) {
			r.AddCookie(c)
		}
		s.now = s.now.Add(issuer.VisitLife + time.Second)
		return s.browser().do(r)
	})
	s.provider.SignIn(map[string]any{"sub": "1"}, map[string]any{"sub": "2", "ok": "yes"})
	s.refused("user info of another", func(b *browser) page { return b.get(s.visit(b.get("/.desk/issuer/campus"))) })
	s.provider.SignIn(good, nil)
	for code, text := range map[string]string{"access_denied": "did not let you", "server_error": "is not accepted"} {
		s.provider.Refuse(code)
		p := s.refused(code, func(b *browser) page { return b.get(s.visit(b.get("/.desk/issuer/campus"))) })
		p.has(401, text)
	}
	s.provider.Refuse("")
	b := s.browser()
	path := s.visit(b.get("/.desk/issuer/campus"))
	s.provider.Down(true)
	b.get(path).has(503, "can&#39;t be reached")
	s.provider.Down(false)
	b.get(s.visit(b.get("/.desk/issuer/campus"))).leads("/.desk/")

	// A subject is an account of its issuer only.
	if auth.IdentityID("https://a.example", "1") == auth.IdentityID("https://b.example", "1") || auth.IdentityID("https://a.example", "b1") == auth.IdentityID("https://a.exampleb", "1") {
		t.Error("two accounts are one")
	}
}

// refused fails unless an attempt to sign in is refused with a sentence, and the log has a cause.
func (s *issuerSite) refused(name string, attempt func(b *browser) page) page {
	s.t.Helper()
	s.log.take()
	s.now = s.now.Add(time.Minute) // attempts are limited
	b := s.browser()
	p := attempt(b)
	if p.StatusCode != http.StatusUnauthorized || !strings.Contains(p.text, `role="alert"`) || strings.Contains(p.text, "oidc:") {
		s.t.Errorf("%s: %s\n%s", name, p.Status, p.main())
	}
	if text := s.log.take(); !strings.Contains(text, "a user could not sign in through an issuer") || strings.Contains(text, issuertest.Secret) {
		s.t.Errorf("%s: the log has %s", name, text)
	}
	return p
}

// TestIssuerDown: an issuer that is down does not stop the desk, and is asked again later; one at a
// private address that the settings do not allow is never asked.
func TestIssuerDown(t *testing.T) {
	s := newIssuerSite(t, "invited")
	s.provider.Down(true)
	b := s.browser()
	b.get("/.desk/sign-in").has(200, "Sign in with Campus")
	b.get("/.desk/issuer/campus").has(503, "can&#39;t be reached", "Sign in with Campus")
	if text := s.log.take(); !strings.Contains(text, "502") {
		t.Errorf("the log has %s", text)
	}
	s.provider.Down(false)
	b.get("/.desk/issuer/campus").has(503) // not asked again at once
	s.now = s.now.Add(10 * time.Second)
	b.get("/.desk/issuer/campus").leads(s.provider.URL)

	private := issuer.New(issuer.Options{Settings: issuer.Settings{Name: "x", URL: s.provider.URL, Client: "c", Secret: "s"}, Now: time.Now, Random: rand.Reader})
	if err := private.Check(t.Context()); err == nil || !strings.Contains(issuer.Cause(err).Error(), "not an address of the public Internet") {
		t.Errorf("got %v, %v", err, issuer.Cause(err))
	}
}

// TestProxy: the header of a trusted proxy is believed, and of nobody else.
func TestProxy(t *testing.T) {
	trusted := true
	var o *Options
	s := newSite(t, func(d *Options) {
		d.Proxy = &Proxy{UserHeader: "Remote-User", GroupsHeader: "Remote-Groups", From: func(*http.Request) bool { return trusted }}
		o = d
	})
	proxy := o.Proxy
	ask := func(method, path string, users []string, groups string) page {
		b := s.browser()
		r := must(http.NewRequest(method, s.url+path, nil))(t)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		for _, user := range users {
			r.Header.Add("Remote-User", user)
		}
		r.Header.Set("Remote-Groups", groups)
		return b.do(r)
	}
	ask("GET", "/.desk/sign-in", []string{"Olga"}, "").has(200, "Enter as olga")
	ask("POST", "/.desk/sign-in/proxy", []string{"Olga"}, "press; Staff ,bad name,press").leads("/.desk/")
	if u := must(s.r.User(s.admin, "olga"))(t); !slices.Equal(u.Groups, []string{"press", "staff"}) {
		t.Errorf("the groups are %v", u.Groups)
	}
	// A group header of the client beside the proxy's is not believed.
	two := must(http.NewRequest("POST", s.url+"/.desk/sign-in/proxy", nil))(t)
	two.Header = http.Header{"Sec-Fetch-Site": {"same-origin"}, "Remote-User": {"olga"}, "Remote-Groups": {"admins", "press"}}
	s.browser().do(two).has(403)
	// The proxy does not say when the user signed in, so a dangerous step needs another proof.
	quiet := s.browser()
	in := must(http.NewRequest("POST", s.url+"/.desk/sign-in/proxy", nil))(t)
	in.Header = http.Header{"Sec-Fetch-Site": {"same-origin"}, "Remote-User": {"olga"}}
	quiet.do(in).leads("/.desk/")
	quiet.post("/.desk/account/tokens", url.Values{"label": {"x"}}).has(403, "Prove that it is you")
	ask("POST", "/.desk/sign-in/proxy", []string{"olga"}, "staff").leads("/.desk/")
	if u := must(s.r.User(s.admin, "olga"))(t); !slices.Equal(u.Groups, []string{"staff"}) {
		t.Errorf("the groups are %v", u.Groups)
	}
	ask("POST", "/.desk/sign-in/proxy", []string{"zoe"}, "").has(403, "linked to no user")
	ask("POST", "/.desk/sign-in/proxy", []string{"local"}, "").has(403)
	ask("POST", "/.desk/sign-in/proxy", []string{"olga", "admin"}, "").has(403, "did not come through a proxy")
	ask("POST", "/.desk/sign-in/proxy", []string{"<b>"}, "").has(403, "be a name here")
	ask("POST", "/.desk/sign-in/proxy", nil, "").has(403)
	proxy.Make = true
	ask("POST", "/.desk/sign-in/proxy", []string{"zoe"}, "").leads("/.desk/")
	ask("POST", "/.desk/sign-in/proxy", []string{"local"}, "").has(400)
	trusted = false
	ask("POST", "/.desk/sign-in/proxy", []string{"admin"}, "").has(403)
	if p := ask("GET", "/.desk/sign-in", []string{"admin"}, "").has(200); strings.Contains(p.text, "Enter as") {
		t.Error("the header of a stranger is believed")
	}
	newSite(t).browser().post("/.desk/sign-in/proxy", nil).has(403)
}
