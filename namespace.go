package stele

import "time"

// Namespace is what one authority controls: all names that begin with a prefix
// and with no longer one that is a namespace too. A scheme's own namespace, whose
// prefix has no text, is the root of it, where only an administrator writes.
type Namespace struct {
	Scheme string // "ark"
	Prefix string // canonical beginning of names, "ark:12345/x5"; "" for the root

	Owner       string // the principal that owns it
	Title       string // for people
	Minter      Minter
	TTL         uint32 // of targets that do not say; 0: the program's default
	Status      int    // of redirects that do not say; 0: the program's default
	Persistence Persistence
	Hosts       []string // to which targets may point; none: to all. ".example.org" is all below
	Protocols   []string // of targets' URLs; none: http, https and ftp
	Delegate    string   // a URL with {id} or {rest} in it, of the resolver that answers instead
	Checked     bool     // names end in a NOID check character
	Passthrough bool     // what follows a registered name is appended to its targets, from any character on at which names may be cut
	Reviewed    bool     // changes by editors are proposals here and below, which an owner approves
	Listed      bool     // the public may list its names, as harvesters do; namespaces below say so for themselves
	Rules       []Rule   // for names that are not registered, in order: the first whose pattern fits answers
	Handles     HandleService
	Quota       uint64 // how many names there may be, identifiers and aliases; 0: no limit
	Publication Publication
	Grants      []Grant      // the roles of principals and groups other than the owner
	Keys        []SigningKey // by which records of it, and of all below it, are signed
	Heirs       []Heir       // the registries that may take it over when this one falls silent
	HandOver    HandOver     // to another registry; what the system keeps
	Adoptions   []Adoption   // from other registries, the oldest first; what the system keeps

	Version  uint64
	Created  time.Time
	Modified time.Time
	By       string
}

// HandleService says how a namespace of handles is served by the Handle protocol. By default it is
// served, and a value's permission to be written by the public counts for nothing.
type HandleService struct {
	Off         bool // the protocol does not answer for it
	PublicWrite bool // everybody may change values that say so
}

// Key names the namespace: scheme and prefix.
func (n *Namespace) Key() NamespaceKey { return NamespaceKey{n.Scheme, n.Prefix} }

// NamespaceKey names a namespace. It is comparable.
type NamespaceKey struct {
	Scheme string
	Prefix string // "" for the scheme's root
}

// String returns the prefix, or the scheme's name and a colon for its root.
func (k NamespaceKey) String() string {
	if k.Prefix == "" {
		return k.Scheme + ":"
	}
	return k.Prefix
}

// Minter says how new names of a namespace are made. The zero Minter makes none.
type Minter struct {
	Kind MinterKind

	// IBI: the server's names. Host gives repository names, IP gives IBIps; with
	// both, each item has both.
	Host         string
	Port         uint16
	IP           string
	IPPort       uint16
	AllowPrivate bool
	Granularity  string // as mint.ParseGranularity reads it

	// NOID: a template that follows the namespace's prefix, the order of names, and its seed. Expand is
	// how many digits the mask grows by when its names are used up, in the order of the original
	// program; 0: it does not grow.
	Template string
	Seed     uint64
	Order    MinterOrder
	Expand   uint8
}

// MinterOrder is the order in which the names of a quasi-random template come.
type MinterOrder string

const (
	OwnOrder  MinterOrder = ""     // an order of this program, which the seed chooses
	OrderNOID MinterOrder = "noid" // that of the original program, Noid, and of its successor Nog
)

// IsValid reports whether o is an order.
func (o MinterOrder) IsValid() bool { return o == OwnOrder || o == OrderNOID }

// MinterKind is a way to make new names.
type MinterKind string

const (
	NoMinter    MinterKind = ""
	MinterIBI   MinterKind = "ibi"
	MinterPILIN MinterKind = "pilin"
	MinterNOID  MinterKind = "noid"
	MinterUUID  MinterKind = "uuid"
)

// IsValid reports whether k is a kind of minter; NoMinter is one.
func (k MinterKind) IsValid() bool {
	switch k {
	case NoMinter, MinterIBI, MinterPILIN, MinterNOID, MinterUUID:
		return true
	}
	return false
}
