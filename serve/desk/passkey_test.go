package desk

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/descope/virtualwebauthn"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// newKey returns a credential. The library leaves out zeros at the beginning of a coordinate, which browsers
// write (RFC 8152, section 13.1.1), and so makes a key in 128 that is not valid: those are not used.
func newKey() virtualwebauthn.Credential {
	const whole = 77 // bytes of a COSE key of P-256
	for {
		if c := virtualwebauthn.NewCredential(virtualwebauthn.KeyTypeEC2); len(c.Key.AttestationData()) == whole {
			return c
		}
	}
}

// device is an authenticator of a user, without a browser.
type device struct {
	*browser
	rp   virtualwebauthn.RelyingParty
	auth virtualwebauthn.Authenticator
	key  virtualwebauthn.Credential
}

const public = "https://id.example.org"

func passkeySite(t *testing.T) *site {
	return newSite(t, func(o *Options) { o.Base = public })
}

// secure makes the jar of a browser send the cookie of https over the test's http.
func (b *browser) secure() *browser {
	b.client.Transport = insecure{}
	return b
}

// insecure strips Secure from cookies, as a proxy that ends TLS would not have to.
type insecure struct{}

func (insecure) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		for i, c := range response.Header["Set-Cookie"] {
			response.Header["Set-Cookie"][i] = strings.Replace(c, "; Secure", "", 1)
		}
	}
	return response, err
}

// device gives a user a passkey.
func (s *site) device(user string) *device {
	s.t.Helper()
	d := &device{browser: s.browser().secure(), rp: virtualwebauthn.RelyingParty{ID: "id.example.org", Name: "Stele", Origin: public}, key: newKey()}
	d.auth = virtualwebauthn.NewAuthenticatorWithOptions(virtualwebauthn.AuthenticatorOptions{UserHandle: auth.PasskeyUser(user)})
	d.link(user).leads("/.desk/account/passkeys/new?first=yes")
	d.get("/.desk/account/passkeys/new?first=yes").has(200, `data-passkey="create"`, "Not now")
	d.add(d.creation()).leads("/.desk/account?done=passkey-added")
	d.auth.AddCredential(d.key)
	return d
}

// link signs in by a one-time link.
func (b *browser) link(user string) page {
	b.t.Helper()
	credential, _, err := b.r.CreateLink(b.admin, user, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.post("/.desk/link/"+credential, nil)
}

func (b *browser) options(of string) string {
	b.t.Helper()
	p := b.post("/.desk/passkey/options", url.Values{"for": {of}}).has(200)
	return `{"publicKey":` + p.text + `}`
}

func (d *device) creation() string {
	d.t.Helper()
	o := must(virtualwebauthn.ParseAttestationOptions(d.options("create")))(d.t)
	return virtualwebauthn.CreateAttestationResponse(d.rp, d.auth, d.key, *o)
}

func (d *device) add(credential string) page {
	d.t.Helper()
	return d.post("/.desk/account/passkeys", url.Values{"name": {"Telephone"}, "credential": {credential}})
}

func (d *device) assertion() string {
	d.t.Helper()
	o := must(virtualwebauthn.ParseAssertionOptions(d.options("get")))(d.t)
	d.key.Counter++
	return virtualwebauthn.CreateAssertionResponse(d.rp, d.auth, d.key, *o)
}

func (b *browser) enter(credential string) page {
	b.t.Helper()
	return b.post("/.desk/sign-in/passkey", url.Values{"next": {"/.desk/names"}, "credential": {credential}})
}

func TestPasskey(t *testing.T) {
	s := passkeySite(t)
	d := s.device("olga")
	d.once = true // attempts are limited
	d.get("/.desk/account").has(200, "Telephone")
	first := d.cookie()

	// It signs in, and the session that the browser had ends.
	sent := d.assertion()
	d.enter(sent).leads("/.desk/names")
	if d.cookie() == first {
		t.Error("the credential of the session is the old one")
	}
	d.get("/.desk/account").has(200, "passkey", "olga")

	// What was sent once is refused the second time, in this browser and in another.
	d.enter(sent).has(401, "is not known here")
	other := s.browser().secure()
	other.once = true
	other.enter(sent).has(401)
	other.get("/.desk/").leads("/.desk/sign-in")
	// The same on another origin, for another purpose, too late, changed.
	evil := *d
	evil.rp.Origin = "https://evil.example"
	other.enter(evil.assertion()).has(401)
	evil = *d
	evil.rp.ID = "evil.example"
	other.enter(evil.assertion()).has(401)
	other.enter(d.creation()).has(401)
	late := d.assertion()
	s.now = s.now.Add(auth.ChallengeLife)
	other.enter(late).has(401, "open for too long")
	other.enter("").has(401)
	other.enter("{}").has(401)
	other.enter(strings.Repeat("x", maxCredential+1)).has(401)
	forged := *d
	forged.key = newKey()
	forged.key.ID = d.key.ID
	other.enter(forged.assertion()).has(401)
	unknown := *d
	unknown.key = newKey()
	other.enter(unknown.assertion()).has(401)
	// A user handle of another user with olga's key.
	foreign := *d
	foreign.auth = virtualwebauthn.NewAuthenticatorWithOptions(virtualwebauthn.AuthenticatorOptions{UserHandle: auth.PasskeyUser("ed")})
	other.enter(foreign.assertion()).has(401)

	d.enter(d.assertion()).leads("/.desk/names")
	must(s.r.SetUser(s.admin, "olga", func(u *auth.User) error { u.Disabled = true; return nil }))(t)
	d.enter(d.assertion()).has(401, "is not known here")
	d.get("/.desk/").leads("/.desk/sign-in")
}

// TestPasskeyFixed: a challenge made for one user registers no passkey of another, and one cannot
// be registered twice or without a fresh proof.
func TestPasskeyFixed(t *testing.T) {
	s := passkeySite(t)
	olga := s.device("olga")
	ed := &device{browser: s.browser().secure(), rp: olga.rp, auth: olga.auth, key: newKey()}
	ed.link("ed")
	sent := ed.creation()
	olga.add(sent).has(422, "is not known here")
	ed.add(sent).leads("/.desk/account?done=passkey-added")
	ed.add(sent).has(422)
	ed.post("/.desk/account/passkeys", url.Values{"name": {" "}, "credential": {ed.creation()}}).has(422, `href="#name"`)
	s.browser().secure().post("/.desk/passkey/options", url.Values{"for": {"create"}}).has(401)
	s.now = s.now.Add(auth.FreshProof)
	ed.get("/.desk/account/passkeys/new").has(403, "Prove that it is you", "prove/passkey")
	ed.post("/.desk/passkey/options", url.Values{"for": {"create"}}).has(403)
	ed.add("x").has(403, "Prove that it is you")
}

// TestProvePasskey: a passkey proves again who the user is, and the step goes on; one of another user does not.
func TestProvePasskey(t *testing.T) {
	s := passkeySite(t)
	olga, ed := s.device("olga"), s.device("ed")
	before := olga.cookie()
	s.now = s.now.Add(auth.FreshProof)
	id := auth.PasskeyID(olga.key.ID)
	form := url.Values{"id": {id}}
	olga.post("/.desk/account/passkeys/remove", form).has(403, "Prove that it is you", `data-passkey="get"`, id, `action="/.desk/prove/passkey?to=%2f.desk%2faccount%2fpasskeys%2fremove"`)
	form.Set("proof.credential", ed.assertion())
	olga.post("/.desk/prove/passkey?to=/.desk/account/passkeys/remove", form).has(403, "is not known here", id)
	if olga.cookie() != before {
		t.Error("the passkey of another user renewed the session")
	}
	form.Set("proof.credential", olga.assertion())
	if p := olga.post("/.desk/prove/passkey?to=/.desk/account/passkeys/remove", form); p.StatusCode != http.StatusTemporaryRedirect || p.Header.Get("Location") != "/.desk/account/passkeys/remove" {
		t.Fatalf("got %s\n%s", p.Status, p.main())
	}
	// The last passkey is removed after a warning only.
	olga.post("/.desk/account/passkeys/remove", form).has(200, "Telephone", "last", `name="sure"`)
	olga.get("/.desk/account").has(200, "Telephone")
	ed.post("/.desk/account/passkeys/remove", url.Values{"id": {id}, "sure": {"yes"}}).has(403) // not fresh
	ed.enter(ed.assertion()).leads("/.desk/names")
	ed.post("/.desk/account/passkeys/remove", url.Values{"id": {id}, "sure": {"yes"}}).has(404)
	ed.post("/.desk/account/passkeys/rename", url.Values{"id": {id}, "name": {"Mine"}}).has(404)
	olga.post("/.desk/account/passkeys/rename", url.Values{"id": {id}, "name": {"Old telephone"}}).leads("/.desk/account?done=passkey-renamed")
	olga.get("/.desk/account").has(200, "Old telephone")
	olga.post("/.desk/account/passkeys/remove", url.Values{"id": {id}, "sure": {"yes"}}).leads("/.desk/account?done=passkey-removed")
	olga.enter(olga.assertion()).has(401)
}

// TestCopied: a counter that goes back signs in, and the account and the audit trail warn.
func TestCopied(t *testing.T) {
	s := passkeySite(t)
	d := s.device("olga")
	d.enter(d.assertion()).leads("/.desk/names")
	d.enter(d.assertion()).leads("/.desk/names")
	d.key.Counter = 0
	d.enter(d.assertion()).leads("/.desk/names")
	d.get("/.desk/account").has(200, "may have been copied")
}

// TestPasskeysOffered: passkeys are offered where browsers take them only.
func TestPasskeysOffered(t *testing.T) {
	for base, want := range map[string]string{"https://id.example.org": "id.example.org", "https://id.example.org:8443": "id.example.org", "http://localhost:8080": "localhost", "http://a.localhost": "a.localhost",
		"http://id.example.org": "", "https://192.0.2.1": "", "http://127.0.0.1:8080": "", "https://[2001:db8::1]": ""} {
		s := newSite(t, func(o *Options) { o.Base = base })
		p := s.browser().get("/.desk/sign-in").has(200)
		if got := strings.Contains(p.text, `data-rp="`+want+`"`); got != (want != "") || want == "" && strings.Contains(p.text, "data-passkey") {
			t.Errorf("%s: offered: %v", base, got)
		}
		if want == "" {
			s.browser().post("/.desk/passkey/options", nil).has(409)
		} else {
			var o struct {
				RP               string `json:"rpId"`
				UserVerification string
				AllowCredentials []any
			}
			if err := json.Unmarshal([]byte(s.browser().post("/.desk/passkey/options", nil).has(200).text), &o); err != nil || o.RP != want || o.UserVerification != "preferred" || len(o.AllowCredentials) > 0 {
				t.Errorf("%s: %+v, %v", base, o, err)
			}
		}
	}
}

// TestPasskeyOnTwoServers: a challenge of one server is answered at another one on the same registry, once.
func TestPasskeyOnTwoServers(t *testing.T) {
	s := passkeySite(t)
	d := s.device("olga")
	key := must(s.r.ChallengeKey(s.admin))(t)
	if again := must(s.r.ChallengeKey(s.admin))(t); string(again) != string(key) {
		t.Error("the key changes")
	}
	if _, err := s.r.ChallengeKey(auth.With(t.Context(), auth.Principal{Name: "olga", Session: "x", Proved: time.Now()})); stele.KindOf(err) != stele.Forbidden {
		t.Errorf("a user gets the key: %v", err)
	}
	second := httptest.NewServer(New(s.handler.o))
	defer second.Close()
	sent := d.assertion() // of the first
	there := s.browser().secure()
	there.site = &site{t: t, url: second.URL}
	there.enter(sent).leads("/.desk/names")
	there.get("/.desk/").has(200, "olga")
	d.enter(sent).has(401)
}
