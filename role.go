package stele

// Role is what a principal may do in a namespace and in all below it.
type Role string

const (
	NoRole     Role = ""
	RoleReader Role = "reader" // lists and searches it, and sees what is reserved or restricted there
	RoleEditor Role = "editor" // mints names, registers and changes records too
	RoleOwner  Role = "owner"  // changes the namespace itself and its grants too
)

// IsValid reports whether r is a role; NoRole is not one.
func (r Role) IsValid() bool { return r.rank() > 0 }

// Includes reports whether a principal with this role may do what the other one allows.
// An unknown role is included in none; NoRole is included in all.
func (r Role) Includes(other Role) bool {
	return (other.IsValid() || other == NoRole) && r.rank() >= other.rank()
}

func (r Role) rank() int {
	switch r {
	case RoleReader:
		return 1
	case RoleEditor:
		return 2
	case RoleOwner:
		return 3
	}
	return 0
}

// Grant gives a role in a namespace.
type Grant struct {
	To   string // "user:ann" or "group:staff", as among a record's readers
	Role Role
}
