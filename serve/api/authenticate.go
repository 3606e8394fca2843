package api

import (
	"net/http"
	"net/netip"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/internal/limit"
)

// identify authenticates the caller, and takes from its rate. A request without a credential
// is the public's. An unknown credential is refused even where the public is admitted, since
// the sender expects to be authenticated.
func (c *call) identify() error {
	if len(c.r.Header["Authorization"]) == 0 {
		c.bucket = "address " + c.address()
		c.ctx = auth.WithOrigin(c.ctx, c.origin())
		return c.h.callers.Take(c.bucket, 1, c.h.o.Now())
	}
	c.token = true
	if err := c.recognise(); err != nil {
		if refused := c.countFailure(err); refused != nil {
			return refused
		}
		return err
	}
	c.bucket = "principal " + c.who.Name
	return c.h.callers.Take(c.bucket, 1, c.h.o.Now())
}

// recognise authenticates the caller again: since the last time the token may have been
// revoked, and its user have lost a group.
func (c *call) recognise() error {
	if !c.token {
		return nil
	}
	credential, err := auth.Bearer(c.r.Header["Authorization"])
	if err == nil {
		c.who, err = c.h.o.Directory.Authenticate(c.ctx, credential)
	}
	c.ctx = auth.WithOrigin(auth.With(c.ctx, c.who), c.origin())
	return err
}

// countFailure limits the rate of unknown credentials from an address. Callers with good
// credentials at the same address are not refused with them: an attacker could shut them out
// easily, and can't guess 256 random bits.
func (c *call) countFailure(err error) error {
	if outcomeOf(err).status >= http.StatusInternalServerError {
		return nil
	}
	return c.h.failures.Take(c.address(), 1, c.h.o.Now())
}

// address returns from where the request came, as it is counted: a network of 64 bits
// for IPv6, where one client has that many addresses.
func (c *call) address() string { return limit.Client(c.from()) }

// from returns the address from which the request came; the zero one if that is not known.
func (c *call) from() netip.Addr {
	if c.h.o.ClientAddr != nil {
		return c.h.o.ClientAddr(c.r)
	}
	if from, err := netip.ParseAddrPort(c.r.RemoteAddr); err == nil {
		return from.Addr().Unmap()
	}
	return netip.Addr{}
}

// admit makes sure that the caller may use the operation at all.
func (c *call) admit() error {
	switch {
	case c.op.asks == anyone:
		return nil
	case !c.who.IsKnown():
		return &stele.Error{Op: c.op.name, Kind: stele.Unauthenticated, Err: errSayWho}
	case c.op.scope != anyScope && !c.who.Has(c.op.scope):
		return &stele.Error{Op: c.op.name, Kind: stele.Forbidden, Err: stele.Messagef("token.scope-missing", "this needs a token with the scope {scope}; use another token", c.op.scope)}
	case c.op.asks == administrator && !c.who.Administers(c.op.scope):
		err := errNoAdministrator
		if len(c.who.Namespaces()) > 0 {
			err = errWholeRegistry
		}
		return &stele.Error{Op: c.op.name, Kind: stele.Forbidden, Err: err}
	}
	return nil
}
