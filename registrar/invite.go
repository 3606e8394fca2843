package registrar

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// Invitation adds a user together with what the user needs to begin.
type Invitation struct {
	User auth.User

	// Namespace is where the user gets a role; zero: nowhere.
	Namespace stele.NamespaceKey
	Role      stele.Role

	// Life is how long a one-time link lasts; 0: none is made.
	Life time.Duration

	// Mail sends the link; nil: it is not sent.
	Mail *MailedLink
}

// MailedLink says where a one-time link is sent.
type MailedLink struct {
	Address  string
	Language string // BCP 47: of the letter, and of later ones
	Letter   LetterFor
}

// Invited is what an invitation made. The credential of the link is not stored.
type Invited struct {
	User       auth.User
	Credential string // "" if no link was made
	Link       auth.Link
}

// Invite adds a user, gives the user a role in a namespace, and makes a link that signs the
// user in once, in one commit. Only an administrator may: users are added by administrators, and
// an owner gives roles to users that there are. Conflict if there is a user of that name.
func (r *Registrar) Invite(ctx context.Context, in Invitation) (Invited, error) {
	const op = "invite user"
	if err := administrate(ctx, op, stele.ID{}); err != nil {
		return Invited{}, err
	}
	if err := r.needProof(ctx, op); err != nil {
		return Invited{}, err
	}
	made := Invited{User: in.User}
	u := &made.User
	u.Groups = slices.Sorted(slices.Values(u.Groups))
	u.Created, u.By = r.now(), auth.From(ctx).Name
	u.Modified = u.Created
	if err := checkTogether(op, u.Validate(), in.Mail.check(op)); err != nil {
		return Invited{}, err
	}
	cell, err := u.Cell()
	if err != nil {
		return Invited{}, tell(op, err)
	}
	cells := []stele.CellChange{{Name: cell.Name, After: cell.Value}}
	if in.Life != 0 {
		link, change, err := r.newLink(ctx, op, u.Name, in.Life, &made)
		if err != nil {
			return Invited{}, err
		}
		made.Link = link
		cells = append(cells, change)
		also, err := r.mailLink(ctx, op, in.Mail, link, made.Credential)
		if err != nil {
			return Invited{}, err
		}
		cells = append(cells, also...)
	}
	if held, err := r.store.Cell(ctx, cell.Name); err != nil {
		return Invited{}, tell(op, err)
	} else if held != nil {
		return Invited{}, userExists(op, u.Name)
	}
	if in.Namespace == (stele.NamespaceKey{}) {
		err = r.apply(ctx, op, &stele.Commit{Cells: cells})
	} else {
		err = r.inviteInto(ctx, op, in, cells)
	}
	if stele.KindOf(orNone(err)) == stele.Conflict {
		if held, cerr := r.store.Cell(ctx, cell.Name); cerr == nil && held != nil {
			return Invited{}, userExists(op, u.Name)
		}
	}
	if err != nil {
		return Invited{}, err
	}
	return made, nil
}

// checkTogether returns all problems of two judgements at once.
func checkTogether(op string, first, second error) error {
	a, ok := errors.AsType[stele.Problems](first)
	b, also := errors.AsType[stele.Problems](second)
	if ok && also {
		return &stele.Error{Op: op, Kind: stele.Invalid, Err: slices.Concat(a, b)}
	}
	return cmp.Or(first, second)
}

// check reports what is wrong with the address; a nil MailedLink has none.
func (m *MailedLink) check(op string) (err error) {
	if m == nil {
		return nil
	}
	if m.Address, err = auth.ParseAddress(m.Address); err != nil {
		return &stele.Error{Op: op, Kind: stele.Invalid, Err: stele.Problems{{Path: "address", Err: err}}}
	}
	return nil
}

// mailLink returns the changes that send a one-time link; none if it is not sent.
func (r *Registrar) mailLink(ctx context.Context, op string, m *MailedLink, l auth.Link, credential string) ([]stele.CellChange, error) {
	if m == nil {
		return nil, nil
	}
	cells, err := r.linkMailed(ctx, op, l, m.Address, m.Language)
	if err != nil {
		return nil, err
	}
	letter, err := m.Letter(credential, l.Expires)
	return append(cells, letter...), err
}

// inviteInto commits an invitation with a role in a namespace.
func (r *Registrar) inviteInto(ctx context.Context, op string, in Invitation, cells []stele.CellChange) error {
	if !in.Role.IsValid() {
		return unknownRole(op, in.Role)
	}
	_, err := r.writeNamespace(ctx, op, in.Namespace, func(before *stele.Namespace) (*stele.Namespace, error) {
		if before == nil {
			return nil, refuse(op, stele.ID{}, stele.NotFound, "namespace.missing", "there is no namespace {namespace}; add it first", in.Namespace)
		}
		next := cloneNamespace(before)
		setGrant(next, "user:"+in.User.Name, in.Role)
		return next, r.seedTemplate(before, next)
	}, cells...)
	return err
}

// setGrant gives a role in a namespace, and replaces the one that the grantee has there.
func setGrant(ns *stele.Namespace, to string, role stele.Role) {
	i := slices.IndexFunc(ns.Grants, func(g stele.Grant) bool { return g.To == to })
	if i < 0 {
		ns.Grants = append(ns.Grants, stele.Grant{To: to, Role: role})
		return
	}
	ns.Grants[i].Role = role
}

// newLink makes a link of a user who is added in the same commit.
func (r *Registrar) newLink(_ context.Context, op, user string, life time.Duration, made *Invited) (auth.Link, stele.CellChange, error) {
	if err := checkLinkLife(op, life); err != nil {
		return auth.Link{}, stele.CellChange{}, err
	}
	credential, err := auth.NewCredentialOf(auth.LinkCredential, r.o.Rand)
	if err != nil {
		return auth.Link{}, stele.CellChange{}, err
	}
	now := r.now()
	l := auth.Link{ID: credential.ID(), User: user, Hash: credential.Hash(), Created: now, Expires: now.Add(life), By: made.User.By}
	cell, err := l.Cell()
	if err != nil {
		return auth.Link{}, stele.CellChange{}, tell(op, err)
	}
	made.Credential = credential.Reveal()
	l.Hash = nil
	return l, stele.CellChange{Name: cell.Name, After: cell.Value}, nil
}

func checkLinkLife(op string, life time.Duration) error {
	if life < auth.MinLinkLife || life > auth.MaxLinkLife {
		return refuse(op, stele.ID{}, stele.Invalid, "link.life-out-of-range", "a link lasts {least} at least and {most} at most; give a time between them", auth.MinLinkLife, auth.MaxLinkLife)
	}
	return nil
}

func userExists(op, name string) error {
	return refuse(op, stele.ID{}, stele.Conflict, "user.exists", "there is a user {name} already; change that one, or choose another name", name)
}

// HeldRole is a role that a namespace gives to a user.
type HeldRole struct {
	Namespace stele.NamespaceKey
	Title     string
	Role      stele.Role
	Group     string // by which the user has it; "" if it is the user's own
}

// RolesOf returns the roles that namespaces give to a user, as far as the caller may see the
// namespaces. Namespaces below, where a role holds too, are not in the list.
func (r *Registrar) RolesOf(ctx context.Context, u auth.User) (list []HeldRole, err error) {
	for ns, err := range r.Namespaces(ctx) {
		if err != nil {
			return nil, err
		}
		if ns.Prefix == "" {
			continue
		}
		if ns.Owner == u.Name {
			list = append(list, HeldRole{Namespace: ns.Key(), Title: ns.Title, Role: stele.RoleOwner})
		}
		for _, g := range ns.Grants {
			kind, name, _ := strings.Cut(g.To, ":")
			switch {
			case kind == "user" && name == u.Name:
				list = append(list, HeldRole{Namespace: ns.Key(), Title: ns.Title, Role: g.Role})
			case kind == "group" && slices.Contains(u.Groups, name):
				list = append(list, HeldRole{Namespace: ns.Key(), Title: ns.Title, Role: g.Role, Group: name})
			}
		}
	}
	return list, nil
}
