package deskpage

import "time"

// Zone is the page on which a namespace is published in the DNS, step by step.
type Zone struct {
	Frame
	Key, Called, URL, KeysURL string
	Version                   uint64
	MayWrite                  bool
	MayGrant                  bool // the user may use any zone
	Published                 bool

	Zone, Layout, Separator, Parts, Exact   Field
	Layouts                                 []Option
	Servers, Mailbox, Resolver, Secondaries Field
	Preview                                 *ZonePreview

	Steps     []ZoneStep
	CheckedAt time.Time // when other servers were asked last; the zero time: not since the server started
	DS        []DS
	ForParent string // records for the administrators of other zones, as a master file has them
	Sentence  string // to send with them
}

// ZonePreview is how a name is found with the settings of a form.
type ZonePreview struct {
	Name, Owner, Reason, Rule string
	Records                   []string
}

// ZoneStep is a step until a zone is found.
type ZoneStep struct {
	Title, Text string
	State       string // done, todo, failing or unknown
	Word        string // the state in the language of the page
}

// DS is a record for the zone above, and its fields.
type DS struct{ Line, Tag, Algorithm, Digest, Value string }

// ZoneKeys is the page of the keys of a zone.
type ZoneKeys struct {
	Frame
	Key, Zone, URL string
	Signed         bool
	Unsigning      bool
	Unsigned       time.Time // from when it may go without signatures; the zero time if that is not known
	List           []ZoneKey
	Steps          []KeyStep
	Rolls          []Option // keys whose roll can be begun
	DS             []DS
}

// ZoneKey is a key of a zone.
type ZoneKey struct {
	Tag, Role, Algorithm, State string
	Since                       time.Time
}

// TSIGKeys is the page of the keys with which secondaries copy zones.
type TSIGKeys struct {
	Frame
	List       []TSIGKey
	Name       Field
	Algorithms []Option
}

// TSIGKey is a key in the list.
type TSIGKey struct {
	Name, Algorithm string
	Retired         bool
	Since           time.Time // that it is in use or retired
	Zones           []ZoneLink
}

// ZoneLink is a zone, and the address of its page.
type ZoneLink struct{ Zone, URL string }

// MadeTSIGKey shows a key once, as the configurations of name servers have it.
type MadeTSIGKey struct {
	Frame
	Name     string
	Settings []Same
}

// KeyStep is the next step of a roll.
type KeyStep struct {
	Text, Role string
	From       time.Time
	Due        bool
	Parent     bool // the zone above must have changed before
	Leaving    bool // it must have no records of the old keys
}
