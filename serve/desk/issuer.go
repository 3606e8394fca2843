package desk

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/auth/issuer"
	"github.com/stele-id/stele/web/deskpage"
)

// issuerCookie returns the name of the cookie that a browser keeps while its user is at an OpenID
// provider.
func (c *call) issuerCookie() string {
	if c.isSecure() {
		return "__Secure-stele-issuer"
	}
	return "stele-issuer"
}

func (c *call) setIssuerCookie(value string) {
	cookie := &http.Cookie{Name: c.issuerCookie(), Value: value, Path: Root + "issuer", HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: c.isSecure(), MaxAge: int(issuer.VisitLife.Seconds())}
	if value == "" {
		cookie.MaxAge = -1
	}
	http.SetCookie(c.w, cookie)
}

// issuer returns the issuer with a name.
func (c *call) issuer(name string) (*issuer.Issuer, error) {
	for _, i := range c.h.o.Issuers {
		if i.Settings().Name == name {
			return i, nil
		}
	}
	return nil, stele.Errorf("sign in", stele.ID{}, stele.NotFound, "issuer.unknown", "there is no such way to sign in here; see the page for signing in")
}

// issuers returns links to the issuers, with a query.
func (c *call) issuers(query url.Values) (list []deskpage.Issuer) {
	for _, i := range c.h.o.Issuers {
		s := i.Settings()
		list = append(list, deskpage.Issuer{Name: s.Title(), ID: s.Name, URL: Root + "issuer/" + s.Name + "?" + query.Encode()})
	}
	return list
}

// goToIssuer leads to an OpenID provider. It is a link: nothing changes here but a cookie.
func (c *call) goToIssuer() error {
	i, err := c.issuer(c.r.PathValue("name"))
	if err != nil {
		return err
	}
	if err := c.try(); err != nil {
		return err
	}
	v := issuer.Visit{Next: inside(c.r.URL.Query().Get("next"))}
	if c.r.URL.Query().Has("again") {
		v = issuer.Visit{Again: c.session.ID}
	}
	to, cookie, err := i.Begin(c.ctx, v)
	if err != nil {
		return c.refuseIssuer(i, v, err)
	}
	c.setIssuerCookie(cookie)
	c.redirect(to)
	return nil
}

// sendToIssuer shows a page with a link to a provider. A form can't lead there: the policy of pages
// allows forms to lead to this server only. And a link of another site must not begin this: it
// would link an account of a stranger.
func (c *call) sendToIssuer(v issuer.Visit) error {
	i, err := c.issuer(c.r.PostForm.Get("issuer"))
	if err != nil {
		return err
	}
	to, cookie, err := i.Begin(c.ctx, v)
	if err != nil {
		return c.refuseIssuer(i, v, err)
	}
	c.setIssuerCookie(cookie)
	s := i.Settings()
	page := &deskpage.Issue{Frame: c.frame(c.language.Text("issuer.title", "issuer", s.Title()), ""), Issuer: s.Title(), To: to, Invited: v.Link != ""}
	return c.show(http.StatusOK, "issuer", page)
}

// joinIssuer begins to link an account at a provider to the user.
func (c *call) joinIssuer() error {
	if err := c.readForm(); err != nil {
		return err
	}
	if err := c.fresh(); err != nil {
		return err
	}
	return c.sendToIssuer(issuer.Visit{Join: c.session.ID})
}

// linkIssuer begins to use a one-time link together with an account at a provider, which signs the
// user in from then on.
func (c *call) linkIssuer() error {
	if err := c.readForm(); err != nil {
		return err
	}
	if err := c.try(); err != nil {
		return err
	}
	credential := c.r.PathValue("credential")
	if _, _, err := c.h.o.Directory.Link(c.ctx, credential); err != nil {
		return c.refuseLink(&deskpage.Link{Frame: c.frame("link.title", "")}, err)
	}
	return c.sendToIssuer(issuer.Visit{Link: credential})
}

// leaveIssuer takes an account at a provider from the user.
func (c *call) leaveIssuer() error {
	if err := c.readForm(); err != nil {
		return err
	}
	if err := c.fresh(); err != nil {
		return err
	}
	if err := c.h.o.Registrar.EndIdentity(c.ctx, c.who.Name, c.r.PostForm.Get("id")); err != nil {
		return err
	}
	c.redirect(Root + "account?done=issuer-left")
	return nil
}

// backFromIssuer answers a browser that a provider leads back.
func (c *call) backFromIssuer() error {
	i, err := c.issuer(c.r.PathValue("name"))
	if err != nil {
		return err
	}
	if err := c.try(); err != nil {
		return err
	}
	cookie, err := c.r.Cookie(c.issuerCookie())
	if err != nil {
		cookie = &http.Cookie{}
	}
	c.setIssuerCookie("") // what it has is used once
	v, person, err := i.Finish(c.ctx, cookie.Value, c.r.URL.Query())
	if err != nil {
		return c.refuseIssuer(i, v, err)
	}
	s := i.Settings()
	arrival := auth.Arrival{Issuer: person.Issuer, IssuerName: s.Name, Subject: person.Subject, Label: person.Label, Groups: person.Groups, Name: person.Name, Make: person.MayEnter}
	to := inside(v.Next)
	switch {
	case v.Join != "":
		to, err = Root+"account?done=issuer-joined", c.joined(v, arrival)
	case v.Again != "":
		to, err = Root+"account?done=proved", c.provedByIssuer(v, arrival)
	case v.Link != "":
		err = c.invited(s, v, arrival)
	default:
		err = c.arrive(arrival, auth.ProvedByIssuer+auth.Proof(s.URL), person.SignedIn)
	}
	if err != nil {
		return c.refuseIssuer(i, v, err)
	}
	c.redirect(to)
	return nil
}

// arrive signs in a person whom a provider or a proxy has signed in.
// Proved is when the person did so there, zero if that is not known: a provider leads a browser back
// at once that has signed in there before.
func (c *call) arrive(a auth.Arrival, how auth.Proof, proved time.Time) error {
	user, err := c.h.o.Registrar.Arrive(auth.With(c.ctx, auth.Local()), a)
	if err != nil {
		return err
	}
	return c.enterAs(user, how, proved)
}

// errOtherSession says that a browser is not in the session any more in which it went to a provider.
func errOtherSession() error {
	return stele.Errorf("sign in", stele.ID{}, stele.Forbidden, "issuer.session-changed", "you have signed in or out since this was begun; begin again")
}

// joined links an account to the user who began it.
func (c *call) joined(v issuer.Visit, a auth.Arrival) error {
	if !c.who.IsKnown() || c.session.ID != v.Join {
		return errOtherSession()
	}
	_, err := c.h.o.Registrar.LinkIdentity(c.actFor(c.who.Name), c.who.Name, a.Issuer, a.Subject, a.Label)
	return err
}

// provedByIssuer renews the proof of a user who has signed in at a provider again.
func (c *call) provedByIssuer(v issuer.Visit, a auth.Arrival) error {
	if !c.who.IsKnown() || c.session.ID != v.Again {
		return errOtherSession()
	}
	id, err := c.h.o.Directory.Identity(c.ctx, a.Issuer, a.Subject)
	if err != nil {
		return err
	}
	if id.User != c.who.Name || !id.Ended.IsZero() {
		return stele.Errorf("sign in", stele.ID{}, stele.Forbidden, "issuer.other-account", `this account does not sign "{user}" in; use one that does`, c.who.Name)
	}
	return c.enter(c.who.Name, auth.ProvedByIssuer+auth.Proof(a.Issuer))
}

// invited uses a one-time link and links the account to its user.
func (c *call) invited(s issuer.Settings, v issuer.Visit, a auth.Arrival) error {
	if s.Enter.Kind == issuer.EnterIfKnown {
		return stele.Errorf("sign in", stele.ID{}, stele.Forbidden, "issuer.invites-none", "a one-time link can't be used through {issuer} here; use the link itself", s.Title())
	}
	l, held, err := c.h.o.Directory.Link(c.ctx, v.Link)
	if err != nil {
		return err
	}
	// The link is used up in the same commit, so that it links one account only.
	used, err := c.h.o.Registrar.LinkUsed(c.actFor(l.User), l, held)
	if err != nil {
		return err
	}
	if _, err := c.h.o.Registrar.LinkIdentity(c.actFor(l.User), l.User, a.Issuer, a.Subject, a.Label, used...); err != nil {
		return err
	}
	return c.arrive(a, auth.ProvedByIssuer+auth.Proof(s.URL), c.h.o.Now()) // by the link
}

// actFor returns a context in which the server acts for a user, whom the audit trail names.
func (c *call) actFor(user string) context.Context {
	from := auth.OriginOf(c.ctx)
	from.Caller = auth.Principal{Name: user}
	return auth.WithOrigin(auth.With(c.ctx, auth.Local()), from)
}

// refuseIssuer shows what went wrong on the page for signing in, or on a page of its own for a user
// who is signed in, and logs the cause.
func (c *call) refuseIssuer(i *issuer.Issuer, v issuer.Visit, err error) error {
	status, ok := statuses[stele.KindOf(err)]
	attributes := []any{"issuer", i.Settings().URL, "error", reason(err).Error()}
	if cause := issuer.Cause(err); cause != nil {
		attributes = append(attributes, "cause", cause.Error())
	}
	c.h.o.Log.WarnContext(c.ctx, "a user could not sign in through an issuer", attributes...)
	c.h.o.Registrar.NoteFailure(c.ctx, "sign in", "", err)
	if !ok {
		return err
	}
	if c.who.IsKnown() {
		page := &deskpage.Failure{Frame: c.frame("failure.title", ""), Status: status, Text: c.language.Problem(reason(err))}
		return c.show(status, "failure", page)
	}
	return c.refuseSignIn(status, v.Next, c.language.Problem(reason(err)))
}

// refuseSignIn shows the ways to sign in, and what went wrong with one of them.
func (c *call) refuseSignIn(status int, next, text string) error {
	page := c.signInPage(inside(next))
	page.Problems = append(page.Problems, deskpage.Problem{Text: text})
	return c.show(status, "signin", page)
}

// howText says how a user proved who they are.
func (c *call) howText(how auth.Proof) string {
	link, ok := strings.CutPrefix(string(how), string(auth.ProvedByIssuer))
	if !ok {
		return c.language.Text("proof." + string(how))
	}
	return c.language.Text("proof.oidc", "issuer", c.issuerTitle(link))
}

// issuerTitle returns the name of an issuer for people.
func (c *call) issuerTitle(link string) string {
	for _, i := range c.h.o.Issuers {
		if s := i.Settings(); s.URL == link {
			return s.Title()
		}
	}
	return link
}

// identities returns the accounts that sign the user in.
func (c *call) identities(user string) (list []deskpage.Identity, err error) {
	for i, err := range c.h.o.Registrar.Identities(c.ctx, user) {
		if err != nil {
			return nil, err
		}
		title := c.issuerTitle(i.Issuer)
		if i.Issuer == auth.ProxyIssuer {
			continue // the proxy says at each visit who the user is; there is nothing to unlink
		}
		list = append(list, deskpage.Identity{ID: i.ID(), Issuer: title, Label: i.Label, Created: i.Created, Used: i.Used})
	}
	return list, nil
}
