package stele

import (
	"time"
)

// Record is one thing that is named, and all that is kept about it. A record is
// never deleted: it is withdrawn, and what it was stays in its history.
//
// Fields that people fill in and fields that the system keeps stand apart:
// nothing in Metadata ever means something to the program.
type Record struct {
	ID       ID
	Spelling string // the owner's own spelling of ID, for display; may be empty
	Aliases  []ID   // other names of the same thing, in any scheme

	State       State
	Tombstone   *Tombstone // of a withdrawn record
	Targets     []Target
	Metadata    Metadata
	Persistence Persistence
	Values      []HandleValue
	Readers     []string // principals and groups that may see it; none: the public
	Signatures  []Signature

	// What the system keeps.
	Version  uint64 // 1 for the first; grows by 1 with each change
	Created  time.Time
	Modified time.Time
	By       string // the principal of the last change
	Redacted bool   // content was blanked by a legal order
	Import   uint64 // number of the import, or of the revert of one, that made this version; 0 for none
	Withheld Withheld
}

// IsPublic reports whether the public may see the record.
func (r *Record) IsPublic() bool { return len(r.Readers) == 0 }

// Names yields all names of the record, its identifier first.
func (r *Record) Names() []ID { return append([]ID{r.ID}, r.Aliases...) }

// State says how far a record is in its life.
type State string

const (
	Reserved  State = "reserved"  // the name is taken; the public sees nothing
	Active    State = "active"    // it resolves
	Withdrawn State = "withdrawn" // it answers with its tombstone
)

// IsValid reports whether s is a state.
func (s State) IsValid() bool { return s == Reserved || s == Active || s == Withdrawn }

// Tombstone says why a record was withdrawn.
type Tombstone struct {
	Reason      string
	At          time.Time
	Replacement ID // what to use instead; zero if there is nothing
}

// Service is what a target gives: the thing itself or something about it (RFC
// 2483, and the EDDDS's N2S and N2P).
type Service string

const (
	N2L Service = "N2L" // the location of the thing
	N2C Service = "N2C" // its metadata
	N2S Service = "N2S" // its signature
	N2P Service = "N2P" // the statement of its persistence
)

// IsValid reports whether a target can have the service: one of the above, or another
// name of the same shape, N2 and a capital letter. A new service needs no more than such
// a name and rules that offer it (thesis, 6.3.2). N2N and N2R are not for targets:
// resolvers answer them from the record (RFC 2483).
func (s Service) IsValid() bool {
	if s == N2L || s == N2C || s == N2S || s == N2P {
		return true
	}
	return len(s) == 3 && s[:2] == "N2" && 'A' <= s[2] && s[2] <= 'Z' && s[2] != 'N' && s[2] != 'R'
}

// Target is where something about the thing is.
type Target struct {
	Service    Service
	URL        string
	Type       string // media type, lower case, such as text/html; "" says nothing
	Language   string // BCP 47, such as pt-BR; "" says nothing
	Order      uint16 // lower first, as in NAPTR; targets of a higher order are spares
	Preference uint16 // within an order, lower first
	TTL        uint32 // seconds; 0: the namespace's
	Status     int    // of the redirect; 0: the namespace's
	Partial    bool   // what follows the name is appended to the URL
}

// The order and preference of a target that does not say.
const (
	DefaultOrder      = 100
	DefaultPreference = 10
)

// Metadata describes the thing in its owner's words: who made it, what it is
// called, when, where, and any other fields. Keys are lower case.
type Metadata map[string]string

// The four fields that every description should have (ERC, the kernel metadata of
// ARK).
const (
	Who   = "who"
	What  = "what"
	When  = "when"
	Where = "where"
)

// Persistence is what the owner promises. The zero Persistence promises nothing.
type Persistence struct {
	Level     Level
	Until     string // a date, 2040-01-01, or empty
	Statement string // in words
}

// Level is how permanent a thing is, after the ratings of the United States'
// National Library of Medicine.
type Level string

const (
	Unstated      Level = ""
	Permanent     Level = "permanent"      // it stays; nothing is said of its content
	Unchanging    Level = "unchanging"     // permanent, and byte for byte the same
	Stable        Level = "stable"         // permanent, small corrections only
	Dynamic       Level = "dynamic"        // permanent, and its content changes
	NotGuaranteed Level = "not-guaranteed" // it may go
)

// IsValid reports whether l is a level; Unstated is one.
func (l Level) IsValid() bool {
	switch l {
	case Unstated, Permanent, Unchanging, Stable, Dynamic, NotGuaranteed:
		return true
	}
	return false
}

// HandleValue is a typed value of the Handle System (RFC 3651, section 3.1).
type HandleValue struct {
	Index       uint32
	Type        string
	Data        []byte
	TTL         uint32 // seconds; 0: it is not cached. One that is not given is DefaultHandleTTL
	TTLAbsolute bool   // TTL is a date, not a duration
	Timestamp   uint32 // Unix seconds
	Permissions Permission
	References  []HandleReference
}

// DefaultHandleTTL is the TTL of a handle value for which none is given, in seconds: a day,
// as handle servers take it.
const DefaultHandleTTL = 24 * 60 * 60

// HandleReference points at a value of another handle.
type HandleReference struct {
	Handle string
	Index  uint32
}

// Permission is the set of what may be done with a handle value.
type Permission uint8

// As the Handle System's wire format has them (RFC 3651, 3.1).
const (
	PublicWrite Permission = 1 << iota
	PublicRead
	AdminWrite
	AdminRead
)

// DefaultPermissions are those of a handle value that does not say: the public reads
// it, its administrators read and change it.
const DefaultPermissions = AdminRead | AdminWrite | PublicRead

// MarshalJSON fails: a record has no JSON form of its own, which would have the names of Go's
// fields. Package document writes it.
func (r *Record) MarshalJSON() ([]byte, error) { return nil, errDocument }

// MarshalJSON fails as that of a record does.
func (n *Namespace) MarshalJSON() ([]byte, error) { return nil, errDocument }

var errDocument = Messagef("record.marshaled-outside-document", "records and namespaces are written by package document")
