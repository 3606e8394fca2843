package deskpage

import (
	"bytes"
	"time"

	"github.com/stele-id/stele"
)

// Frame is what all pages have.
type Frame struct {
	Site      string // the operator of the registry; "Stele" if empty
	Title     string // of the page
	User      string // the user who is signed in; "" if the visitor is not
	Admin     bool
	Section   string // of the navigation, where the page is
	Query     string // what is in the form for searching
	Here      string // path and query of the page, for links that come back to it
	Languages []LanguageLink
	Notice    string // what the last step did; may be empty
	Now       time.Time
	Problems  []Problem
	Same      []Same // the same by other ways

	page  *bytes.Buffer // that is being written
	words *rowWords     // in its language
}

func (f *Frame) frame() *Frame { return f }

// LanguageLink is a language to which the page can be switched.
type LanguageLink struct{ Tag, Name string }

// Problem is something that is wrong with a form.
type Problem struct {
	Field string // ID of the input; "" if it is not about one
	Text  string
}

// Same is a command or a request that does what the page does.
type Same struct{ Label, Text string }

// Field is an input of a form.
type Field struct {
	ID, Name, Value string
	Problem         string // what is wrong with it; "" if nothing is
}

// Option is a choice of a select.
type Option struct {
	Value, Text string
	Chosen      bool
}

// SignIn is the page on which a user says who they are.
type SignIn struct {
	Frame
	Next        string // path to which signing in leads
	Demo        string // user whom a demonstration signs in; "" if it is not one
	PasskeyHost string // for which passkeys are; "" if none are offered
	Issuers     []Issuer
	Proxied     string // user whom a trusted proxy has signed in; "" if there is none
	Passwords   bool   // users may sign in by a password
	Typed       string // user name that was refused
}

// Issuer is an OpenID provider: its name for people, its name in forms, and the URL of a link to it.
type Issuer struct{ Name, ID, URL string }

// Issue is the page that leads to an OpenID provider after a form.
type Issue struct {
	Frame
	Issuer  string // for people
	To      string // URL of the provider
	Invited bool   // a one-time link is used
}

// Identity is an account at an OpenID provider that signs the user in.
type Identity struct {
	ID, Issuer, Label string
	Created, Used     time.Time
}

// Kept is a field of a form that is sent again.
type Kept struct{ Name, Value string }

// Ended is the page for a form that was sent after the session ended. Nothing typed is lost: the
// page has all fields.
type Ended struct {
	Frame
	Action string
	Kept   []Kept
}

// Prove is the page that asks a user to prove again who they are before a dangerous step. Nothing
// typed is lost: the page has all fields of the form that was sent.
type Prove struct {
	Frame
	Action      string // path and query of the step
	Get         bool   // the step is a page, not a form
	Kept        []Kept
	Issuers     []Issuer // where the user can sign in again, in another tab
	Demo        bool     // one click is enough: this is a demonstration
	PasskeyHost string   // "" if the user has no passkey, or none is offered
	Password    bool     // the user has one
}

// Link is the page of a one-time link.
type Link struct {
	Frame
	Invited string // the user whom the link signs in
	Issuers []Issuer
	Action  string
	Expires time.Time
}

// Home is the first page.
type Home struct {
	Frame
	Namespaces []Space // the first ones
	More       bool    // there are more
	Names      uint64  // of those that are shown
	Needs      []Need
	Changes    []Row
	Form       *Choice // for a new name; nil if the user may make none
}

// Choice is the namespaces that a form offers.
type Choice struct {
	Options []Option
	Many    bool // there are more than the options: the prefix is typed
	Chosen  string
}

// Space is a namespace in a list.
type Space struct {
	Key, Title, Scheme string
	Role               stele.Role
	Names              uint64
	URL, NamesURL      string
	NewURL             string // for a new name there; "" if the user may make none
	UsageURL           string // "" if the user may not see it
}

// Need is something that a curator should look at.
type Need struct {
	Text, URL, Action string
}

// Row is a record in a list.
type Row struct {
	ID, Title, URL string
	State          stele.State
	Restricted     bool
	Target         string // the first one's URL
	By             string
	Modified       time.Time
	What           []string // what the last change was; may be empty
}

// Names is the list of records, and the search.
type Names struct {
	Frame
	Choice   Choice
	States   []Option
	Host, By string
	Since    string
	Until    string
	Rows     []Row
	Next     string // URL of the next page; "" on the last one
	CSV      string // URL of the result as a file
	Asked    bool   // something was looked for
	Labels   string // URL of the result as labels
}

// Target is a target in a form.
type Target struct {
	Number                                      int
	URL, Type, Language, Order, Preference, TTL Field
	Status, Service                             Field
	Partial                                     bool
	Services                                    []Option
	Folded                                      bool // nothing but the URL, type and language is unusual
}

// Pair is a field of the metadata in a form.
type Pair struct {
	Number     int
	Key, Value Field
}

// Edit is the form of a record, new or registered.
type Edit struct {
	Frame
	New     bool
	ID      string
	Scheme  string
	State   stele.State
	Version uint64
	By      string
	Changed time.Time
	Action  string
	Public  string // URL of the name here
	Info    string // URL of the page about it

	Choice     Choice // for a new name
	Namespace  Field
	Own        Field  // the name that the user gives; empty: the next one of the minter
	Sample     string // such as names of the minter look
	MayMint    bool
	MayWrite   bool
	MayPropose bool   // what is saved is a proposal, which an owner approves
	Note       Field  // for the owner
	MaySave    bool   // MayWrite or MayPropose, and the record is not withdrawn
	Once       string // key of the request that makes the name
	Reserve    bool

	Targets             []Target
	What, Who, When     Field
	More                []Pair
	Levels              []Option
	Until, Statement    Field
	Aliases             []string
	Alias               Field
	Readers             Field
	Theirs              []string      // what another user changed meanwhile
	TheirFields         []FieldChange // what the fields say since, and what they said
	TheirVersion        uint64
	History             []Version
	QR                  string // URL
	Labels              string // URL
	Citations           []Citation
	Use                 *UseCard  // nil if the user may not see it
	Links               []LinkRow // what is known of the targets; nil if the user may not see it
	OnlyFirst           int       // how many first targets are checked; 0 if all are
	LanguageTags, Types []string
}

// ProposalRow is a proposal in a list.
type ProposalRow struct {
	URL, What, ID, Namespace, By string // What: the title of the record
	At                           time.Time
	Kind                         string // what is proposed, in a word or two
	Declined                     time.Time
	Decliner, Reason             string
}

// Proposals is the list of proposals.
type Proposals struct {
	Frame
	Open, Mine []ProposalRow // to be decided by the user, and made by the user
}

// Proposal is the page of one proposal.
type Proposal struct {
	Frame
	ProposalRow
	Number      string        // its ID
	Record      string        // URL; "" if the record is new
	Changes     []string      // what it changes
	Fields      []FieldChange // the same, with what was there, a line for each value
	Later       []string      // what others changed since; it can't be approved then
	Overtaken   bool
	Note        string
	MayDecide   bool
	MayTakeBack bool
	Answer      Field // why it is declined
}

// Citation is a record as it is cited in a style.
type Citation struct{ Style, Text string }

// Label is what is stuck on a thing: its name as a QR code and as text.
type Label struct {
	Title, ID, Address string
	QR                 string // URL
}

// Labels is a sheet of labels to be printed.
type Labels struct {
	Frame
	Sizes []Option
	Size  string
	Kept  []Kept // what chose the records
	List  []Label
	Back  string   // URL of the list or record
	Next  string   // URL of the next sheet; "" on the last one
	Unfit []string // names whose address is too long for a code
}

// Version is a line of a record's history.
type Version struct {
	Number     uint64
	At         time.Time
	By         string
	Import     uint64 // the number of the import that wrote it; 0 for none
	What       []string
	URL        string // the record as it was
	Proof      string // URL of its proof for the public; empty if there is none
	MayRevert  bool
	MayDisavow bool
	Disavowed  string // why; may be empty
}

// History is all versions of a record.
type History struct {
	Frame
	ID       string
	URL      string
	Current  uint64
	Versions []Version
	Next     string
	MayWrite bool
}

// Withdraw is the form that withdraws a record, with its tombstone as readers will see it.
type Withdraw struct {
	Frame
	ID, URL             string
	Version             uint64
	Reason, Replacement Field
	Reasons             []string
	MayPropose          bool // an owner approves the withdrawal
	Preview             *Tombstone
}

// Tombstone is what readers see of a withdrawn record.
type Tombstone struct {
	Reason, Replacement string
	At                  time.Time
}

// Confirm asks whether a step is meant.
type Confirm struct {
	Frame
	Text   string
	Action string
	Kept   []Kept
	Button string
	Back   string
}

// Namespaces is the list of namespaces.
type Namespaces struct {
	Frame
	List  []Space
	Text  string // that is looked for
	Asked bool   // something was looked for
	Next  string // URL of the next page; "" on the last one

	MayAdd bool // the user may make namespaces, at least below one of their own
}

// Account is what a user has here: sessions, tokens.
type Account struct {
	Frame
	PasskeyHost string // for which passkeys are; "" if none are offered
	Passkeys    []Passkey
	Sessions    []Session
	Tokens      []Token

	Issuers    []Issuer
	Identities []Identity

	Passwords bool           // they are offered
	Password  *PasswordState // nil if there is none

	Link string // a one-time link that was made just now
}

// Passkey is a passkey of the user.
type Passkey struct {
	ID, Name      string
	Created, Used time.Time
	Copied        bool   // it may have been copied
	Other         string // the host that it is for, if that is not this one
}

// NewPasskey is the form that adds a passkey.
type NewPasskey struct {
	Frame
	Host  string
	First bool // the user has just signed in by a link
	Name  Field

	Passwords bool // the user may set a password instead
}

// Password is the form that sets or changes a password.
type Password struct {
	Frame
	Of     string // the user
	First  bool   // the user has just signed in by a link
	Change bool   // there is a password
	Least  int    // characters
	Offer  string // sealed secret of an app that is set up; "" if the app stays
	Key    string // the secret for people

	Size int // of the QR code
	Path string

	Password, Again, Code Field
}

// PasswordState says since when there is a password.
type PasswordState struct{ Changed, Used time.Time }

// Session is a visit.
type Session struct {
	ID, Agent, How string
	Created, Seen  time.Time
	This           bool
}

// Token is a program's credential.
type Token struct {
	ID, Label        string
	Created, Expires time.Time
	LastUse          time.Time
	Ended            bool
}

// NewToken is the form that makes a token.
type NewToken struct {
	Frame
	Label, Scope, Namespaces, Expires Field
	Scopes, Lives                     []Option
}

// MadeToken shows a token that was just made, once.
type MadeToken struct {
	Frame
	Credential, Label string
	Expires           time.Time
	Never             bool
}

// Failure is the page of an error.
type Failure struct {
	Frame
	Status  int
	Text    string
	Request string // id of the request, for the operator; may be empty
}

// NextVersion returns the number that the record has after it is saved.
func (e *Edit) NextVersion() uint64 { return e.Version + 1 }

// Disavow is the form that disavows a version.
type Disavow struct {
	Frame
	ID, URL         string
	Version, Number uint64
	Reason          Field
}
