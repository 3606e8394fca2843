package api

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// userDocument is a user as it is shown.
type userDocument struct {
	Name     string    `json:"name" minLength:"1" maxLength:"64" pattern:"^[a-z0-9][a-z0-9._@-]*$" example:"ann"`
	Groups   []string  `json:"groups,omitempty" maxItems:"100" maxLength:"64" doc:"Whose member the user is."`
	Admin    bool      `json:"admin,omitempty" doc:"May do everything."`
	Disabled bool      `json:"disabled,omitempty" doc:"May do nothing more than the public."`
	Created  time.Time `json:"created" readOnly:"true"`
	Modified time.Time `json:"modified" readOnly:"true"`
	By       string    `json:"by,omitempty" readOnly:"true" doc:"Who made the last change."`
}

// newUser is a user as it is sent.
type newUser struct {
	Name     string   `json:"name" minLength:"1" maxLength:"64" pattern:"^[a-z0-9][a-z0-9._@-]*$" example:"ann"`
	Groups   []string `json:"groups,omitempty" maxItems:"100" maxLength:"64"`
	Admin    bool     `json:"admin,omitempty"`
	Disabled bool     `json:"disabled,omitempty"`
}

// userSettings are what can be changed of a user, and userPatch a change of them.
type (
	userSettings struct {
		Groups   []string `json:"groups,omitempty" maxItems:"100" maxLength:"64"`
		Admin    bool     `json:"admin,omitempty"`
		Disabled bool     `json:"disabled,omitempty"`
	}
	userPatch userSettings
)

// TransformSchema makes the schema of a merge patch.
func (userPatch) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema { return patchOf(s) }

// userPage is a part of a list of users.
type userPage struct {
	Items []userDocument `json:"items"`
	Next  string         `json:"next,omitempty" doc:"The cursor of the next page; without it this is the last."`
}

// selfDocument describes the caller.
type selfDocument struct {
	Name   string         `json:"name"`
	Groups []string       `json:"groups,omitempty"`
	Admin  bool           `json:"admin,omitempty" doc:"May do everything, everywhere, by this token."`
	Roles  []roleDocument `json:"roles,omitempty" doc:"Roles in namespaces, 1000 at most; those of an administrator are not listed."`

	Token      string    `json:"token,omitempty" doc:"The ID of the token with which this was asked." example:"4k2m9x0q7rbc"`
	Expires    time.Time `json:"expires,omitzero" doc:"When the token ends, with those above it; without it, never."`
	Scopes     []string  `json:"scopes,omitempty" doc:"What the token may be used for; without it, all that you may do."`
	Namespaces []string  `json:"namespaces,omitempty" doc:"To which the token is limited; without it, to none."`
}

// roleDocument is a role in a namespace.
type roleDocument struct {
	Namespace string `json:"namespace" example:"ark:12345"`
	Role      string `json:"role" enum:"reader,editor,owner"`
}

var userInPath = parameter{name: "name", about: "The name of the user", example: "ann"}

func (h *Handler) userOperations() []operation {
	const group = "Users and tokens"
	user := answer{status: 200, about: "The user as it is now.", value: userDocument{}}
	return []operation{{
		name: "getMe", method: http.MethodGet, path: "me", group: group,
		summary: "Show who you are, and which roles you have",
		asks:    known, scope: anyScope,
		answers: []answer{{status: 200, about: "Whose the token is.", value: selfDocument{}}},
		serve:   h.getMe,
	}, {
		name: "listUsers", method: http.MethodGet, path: "users", group: group,
		summary: "List all users",
		asks:    administrator, scope: auth.ScopeBackup,
		query:   []parameter{limitParameter, cursorParameter},
		answers: []answer{{status: 200, about: "A page of the list.", value: userPage{}}},
		serve:   h.listUsers,
	}, {
		name: "addUser", method: http.MethodPost, path: "users", group: group,
		summary: "Add a user",
		about:   "Names of users and groups have 1 to 64 of a-z, 0-9, and . _ @ -, and begin with a letter or a digit.",
		asks:    administrator, scope: auth.ScopeAdmin,
		body:    &body{media: []string{jsonType}, limit: maxBody, value: newUser{}, example: `{"name":"dora","groups":["staff"]}`},
		answers: []answer{{status: 201, about: "The user was added.", value: userDocument{}, headers: []parameter{location}}},
		fails:   []int{409},
		serve:   h.addUser,
	}, {
		name: "getUser", method: http.MethodGet, path: "users/{name}", group: group, tail: userInPath,
		summary: "Show a user",
		about:   "Administrators may look at everybody, others at themselves.",
		asks:    known, scope: anyScope,
		answers: []answer{user},
		fails:   []int{404},
		serve: func(c *call) error {
			u, err := h.o.Registrar.User(c.ctx, c.tail)
			if err != nil {
				return err
			}
			return c.reply(http.StatusOK, userDocument(u))
		},
	}, {
		name: "patchUser", method: http.MethodPatch, path: "users/{name}", group: group, tail: userInPath,
		summary: "Change a user's groups and rights",
		about:   "A merge patch (RFC 7396). A user is never deleted, since history has the name, but can be disabled. The last administrator who is not disabled stays one.",
		asks:    administrator, scope: auth.ScopeAdmin,
		body:    &body{media: []string{patchType}, limit: maxBody, value: userPatch{}, example: `{"groups":["staff","editors"]}`},
		answers: []answer{user},
		fails:   []int{404, 409},
		serve:   h.patchUser,
	}}
}

// getMe shows the caller's user, groups, roles and token.
func (h *Handler) getMe(c *call) error {
	me := selfDocument{Name: c.who.Name, Groups: c.who.Groups, Admin: c.who.Admin, Token: c.who.Token, Expires: c.who.Expires, Namespaces: c.who.Namespaces()}
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
			me.Roles = append(me.Roles, roleDocument{ns.Key().String(), string(role)})
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
		if err := page.addValue(userDocument(u)); err != nil {
			return err
		}
	}
	return page.end()
}

// addUser adds a user.
func (h *Handler) addUser(c *call) error {
	var want newUser
	if err := c.decode(&want); err != nil {
		return err
	}
	u, err := h.o.Registrar.AddUser(c.ctx, auth.User{Name: want.Name, Groups: want.Groups, Admin: want.Admin, Disabled: want.Disabled})
	if err != nil {
		return err
	}
	c.w.Header().Set("Location", Root+"/users/"+escaped(u.Name))
	return c.reply(http.StatusCreated, userDocument(u))
}

// patchUser changes a user.
func (h *Handler) patchUser(c *call) error {
	patch, err := c.readPatch()
	if err != nil {
		return err
	}
	u, err := h.o.Registrar.SetUser(c.ctx, c.tail, func(u *auth.User) error {
		before, err := json.Marshal(userSettings{u.Groups, u.Admin, u.Disabled})
		if err != nil {
			return err
		}
		document, err := applyPatch(before, patch)
		if err != nil {
			return err
		}
		var next userSettings
		if err := decodeStrictly(c.op.name, document, &next); err != nil {
			return err
		}
		u.Groups, u.Admin, u.Disabled = next.Groups, next.Admin, next.Disabled
		return nil
	})
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, userDocument(u))
}
