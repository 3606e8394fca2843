package desk

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/web/deskpage"
)

// maxCredential is how many bytes the answer of an authenticator may have.
const maxCredential = 64 << 10

// What challenges are for.
const (
	toSignIn = "get"
	toCreate = "create " // the user follows
)

// relying returns what passkeys are for: the host of the public address. It is nil where browsers
// offer none: they want https, or localhost, and a name.
func (c *call) relying() *webauthn.WebAuthn {
	base, err := url.Parse(c.base())
	if err != nil {
		return nil
	}
	host := base.Hostname()
	_, isName := netip.ParseAddr(host)
	isHere := host == "localhost" || strings.HasSuffix(host, ".localhost")
	if isName == nil || base.Scheme != "https" && !(base.Scheme == "http" && isHere) {
		return nil
	}
	site := c.h.o.Site
	if site == "" {
		site = "Stele"
	}
	rp, err := webauthn.New(&webauthn.Config{
		RPID: host, RPDisplayName: site, RPOrigins: []string{base.Scheme + "://" + base.Host}, AttestationPreference: protocol.PreferNoAttestation,
		AuthenticatorSelection: protocol.AuthenticatorSelection{ResidentKey: protocol.ResidentKeyRequirementRequired, RequireResidentKey: protocol.ResidentKeyRequired(), UserVerification: protocol.VerificationPreferred},
	})
	if err != nil {
		c.h.o.Log.WarnContext(c.ctx, "passkeys are not offered", "base", c.base(), "error", err.Error())
		return nil
	}
	return rp
}

// passkeyHost returns the host that passkeys are for; "" if they are not offered.
func (c *call) passkeyHost() string {
	if rp := c.relying(); rp != nil {
		return rp.Config.RPID
	}
	return ""
}

func errNoPasskeys() error {
	return stele.Errorf("use passkey", stele.ID{}, stele.Conflict, "passkey.not-offered", "this server offers no passkeys: its public address is not https")
}

// holder is a user with passkeys, for the library.
type holder struct {
	name string
	keys []auth.Passkey
}

func (u *holder) WebAuthnID() []byte          { return auth.PasskeyUser(u.name) }
func (u *holder) WebAuthnName() string        { return u.name }
func (u *holder) WebAuthnDisplayName() string { return u.name }

func (u *holder) WebAuthnCredentials() (list []webauthn.Credential) {
	for _, p := range u.keys {
		k := webauthn.Credential{ID: p.Credential, PublicKey: p.PublicKey, Flags: webauthn.NewCredentialFlags(protocol.AuthenticatorFlags(p.Flags)),
			Authenticator: webauthn.Authenticator{SignCount: p.Counter}}
		for _, t := range p.Transports {
			k.Transport = append(k.Transport, protocol.AuthenticatorTransport(t))
		}
		list = append(list, k)
	}
	return list
}

// passkeyOptions answers the script that asks what to ask an authenticator for.
func (c *call) passkeyOptions() error {
	rp := c.relying()
	if rp == nil {
		return errNoPasskeys()
	}
	if err := c.try(); err != nil {
		return err
	}
	if err := c.readForm(); err != nil {
		return err
	}
	var options any
	var err error
	if c.r.PostForm.Get("for") == "create" {
		options, err = c.createOptions(rp)
	} else {
		options, err = c.getOptions(rp)
	}
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(c.w).Encode(options)
}

// challenge makes a challenge.
func (c *call) challenge(purpose string) ([]byte, error) {
	key, err := c.h.o.Registrar.ChallengeKey(auth.With(c.ctx, auth.Local()))
	if err != nil {
		return nil, err
	}
	return key.Challenge(rand.Reader, purpose, c.h.o.Now())
}

func (c *call) getOptions(rp *webauthn.WebAuthn) (any, error) {
	challenge, err := c.challenge(toSignIn)
	if err != nil {
		return nil, err
	}
	asked, _, err := rp.BeginDiscoverableLogin(webauthn.WithChallenge(challenge))
	if err != nil {
		return nil, err
	}
	return asked.Response, nil
}

func (c *call) createOptions(rp *webauthn.WebAuthn) (any, error) {
	if !c.who.IsKnown() {
		return nil, auth.PasskeyRefused()
	}
	if err := c.fresh(); err != nil {
		return nil, err
	}
	challenge, err := c.challenge(toCreate + c.who.Name)
	if err != nil {
		return nil, err
	}
	u := &holder{name: c.who.Name}
	for p, err := range c.h.o.Registrar.Passkeys(c.ctx, u.name) {
		if err != nil {
			return nil, err
		}
		u.keys = append(u.keys, p)
	}
	asked, _, err := rp.BeginRegistration(u, webauthn.WithExclusions(webauthn.Credentials(u.WebAuthnCredentials()).CredentialDescriptors()),
		func(o *protocol.PublicKeyCredentialCreationOptions) error { o.Challenge = challenge; return nil })
	if err != nil {
		return nil, err
	}
	return asked.Response, nil
}

// sentCredential returns a field with the answer of an authenticator.
func (c *call) sentCredential(field string) ([]byte, error) {
	text := c.r.PostForm.Get(field)
	if text == "" || len(text) > maxCredential {
		return nil, auth.PasskeyRefused()
	}
	return []byte(text), nil
}

// check makes sure that a challenge is ours, and for this purpose.
func (c *call) check(challenge, purpose string) (auth.Answered, error) {
	key, err := c.h.o.Registrar.ChallengeKey(auth.With(c.ctx, auth.Local()))
	if err != nil {
		return auth.Answered{}, err
	}
	raw, err := base64.RawURLEncoding.DecodeString(challenge)
	if err != nil {
		return auth.Answered{}, auth.PasskeyRefused()
	}
	return key.Check(raw, purpose, c.h.o.Now())
}

// asserted is a passkey whose signature is right.
type asserted struct {
	key     auth.Passkey
	held    stele.Cell
	counter uint32
	mark    auth.Answered
}

// assert checks the signature of a passkey. Unauthenticated if it is not right.
func (c *call) assert(field string) (asserted, error) {
	rp := c.relying()
	if rp == nil {
		return asserted{}, errNoPasskeys()
	}
	sent, err := c.sentCredential(field)
	if err != nil {
		return asserted{}, err
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes(sent)
	if err != nil {
		return asserted{}, c.refusePasskey(err)
	}
	var a asserted
	if a.mark, err = c.check(parsed.Response.CollectedClientData.Challenge, toSignIn); err != nil {
		return asserted{}, err
	}
	if a.key, a.held, err = c.h.o.Directory.Passkey(c.ctx, parsed.RawID); err != nil {
		return asserted{}, err
	}
	session := webauthn.SessionData{Challenge: parsed.Response.CollectedClientData.Challenge, RelyingPartyID: rp.Config.RPID, UserVerification: protocol.VerificationPreferred}
	_, _, err = rp.ValidatePasskeyLogin(func(_, _ []byte) (webauthn.User, error) {
		return &holder{name: a.key.User, keys: []auth.Passkey{a.key}}, nil
	}, session, parsed)
	if err != nil {
		return asserted{}, c.refusePasskey(err)
	}
	a.counter = parsed.Response.AuthenticatorData.Counter
	return a, nil
}

// refusePasskey logs why the library refused a passkey, which the user is not told.
func (c *call) refusePasskey(err error) error {
	why := err.Error()
	if e, ok := err.(*protocol.Error); ok {
		why += "; " + e.DevInfo
	}
	c.h.o.Log.InfoContext(c.ctx, "a passkey was refused", "error", why)
	return auth.PasskeyRefused()
}

// enterBy begins a session by a passkey. The session that the browser had ends.
func (c *call) enterBy(a asserted) error {
	credential, _, err := c.h.o.Registrar.EnterByPasskey(auth.With(c.ctx, auth.Local()), a.key, a.held, a.counter, a.mark, c.r.UserAgent(), c.session.ID)
	if stele.KindOf(err) == stele.Conflict && err != nil {
		return auth.PasskeyRefused() // the challenge was answered before, or the user was disabled just now
	} else if err != nil {
		return err
	}
	c.setSession(credential)
	return nil
}

// signInPasskey signs in by a passkey.
func (c *call) signInPasskey() error {
	if err := c.try(); err != nil {
		return err
	}
	if err := c.readForm(); err != nil {
		return err
	}
	a, err := c.assert("credential")
	if err == nil {
		err = c.enterBy(a)
	}
	if stele.KindOf(err) == stele.Unauthenticated && err != nil {
		c.h.o.Registrar.NoteFailure(c.ctx, "sign in", "", err)
		v := c.signInPage(inside(c.r.PostForm.Get("next")))
		v.Problems = []deskpage.Problem{{Text: c.language.Problem(reason(err))}}
		return c.show(http.StatusUnauthorized, "signin", v)
	} else if err != nil {
		return err
	}
	c.redirect(inside(c.r.PostForm.Get("next")))
	return nil
}

// provePasskey takes a passkey of the user who is signed in as a proof, and leads on to the step
// that needs it.
func (c *call) provePasskey() error {
	if err := c.try(); err != nil {
		return err
	}
	if err := c.readForm(); err != nil {
		return err
	}
	a, err := c.assert(proofField)
	if err == nil && a.key.User != c.who.Name {
		err = auth.PasskeyRefused()
	}
	if err == nil {
		err = c.enterBy(a)
	}
	to := inside(c.r.URL.Query().Get("to"))
	if stele.KindOf(err) == stele.Unauthenticated && err != nil {
		c.h.o.Registrar.NoteFailure(c.ctx, "prove", "", err)
		return c.showProve(to, c.r.PostForm.Get("proof.get") != "", deskpage.Problem{Text: c.language.Problem(reason(err))})
	} else if err != nil {
		return err
	}
	if c.r.PostForm.Get("proof.get") != "" {
		c.redirect(to)
		return nil
	}
	c.leadOn(to)
	return nil
}

// newPasskey shows the form that adds a passkey.
func (c *call) newPasskey() error {
	if c.passkeyHost() == "" {
		return errNoPasskeys()
	}
	if err := c.fresh(); err != nil {
		return err
	}
	return c.showPasskeyForm(http.StatusOK, deskName(c.r.UserAgent()), c.r.URL.Query().Get("first") != "", nil)
}

func (c *call) showPasskeyForm(status int, name string, first bool, problems stele.Problems) error {
	v := &deskpage.NewPasskey{Frame: c.frame("passkey.new-title", "account"), Host: c.passkeyHost(), First: first, Passwords: c.h.o.Passwords, Name: deskpage.Field{ID: "name", Name: "name", Value: name}}
	for _, p := range problems {
		text := c.language.Problem(p.Err)
		if p.Path == "name" {
			v.Name.Problem = text
			v.Problems = append(v.Problems, deskpage.Problem{Field: "name", Text: text})
		} else {
			v.Problems = append(v.Problems, deskpage.Problem{Text: text})
		}
	}
	return c.show(status, "passkey", v)
}

// deskName proposes a name for a passkey: that of the system in which the browser runs.
func deskName(agent string) string {
	for _, of := range []struct{ mark, name string }{{"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Windows", "Windows"}, {"Macintosh", "Mac"}, {"CrOS", "Chromebook"}, {"Linux", "Linux"}} {
		if strings.Contains(agent, of.mark) {
			return of.name
		}
	}
	return ""
}

// addPasskey adds a passkey of the user.
func (c *call) addPasskey() error {
	if err := c.fresh(); err != nil {
		return err
	}
	if err := c.readForm(); err != nil {
		return err
	}
	rp, form := c.relying(), c.r.PostForm
	if rp == nil {
		return errNoPasskeys()
	}
	name, first := strings.TrimSpace(form.Get("name")), form.Get("first") != ""
	p, mark, err := c.created(rp, name)
	if err == nil {
		_, err = c.h.o.Registrar.AddPasskey(c.ctx, p, mark)
	}
	switch kind := stele.KindOf(err); {
	case err == nil:
		c.redirect(Root + "account?done=passkey-added")
		return nil
	case kind == stele.Invalid || kind == stele.Unauthenticated || kind == stele.Conflict || kind == stele.Exhausted:
		problems, ok := reason(err).(stele.Problems)
		if !ok {
			problems = stele.Problems{{Err: reason(err)}}
		}
		return c.showPasskeyForm(http.StatusUnprocessableEntity, name, first, problems)
	}
	return err
}

// created returns the passkey that an authenticator has made.
func (c *call) created(rp *webauthn.WebAuthn, name string) (auth.Passkey, auth.Answered, error) {
	sent, err := c.sentCredential("credential")
	if err != nil {
		return auth.Passkey{}, auth.Answered{}, err
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes(sent)
	if err != nil {
		return auth.Passkey{}, auth.Answered{}, c.refusePasskey(err)
	}
	challenge := parsed.Response.CollectedClientData.Challenge
	mark, err := c.check(challenge, toCreate+c.who.Name)
	if err != nil {
		return auth.Passkey{}, mark, err
	}
	u := &holder{name: c.who.Name}
	made, err := rp.CreateCredential(u, webauthn.SessionData{Challenge: challenge, RelyingPartyID: rp.Config.RPID, UserID: u.WebAuthnID(), UserVerification: protocol.VerificationPreferred, CredParams: webauthn.CredentialParametersDefault()}, parsed)
	if err != nil {
		return auth.Passkey{}, mark, c.refusePasskey(err)
	}
	p := auth.Passkey{User: c.who.Name, Name: name, Site: rp.Config.RPID, Credential: made.ID, PublicKey: made.PublicKey, Flags: uint8(parsed.Response.AttestationObject.AuthData.Flags), Counter: made.Authenticator.SignCount}
	for _, t := range made.Transport[:min(len(made.Transport), 8)] {
		if s := string(t); len(s) <= 32 {
			p.Transports = append(p.Transports, s)
		}
	}
	return p, mark, nil
}

// renamePasskey gives a passkey of the user another name.
func (c *call) renamePasskey() error {
	if err := c.readForm(); err != nil {
		return err
	}
	if err := c.h.o.Registrar.RenamePasskey(c.ctx, c.r.PostForm.Get("id"), strings.TrimSpace(c.r.PostForm.Get("name"))); err != nil {
		return err
	}
	c.redirect(Root + "account?done=passkey-renamed")
	return nil
}

// removePasskey removes a passkey of the user. It asks first if that is the last one.
func (c *call) removePasskey() error {
	if err := c.fresh(); err != nil {
		return err
	}
	if err := c.readForm(); err != nil {
		return err
	}
	id, count, name := c.r.PostForm.Get("id"), 0, ""
	for p, err := range c.h.o.Registrar.Passkeys(c.ctx, c.who.Name) {
		if err != nil {
			return err
		}
		if count++; p.ID == id {
			name = p.Name
		}
	}
	if count == 1 && name != "" && c.r.PostForm.Get("sure") == "" {
		return c.show(http.StatusOK, "confirm", &deskpage.Confirm{Frame: c.frame("passkey.remove-title", "account"), Text: c.language.Text("passkey.remove-last", "name", name),
			Action: Root + "account/passkeys/remove", Kept: []deskpage.Kept{{Name: "id", Value: id}, {Name: "sure", Value: "yes"}}, Button: c.language.Text("passkey.remove"), Back: Root + "account"})
	}
	if err := c.h.o.Registrar.RemovePasskey(c.ctx, id); err != nil {
		return err
	}
	c.redirect(Root + "account?done=passkey-removed")
	return nil
}
