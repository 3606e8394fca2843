package desk

import (
	"net/http"
	"net/url"
	"time"

	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/web/deskpage"
)

// fresh makes sure that the user has proved recently who they are. A handler calls it before a
// dangerous step and returns its error: the user then gets a page that asks for a proof and has
// all that was typed. The registrar refuses the most dangerous steps itself, which leads to the same
// page.
func (c *call) fresh() error { return c.who.NeedProof("prove", c.h.o.Now()) }

// askProof shows the page that asks the user to prove again who they are.
func (c *call) askProof() error {
	get := c.r.Method == http.MethodGet || c.r.Method == http.MethodHead
	if !get {
		if err := c.readForm(); err != nil {
			return err
		}
	}
	return c.showProve(c.r.URL.RequestURI(), get)
}

// proofField begins the names of the fields of a proof. They are not sent on to the step that needs it.
const proofField = "proof.credential"

// showProve shows the page that asks for a proof before the step at a path, which is a page or a form.
func (c *call) showProve(to string, get bool, problems ...deskpage.Problem) error {
	v := &deskpage.Prove{Frame: c.frame("prove.title", ""), Action: to, Get: get}
	v.Problems = problems
	v.Kept = c.kept()
	v.Issuers = c.issuers(url.Values{"again": {"yes"}})
	v.Demo = c.mayDemo() && c.who.Name == c.h.o.Demo
	if v.PasskeyHost = c.passkeyHost(); v.PasskeyHost != "" {
		has, err := c.hasPasskey()
		if err != nil {
			return err
		}
		if !has {
			v.PasskeyHost = ""
		}
	}
	var err error
	if v.Password, err = c.hasPassword(); err != nil {
		return err
	}
	return c.show(http.StatusForbidden, "prove", v)
}

// hasPasskey reports whether the user has a passkey.
func (c *call) hasPasskey() (bool, error) {
	for _, err := range c.h.o.Registrar.Passkeys(c.ctx, c.who.Name) {
		return err == nil, err
	}
	return false, nil
}

// proveDemo renews the proof of a visitor of a demonstration.
func (c *call) proveDemo() error {
	if !c.mayDemo() || c.who.Name != c.h.o.Demo {
		return errNotDemo()
	}
	return c.proved(auth.ProvedByDemo)
}

// proved gives the user, who has just proved who they are, a session with a new credential, and
// leads on to the step that needed the proof, with the form that was sent.
func (c *call) proved(how auth.Proof) error {
	if err := c.enter(c.who.Name, how); err != nil {
		return err
	}
	c.leadOn(inside(c.r.URL.Query().Get("to")))
	return nil
}

// leadOn leads to the step that needed a proof. The status keeps the method and the form.
func (c *call) leadOn(to string) { http.Redirect(c.w, c.r, to, http.StatusTemporaryRedirect) }

// enter begins a session of a user who has just proved who they are. The session that the browser
// had ends.
func (c *call) enter(user string, how auth.Proof) error { return c.enterAs(user, how, c.h.o.Now()) }

// enterAs is enter for a user who proved at a time, zero if it is not known, who they are.
func (c *call) enterAs(user string, how auth.Proof, proved time.Time) error {
	credential, _, err := c.h.o.Registrar.BeginSession(auth.With(c.ctx, auth.Local()), user, how, proved, c.r.UserAgent(), c.session.ID)
	if err != nil {
		return err
	}
	c.setSession(credential)
	return nil
}
