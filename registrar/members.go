package registrar

import (
	"context"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// Operations on the people of a namespace, which the audit trail names.
const (
	opHandOver = "hand over namespace"
	opTakeOver = "take over namespace"
	opLeave    = "leave namespace"
)

// Member is a user or a group with a role in a namespace.
type Member struct {
	To    string // "user:ann" or "group:staff"
	Role  stele.Role
	From  stele.NamespaceKey // where the role was given: the namespace, or one above it
	Title string             // of that namespace
	Named bool               // the user is named as the owner
}

// Members returns the users and groups with a role in a namespace, the nearest namespace first. A
// caller with a role in it sees those of the namespaces that they may list; its owners see also those
// of all above it, whose roles hold in it. NotFound for a caller without a role in it.
func (r *Registrar) Members(ctx context.Context, key stele.NamespaceKey) (list []Member, err error) {
	s, err := r.view(ctx)
	if err != nil {
		return nil, err
	}
	sp := s.listable(ctx, s.Get(key))
	if sp == nil {
		return nil, noNamespace("show namespace", key)
	}
	who, ancestors := auth.From(ctx), s.Ancestors(sp)
	owns := auth.MayManage(who, ancestors...)
	for i, ns := range ancestors {
		if ns.Prefix == "" || !owns && !auth.MayList(who, ancestors[i:]...) {
			continue
		}
		list = append(list, membersOf(ns)...)
	}
	return list, nil
}

// membersOf returns those with a role that a namespace itself gives, owners first.
func membersOf(ns *stele.Namespace) (list []Member) {
	if ns.Owner != "" {
		list = append(list, Member{To: "user:" + ns.Owner, Role: stele.RoleOwner, From: ns.Key(), Title: ns.Title, Named: true})
	}
	for _, role := range []stele.Role{stele.RoleOwner, stele.RoleEditor, stele.RoleReader} {
		for _, g := range ns.Grants {
			if g.Role == role {
				list = append(list, Member{To: g.To, Role: role, From: ns.Key(), Title: ns.Title})
			}
		}
	}
	return list
}

// RoleOfUser returns the role that a user has in a namespace, and where it comes from: all that
// gives the user a role. Only an owner of the namespace may ask, and an administrator. A disabled user has
// no role.
func (r *Registrar) RoleOfUser(ctx context.Context, key stele.NamespaceKey, name string) (role stele.Role, by []Member, u auth.User, err error) {
	const op = "show namespace"
	s, err := r.view(ctx)
	if err != nil {
		return stele.NoRole, nil, u, err
	}
	sp := s.listable(ctx, s.Get(key))
	if sp == nil {
		return stele.NoRole, nil, u, noNamespace(op, key)
	}
	ancestors := s.Ancestors(sp)
	if !auth.MayManage(auth.From(ctx), ancestors...) {
		return stele.NoRole, nil, u, forbidSettings(op, auth.From(ctx), sp.Namespace)
	}
	if u, _, err = r.user(ctx, op, name); err != nil {
		return stele.NoRole, nil, u, err
	}
	for _, ns := range ancestors {
		if ns.Prefix == "" {
			continue
		}
		for _, m := range membersOf(ns) {
			kind, of, _ := strings.Cut(m.To, ":")
			if kind == "user" && of == name || kind == "group" && slices.Contains(u.Groups, of) {
				by = append(by, m)
			}
		}
	}
	if !u.Disabled {
		role = auth.RoleIn(auth.Principal{Name: u.Name, Groups: u.Groups, Admin: u.Admin}, ancestors...)
	}
	return role, by, u, nil
}

// Grant gives a role in a namespace to a user or a group, "user:ann" or "group:staff", and replaces
// the role that they have there. The user must exist: a name that is misspelt is refused, and not kept
// until another user gets it.
func (r *Registrar) Grant(ctx context.Context, key stele.NamespaceKey, to string, role stele.Role) (*stele.Namespace, error) {
	const op = "set namespace"
	if !role.IsValid() {
		return nil, unknownRole(op, role)
	}
	return r.changeNamespace(ctx, op, key, 0, func(ns *stele.Namespace) error {
		if err := r.mayChangePeople(ctx, op, ns); err != nil {
			return err
		}
		if err := r.exists(ctx, op, to); err != nil {
			return err
		}
		if to == "user:"+ns.Owner {
			return isNamedOwner(op, to, ns)
		}
		setGrant(ns, to, role)
		return nil
	}, r.seedTemplate)
}

// Ungrant removes the role that a namespace gives to a user or a group. NotFound if it gives
// none; one above it may.
func (r *Registrar) Ungrant(ctx context.Context, key stele.NamespaceKey, to string) (*stele.Namespace, error) {
	return r.ungrant(ctx, "set namespace", key, to)
}

// Leave removes the role of its own that the caller has in a namespace. Conflict if the caller is
// named as the owner: then the namespace is handed over first.
func (r *Registrar) Leave(ctx context.Context, key stele.NamespaceKey) (*stele.Namespace, error) {
	return r.ungrant(ctx, opLeave, key, "user:"+auth.From(ctx).Name)
}

func (r *Registrar) ungrant(ctx context.Context, op string, key stele.NamespaceKey, to string) (*stele.Namespace, error) {
	return r.changeNamespace(ctx, op, key, 0, func(ns *stele.Namespace) error {
		had := len(ns.Grants)
		ns.Grants = slices.DeleteFunc(ns.Grants, func(g stele.Grant) bool { return g.To == to })
		switch {
		case to == "user:"+ns.Owner:
			return isNamedOwner(op, to, ns)
		case len(ns.Grants) == had:
			return refuse(op, stele.ID{}, stele.NotFound, "grant.not-found", "{principal} was given no role in {namespace}; it may have one above it, or as a member of a group", to, ns.Key())
		}
		return nil
	}, r.seedTemplate)
}

// HandOver names another user as the owner of a namespace. The one who is named may, the owners of
// what is above it, and an administrator, who takes over a namespace whose owner is lost. With keep,
// the owner up to now stays an owner, by a grant. The new owner must exist and not be disabled.
func (r *Registrar) HandOver(ctx context.Context, key stele.NamespaceKey, to string, keep bool) (*stele.Namespace, error) {
	op, who := opHandOver, auth.From(ctx)
	if ns, err := r.Namespace(ctx, key); err == nil && who.Admin && ns.Owner != who.Name {
		op = opTakeOver
	}
	return r.changeNamespace(ctx, op, key, 0, func(ns *stele.Namespace) error {
		if !who.Admin && who.Name != ns.Owner {
			if err := r.mayChangePeople(ctx, op, ns); err != nil {
				return err
			}
		}
		if _, err := r.enabledUser(ctx, op, to); err != nil {
			return err
		}
		old := ns.Owner
		ns.Owner = to
		ns.Grants = slices.DeleteFunc(ns.Grants, func(g stele.Grant) bool { return g.To == "user:"+to })
		if keep && old != "" && old != to {
			setGrant(ns, "user:"+old, stele.RoleOwner)
		}
		return nil
	}, r.seedTemplate)
}

// mayChangePeople makes sure that the caller owns a namespace, before anything is told of users.
func (r *Registrar) mayChangePeople(ctx context.Context, op string, ns *stele.Namespace) error {
	s := r.namespaceTree.Load()
	if s != nil && auth.MayManage(auth.From(ctx), s.ancestorsAt(ns.Key())...) {
		return nil
	}
	return forbidSettings(op, auth.From(ctx), ns)
}

// exists makes sure that a grantee is a user that there is, or the name of a group.
func (r *Registrar) exists(ctx context.Context, op, to string) error {
	kind, name, _ := strings.Cut(to, ":")
	switch {
	case !auth.IsName(name) || kind != "user" && kind != "group":
		return refuse(op, stele.ID{}, stele.Invalid, "argument.principal-malformed", `"{principal}" is not a user or group; write user: or group: and a name of a-z, 0-9, and . _ @ -`, to)
	case kind == "group":
		return nil // it exists as soon as it is named
	}
	_, _, err := r.user(ctx, op, name)
	return err
}

// leaves reports whether all that a version changes of a namespace is that the caller has no role of
// its own there any more.
func leaves(who auth.Principal, before, next *stele.Namespace) bool {
	without := cloneNamespace(before)
	without.Grants = slices.DeleteFunc(without.Grants, func(g stele.Grant) bool { return g.To == "user:"+who.Name })
	return len(without.Grants) < len(before.Grants) && !who.IsLimited() && sameNamespace(without, next)
}

// keepsOwner makes sure that a namespace has an owner after its caller, who is not an
// administrator, gave up that role. The list of ancestors begins with the namespace as it will be.
func (r *Registrar) keepsOwner(ctx context.Context, op string, ancestors []*stele.Namespace, before, next *stele.Namespace) error {
	who := auth.From(ctx)
	if before == nil || who.Admin || !auth.MayManage(who, before) || auth.MayManage(who, ancestors...) {
		return nil
	}
	for _, ns := range ancestors {
		if ns.Prefix == "" {
			continue
		}
		for _, m := range membersOf(ns) {
			if m.Role != stele.RoleOwner {
				continue
			}
			if ok, err := r.isAlive(ctx, op, m.To); err != nil || ok {
				return err
			}
		}
	}
	return refuse(op, stele.ID{}, stele.Conflict, "namespace.last-owner", "{namespace} would have no owner any more; make another user an owner first, or ask an administrator", next.Key())
}

// isAlive reports whether a grantee is a user who is not disabled, or a group with one.
func (r *Registrar) isAlive(ctx context.Context, op, to string) (bool, error) {
	kind, name, _ := strings.Cut(to, ":")
	if kind == "user" {
		u, _, err := r.user(ctx, op, name)
		if stele.KindOf(orNone(err)) == stele.NotFound {
			return false, nil
		}
		return err == nil && !u.Disabled, err
	}
	for cell, err := range r.store.Cells(ctx, auth.UserCells, "") {
		if err != nil {
			return false, tell(op, err)
		}
		if u, err := auth.ReadUser(cell); err == nil && !u.Disabled && slices.Contains(u.Groups, name) {
			return true, nil
		}
	}
	return false, nil
}

func noNamespace(op string, key stele.NamespaceKey) error {
	return refuse(op, stele.ID{}, stele.NotFound, "namespace.missing", "there is no namespace {namespace}; add it first", key)
}

func unknownRole(op string, role stele.Role) error {
	return refuse(op, stele.ID{}, stele.Invalid, "role.unknown", `"{role}" is not a role; there are reader, editor and owner`, string(role))
}

func isNamedOwner(op, to string, ns *stele.Namespace) error {
	return refuse(op, stele.ID{}, stele.Conflict, "namespace.named-owner-leaves", "{principal} is named as the owner of {namespace}; hand it over to another user first", to, ns.Key())
}
