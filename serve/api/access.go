package api

import (
	"cmp"
	"iter"
	"net/http"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
)

// accessOperations are about the ways in which users sign in to the desk.
func (h *Handler) accessOperations() []operation {
	const group = "Users and tokens"
	whose := parameter{name: "user", max: auth.MaxName, about: "whose; without it, yours", example: "ann"}
	list := []parameter{whose, limitParameter, cursorParameter}
	account := parameter{name: "account", about: "The ID of the account", example: "4k2m9x0q7rbc"}
	passkey := parameter{name: "passkey", about: "The ID of the passkey", example: "SZFeDX1LQC4wF9AQvBwOg8rGx5fWwW5mNA_jJoaTpqE"}
	return []operation{{
		name: "invite", method: http.MethodPost, path: "invitations", group: group,
		summary: "Add a user, with a role and a link to begin with",
		about:   "All of it is done, or nothing. The user opens the link in a browser, to sign in to the desk for the first time. Its secret is in the answer, and nowhere else, ever. listLinks lists invitations that were not taken up, and endLink ends one.",
		asks:    administrator, scope: auth.ScopeAdmin,
		body:    &body{media: []string{apijson.JSON}, limit: maxBody, value: apijson.NewInvitation{}, example: `{"name":"eva","groups":["staff"],"namespace":"ark:12345","role":"editor"}`},
		answers: []answer{{status: 201, about: "The user was added.", value: apijson.MadeInvitation{}, headers: []parameter{location}}},
		fails:   []int{404, 409},
		serve:   h.invite,
	}, {
		name: "listLinks", method: http.MethodGet, path: "links", group: group,
		summary: "List one-time links that were not used",
		asks:    administrator, scope: auth.ScopeAdmin,
		query:   []parameter{{name: "user", max: auth.MaxName, about: "whom they sign in; without it, all users", example: "ann"}, limitParameter, cursorParameter},
		answers: []answer{{status: 200, about: "A page of the list.", value: apijson.LinkPage{}}},
		serve: func(c *call) error {
			return pageOf(c, h.o.Registrar.Links(c.ctx, c.text("user")), func(l auth.Link) (string, any) {
				return l.ID, apijson.Link{ID: l.ID, User: l.User, Created: l.Created, Expires: l.Expires, By: l.By}
			})
		},
	}, {
		name: "endLink", method: http.MethodDelete, path: "links/{link}", group: group,
		tail:    parameter{name: "link", about: "The ID of the link", example: "4k2m9x0q7rbc"},
		summary: "End a one-time link that was not used",
		about:   "It signs in no more. A link that is not there has ended already.",
		asks:    administrator, scope: auth.ScopeAdmin,
		answers: []answer{{status: 204, about: "The link has ended."}},
		serve:   func(c *call) error { return c.done(h.o.Registrar.EndLink(c.ctx, c.tail)) },
	}, {
		name: "listAccounts", method: http.MethodGet, path: "accounts", group: group,
		summary: "List accounts at other systems that sign a user in",
		about:   "Yours, or for an administrator those of any user. A token must not be limited.",
		asks:    known, scope: auth.ScopeAdmin,
		query:   list,
		answers: []answer{{status: 200, about: "A page of the list.", value: apijson.AccountPage{}}},
		fails:   []int{403},
		serve: func(c *call) error {
			return pageOf(c, h.o.Registrar.Identities(c.ctx, c.whose()), func(i auth.Identity) (string, any) {
				id := i.ID()
				return id, apijson.Account{ID: id, User: i.User, Issuer: i.Issuer, Subject: i.Subject, Label: i.Label, Groups: i.Groups, Created: i.Created, Used: i.Used, By: i.By}
			})
		},
	}, {
		name: "unlinkAccount", method: http.MethodDelete, path: "accounts/{account}", group: group, tail: account,
		summary: "Unlink an account from its user",
		about:   "It signs the user in no more, and the user loses the groups that it gave. Sessions go on. Your own, or for an administrator that of any user.",
		asks:    known, scope: auth.ScopeAdmin,
		query:   []parameter{whose},
		answers: []answer{{status: 204, about: "The account is not linked any more."}},
		fails:   []int{403, 404},
		serve:   func(c *call) error { return c.done(h.o.Registrar.EndIdentity(c.ctx, c.whose(), c.tail)) },
	}, {
		name: "listPasskeys", method: http.MethodGet, path: "passkeys", group: group,
		summary: "List the passkeys of a user",
		about:   "Yours, or for an administrator those of any user. A token must not be limited. Passkeys are made in a browser, at the desk.",
		asks:    known, scope: auth.ScopeAdmin,
		query:   list,
		answers: []answer{{status: 200, about: "A page of the list.", value: apijson.PasskeyPage{}}},
		fails:   []int{403},
		serve: func(c *call) error {
			return pageOf(c, h.o.Registrar.Passkeys(c.ctx, c.whose()), func(p auth.Passkey) (string, any) {
				return p.ID, apijson.Passkey{ID: p.ID, User: p.User, Name: p.Name, Site: p.Site, Created: p.Created, Used: p.Used, Copied: p.Copied}
			})
		},
	}, {
		name: "renamePasskey", method: http.MethodPatch, path: "passkeys/{passkey}", group: group, tail: passkey,
		summary: "Give a passkey another name",
		asks:    known, scope: auth.ScopeAdmin,
		body:    &body{media: []string{apijson.MergePatch}, limit: maxBody, value: apijson.PasskeyName{}, example: `{"name":"Old telephone"}`},
		answers: []answer{{status: 204, about: "The passkey has the name."}},
		fails:   []int{403, 404},
		serve: func(c *call) error {
			var want apijson.PasskeyName
			if err := c.decode(&want); err != nil {
				return err
			}
			return c.done(h.o.Registrar.RenamePasskey(c.ctx, c.tail, want.Name))
		},
	}, {
		name: "removePasskey", method: http.MethodDelete, path: "passkeys/{passkey}", group: group, tail: passkey,
		summary: "Remove a passkey",
		about:   "It signs its user in no more. Your own, or for an administrator that of any user.",
		asks:    known, scope: auth.ScopeAdmin,
		answers: []answer{{status: 204, about: "The passkey is removed."}},
		fails:   []int{403, 404},
		serve:   func(c *call) error { return c.done(h.o.Registrar.RemovePasskey(c.ctx, c.tail)) },
	}}
}

// whose returns the user that the query names, or else the caller.
func (c *call) whose() string { return cmp.Or(c.text("user"), c.who.Name) }

// done answers with nothing if all went well.
func (c *call) done(err error) error {
	if err == nil {
		c.replyEmpty(http.StatusNoContent)
	}
	return err
}

// invite adds a user with a role and a link.
func (h *Handler) invite(c *call) error {
	var want apijson.NewInvitation
	if err := c.decode(&want); err != nil {
		return err
	}
	in := registrar.Invitation{User: auth.User{Name: want.Name, Groups: want.Groups, Admin: want.Admin}, Life: auth.LinkLife}
	if want.Seconds != 0 {
		in.Life = time.Duration(want.Seconds) * time.Second
	}
	switch {
	case want.Namespace != "":
		var err error
		if in.Namespace, err = h.o.Registrar.ParsePrefix(want.Namespace); err != nil {
			return amiss(c, "namespace", err)
		}
		in.Role = stele.Role(want.Role)
	case want.Role != "":
		return amiss(c, "role", stele.Messagef("invite.role-nowhere", "a role is held in a namespace; name it"))
	}
	made, err := h.o.Registrar.Invite(c.ctx, in)
	if err != nil {
		return err
	}
	c.w.Header().Set("Location", Root+"/users/"+escaped(made.User.Name))
	return c.reply(http.StatusCreated, apijson.MadeInvitation{
		User: apijson.User(made.User),
		Link: apijson.MadeLink{Credential: made.Credential, ID: made.Link.ID, User: made.Link.User, Expires: made.Link.Expires},
	})
}

// pageOf answers with a page of a list whose IDs are in order.
func pageOf[T any](c *call, list iter.Seq2[T, error], show func(T) (id string, shown any)) error {
	after, err := c.after()
	if err != nil {
		return err
	}
	page := newPage(c)
	for item, err := range list {
		if err != nil {
			return err
		}
		id, shown := show(item)
		if id <= after {
			continue
		}
		if page.isFull() {
			return page.reply()
		}
		page.pass(id)
		if err := page.addValue(shown); err != nil {
			return err
		}
	}
	return page.end()
}
