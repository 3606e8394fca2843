package desk

import (
	"net/http"
	"net/url"

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
	v := &deskpage.Prove{Action: c.r.URL.RequestURI(), Get: c.r.Method == http.MethodGet || c.r.Method == http.MethodHead}
	if !v.Get {
		if err := c.readForm(); err != nil {
			return err
		}
		v.Kept = c.kept()
	}
	v.Frame = c.frame("prove.title", "")
	v.Issuers = c.issuers(url.Values{"again": {"yes"}})
	v.Demo = c.mayDemo() && c.who.Name == c.h.o.Demo
	return c.show(http.StatusForbidden, "prove", v)
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
	http.Redirect(c.w, c.r, inside(c.r.URL.Query().Get("to")), http.StatusTemporaryRedirect) // which keeps method and form
	return nil
}

// enter begins a session of a user who has proved who they are. The session that the browser had
// ends.
func (c *call) enter(user string, how auth.Proof) error {
	credential, _, err := c.h.o.Registrar.BeginSession(auth.With(c.ctx, auth.Local()), user, how, c.r.UserAgent(), c.session.ID)
	if err != nil {
		return err
	}
	c.setSession(credential)
	return nil
}
