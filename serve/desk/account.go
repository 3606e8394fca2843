package desk

import (
	"net/http"

	"github.com/stele-id/stele/web/deskpage"
)

// account shows the passkeys, sessions and tokens of the user.
func (c *call) account() error {
	v := &deskpage.Account{Frame: c.frame(c.language.Text("account.title", "user", c.who.Name), "account")}
	v.PasskeyHost = c.passkeyHost()
	for p, err := range c.h.o.Registrar.Passkeys(c.ctx, c.who.Name) {
		if err != nil {
			return err
		}
		k := deskpage.Passkey{ID: p.ID, Name: p.Name, Created: p.Created, Used: p.Used, Copied: !p.Copied.IsZero()}
		if v.PasskeyHost != "" && p.Site != v.PasskeyHost {
			k.Other = p.Site
		}
		v.Passkeys = append(v.Passkeys, k)
	}
	for s, err := range c.h.o.Registrar.Sessions(c.ctx, c.who.Name) {
		if err != nil {
			return err
		}
		v.Sessions = append(v.Sessions, c.sessionView(s))
	}
	now := c.h.o.Now()
	for t, err := range c.h.o.Registrar.Tokens(c.ctx, c.who.Name) {
		if err != nil {
			return err
		}
		v.Tokens = append(v.Tokens, deskpage.Token{ID: t.ID, Label: t.Label, Created: t.Created, Expires: t.Expires, LastUse: t.LastUse, Ended: t.Ended(now)})
	}
	v.Issuers = c.issuers(nil)
	var err error
	v.Passwords = c.h.o.Passwords
	if v.Password, err = c.passwordView(c.who.Name); err != nil {
		return err
	}
	if v.Identities, err = c.identities(c.who.Name); err != nil {
		return err
	}
	return c.show(http.StatusOK, "account", v)
}

// endSession ends a session of the user.
func (c *call) endSession() error {
	if err := c.readForm(); err != nil {
		return err
	}
	id := c.r.PostForm.Get("id")
	if id == c.session.ID {
		return c.signOut()
	}
	if err := c.h.o.Registrar.EndSession(c.ctx, id); err != nil {
		return err
	}
	c.redirect(Root + "account?done=session-ended")
	return nil
}

// endOthers ends all sessions of the user except this one.
func (c *call) endOthers() error {
	if _, err := c.h.o.Registrar.EndSessions(c.ctx, c.who.Name, c.session.ID); err != nil {
		return err
	}
	c.redirect(Root + "account?done=sessions-ended")
	return nil
}

// revokeToken revokes a token of the user.
func (c *call) revokeToken() error {
	if err := c.readForm(); err != nil {
		return err
	}
	if _, err := c.h.o.Registrar.RevokeToken(c.ctx, c.r.PostForm.Get("id")); err != nil {
		return err
	}
	c.redirect(Root + "account?done=token-revoked")
	return nil
}
