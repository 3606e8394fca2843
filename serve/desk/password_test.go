package desk

import (
	"encoding/base32"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth/password"
	"github.com/stele-id/stele/internal/limit"
)

const goodPassword = "mint tractor violet cello"

func withPasswords(o *Options) { o.Passwords = true }

// app is an authenticator app.
type app struct {
	*site
	key []byte
}

// scanned returns an app with the key that a page shows.
func (s *site) scanned(p page) app {
	s.t.Helper()
	found := regexp.MustCompile(`<code>([A-Z2-7 ]{39})</code>`).FindStringSubmatch(p.text)
	if found == nil {
		s.t.Fatalf("the page has no key\n%s", p.main())
	}
	return app{s, must(base32.StdEncoding.DecodeString(strings.ReplaceAll(found[1], " ", "")))(s.t)}
}

// code returns a code that was not used: time goes on.
func (a app) code() string {
	a.now = a.now.Add(password.Period)
	return password.Code(a.key, password.Step(a.now))
}

var offered = regexp.MustCompile(`name="offer" value="([^"]+)"`)

// offer returns the offer in a page.
func (p page) offer() string {
	p.t.Helper()
	found := offered.FindStringSubmatch(p.text)
	if found == nil {
		p.t.Fatalf("the page has no offer\n%s", p.main())
	}
	return found[1]
}

// password sets the password of a user.
func (b *browser) password() app {
	b.t.Helper()
	p := b.get("/.desk/account/password").has(200, "Set a password", "<svg")
	a := b.scanned(p)
	b.post("/.desk/account/password", url.Values{"secret.password": {goodPassword}, "secret.again": {goodPassword}, "secret.code": {a.code()}, "offer": {p.offer()}}).leads("/.desk/account?done=password-set")
	return a
}

// with signs in by a password.
func (b *browser) with(user, text, code string) page {
	b.t.Helper()
	return b.post("/.desk/sign-in/password", url.Values{"user": {user}, "secret.password": {text}, "secret.code": {code}, "next": {"/.desk/names"}})
}

// TestPassword: a user sets a password after a link, signs in with it, changes and removes it.
func TestPassword(t *testing.T) {
	s := newSite(t, withPasswords)
	link, _, err := s.r.CreateLink(s.admin, "ed", 0)
	if err != nil {
		t.Fatal(err)
	}
	b := s.browser()
	p := b.follow(b.post("/.desk/link/"+link, nil).leads("/.desk/account/password?first=yes")).has(200, "Your link can&#39;t be used again", "Not now", `autocomplete="new-password"`, `autocomplete="one-time-code"`)
	p.wellFormed()
	a := s.scanned(p)

	// Every mistake is said beside its field; the offer stays, and no password is in the page.
	p = b.post("/.desk/account/password", url.Values{"secret.password": {"ed stele 123"}, "secret.again": {"ed stele 124"}, "secret.code": {a.code()}, "offer": {p.offer()}, "first": {"yes"}}).
		has(422, "There are 2 problems", "15 or more", "is not the same password", `id="again-problem"`)
	if strings.Contains(p.text, "ed stele 12") || string(s.scanned(p).key) != string(a.key) {
		t.Error("the page shows the password, or has another key")
	}
	p = b.post("/.desk/account/password", url.Values{"secret.password": {"password password 12"}, "secret.again": {"password password 12"}, "secret.code": {"123"}, "offer": {p.offer()}}).
		has(422, "is easy to guess", "is not the code that the app shows")
	b.post("/.desk/account/password", url.Values{"secret.password": {goodPassword}, "secret.again": {goodPassword}, "secret.code": {a.code()}, "offer": {"nonsense"}}).has(422, "this page was open for too long")
	b.post("/.desk/account/password", url.Values{"secret.password": {goodPassword}, "secret.again": {goodPassword}, "secret.code": {a.code()}, "offer": {p.offer()}}).leads("/.desk/account?done=password-set")
	b.get("/.desk/account").has(200, "Change the password", "Not used yet.").wellFormed()
	b.post("/.desk/sign-out", nil).leads("/.desk/sign-in")

	b.get("/.desk/sign-in").has(200, "With a password", `autocomplete="username"`, `autocomplete="current-password"`, `autocomplete="one-time-code"`).wellFormed()
	code := a.code()
	b.with(" Ed ", goodPassword, code).leads("/.desk/names")
	b.get("/.desk/account").has(200, "by a password", "Used last")
	other := s.browser()
	other.with("ed", goodPassword, code).has(401, "the user name, the password or the code is wrong", `value="ed"`)
	other.with("ed", goodPassword, a.code()).leads("/.desk/names")

	// A change keeps the app, and ends the other session that began with the password.
	b.get("/.desk/account/password").has(200, "Change the password", "The app that you have stays.")
	b.get("/.desk/account/password?app=new").has(200, "<svg")
	next := "violet cello mint tractor"
	b.post("/.desk/account/password", url.Values{"secret.password": {next}, "secret.again": {next}, "secret.code": {a.code()}}).leads("/.desk/account?done=password-set")
	other.get("/.desk/").leads("/.desk/sign-in")
	other.with("ed", goodPassword, a.code()).has(401)
	other.with("ed", next, a.code()).leads("/.desk/names")

	b.post("/.desk/account/password/remove", nil).has(200, "You will not be able to sign in", `name="sure"`)
	b.post("/.desk/account/password/remove", url.Values{"sure": {"yes"}}).leads("/.desk/account?done=password-removed")
	s.browser().with("ed", next, a.code()).has(401)
}

// TestPasswordRefusals: a page does not tell why a password was refused, and not who is a user.
func TestPasswordRefusals(t *testing.T) {
	s := newSite(t, withPasswords)
	a := s.as("ed").password()
	s.as("ruth").password()
	texts := make(map[string]string)
	for name, try := range map[string][3]string{
		"wrong password": {"ed", "another long password", a.code()}, "wrong code": {"ed", goodPassword, "000000"}, "no code": {"ed", goodPassword, ""},
		"no password": {"sam", goodPassword, a.code()}, "no user": {"zoe", goodPassword, a.code()}, "no name": {"", "", ""}, "too long": {"ed", strings.Repeat("x", 5000), a.code()}, "code of another": {"ruth", goodPassword, a.code()},
	} {
		p := s.browser().with(try[0], try[1], try[2]).has(http.StatusUnauthorized)
		if p.Header.Get("Set-Cookie") != "" || try[1] != "" && strings.Contains(p.text, try[1]) {
			t.Errorf("%s: the page gives a session or shows the password", name)
		}
		texts[strings.ReplaceAll(p.main(), `value="`+try[0]+`"`, `value=""`)] = name
	}
	if len(texts) != 1 {
		t.Errorf("pages differ: %q", texts)
	}
}

// TestPasswordLimits: attempts are counted by account and by address, also for users who are not there.
func TestPasswordLimits(t *testing.T) {
	for _, user := range []string{"ed", "zoe"} {
		address := 0
		s := newSite(t, withPasswords, func(o *Options) {
			o.ClientAddr = func(*http.Request) netip.Addr { address++; return netip.AddrFrom4([4]byte{192, 0, 2, byte(address)}) }
		})
		a := s.as("ed").password()
		for range 11 { // the last by what flows in meanwhile
			s.browser().with(user, "another long password", "000000").has(401)
			s.now = s.now.Add(time.Second)
		}
		s.browser().with(user, goodPassword, a.code()).has(429, "too many attempts to sign in as this user", "wait ")
		s.now = s.now.Add(11 * time.Minute)
		if p := s.browser().with(user, goodPassword, a.code()); (p.StatusCode == http.StatusSeeOther) != (user == "ed") {
			t.Errorf("%s: %s", user, p.Status)
		}
	}
	s := newSite(t, withPasswords)
	a := s.as("ed").password()
	for range 12 { // a right one costs nothing
		s.browser().with("ed", goodPassword, a.code()).leads("/.desk/names")
	}
	for i := range tryBurst - 1 {
		s.browser().with("user"+string(rune('a'+i)), "x", "").has(401)
	}
	if p := s.browser().with("ed", goodPassword, password.Code(a.key, password.Step(s.now)+1)).has(429); p.Header.Get("Retry-After") == "" {
		t.Error("the answer does not say when to try again")
	}
}

// TestPasswordLimitStays: attempts with other names do not push the count of an account out.
func TestPasswordLimitStays(t *testing.T) {
	s := newSite(t, withPasswords)
	c := &call{h: s.handler}
	refused := func() bool {
		_, err := c.takeAttempt("ed")
		return errors.Is(err, stele.Exhausted)
	}
	for n := 1; !refused(); n++ {
		if n > 10 {
			t.Fatal("attempts are not counted")
		}
	}
	for i := range 2 * limit.MaxBuckets {
		if _, err := c.takeAttempt("user" + strconv.Itoa(i)); err != nil && !errors.Is(err, stele.Exhausted) {
			t.Fatal(err)
		}
	}
	if !refused() {
		t.Error("the count of the account is forgotten")
	}
}

// TestPasswordFixed: signing in gives the browser a new session, and ends the one that it had.
func TestPasswordFixed(t *testing.T) {
	s := newSite(t, withPasswords)
	b := s.as("ed")
	a := b.password()
	before := b.client.Jar.Cookies(must(url.Parse(s.url + "/.desk/"))(t))[0].Value
	b.with("ed", goodPassword, a.code()).leads("/.desk/names")
	after := b.client.Jar.Cookies(must(url.Parse(s.url + "/.desk/"))(t))[0].Value
	if before == after {
		t.Error("the session kept its credential")
	}
	if _, _, err := s.users.Session(t.Context(), before); err == nil {
		t.Error("the old session is there still")
	}
}

// TestProvePassword: a password and a code are a fresh proof. What was typed is kept, except passwords.
func TestProvePassword(t *testing.T) {
	s := newSite(t, withPasswords)
	b := s.as("admin")
	a := b.password()
	s.now = s.now.Add(11 * time.Minute)
	form := url.Values{"name": {"zoe"}, "groups": {"staff"}, "secret.x": {"hidden"}}
	p := b.post("/.desk/invite", form).has(403, `action="/.desk/prove/password?to=`, `value="staff"`)
	if strings.Contains(p.text, "hidden\"/>") && strings.Contains(p.text, "secret.x") {
		t.Error("a secret is kept in a page")
	}
	form.Set("proof.password", "another long password")
	form.Set("proof.code", a.code())
	p = b.post("/.desk/prove/password?to=/.desk/invite", form).has(403, "the user name, the password or the code is wrong", `value="staff"`)
	if strings.Contains(p.text, "another long password") {
		t.Error("the password is in the page")
	}
	form.Set("proof.password", goodPassword)
	form.Set("proof.code", a.code())
	p = b.post("/.desk/prove/password?to=/.desk/invite", form)
	if p.StatusCode != http.StatusTemporaryRedirect || p.Header.Get("Location") != "/.desk/invite" {
		t.Fatalf("%s %s", p.Status, p.Header.Get("Location"))
	}
	b.post("/.desk/invite", form).has(200, "zoe")
	// The page that sets a password needs a proof, too.
	s.now = s.now.Add(11 * time.Minute)
	b.get("/.desk/account/password").has(403, "prove/password")
	b.post("/.desk/prove/password?to=/.desk/account/password", url.Values{"proof.get": {"yes"}, "proof.password": {goodPassword}, "proof.code": {a.code()}}).leads("/.desk/account/password")
	s.now = s.now.Add(11 * time.Minute)
	p = b.post("/.desk/account/password", url.Values{"secret.password": {"typed in vain for long"}, "secret.again": {"typed in vain for long"}}).has(403)
	if strings.Contains(p.text, "typed in vain") {
		t.Error("the page has the password")
	}
	b.post("/.desk/account/password/remove", url.Values{"sure": {"yes"}}).has(403)
	s.now = s.now.Add(13 * time.Hour)
	if p := b.post("/.desk/account/password", url.Values{"secret.password": {"typed in vain for long"}}).has(401); strings.Contains(p.text, "typed in vain") {
		t.Error("the page has the password")
	}
}

// TestPasswordRights walks the forms with every role: users change their own password, and administrators remove those of others.
func TestPasswordRights(t *testing.T) {
	s := newSite(t, withPasswords)
	for _, user := range []string{"olga", "ed", "ruth", "sam", "admin"} {
		b := s.as(user)
		b.password()
		p := b.post("/.desk/person/password", url.Values{"name": {"olga"}})
		if done := p.StatusCode == http.StatusSeeOther; done != (user == "admin" || user == "olga") {
			t.Errorf("%s: %s", user, p.Status)
		}
		if user == "olga" {
			b.password()
		}
	}
	b := s.as("admin")
	b.get("/.desk/person?name=ed").has(200, `action="/.desk/person/password"`, "stele user password rm ed").wellFormed()
	b.post("/.desk/person/password", url.Values{"name": {"ed"}}).leads("/.desk/person?name=ed&done=password-removed")
	b.post("/.desk/person/password", url.Values{"name": {"ed"}}).has(404, "has no password")
	s.browser().get("/.desk/account/password").leads("/.desk/sign-in")
	s.browser().post("/.desk/account/password", url.Values{"secret.password": {"typed in vain for long"}}).has(401)
	s.browser().post("/.desk/prove/password", nil).has(401)
}

// TestPasswordsOff: unless they are on, there are none; one that was set before can be removed.
func TestPasswordsOff(t *testing.T) {
	s := newSite(t)
	b := s.as("ed")
	if p := b.get("/.desk/account"); strings.Contains(p.text, "assword") {
		t.Error("the account page offers a password")
	}
	out := s.browser()
	if p := out.get("/.desk/sign-in"); strings.Contains(p.text, `type="password"`) {
		t.Error("the page for signing in offers a password")
	}
	out.with("ed", goodPassword, "000000").has(409, "does not let users sign in by a password")
	b.get("/.desk/account/password").has(409)
	b.post("/.desk/account/password", nil).has(409)
	b.post("/.desk/prove/password", nil).has(409)
	b.post("/.desk/account/password/remove", url.Values{"sure": {"yes"}}).has(404)

	on := newSite(t, withPasswords)
	b = on.as("ed")
	b.password()
	on.handler.o.Passwords = false
	b.get("/.desk/account").has(200, `action="/.desk/account/password/remove"`)
	b.post("/.desk/account/password/remove", url.Values{"sure": {"yes"}}).leads("/.desk/account?done=password-removed")
}

// TestPasswordPortuguese shows the pages and every problem in Portuguese.
func TestPasswordPortuguese(t *testing.T) {
	s := newSite(t, withPasswords)
	b := s.as("ed")
	b.lang = "pt-BR"
	p := b.get("/.desk/account/password").has(200, "Definir uma senha", "Aplicativo autenticador")
	b.post("/.desk/account/password", url.Values{"secret.password": {"curta"}, "secret.again": {"curta"}, "secret.code": {"1"}, "offer": {p.offer()}}).has(422, "são necessários 15 ou mais", "não é o código")
	out := s.browser()
	out.lang = "pt-BR"
	out.with("ed", "x", "1").has(401, "Com senha", "a senha ou o código está errado")
}
