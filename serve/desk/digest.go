package desk

import (
	"cmp"
	"net/http"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/web/deskpage"
)

// endDigestsPattern is the address in a digest that ends them. Mail programs send a form there on their own, without cookies
// (RFC 8058): it must be taken from any site, and the credential in it is all that counts.
const endDigestsPattern = "POST " + Root + "digest/{user}/{credential}"

// digestOptions returns how often digests may come, and which of these the user has chosen.
func (c *call) digestOptions() (list []deskpage.Option, err error) {
	p, err := c.h.o.Registrar.Preferences(c.ctx)
	for _, rate := range auth.DigestRates() {
		list = append(list, deskpage.Option{Value: string(rate), Text: c.language.Text("digestrate." + string(rate)), Chosen: rate == cmp.Or(p.Digest, auth.DigestWeekly)})
	}
	return list, err
}

// saveDigest keeps how often the user wants digests.
func (c *call) saveDigest() error {
	if err := c.readForm(); err != nil {
		return err
	}
	if err := c.needMail(); err != nil {
		return err
	}
	rate := cmp.Or(auth.DigestRate(c.r.PostForm.Get("digest")), auth.DigestWeekly)
	if _, err := c.h.o.Registrar.SetPreferences(c.ctx, func(p *auth.Preferences) { p.Digest = rate }); err != nil {
		return err
	}
	c.redirect(Root + "settings?done=digest-saved")
	return nil
}

// showEndDigests asks whether to end the digests of a user: a program that looks at links in mail must not.
func (c *call) showEndDigests() error { return c.endDigestsPage(false) }

// endDigests ends the digests of a user, who need not be signed in. It answers with a page and not with a redirect, which mail programs
// do not follow.
func (c *call) endDigests() error { return c.endDigestsPage(true) }

func (c *call) endDigestsPage(do bool) error {
	user, credential, server := c.r.PathValue("user"), c.r.PathValue("credential"), auth.With(c.ctx, auth.Local())
	v := &deskpage.EndDigests{Frame: c.frame("enddigest.title", ""), Action: c.r.URL.Path, For: user}
	err := c.h.o.Registrar.CheckDigestCredential(server, user, credential)
	if err == nil && do {
		err = c.h.o.Registrar.EndDigests(server, user, credential)
	}
	switch {
	case err == nil:
		v.Valid, v.Done = true, do
		return c.show(http.StatusOK, "enddigests", v)
	case stele.KindOf(err) == stele.Unauthenticated:
		// Only wrong links are limited: a mail provider ends the digests of many users from a few addresses, and no right one can be guessed.
		if err := c.try(); err != nil {
			return err
		}
		v.Problems = append(v.Problems, deskpage.Problem{Text: c.language.Problem(reason(err))})
		return c.show(http.StatusUnauthorized, "enddigests", v)
	}
	return err
}
