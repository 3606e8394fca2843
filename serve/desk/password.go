package desk

import (
	"errors"
	"hash/maphash"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/auth/password"
	"github.com/stele-id/stele/internal/limit"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/web"
	"github.com/stele-id/stele/web/deskpage"
)

// Attempts to sign in by a password to one account: 10 at once, and then one in 10 minutes. Each costs so
// much of what flows in, one a second.
const (
	accountRate  = 1
	accountCost  = 600
	accountBurst = 10 * accountCost

	accountBuckets = limit.MaxBuckets / 2
)

func errNoPasswords() error {
	return stele.Errorf("use password", stele.ID{}, stele.Conflict, "password.not-offered", "this server does not let users sign in by a password; an administrator sets passwords")
}

// takeAttempt counts an attempt to sign in to an account, whether the account is there or not; repay gives it back.
func (c *call) takeAttempt(user string) (repay func(), err error) {
	if !auth.IsName(user) {
		return func() {}, nil // no account can have this name
	}
	// Accounts share a fixed number of buckets: names that do not exist would push out the bucket of
	// an account that is being guessed.
	bucket := strconv.FormatUint(maphash.String(c.h.seed, user)%accountBuckets, 10)
	if err := c.h.accounts.Take(bucket, accountCost, c.h.o.Now()); err != nil {
		after := accountCost * 1.0
		if refusal, ok := errors.AsType[*limit.Refusal](err); ok {
			after = refusal.After.Minutes()
		}
		return nil, stele.Errorf("sign in", stele.ID{}, stele.Exhausted, "password.too-many-attempts", "there were too many attempts to sign in as this user; wait {minutes} minutes, or sign in by another way", int(after)+1)
	}
	return func() { c.h.accounts.Spend(bucket, -accountCost, c.h.o.Now()) }, nil
}

// enterByPassword begins a session by the password and the code in a form. The session that the browser had ends.
func (c *call) enterByPassword(user, text, code string) error {
	if !c.h.o.Passwords {
		return errNoPasswords()
	}
	if err := c.try(); err != nil {
		return err
	}
	repay, err := c.takeAttempt(user)
	if err != nil {
		return err
	}
	credential, _, err := c.h.o.Registrar.EnterByPassword(auth.With(c.ctx, auth.Local()), registrar.PasswordProof{User: user, Password: text, Code: code}, c.r.UserAgent(), c.session.ID)
	if err != nil {
		if kind := stele.KindOf(err); kind != stele.Unauthenticated {
			repay() // it was not the password
		}
		return err
	}
	repay()
	c.setSession(credential)
	return nil
}

// isRefused reports whether a proof was refused in a way that its page should tell.
func isRefused(err error) bool {
	if _, busy := errors.AsType[*limit.Refusal](err); busy {
		return true
	}
	kind := stele.KindOf(err)
	return err != nil && (kind == stele.Unauthenticated || kind == stele.Exhausted)
}

// refusedStatus returns the status of a page that shows a refusal, and says when to try again.
func (c *call) refusedStatus(err error) int {
	c.retryAfter(err)
	return statuses[stele.KindOf(err)]
}

// signInPassword signs in by a password and a code.
func (c *call) signInPassword() error {
	if err := c.readForm(); err != nil {
		return err
	}
	form := c.r.PostForm
	user := strings.ToLower(strings.TrimSpace(form.Get("user")))
	err := c.enterByPassword(user, form.Get("secret.password"), form.Get("secret.code"))
	if isRefused(err) {
		c.h.o.Registrar.NoteFailure(c.ctx, "sign in", "", err)
		v := c.signInPage(inside(form.Get("next")))
		v.Typed = form.Get("user")
		v.Problems = []deskpage.Problem{{Field: "user", Text: c.language.Problem(reason(err))}}
		return c.show(c.refusedStatus(err), "signin", v)
	} else if err != nil {
		return err
	}
	c.redirect(inside(form.Get("next")))
	return nil
}

// provePassword takes the password and a code of the user who is signed in as a proof, and leads on to the step that
// needs it.
func (c *call) provePassword() error {
	if err := c.readForm(); err != nil {
		return err
	}
	form, to := c.r.PostForm, inside(c.r.URL.Query().Get("to"))
	err := c.enterByPassword(c.who.Name, form.Get("proof.password"), form.Get("proof.code"))
	if isRefused(err) {
		c.h.o.Registrar.NoteFailure(c.ctx, "prove", "", err)
		c.retryAfter(err)
		return c.showProve(to, form.Get("proof.get") != "", deskpage.Problem{Field: "password", Text: c.language.Problem(reason(err))})
	} else if err != nil {
		return err
	}
	if form.Get("proof.get") != "" {
		c.redirect(to)
		return nil
	}
	c.leadOn(to)
	return nil
}

// hasPassword reports whether the user can prove with a password who they are.
func (c *call) hasPassword() (bool, error) {
	if !c.h.o.Passwords {
		return false, nil
	}
	state, err := c.h.o.Registrar.Password(c.ctx, c.who.Name)
	return state != nil, err
}

// siteName returns how an authenticator app names this site.
func (c *call) siteName() string {
	if c.h.o.Site != "" {
		return c.h.o.Site
	}
	if base, err := url.Parse(c.base()); err == nil && base.Hostname() != "" {
		return base.Hostname()
	}
	return "Stele"
}

// newPassword shows the form that sets or changes the password of the user.
func (c *call) newPassword() error {
	if !c.h.o.Passwords {
		return errNoPasswords()
	}
	if err := c.fresh(); err != nil {
		return err
	}
	has, err := c.hasPassword()
	if err != nil {
		return err
	}
	another := !has || c.r.URL.Query().Get("app") == "new"
	return c.showPasswordForm(http.StatusOK, another, "", nil)
}

// showPasswordForm shows the form that sets a password. Another says that an app is set up, by the offer given or a new one;
// otherwise the user keeps the app that they have.
func (c *call) showPasswordForm(status int, another bool, sealed string, wrong stele.Problems) error {
	v := &deskpage.Password{Frame: c.frame("password.title", "account"), First: c.r.FormValue("first") != "", Least: password.MinLength, Of: c.who.Name}
	for name, f := range map[string]*deskpage.Field{"password": &v.Password, "again": &v.Again, "code": &v.Code} {
		*f = deskpage.Field{ID: name, Name: "secret." + name}
	}
	has, err := c.hasPassword()
	if err != nil {
		return err
	}
	v.Change = has
	if another || !has {
		offer, err := c.h.o.Registrar.OpenOffer(c.ctx, sealed)
		if err != nil {
			if offer, err = c.h.o.Registrar.OfferKey(c.ctx); err != nil {
				return err
			}
		}
		code, err := web.NewQR(password.KeyURI(c.siteName(), c.who.Name, offer.Key))
		if err != nil {
			return err
		}
		v.Offer, v.Key, v.Size, v.Path = offer.Sealed, grouped(password.KeyText(offer.Key)), code.Size, code.Path
	}
	c.fault(&v.Frame, wrong, map[string]*deskpage.Field{"password": &v.Password, "again": &v.Again, "code": &v.Code})
	return c.show(status, "password", v)
}

// grouped returns a text in groups of four, which are easier to type.
func grouped(text string) string {
	var groups []string
	for ; len(text) > 4; text = text[4:] {
		groups = append(groups, text[:4])
	}
	return strings.Join(append(groups, text), " ")
}

// setPassword sets or changes the password of the user.
func (c *call) setPassword() error {
	if !c.h.o.Passwords {
		return errNoPasswords()
	}
	if err := c.fresh(); err != nil {
		return err
	}
	if err := c.try(); err != nil {
		return err
	}
	if err := c.readForm(); err != nil {
		return err
	}
	form := c.r.PostForm
	n := registrar.NewPassword{Password: form.Get("secret.password"), Again: form.Get("secret.again"), Offer: form.Get("offer"), Code: form.Get("secret.code"), Context: []string{c.h.o.Site}}
	if base, err := url.Parse(c.base()); err == nil {
		n.Context = append(n.Context, base.Hostname())
	}
	err := c.h.o.Registrar.SetPassword(c.ctx, n)
	if err == nil {
		c.redirect(Root + "account?done=password-set")
		return nil
	}
	wrong, listed := reason(err).(stele.Problems)
	switch {
	case listed:
	case stele.KindOf(err) == stele.Conflict || isRefused(err):
		wrong = stele.Problems{{Err: reason(err)}}
	default:
		return err
	}
	return c.showPasswordForm(http.StatusUnprocessableEntity, n.Offer != "", n.Offer, wrong)
}

// removePassword removes the password of the user, after a question.
func (c *call) removePassword() error {
	if err := c.fresh(); err != nil {
		return err
	}
	if err := c.readForm(); err != nil {
		return err
	}
	if c.r.PostForm.Get("sure") == "" {
		return c.show(http.StatusOK, "confirm", &deskpage.Confirm{Frame: c.frame("password.remove-title", "account"), Text: c.language.Text("password.remove-text"),
			Action: Root + "account/password/remove", Kept: []deskpage.Kept{{Name: "sure", Value: "yes"}}, Button: c.language.Text("password.remove"), Back: Root + "account"})
	}
	if err := c.h.o.Registrar.RemovePassword(c.ctx, c.who.Name); err != nil {
		return err
	}
	c.redirect(Root + "account?done=password-removed")
	return nil
}

// removePersonPassword removes the password of a user, such as one who has lost the authenticator app.
func (c *call) removePersonPassword() error {
	if err := c.readForm(); err != nil {
		return err
	}
	if err := c.fresh(); err != nil {
		return err
	}
	name := c.r.PostForm.Get("name")
	if err := c.h.o.Registrar.RemovePassword(c.ctx, name); err != nil {
		return err
	}
	c.redirect(personURL(name) + "&done=password-removed")
	return nil
}

// passwordView returns a user's password as pages show it; nil if there is none.
func (c *call) passwordView(user string) (*deskpage.PasswordState, error) {
	state, err := c.h.o.Registrar.Password(c.ctx, user)
	if err != nil || state == nil {
		return nil, err
	}
	return &deskpage.PasswordState{Changed: state.Changed, Used: state.Used}, nil
}

// passwordCommand returns the line of a command that removes the password of a user; "" if there is none.
func passwordCommand(has bool, user string) string {
	if !has {
		return ""
	}
	return "\nstele user password rm " + user
}
