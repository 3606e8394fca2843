package remote

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// AddUser adds a user.
func (r *Registry) AddUser(ctx context.Context, u auth.User) (auth.User, error) {
	body := map[string]any{"name": u.Name, "admin": u.Admin, "disabled": u.Disabled}
	if len(u.Groups) > 0 {
		body["groups"] = u.Groups
	}
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
		return auth.User{}, refuse(op, stele.ID{}, stele.Invalid, "the name of a user never changes: history has it; add another user")
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
func (r *Registry) user(ctx context.Context, op string, q *ask, body map[string]any) (u auth.User, err error) {
	if body != nil {
		if q.body, err = json.Marshal(body); err != nil {
			return u, tell(op, err)
		}
		if q.media = jsonType; q.method == http.MethodPatch {
			q.media = patchType
		}
	}
	a, err := r.call(ctx, q)
	if err != nil {
		return u, under(op, stele.ID{}, err)
	}
	return u, a.decode(&u)
}

// Users yields all users, by name. Only an administrator may ask.
func (r *Registry) Users(ctx context.Context) iter.Seq2[auth.User, error] {
	return listed[auth.User](ctx, r, "list users", &ask{method: http.MethodGet, path: "users", again: true,
		query: url.Values{"limit": {strconv.Itoa(pageSize)}}})
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
	body := map[string]any{"user": want.User, "label": want.Label}
	if want.Never {
		body["never"] = true
	}
	if !want.Expires.IsZero() {
		body["expires"] = want.Expires.UTC()
	}
	if len(want.Scopes) > 0 { // which an older server does not know
		body["scopes"] = want.Scopes
	}
	if len(want.Namespaces) > 0 {
		body["namespaces"] = want.Namespaces
	}
	text, err := json.Marshal(body)
	if err != nil {
		return "", t, tell(op, err)
	}
	// It is not retried: if the answer is lost, the retry makes a second token, and the
	// first stays valid and unused.
	a, err := r.call(ctx, &ask{method: http.MethodPost, path: "tokens", media: jsonType, body: text})
	if err != nil {
		return "", t, under(op, stele.ID{}, err)
	}
	var made struct {
		Credential string     `json:"credential"`
		Token      auth.Token `json:"token"`
	}
	if err := a.decode(&made); err != nil {
		return "", t, err
	}
	return made.Credential, made.Token, nil
}

// Tokens yields the tokens of a user, or of all users if that is empty, which only an
// administrator may ask for.
func (r *Registry) Tokens(ctx context.Context, user string) iter.Seq2[auth.Token, error] {
	q := &ask{method: http.MethodGet, path: "tokens", query: url.Values{"limit": {strconv.Itoa(pageSize)}}, again: true}
	if user != "" {
		q.query.Set("user", user)
	}
	return listed[auth.Token](ctx, r, "list tokens", q)
}

// RevokeToken revokes a token.
func (r *Registry) RevokeToken(ctx context.Context, id string) (t auth.Token, err error) {
	a, err := r.call(ctx, &ask{method: http.MethodDelete, path: pathOf("tokens", id), again: true})
	if err != nil {
		return t, under("revoke token", stele.ID{}, err)
	}
	return t, a.decode(&t)
}

// OpenToken makes a token valid again that a restore has suspended. Only an administrator
// may.
func (r *Registry) OpenToken(ctx context.Context, id string) (t auth.Token, err error) {
	a, err := r.call(ctx, &ask{method: http.MethodPost, path: pathOf("tokens", id), again: true})
	if err != nil {
		return t, under("open token", stele.ID{}, err)
	}
	return t, a.decode(&t)
}

// listed yields the items of a list.
func listed[T any](ctx context.Context, r *Registry, op string, q *ask) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for item, err := range r.items(ctx, q) {
			var v T
			if err != nil {
				err = under(op, stele.ID{}, err)
			} else if err = json.Unmarshal(item, &v); err != nil {
				err = unread(err)
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// Me returns the principal of the token.
func (r *Registry) Me(ctx context.Context) (p auth.Principal, err error) {
	a, err := r.call(ctx, &ask{method: http.MethodGet, path: "me", again: true})
	if err != nil {
		return p, under("show user", stele.ID{}, err)
	}
	return p, a.decode(&p)
}
