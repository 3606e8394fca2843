package api

import (
	"net/http"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
)

func (h *Handler) tokenOperations() []operation {
	const group = "Users and tokens"
	return []operation{{
		name: "listTokens", method: http.MethodGet, path: "tokens", group: group,
		summary: "List tokens",
		about:   "Yours; an administrator sees those of all users, or of one. With a token that is limited, that one and those below it.",
		asks:    known, scope: anyScope,
		query: []parameter{
			{name: "user", max: auth.MaxName, about: "whose tokens", example: "ann"},
			limitParameter, cursorParameter,
		},
		answers: []answer{{status: 200, about: "A page of the list.", value: apijson.TokenPage{}}},
		fails:   []int{403},
		serve:   h.listTokens,
	}, {
		name: "createToken", method: http.MethodPost, path: "tokens", group: group,
		summary: "Make a token",
		about: "Its credential is in the answer, and nowhere else, ever. An administrator makes tokens for all users, others for themselves. " +
			"The new token is a child of the one with which it is asked: it does not outlive it, may be used for nothing else, and is revoked with it.",
		asks: known, scope: anyScope,
		body:    &body{media: []string{apijson.JSON}, limit: maxBody, value: apijson.NewToken{}, example: `{"label":"nightly import"}`},
		answers: []answer{{status: 201, about: "The token was made.", value: apijson.MadeToken{}, headers: []parameter{location}}},
		fails:   []int{403, 404, 409},
		serve:   h.createToken,
	}, {
		name: "createLink", method: http.MethodPost, path: "links", group: group,
		summary: "Make a link that signs a user in once",
		about:   "The user opens it in a browser, to sign in to the desk for the first time, or without their passkey. Its secret is in the answer, and nowhere else, ever.",
		asks:    administrator, scope: auth.ScopeAdmin,
		body:    &body{media: []string{apijson.JSON}, limit: maxBody, value: apijson.NewLink{}, example: `{"user":"ann"}`},
		answers: []answer{{status: 201, about: "The link was made.", value: apijson.MadeLink{}}},
		fails:   []int{403, 404, 409},
		serve:   h.createLink,
	}, {
		name: "revokeToken", method: http.MethodDelete, path: "tokens/{token}", group: group,
		tail:    parameter{name: "token", about: "The ID of the token", example: "4k2m9x0q7rbc"},
		summary: "Revoke a token",
		about:   "The server refuses it from now on, and all tokens that it made, and those that they made. An administrator revokes every token, others their own.",
		asks:    known, scope: anyScope,
		answers: []answer{{status: 200, about: "The token as it is now.", value: apijson.Token{}}},
		fails:   []int{404},
		serve: func(c *call) error {
			t, err := h.o.Registrar.RevokeToken(c.ctx, c.tail)
			if err != nil {
				return err
			}
			return c.reply(http.StatusOK, shown(t))
		},
	}, {
		name: "openToken", method: http.MethodPost, path: "tokens/{token}", group: group,
		tail:    parameter{name: "token", about: "The ID of the token", example: "4k2m9x0q7rbc"},
		summary: "Open a token that a restore shut",
		about:   "A restore where there is no registry that knows which tokens were revoked since the backup shuts all of them. One that is not shut stays as it is.",
		asks:    administrator, scope: auth.ScopeAdmin,
		answers: []answer{{status: 200, about: "The token as it is now.", value: apijson.Token{}}},
		fails:   []int{404},
		serve: func(c *call) error {
			t, err := h.o.Registrar.OpenToken(c.ctx, c.tail)
			if err != nil {
				return err
			}
			return c.reply(http.StatusOK, shown(t))
		},
	}}
}

// shown returns a token as it is shown.
func shown(t auth.Token) apijson.Token {
	d := apijson.Token{ID: t.ID, User: t.User, Label: t.Label, Created: t.Created, Expires: t.Expires, Revoked: t.Revoked, LastUse: t.LastUse, By: t.By,
		Parent: t.Parent, Namespaces: t.Namespaces, EndedWith: t.EndedWith, Shut: t.Shut}
	for _, s := range t.Scopes {
		d.Scopes = append(d.Scopes, string(s))
	}
	return d
}

// listTokens lists the caller's tokens, or those that an administrator asks for.
func (h *Handler) listTokens(c *call) error {
	after, err := c.after()
	if err != nil {
		return err
	}
	user := c.text("user")
	if user == "" && !c.who.Admin {
		user = c.who.Name
	}
	page := newPage(c)
	for t, err := range h.o.Registrar.Tokens(c.ctx, user) {
		if err != nil {
			return err
		}
		if t.ID <= after {
			continue
		}
		if page.isFull() {
			return page.reply()
		}
		page.pass(t.ID)
		if err := page.addValue(shown(t)); err != nil {
			return err
		}
	}
	return page.end()
}

// newTokenCost is what a new token costs, in records: all tokens are read to make one, and
// the directory reads them again afterwards.
const newTokenCost = 5 * recordsAToken

// createToken makes a token.
func (h *Handler) createToken(c *call) error {
	var want apijson.NewToken
	if err := c.decode(&want); err != nil {
		return err
	}
	if want.User == "" {
		want.User = c.who.Name
	}
	request := auth.TokenRequest{User: want.User, Label: want.Label, Never: want.Never, Namespaces: want.Namespaces}
	switch {
	case want.Never && want.Expires != nil:
		return invalidf("request.expires-and-never-given", "expires and never are both given; keep one")
	case want.Expires != nil && want.Expires.IsZero(): // some programs send this for no time
		return amiss(c, "expires", stele.Messagef("token.expires-in-past", "the year 1 is past; give a time to come"))
	case want.Expires != nil:
		request.Expires = *want.Expires
	}
	for _, s := range want.Scopes {
		request.Scopes = append(request.Scopes, auth.Scope(s))
	}
	c.charge(newTokenCost)
	credential, t, err := h.o.Registrar.CreateToken(c.ctx, request)
	if err != nil {
		return err
	}
	c.w.Header().Set("Location", Root+"/tokens/"+t.ID)
	return c.reply(http.StatusCreated, apijson.MadeToken{Credential: credential, Token: shown(t)})
}

// createLink makes a one-time link.
func (h *Handler) createLink(c *call) error {
	var want apijson.NewLink
	if err := c.decode(&want); err != nil {
		return err
	}
	credential, l, err := h.o.Registrar.CreateLink(c.ctx, want.User, time.Duration(want.Seconds)*time.Second)
	if err != nil {
		return err
	}
	return c.reply(http.StatusCreated, apijson.MadeLink{Credential: credential, ID: l.ID, User: l.User, Expires: l.Expires})
}
