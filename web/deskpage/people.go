package deskpage

import (
	"time"

	"github.com/stele-id/stele"
)

// Audit is a page of the audit trail, the newest entry first.
type Audit struct {
	Frame
	Choice                     Choice
	Operations, Ways, Outcomes []Option
	By, Since, Until           string
	Entries                    []AuditEntry
	Next, CSV                  string // URLs; Next is "" on the last page
}

// AuditEntry is an entry of the audit trail in words.
type AuditEntry struct {
	Number              uint64
	At                  time.Time
	By                  string
	Did                 string // what was done, in words; "" if there are none
	Operation           string
	Object, URL         string // to what, and its page; may be empty
	Count               string
	Way, Address, Token string
	Outcome             string
	Details             string
	Reason              string // why it was refused or failed, in English
}

// People is the list of users.
type People struct {
	Frame
	Words  string
	Kinds  []Option
	Users  []Person
	Next   string // URL of the next page; "" on the last one
	Asked  bool
	Groups []string
	Mail   bool // the page of waiting mail is there
}

// Person is a user in a list.
type Person struct {
	Name, URL       string
	Groups          []string
	Admin, Disabled bool
	Created         time.Time
}

// Invite is the form that adds a user.
type Invite struct {
	Frame
	Name, Groups Field
	Admin        bool
	Namespace    Field
	Choice       Choice
	Roles        []Option
	Lives        []Option
	Mail         bool // links can be sent
	Address      Field
	Tongues      []Option
}

// Invited shows a one-time link, once.
type Invited struct {
	Frame
	Invited string // the user whom the link signs in
	URL     string // of the user's page
	Link    string // "" if none was made
	Mailed  string // the address to which the link was sent, which is not shown then; may be empty
	Expires time.Time
}

// PersonPage is what an administrator sees of a user.
type PersonPage struct {
	Frame
	Of         Person
	By         string
	Modified   time.Time
	Form       PersonForm
	Roles      []PersonRole
	Sessions   []Session
	Tokens     []Token
	Passkeys   []Passkey
	Password   *PasswordState // nil if there is none
	Identities []Identity
	Links      []OpenLink
	Lives      []Option
	Mail       bool   // links can be sent
	Address    string // that the user has confirmed
	Tongues    []Option
	AuditURL   string
	Self       bool // it is the user who looks
}

// OpenLink is a one-time link that was not used.
type OpenLink struct {
	ID, By           string
	Created, Expires time.Time
}

// PersonForm is the form of a user.
type PersonForm struct {
	Groups          Field
	Admin, Disabled bool
}

// PersonRole is a role that a user has.
type PersonRole struct {
	Namespace, Title, URL string
	Role                  stele.Role
	Group                 string // by which the user has it; "" if it is the user's own
}

// Members is who may do what in a namespace.
type Members struct {
	Frame
	Key, Title, NamesURL, AuditURL  string
	Owner                           string     // the user who is named as the owner; may be empty
	Role                            stele.Role // of the user who looks
	List                            []Member
	MayGrant, MayHandOver, MayLeave bool
	Named                           bool // the user who looks is named as the owner
	Name, To, Asked                 Field
	IsGroup                         bool
	Roles                           []Option
	Effective                       *Effective // of the user who is asked about; nil if none is
}

// Member is a user or a group with a role.
type Member struct {
	To, Name                 string
	URL                      string // of the user; may be empty
	Group, Named             bool
	Role                     stele.Role
	Here                     bool // given in the namespace itself
	From, FromTitle, FromURL string
}

// Effective is what one user may do in a namespace.
type Effective struct {
	Name            string
	Role            stele.Role // NoRole: none
	Admin, Disabled bool
	By              []Member
}

// Settings is what a user prefers.
type Settings struct {
	Frame
	Tongues []Option
	Mail    *MailSettings // nil: no mail is sent
}
