package desk

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// Proxy says how a trusted proxy that signs users in names them.
type Proxy struct {
	UserHeader   string
	GroupsHeader string // "": the proxy names no groups
	Make         bool   // make users who do not exist

	// From reports whether a request came through a trusted proxy. Clients can write the same
	// headers, so that those of other requests are ignored.
	From func(r *http.Request) bool
}

// proxyUser returns the user whom a trusted proxy has signed in, and the user's groups; "" if there
// is none.
func (c *call) proxyUser() (user string, groups []string) {
	p := c.h.o.Proxy
	if p == nil || !p.From(c.r) {
		return "", nil
	}
	// Two headers may be the client's and the proxy's: then neither is believed.
	values := c.r.Header.Values(p.UserHeader)
	if len(values) != 1 {
		return "", nil
	}
	if p.GroupsHeader != "" {
		given := c.r.Header.Values(p.GroupsHeader)
		if len(given) > 1 {
			return "", nil
		}
		text := strings.Join(given, "")
		for group := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return r == ',' || r == ';' }) {
			if group = strings.TrimSpace(group); auth.IsName(group) && !slices.Contains(groups, group) && len(groups) < auth.MaxGroups {
				groups = append(groups, group)
			}
		}
		slices.Sort(groups)
	}
	return strings.ToLower(strings.TrimSpace(values[0])), groups
}

// signInProxy signs in the user whom a trusted proxy has signed in.
func (c *call) signInProxy() error {
	if err := c.readForm(); err != nil {
		return err
	}
	if err := c.try(); err != nil {
		return err
	}
	user, groups := c.proxyUser()
	next := inside(c.r.PostForm.Get("next"))
	var err error
	switch {
	case user == "":
		err = stele.Errorf("sign in", stele.ID{}, stele.Forbidden, "proxy.names-no-user", "the request did not come through a proxy that has signed a user in; sign in another way")
	case !auth.IsName(user):
		err = stele.Errorf("sign in", stele.ID{}, stele.Forbidden, "proxy.user-name-not-allowed", `the proxy names the user "{user}", which can't be a name here; ask an administrator`, user)
	default:
		err = c.arrive(auth.Arrival{Issuer: auth.ProxyIssuer, Subject: user, Label: user, User: user, Groups: groups, Make: c.h.o.Proxy.Make}, auth.ProvedByProxy, time.Time{})
	}
	if err == nil {
		c.redirect(next)
		return nil
	}
	status, ok := statuses[stele.KindOf(err)]
	if !ok {
		return err
	}
	c.h.o.Log.WarnContext(c.ctx, "a user could not sign in through the proxy", "user", user, "error", reason(err).Error())
	c.h.o.Registrar.NoteFailure(c.ctx, "sign in", "", err)
	return c.refuseSignIn(status, next, c.language.Problem(reason(err)))
}
