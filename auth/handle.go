package auth

import (
	"slices"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
)

// Handle returns the principal of a handle identity that proved its key or its secret: the value
// with this index of this handle. It is named as "300:0.NA/20.500.99999", which no user can be
// named. By itself it has no role anywhere; see [Principal.Administering].
func Handle(index uint32, handle string) Principal {
	return Principal{Name: strconv.FormatUint(uint64(index), 10) + ":" + handle}
}

// IsHandle reports whether a name is one of a handle identity.
func IsHandle(name string) bool {
	index, handle, ok := strings.Cut(name, ":")
	if !ok || handle == "" {
		return false
	}
	_, err := strconv.ParseUint(index, 10, 32)
	return err == nil
}

// Administering returns p as an administrator of one handle record: the record's own values of
// type HS_ADMIN, or those of its prefix, allow what p is about to do. It has the rights of an
// editor for that record and no other one, so that the rules of the namespace hold for it too.
// The caller has asked those values.
func (p Principal) Administering(id stele.ID) Principal {
	p.administers = id
	return p
}

// Acting returns p with the roles of a user whose credential the handle identity is. It keeps
// its own name, which history and audit trail show.
func (p Principal) Acting(user Principal) Principal {
	p.Groups, p.Admin, p.rules, p.user = user.Groups, user.Admin, user.rules || user.Admin, user.Name
	return p
}

// MayChange reports whether p may register or change one record of a namespace, which is given
// as in [RoleIn].
func MayChange(p Principal, id stele.ID, ancestors ...*stele.Namespace) bool {
	return MayWrite(p, ancestors...) || p.isAdministrator(id) && stele.RoleEditor.Includes(writing(ancestors))
}

// isAdministrator reports whether p is the administrator of the handle record with one of these names.
func (p Principal) isAdministrator(names ...stele.ID) bool {
	return p.IsKnown() && p.administers.IsValid() && slices.Contains(names, p.administers)
}
