package remote

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document"
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
	var got apijson.MadeInvitation
	if err := r.fetch(ctx, op, &ask{method: http.MethodPost, path: "invitations", document: body}, &got); err != nil {
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

// listOf makes the request for a list; of what belongs to a user if that is not empty.
func listOf(path, user string) *ask {
	q := &ask{method: http.MethodGet, path: path, query: url.Values{"limit": {strconv.Itoa(pageSize)}}, again: true}
	if user != "" {
		q.query.Set("user", user)
	}
	return q
}

// EndLink ends a one-time link that was not used.
func (r *Registry) EndLink(ctx context.Context, id string) error {
	return r.fetch(ctx, "end link", &ask{method: http.MethodDelete, path: pathOf("links", id), again: true}, nil)
}

// Identities yields the accounts at other systems that sign a user in.
func (r *Registry) Identities(ctx context.Context, user string) iter.Seq2[auth.Identity, error] {
	return listed(ctx, r, "list identities", listOf("accounts", user), func(i apijson.Account) auth.Identity {
		return auth.Identity{Issuer: i.Issuer, Subject: i.Subject, User: i.User, Label: apijson.Legible(i.Label), Groups: i.Groups, Created: i.Created, Used: i.Used, By: i.By}
	})
}

// EndIdentity takes an account from its user. It is not retried: a second request would not find it.
func (r *Registry) EndIdentity(ctx context.Context, user, id string) error {
	return r.fetch(ctx, "end identity", &ask{method: http.MethodDelete, path: pathOf("accounts", id), query: url.Values{"user": {user}}}, nil)
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
	return r.fetch(ctx, op, &ask{method: http.MethodPatch, path: pathOf("passkeys", id), media: apijson.MergePatch, document: apijson.PasskeyName{Name: name}, again: true}, nil)
}

// RemovePasskey removes a passkey. It is not retried: a second request would not find it.
func (r *Registry) RemovePasskey(ctx context.Context, id string) error {
	return r.fetch(ctx, "remove passkey", &ask{method: http.MethodDelete, path: pathOf("passkeys", id)}, nil)
}

// NamespaceSamples judges a namespace that does not exist yet, and returns names such as its minter would
// make.
func (r *Registry) NamespaceSamples(ctx context.Context, ns *stele.Namespace) ([]string, error) {
	const op = "try namespace"
	if err := valid(op, stele.ID{}, ns); err != nil {
		return nil, err
	}
	var got apijson.NamespaceSamples
	err := r.fetch(ctx, op, &ask{method: http.MethodPost, path: pathOf("try", ns.Key().String()), media: apijson.JSON, body: settings(ns), again: true}, &got)
	for i, name := range got.Samples {
		got.Samples[i] = apijson.Legible(name)
	}
	return got.Samples, err
}

// JudgeRules returns what is wrong with the rules of a namespace that the server has, or with others in their place.
func (r *Registry) JudgeRules(ctx context.Context, ns *stele.Namespace) (stele.Problems, error) {
	if len(ns.Rules) == 0 { // a request without rules is about those that the namespace has
		return nil, nil
	}
	var want apijson.RuleTest
	for i := range ns.Rules {
		want.Rules = append(want.Rules, document.AppendRule(nil, &ns.Rules[i]))
	}
	var got apijson.RuleTestResult
	err := r.fetch(ctx, "test rules", &ask{method: http.MethodPost, path: pathOf("rules", ns.Key().String()), document: want, again: true}, &got)
	return apijson.ProblemsOf(got.Failed), err
}
