package remote

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
)

// AddUser adds a user.
func (r *Registry) AddUser(ctx context.Context, u auth.User) (auth.User, error) {
	body := apijson.NewUser{Name: u.Name, Groups: u.Groups, Admin: u.Admin, Disabled: u.Disabled}
	return r.user(ctx, "add user", &ask{method: http.MethodPost, path: "users"}, body)
}

// SetUser changes a user. It sends only the fields that change, so that it does not undo
// what another administrator changes at the same time.
func (r *Registry) SetUser(ctx context.Context, name string, change func(*auth.User) error) (auth.User, error) {
	const op = "set user"
	before, err := r.User(ctx, name)
	if err != nil {
		return auth.User{}, err
	}
	next := before
	next.Groups = slices.Clone(before.Groups)
	if err := change(&next); err != nil {
		return auth.User{}, tell(op, err)
	}
	if next.Name != before.Name {
		return auth.User{}, refuse(op, stele.ID{}, stele.Invalid, "user.name-changed", "the name of a user never changes: history has it; add another user")
	}
	patch := map[string]any{}
	if slices.Sort(next.Groups); !slices.Equal(next.Groups, before.Groups) {
		patch["groups"] = next.Groups
	}
	if next.Admin != before.Admin {
		patch["admin"] = next.Admin
	}
	if next.Disabled != before.Disabled {
		patch["disabled"] = next.Disabled
	}
	// It is idempotent: the second time changes nothing.
	return r.user(ctx, op, &ask{method: http.MethodPatch, path: pathOf("users", name), again: true}, patch)
}

// User returns a user. Administrators may ask for any, other users for themselves.
func (r *Registry) User(ctx context.Context, name string) (auth.User, error) {
	return r.user(ctx, "show user", &ask{method: http.MethodGet, path: pathOf("users", name), again: true}, nil)
}

// user sends a request that is answered with a user.
func (r *Registry) user(ctx context.Context, op string, q *ask, document any) (auth.User, error) {
	if q.document = document; q.method == http.MethodPatch {
		q.media = apijson.MergePatch
	}
	var got apijson.User
	err := r.fetch(ctx, op, q, &got)
	return auth.User(got), err
}

// Users yields all users, by name. Only an administrator may ask.
func (r *Registry) Users(ctx context.Context) iter.Seq2[auth.User, error] {
	q := &ask{method: http.MethodGet, path: "users", again: true, query: url.Values{"limit": {strconv.Itoa(pageSize)}}}
	return listed(ctx, r, "list users", q, func(u apijson.User) auth.User { return auth.User(u) })
}

// CreateToken makes a token for a user, and returns its credential, which the server shows
// only once. The token is a child of the Registry's own.
func (r *Registry) CreateToken(ctx context.Context, want auth.TokenRequest) (credential string, t auth.Token, err error) {
	const op = "create token"
	t = auth.Token{Label: want.Label, Expires: want.Expires, Scopes: want.Scopes, Namespaces: want.Namespaces}
	if err := t.Validate(); err != nil {
		return "", auth.Token{}, err
	}
	t = auth.Token{}
	body := apijson.NewToken{User: want.User, Label: want.Label, Never: want.Never, Namespaces: want.Namespaces}
	if !want.Expires.IsZero() {
		at := want.Expires.UTC()
		body.Expires = &at
	}
	for _, s := range want.Scopes {
		body.Scopes = append(body.Scopes, string(s))
	}
	// It is not retried: if the answer is lost, the retry makes a second token, and the
	// first stays valid and unused.
	var made apijson.MadeToken
	if err := r.fetch(ctx, op, &ask{method: http.MethodPost, path: "tokens", document: body}, &made); err != nil {
		return "", t, err
	}
	return made.Credential, tokenOf(made.Token), nil
}

// CreateLink makes a link that signs a user in to the desk once, and returns its credential,
// which the server shows only once. A life of 0 is the server's usual one.
func (r *Registry) CreateLink(ctx context.Context, user string, life time.Duration) (credential string, l auth.Link, err error) {
	const op = "create link"
	var made apijson.MadeLink
	if err := r.fetch(ctx, op, &ask{method: http.MethodPost, path: "links", document: apijson.NewLink{User: user, Seconds: wholeSeconds(life)}}, &made); err != nil {
		return "", l, err
	}
	return made.Credential, auth.Link{ID: made.ID, User: made.User, Expires: made.Expires}, nil
}

// Tokens yields the tokens of a user, or of all users if that is empty, which only an
// administrator may ask for.
func (r *Registry) Tokens(ctx context.Context, user string) iter.Seq2[auth.Token, error] {
	q := &ask{method: http.MethodGet, path: "tokens", query: url.Values{"limit": {strconv.Itoa(pageSize)}}, again: true}
	if user != "" {
		q.query.Set("user", user)
	}
	return listed(ctx, r, "list tokens", q, tokenOf)
}

// RevokeToken revokes a token.
func (r *Registry) RevokeToken(ctx context.Context, id string) (t auth.Token, err error) {
	return r.changedToken(ctx, "revoke token", &ask{method: http.MethodDelete, path: pathOf("tokens", id), again: true})
}

// RemovePassword removes the password of a user, with its authenticator app. Only an administrator may.
func (r *Registry) RemovePassword(ctx context.Context, user string) error {
	return r.fetch(ctx, "remove password", &ask{method: http.MethodDelete, path: pathOf("passwords", user)}, nil)
}

// OpenToken makes a token valid again that a restore has suspended. Only an administrator
// may.
func (r *Registry) OpenToken(ctx context.Context, id string) (t auth.Token, err error) {
	return r.changedToken(ctx, "open token", &ask{method: http.MethodPost, path: pathOf("tokens", id), again: true})
}

// changedToken sends a request that is answered with a token.
func (r *Registry) changedToken(ctx context.Context, op string, q *ask) (auth.Token, error) {
	var got apijson.Token
	err := r.fetch(ctx, op, q, &got)
	return tokenOf(got), err
}

// tokenOf returns the token that the API shows. It has no hash.
func tokenOf(t apijson.Token) auth.Token {
	out := auth.Token{ID: t.ID, User: t.User, Label: t.Label, Created: t.Created, Expires: t.Expires, Revoked: t.Revoked, LastUse: t.LastUse, By: t.By,
		Parent: t.Parent, Namespaces: t.Namespaces, EndedWith: t.EndedWith, Shut: t.Shut}
	for _, s := range t.Scopes {
		out.Scopes = append(out.Scopes, auth.Scope(s))
	}
	return out
}

// listed yields the items of a list, as read returns them.
func listed[J, T any](ctx context.Context, r *Registry, op string, q *ask, read func(J) T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for item, err := range r.items(ctx, q) {
			var v J
			if err != nil {
				err = under(op, stele.ID{}, err)
			} else if err = json.Unmarshal(item, &v); err != nil {
				err = unread(err)
			}
			if !yield(read(v), err) || err != nil {
				return
			}
		}
	}
}

// gather returns the items of a list, as read returns them.
func gather[J, T any](ctx context.Context, r *Registry, op string, q *ask, read func(*J) (T, error)) (list []T, err error) {
	for item, err := range r.items(ctx, q) {
		if err != nil {
			return nil, under(op, stele.ID{}, err)
		}
		var v J
		if err := json.Unmarshal(item, &v); err != nil {
			return nil, unread(err)
		}
		one, err := read(&v)
		if err != nil {
			return nil, unread(stele.Reason(err))
		}
		list = append(list, one)
	}
	return list, nil
}

// Me returns the principal of the token.
func (r *Registry) Me(ctx context.Context) (auth.Principal, error) {
	var me apijson.Self
	err := r.fetch(ctx, "show user", &ask{method: http.MethodGet, path: "me", again: true}, &me)
	return auth.Principal{Name: me.Name, Groups: me.Groups, Admin: me.Admin, Token: me.Token, Expires: me.Expires}, err
}

// wholeSeconds rounds a time away from zero, which stands for the usual one.
func wholeSeconds(d time.Duration) int {
	n := int(d / time.Second)
	switch rest := d % time.Second; {
	case rest > 0:
		n++
	case rest < 0:
		n--
	}
	return n
}
