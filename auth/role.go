package auth

import (
	"slices"

	"github.com/stele-id/stele"
)

// RoleIn returns the greatest role that p has in a namespace. It is given with its ancestors,
// the nearest first: a role holds for all that is below where it was given. The user named as
// owner has the role owner, and an administrator has it everywhere. A scheme's root grants no
// roles, whatever it says: it belongs to no authority. What p's token may not be used for is
// taken off; see [Scope].
func RoleIn(p Principal, ancestors ...*stele.Namespace) stele.Role {
	return p.limits.cut(roleOf(p, ancestors), ancestors)
}

// roleOf is RoleIn for the user, whatever the token may be used for.
func roleOf(p Principal, ancestors []*stele.Namespace) stele.Role {
	switch {
	case !p.IsKnown():
		return stele.NoRole
	case p.Admin, p.rules:
		return stele.RoleOwner
	}
	best := stele.NoRole
	for _, ns := range ancestors {
		if ns.Prefix == "" {
			continue
		}
		if ns.Owner != "" && p.isUser(ns.Owner) {
			return stele.RoleOwner
		}
		for _, g := range ns.Grants {
			if g.Role.Includes(best) && g.Role != best && p.is(g.To) {
				best = g.Role
			}
		}
		if best == stele.RoleOwner {
			break
		}
	}
	return best
}

// MayList reports whether p may list a namespace, search it, look up in reverse what
// is there, and read its settings. The namespace is given as in [RoleIn], here and
// below.
func MayList(p Principal, ancestors ...*stele.Namespace) bool {
	return RoleIn(p, ancestors...).Includes(stele.RoleReader)
}

// MayMint reports whether p may make new names in a namespace, and register records under
// them.
func MayMint(p Principal, ancestors ...*stele.Namespace) bool {
	return p.Has(ScopeMint) && p.limits.contain(ancestors) && roleOf(p, ancestors).Includes(writing(ancestors))
}

// MayWrite reports whether p may register and change records in a namespace: as an editor, or
// only as an owner if changes are reviewed there.
func MayWrite(p Principal, ancestors ...*stele.Namespace) bool {
	return RoleIn(p, ancestors...).Includes(writing(ancestors))
}

// MayPropose reports whether p may propose records and changes of them in a namespace.
func MayPropose(p Principal, ancestors ...*stele.Namespace) bool {
	return RoleIn(p, ancestors...).Includes(stele.RoleEditor)
}

// IsReviewed reports whether an owner approves what editors propose in a namespace: if it says
// so, or one above it does.
func IsReviewed(ancestors ...*stele.Namespace) bool {
	return slices.ContainsFunc(ancestors, func(ns *stele.Namespace) bool { return ns.Reviewed && ns.Prefix != "" })
}

// writing returns the role that a user needs to write records.
func writing(ancestors []*stele.Namespace) stele.Role {
	if IsReviewed(ancestors...) {
		return stele.RoleOwner
	}
	return stele.RoleEditor
}

// MayManage reports whether p may change a namespace itself, grant roles there, and make
// namespaces below it.
func MayManage(p Principal, ancestors ...*stele.Namespace) bool {
	return RoleIn(p, ancestors...).Includes(stele.RoleOwner)
}

// MayRead reports whether p may see a record; its namespaces are given as in [RoleIn]. The
// public sees what is neither reserved nor restricted, and a reader of its namespace sees
// all. The users whom a restricted record names see it too, and so do members of the groups
// that it names.
func MayRead(p Principal, r *stele.Record, ancestors ...*stele.Namespace) bool {
	reserved := r.State == stele.Reserved
	switch {
	case !reserved && r.IsPublic():
		return true
	case !p.IsKnown(), !p.Has(ScopeRead), !p.limits.contain(ancestors):
		return false
	case !reserved && slices.ContainsFunc(r.Readers, p.is):
		return true
	case p.isAdministrator(r.ID):
		return true
	}
	return MayList(p, ancestors...)
}
