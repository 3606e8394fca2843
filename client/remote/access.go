package remote

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
)

// Invite adds a user with a role and a one-time link; see [registrar.Registrar.Invite]. A server sends
// no mail for it. It is not retried: if the answer is lost, the user is there, and needs another link.
func (r *Registry) Invite(ctx context.Context, in registrar.Invitation) (made registrar.Invited, err error) {
	const op = "invite user"
	body := apijson.NewInvitation{Name: in.User.Name, Groups: in.User.Groups, Admin: in.User.Admin, Role: string(in.Role), Seconds: wholeSeconds(in.Life)}
	if in.Namespace != (stele.NamespaceKey{}) {
		body.Namespace = in.Namespace.String()
	}
	text, err := json.Marshal(body)
	if err != nil {
		return made, tell(op, err)
	}
	a, err := r.call(ctx, &ask{method: http.MethodPost, path: "invitations", media: apijson.JSON, body: text})
	if err != nil {
		return made, under(op, stele.ID{}, err)
	}
	var got apijson.MadeInvitation
	if err := a.decode(&got); err != nil {
		return made, err
	}
	return registrar.Invited{User: auth.User(got.User), Credential: got.Link.Credential, Link: auth.Link{ID: got.Link.ID, User: got.Link.User, Expires: got.Link.Expires}}, nil
}

// Links yields the one-time links of a user, or of all users if that is empty, that were not used.
func (r *Registry) Links(ctx context.Context, user string) iter.Seq2[auth.Link, error] {
	return listed(ctx, r, "list links", listOf("links", user), func(l apijson.Link) auth.Link {
		return auth.Link{ID: apijson.Legible(l.ID), User: apijson.Legible(l.User), Created: l.Created, Expires: l.Expires, By: apijson.Legible(l.By)}
	})
}

// listOf makes the request for a list that belongs to a user.
func listOf(path, user string) *ask {
	q := &ask{method: http.MethodGet, path: path, query: url.Values{"limit": {strconv.Itoa(pageSize)}}, again: true}
	if user != "" {
		q.query.Set("user", user)
	}
	return q
}

// EndLink ends a one-time link that was not used.
func (r *Registry) EndLink(ctx context.Context, id string) error {
	_, err := r.call(ctx, &ask{method: http.MethodDelete, path: pathOf("links", id), again: true})
	return under("end link", stele.ID{}, err)
}

// Identities yields the accounts at other systems that sign a user in.
func (r *Registry) Identities(ctx context.Context, user string) iter.Seq2[auth.Identity, error] {
	return listed(ctx, r, "list identities", listOf("accounts", user), func(i apijson.Account) auth.Identity {
		return auth.Identity{Issuer: i.Issuer, Subject: i.Subject, User: i.User, Label: apijson.Legible(i.Label), Groups: i.Groups, Created: i.Created, Used: i.Used, By: i.By}
	})
}

// EndIdentity takes an account from its user. It is not retried: a second request would not find it.
func (r *Registry) EndIdentity(ctx context.Context, user, id string) error {
	_, err := r.call(ctx, &ask{method: http.MethodDelete, path: pathOf("accounts", id), query: url.Values{"user": {user}}})
	return under("end identity", stele.ID{}, err)
}

// Passkeys yields the passkeys of a user, without their keys.
func (r *Registry) Passkeys(ctx context.Context, user string) iter.Seq2[auth.Passkey, error] {
	return listed(ctx, r, "list passkeys", listOf("passkeys", user), func(p apijson.Passkey) auth.Passkey {
		return auth.Passkey{ID: apijson.Legible(p.ID), User: p.User, Name: apijson.Legible(p.Name), Site: apijson.Legible(p.Site), Created: p.Created, Used: p.Used, Copied: p.Copied}
	})
}

// RenamePasskey gives a passkey another name.
func (r *Registry) RenamePasskey(ctx context.Context, id, name string) error {
	const op = "rename passkey"
	text, err := json.Marshal(apijson.PasskeyName{Name: name})
	if err != nil {
		return tell(op, err)
	}
	_, err = r.call(ctx, &ask{method: http.MethodPatch, path: pathOf("passkeys", id), media: apijson.MergePatch, body: text, again: true})
	return under(op, stele.ID{}, err)
}

// RemovePasskey removes a passkey. It is not retried: a second request would not find it.
func (r *Registry) RemovePasskey(ctx context.Context, id string) error {
	_, err := r.call(ctx, &ask{method: http.MethodDelete, path: pathOf("passkeys", id)})
	return under("remove passkey", stele.ID{}, err)
}

// NamespaceSamples judges a namespace that does not exist yet, and returns names such as its minter would
// make.
func (r *Registry) NamespaceSamples(ctx context.Context, ns *stele.Namespace) ([]string, error) {
	const op = "try namespace"
	if err := valid(op, stele.ID{}, ns); err != nil {
		return nil, err
	}
	a, err := r.call(ctx, &ask{method: http.MethodPost, path: pathOf("try", ns.Key().String()), media: apijson.JSON, body: settings(ns), again: true})
	if err != nil {
		return nil, under(op, stele.ID{}, err)
	}
	var got apijson.NamespaceSamples
	err = a.decode(&got)
	for i, name := range got.Samples {
		got.Samples[i] = apijson.Legible(name)
	}
	return got.Samples, err
}
