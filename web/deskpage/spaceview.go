package deskpage

import (
	"time"

	"github.com/stele-id/stele"
)

// Namespace is the page of a namespace.
type Namespace struct {
	Frame
	Space    Space
	Version  uint64
	By       string
	Changed  time.Time
	Above    string // the namespace above it; "" if there is none that the user may see
	AboveURL string
	EditURL  string // "" if the user may not change it
	BelowURL string // for a new namespace below it; "" if the user may not make one
	Owner    string
	Quota    uint64
	Grants   []Grant
	Rules    []string // what holds there, in sentences
	Patterns int      // how many rules it has for names that are not registered

	PatternsURL string
	Samples     []string // such as it makes
	History     []Version

	Use *UseCard // nil if the user may not see it

	LinksURL string // of the page about where names lead; "" if there is none for the user
	Checked  bool   // targets are checked

	KeepingURL string // of the page about promises and heirs; "" of the root of a scheme

	ZoneURL string // "" if the server publishes nothing
	Zone    string // "" if it is not published
	Signed  bool
}

// Grant is a role that a user or a group has in a namespace.
type Grant struct {
	To   string
	Role stele.Role
}

// NamespaceForm is the form of a namespace, new or not.
type NamespaceForm struct {
	Frame
	New       bool
	Action    string
	Back      string
	Key       string // of a namespace that is not new
	Version   uint64
	Canonical string // the prefix as it is written, if the user wrote it otherwise
	MayTop    bool   // the user may make one anywhere
	Own       []string
	MoreOwn   bool // the user owns more namespaces than Own has

	Scheme                                  Field
	Schemes                                 []Option
	Prefix, Called, Owner, Quota            Field
	Kind                                    Field
	Kinds                                   []Option
	Template, Order, Host, Port, IP, IPPort Field
	Granularity                             Field
	Templates                               []string
	Samples                                 []string // names that such a minter makes
	Checked, Passthrough, Reviewed, Listed  Field
	Hosts, Protocols                        Field
	Levels                                  []Option
	Until, Statement, TTL, Status, Delegate Field

	Theirs       []string // what another user changed meanwhile
	TheirVersion uint64
	By           string
}
