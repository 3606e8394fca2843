package ezid

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/internal/limit"
)

// cookieName is the name of the cookie of sessions, which EZID's clients look for.
const cookieName = "sessionid"

// identify authenticates the client: by a user name and a token as the password, or by the cookie of a session that was begun so. It
// takes from the client's rate. Wrong credentials are refused even where the public is admitted, except those of a session that
// has ended: EZID's clients keep cookies, and read with them.
func (c *call) identify() error {
	c.ctx = auth.WithOrigin(c.ctx, c.origin())
	known, err := c.recognise()
	switch {
	case errors.Is(err, stele.Unauthenticated):
		if limited := c.h.failures.Take(c.address(), 1, c.h.o.Now()); limited != nil {
			return limited
		}
		return err
	case err != nil:
		return err
	}
	bucket := "address " + c.address()
	if known {
		bucket = "principal " + c.who.Name
		c.ctx = auth.WithOrigin(auth.With(c.ctx, c.who), c.origin())
	}
	return c.h.callers.Take(bucket, 1, c.h.o.Now())
}

// recognise finds out who the client is.
func (c *call) recognise() (known bool, err error) {
	if values := c.r.Header["Authorization"]; len(values) > 0 {
		c.who, err = c.authenticate(values)
		return err == nil, err
	}
	cookie, err := c.r.Cookie(cookieName)
	if err != nil {
		return false, nil
	}
	session, who, err := c.h.o.Directory.TokenSession(c.ctx, cookie.Value)
	if errors.Is(err, stele.Unauthenticated) {
		// It has ended, or is of another server. Guessing is limited all the same.
		return false, c.h.failures.Take(c.address(), 1, c.h.o.Now())
	}
	if err != nil {
		return false, err
	}
	c.session, c.who = session, who
	if err := c.h.o.Registrar.NoteSession(c.ctx, session); err != nil && c.r.Context().Err() == nil {
		// Identifiers can be read while the store can't be written; the session may end early.
		c.h.o.Log.WarnContext(c.ctx, "the use of a session can't be noted", "error", err.Error())
	}
	return true, nil
}

// authenticate returns the principal of the values of an Authorization header.
func (c *call) authenticate(values []string) (auth.Principal, error) {
	if scheme, _, _ := strings.Cut(values[0], " "); !strings.EqualFold(scheme, "Basic") {
		credential, err := auth.Bearer(values)
		if err != nil {
			return auth.Principal{}, err
		}
		return c.h.o.Directory.Authenticate(c.ctx, credential)
	}
	user, token, ok := c.r.BasicAuth()
	if !ok || len(values) != 1 {
		return auth.Principal{}, wrongCredentials()
	}
	who, err := c.h.o.Directory.Authenticate(c.ctx, token)
	if err == nil && who.Name != user {
		return auth.Principal{}, wrongCredentials()
	}
	return who, err
}

func wrongCredentials() error {
	return stele.Errorf("authenticate", stele.ID{}, stele.Unauthenticated, "ezid.credentials-wrong", "the user name and the token do not belong together; send the name of a user, and one of that user's tokens as the password")
}

func (c *call) errNoCredentials() error {
	return stele.Errorf(c.operation, stele.ID{}, stele.Unauthenticated, "ezid.credentials-missing", "send a user name, and a token as the password, or the cookie of a session")
}

// isInClear reports whether what the client sends could be read on its way.
func (c *call) isInClear() bool {
	return auth.IsInClear(c.r.TLS != nil, c.h.o.Base, c.client(), c.r.Header)
}

// hasCredentials reports whether the client sends any.
func (c *call) hasCredentials() bool {
	_, err := c.r.Cookie(cookieName)
	return err == nil || len(c.r.Header["Authorization"]) > 0
}

// isForeign reports whether a browser sent the request for a page of another origin. The methods of login and logout are those of
// reading, so [http.CrossOriginProtection] lets them pass.
func (c *call) isForeign() bool {
	site := c.r.Header.Get("Sec-Fetch-Site")
	return site != "" && site != "same-origin" && site != "none"
}

// client returns the address from which the request came.
func (c *call) client() (a netip.Addr) {
	if c.h.o.ClientAddr != nil {
		return c.h.o.ClientAddr(c.r)
	}
	if from, err := netip.ParseAddrPort(c.r.RemoteAddr); err == nil {
		a = from.Addr().Unmap()
	}
	return a
}

// address returns from where the request came, as it is counted.
func (c *call) address() string { return limit.Client(c.client()) }

// origin says how the request came in, for the audit trail.
func (c *call) origin() auth.Origin {
	o := auth.Origin{Via: "ezid", Caller: c.who}
	if c.h.o.Addresses {
		o.Address = c.address()
	}
	return o
}

// noteFailure leaves an audit entry about a request that was refused.
func (c *call) noteFailure(err error) {
	if e, ok := errors.AsType[*stele.Error](err); ok && (e.Kind == stele.Unauthenticated || e.Kind == stele.Forbidden) {
		c.h.o.Registrar.NoteFailure(c.ctx, c.operation, c.rest, err)
	}
}

// login begins a session for a client that has sent a token.
func (c *call) login() error {
	if _, err := c.options(nil); err != nil {
		return err
	}
	if c.session.ID != "" {
		return c.errNoCredentials() // a session does not begin another one
	}
	credential, _, err := c.h.o.Registrar.BeginTokenSession(auth.With(c.ctx, auth.Local()), c.who, c.r.UserAgent())
	if err != nil {
		return err
	}
	c.setCookie(credential, int(auth.SessionLife.Seconds()))
	return c.success(http.StatusOK, "session cookie returned", nil)
}

// logout ends the session of the client, if there is one.
func (c *call) logout() error {
	if _, err := c.options(nil); err != nil {
		return err
	}
	session := c.session
	if cookie, err := c.r.Cookie(cookieName); err == nil && session.ID == "" && c.who.IsKnown() {
		// The client was recognised by its token, and the cookie was not looked at yet.
		if session, _, err = c.h.o.Directory.TokenSession(c.ctx, cookie.Value); err != nil && !errors.Is(err, stele.Unauthenticated) {
			return err
		}
	}
	if session.ID != "" {
		if err := c.h.o.Registrar.EndSession(auth.With(c.ctx, auth.Local()), session.ID); err != nil {
			return err
		}
	}
	c.setCookie("", -1)
	return c.success(http.StatusOK, "authentication credentials flushed", nil)
}

// setCookie gives the client a session, or takes it away.
func (c *call) setCookie(value string, age int) {
	secure := c.r.TLS != nil || strings.HasPrefix(c.h.o.Base, "https://")
	http.SetCookie(c.w, &http.Cookie{Name: cookieName, Value: value, Path: Root, MaxAge: age, HttpOnly: true, Secure: secure, SameSite: http.SameSiteStrictMode})
}

// status says that the server runs.
func (c *call) status() error {
	given, err := c.options(map[string][]string{"subsystems": nil, "detailed": yesNo})
	if err != nil {
		return err
	}
	up := "up"
	if c.h.o.Ready != nil && c.h.o.Ready(c.ctx) != nil {
		up = "down"
	}
	var elements map[string]string
	for name := range strings.SplitSeq(given["subsystems"], ",") {
		switch name = strings.TrimSpace(name); name {
		case "":
		case "*", "registry":
			elements = map[string]string{"registry": up}
		default:
			return badf(http.StatusBadRequest, "ezid.subsystem-unknown", "no such subsystem")
		}
	}
	if up != "up" {
		return &stele.Error{Op: c.operation, Kind: stele.Unavailable, Err: stele.Messagef("ezid.not-ready", "the server is not ready")}
	}
	return c.success(http.StatusOK, "EZID is up", elements)
}
