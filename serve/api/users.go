package api

import (
	"encoding/json"
	"net/http"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/serve/api/openapi"
)

var userInPath = parameter{name: "name", about: "The name of the user", example: "ann"}

func (h *Handler) userOperations() []operation {
	const group = "Users and tokens"
	user := answer{status: 200, about: "The user as it is now.", value: apijson.User{}}
	return []operation{{
		name: "getMe", method: http.MethodGet, path: "me", group: group,
		summary: "Show who you are, and which roles you have",
		asks:    known, scope: anyScope,
		answers: []answer{{status: 200, about: "Whose the token is.", value: apijson.Self{}}},
		serve:   h.getMe,
	}, {
		name: "listUsers", method: http.MethodGet, path: "users", group: group,
		summary: "List all users",
		asks:    administrator, scope: auth.ScopeBackup,
		query:   []parameter{limitParameter, cursorParameter},
		answers: []answer{{status: 200, about: "A page of the list.", value: apijson.UserPage{}}},
		serve:   h.listUsers,
	}, {
		name: "addUser", method: http.MethodPost, path: "users", group: group,
		summary: "Add a user",
		about:   "Names of users and groups have 1 to 64 of a-z, 0-9, and . _ @ -, and begin with a letter or a digit.",
		asks:    administrator, scope: auth.ScopeAdmin,
		body:    &body{media: []string{apijson.JSON}, limit: maxBody, value: apijson.NewUser{}, example: `{"name":"dora","groups":["staff"]}`},
		answers: []answer{{status: 201, about: "The user was added.", value: apijson.User{}, headers: []parameter{location}}},
		fails:   []int{409},
		serve:   h.addUser,
	}, {
		name: "getUser", method: http.MethodGet, path: "users/{name}", group: group, tail: userInPath,
		summary: "Show a user",
		about:   "Administrators may look at all users, others at themselves.",
		asks:    known, scope: anyScope,
		answers: []answer{user},
		fails:   []int{404},
		serve: func(c *call) error {
			u, err := h.o.Registrar.User(c.ctx, c.tail)
			if err != nil {
				return err
			}
			return c.reply(http.StatusOK, apijson.User(u))
		},
	}, {
		name: "patchUser", method: http.MethodPatch, path: "users/{name}", group: group, tail: userInPath,
		summary: "Change a user's groups and rights",
		about:   "A merge patch (RFC 7396). A user is never deleted, since history has the name, but can be disabled. The last administrator who is not disabled stays one.",
		asks:    administrator, scope: auth.ScopeAdmin,
		body:    &body{media: []string{apijson.MergePatch}, limit: maxBody, value: openapi.UserPatch{}, example: `{"groups":["staff","editors"]}`},
		answers: []answer{user},
		fails:   []int{404, 409},
		serve:   h.patchUser,
	}, {
		name: "removePassword", method: http.MethodDelete, path: "passwords/{name}", group: group, tail: userInPath,
		summary: "Remove a user's password",
		about:   "The password and its authenticator app sign the user in no more, and sessions that began with them end. The user sets another one at the desk, after a one-time link.",
		asks:    administrator, scope: auth.ScopeAdmin,
		answers: []answer{user},
		fails:   []int{404},
		serve: func(c *call) error {
			if err := h.o.Registrar.RemovePassword(c.ctx, c.tail); err != nil {
				return err
			}
			u, err := h.o.Registrar.User(c.ctx, c.tail)
			if err != nil {
				return err
			}
			return c.reply(http.StatusOK, apijson.User(u))
		},
	}}
}

// getMe shows the caller's user, groups, roles and token.
func (h *Handler) getMe(c *call) error {
	me := apijson.Self{Name: c.who.Name, Groups: c.who.Groups, Admin: c.who.Admin, Token: c.who.Token, Expires: c.who.Expires, Namespaces: c.who.Namespaces()}
	for _, s := range c.who.Scopes() {
		me.Scopes = append(me.Scopes, string(s))
	}
	if c.who.Admin {
		return c.reply(http.StatusOK, me)
	}
	for ns, err := range h.o.Registrar.Namespaces(c.ctx) {
		if err != nil {
			return err
		}
		role, err := h.o.Registrar.RoleIn(c.ctx, ns.Key())
		if err != nil {
			return err
		}
		if role != stele.NoRole {
			me.Roles = append(me.Roles, apijson.Role{Namespace: ns.Key().String(), Role: string(role)})
		}
		if len(me.Roles) == maxLimit {
			break
		}
	}
	return c.reply(http.StatusOK, me)
}

// listUsers lists all users.
func (h *Handler) listUsers(c *call) error {
	after, err := c.after()
	if err != nil {
		return err
	}
	page := newPage(c)
	for u, err := range h.o.Registrar.Users(c.ctx) {
		if err != nil {
			return err
		}
		if u.Name <= after {
			continue
		}
		if page.isFull() {
			return page.reply()
		}
		page.pass(u.Name)
		if err := page.addValue(apijson.User(u)); err != nil {
			return err
		}
	}
	return page.end()
}

// addUser adds a user.
func (h *Handler) addUser(c *call) error {
	var want apijson.NewUser
	if err := c.decode(&want); err != nil {
		return err
	}
	u, err := h.o.Registrar.AddUser(c.ctx, auth.User{Name: want.Name, Groups: want.Groups, Admin: want.Admin, Disabled: want.Disabled})
	if err != nil {
		return err
	}
	c.w.Header().Set("Location", Root+"/users/"+escaped(u.Name))
	return c.reply(http.StatusCreated, apijson.User(u))
}

// patchUser changes a user.
func (h *Handler) patchUser(c *call) error {
	patch, err := c.readPatch()
	if err != nil {
		return err
	}
	u, err := h.o.Registrar.SetUser(c.ctx, c.tail, func(u *auth.User) error {
		before, err := json.Marshal(apijson.UserSettings{Groups: u.Groups, Admin: u.Admin, Disabled: u.Disabled})
		if err != nil {
			return err
		}
		text, err := document.ApplyPatch(before, patch)
		if err != nil {
			return err
		}
		var next apijson.UserSettings
		if err := document.DecodeStrictly(c.op.name, text, &next); err != nil {
			return err
		}
		u.Groups, u.Admin, u.Disabled = next.Groups, next.Admin, next.Disabled
		return nil
	})
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, apijson.User(u))
}
