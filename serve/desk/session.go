package desk

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/auth/issuer"
	"github.com/stele-id/stele/internal/limit"
	"github.com/stele-id/stele/web/deskpage"
	"github.com/stele-id/stele/web/language"
)

// isSecure reports whether the client's connection is encrypted: ours, or that of a proxy in
// front of the public address.
func (c *call) isSecure() bool {
	return c.r.TLS != nil || strings.HasPrefix(c.h.o.Base, "https://")
}

// cookieName returns the name of the cookie of sessions. Browsers take one with the prefix
// __Secure- over https only (RFC 6265bis, section 4.1.3), so http has another.
func (c *call) cookieName() string {
	if c.isSecure() {
		return "__Secure-stele"
	}
	return "stele-session"
}

// setSession gives the browser a session; an empty credential takes it away.
func (c *call) setSession(credential string) {
	cookie := &http.Cookie{Name: c.cookieName(), Value: credential, Path: strings.TrimSuffix(Root, "/"), HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: c.isSecure()}
	if credential == "" {
		cookie.MaxAge = -1
	} else {
		cookie.MaxAge = int(auth.SessionLife.Seconds())
	}
	http.SetCookie(c.w, cookie)
}

// signIn shows the ways to sign in.
func (c *call) signIn() error {
	if c.who.IsKnown() {
		c.redirect(inside(c.r.URL.Query().Get("next")))
		return nil
	}
	return c.show(http.StatusOK, "signin", c.signInPage(inside(c.r.URL.Query().Get("next"))))
}

// signInPage returns the page with all ways to sign in, which lead to a path.
func (c *call) signInPage(next string) *deskpage.SignIn {
	v := &deskpage.SignIn{Frame: c.frame("signin.title", ""), Next: next, PasskeyHost: c.passkeyHost(), Issuers: c.issuers(url.Values{"next": {next}})}
	v.Passwords = c.h.o.Passwords
	v.Proxied, _ = c.proxyUser()
	if c.mayDemo() {
		v.Demo = c.h.o.Demo
	}
	return v
}

// mayDemo reports whether the visitor may sign in without a proof: the server is a
// demonstration, and the visitor is on this machine, not at a proxy on it.
func (c *call) mayDemo() bool {
	return c.h.o.Demo != "" && auth.IsLocal(c.h.o.ClientAddr(c.r), c.r.Header) && c.h.o.OwnHost(c.r)
}

// signInDemo signs a visitor of a demonstration in.
func (c *call) signInDemo() error {
	if err := c.readForm(); err != nil {
		return err
	}
	if !c.mayDemo() {
		return errNotDemo()
	}
	if err := c.enter(c.h.o.Demo, auth.ProvedByDemo); err != nil {
		return err
	}
	c.redirect(inside(c.r.PostForm.Get("next")))
	return nil
}

func errNotDemo() error {
	return stele.Errorf("sign in", stele.ID{}, stele.Forbidden, "desk.not-a-demo", "signing in without a proof is possible in a demonstration only, on the machine where it runs")
}

// try counts an attempt to sign in.
func (c *call) try() error {
	err := c.h.tries.Take(limit.Client(c.h.o.ClientAddr(c.r)), 1, c.h.o.Now())
	if err == nil {
		return nil
	}
	return &stele.Error{Op: "sign in", Kind: stele.Exhausted, Err: err}
}

// showLink asks whether to sign in by a one-time link: a program that looks at links in mail
// must not use it up.
func (c *call) showLink() error {
	v := &deskpage.Link{Frame: c.frame("link.title", ""), Action: c.r.URL.Path}
	if err := c.try(); err != nil {
		return err
	}
	l, _, err := c.h.o.Directory.Link(c.ctx, c.r.PathValue("credential"))
	if err != nil {
		return c.refuseLink(v, err)
	}
	v.Invited, v.Expires = l.User, l.Expires
	for _, i := range c.h.o.Issuers {
		if s := i.Settings(); s.Enter.Kind != issuer.EnterIfKnown {
			v.Issuers = append(v.Issuers, deskpage.Issuer{ID: s.Name, Name: s.Title()})
		}
	}
	return c.show(http.StatusOK, "link", v)
}

func (c *call) refuseLink(v *deskpage.Link, err error) error {
	if stele.KindOf(err) != stele.Unauthenticated && stele.KindOf(err) != stele.Conflict {
		return err
	}
	c.h.o.Registrar.NoteFailure(c.ctx, "sign in", "", err)
	v.Problems = append(v.Problems, deskpage.Problem{Text: c.language.Text("link.invalid")})
	return c.show(http.StatusUnauthorized, "link", v)
}

// useLink signs in by a one-time link.
func (c *call) useLink() error {
	v := &deskpage.Link{Frame: c.frame("link.title", ""), Action: c.r.URL.Path}
	if err := c.try(); err != nil {
		return err
	}
	l, held, err := c.h.o.Directory.Link(c.ctx, c.r.PathValue("credential"))
	if err != nil {
		return c.refuseLink(v, err)
	}
	credential, _, err := c.h.o.Registrar.UseLink(auth.With(c.ctx, auth.Local()), l, held, c.r.UserAgent())
	if err != nil {
		return c.refuseLink(v, err)
	}
	if c.session.ID != "" { // of another visit in this browser
		if err := c.h.o.Registrar.EndSession(c.ctx, c.session.ID); err != nil {
			return err
		}
	}
	c.setSession(credential)
	c.redirect(c.afterLink(l.User))
	return nil
}

// afterLink returns the page that follows a one-time link: it offers a passkey, or where there can be none a password, to a user who has
// none, so that the next visit needs no link.
func (c *call) afterLink(user string) string {
	if c.passkeyHost() == "" {
		state, err := c.h.o.Registrar.Password(auth.With(c.ctx, auth.Local()), user)
		if c.h.o.Passwords && state == nil && err == nil {
			return Root + "account/password?first=yes"
		}
		return Root
	}
	for range c.h.o.Registrar.Passkeys(auth.With(c.ctx, auth.Local()), user) {
		return Root // there is one, or the store can't be read: the page is an offer only
	}
	return Root + "account/passkeys/new?first=yes"
}

// signOut ends the session.
func (c *call) signOut() error {
	if err := c.h.o.Registrar.EndSession(c.ctx, c.session.ID); err != nil {
		return err
	}
	c.setSession("")
	c.redirect(Root + "sign-in")
	return nil
}

// setLanguage keeps the reader's choice of a language in a cookie, for the public pages too.
func (c *call) setLanguage() error {
	if err := c.readForm(); err != nil {
		return err
	}
	if l := c.h.o.Languages.Get(c.r.PostForm.Get("tag")); l != nil {
		if c.preferred != "" { // which comes before the cookie
			if err := c.prefer(l.Tag); err != nil {
				return err
			}
		}
		http.SetCookie(c.w, &http.Cookie{Name: language.Cookie, Value: l.Tag, Path: "/", MaxAge: 365 * 24 * 3600, SameSite: http.SameSiteLaxMode, Secure: c.isSecure(), HttpOnly: true})
	}
	c.redirect(inside(c.r.PostForm.Get("next")))
	return nil
}
