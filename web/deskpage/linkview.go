package deskpage

import "time"

// Links is the page that tells where the names of a namespace lead, and whether that works.
type Links struct {
	Frame
	Key, Called string
	URL         string // of the namespace
	Mine        string // URL of this page without filters
	On          bool
	From        string // the namespace above whose settings hold here; "" if it is this one
	FromURL     string
	MaySet      bool // the user may change the settings
	MayEdit     bool // the user may say what they saw, and have names checked
	Settings    LinkSettings
	Damaged     string // why the settings can't be read; "" if they can

	Names       uint64
	Waiting     int  // targets that were never checked
	WaitingMore bool // there are more of them
	Done        int  // per cent of the names that were
	Partial     bool // there are more findings than were counted
	Kinds       []LinkKind
	Dead        []LinkHost
	Sampled     []LinkHost
	Moved       []LinkHost // whose names have new addresses
	Groups      []LinkGroup
	Kind, Host  string // of the filter
	Filtered    bool
	Next        string // URL of the next page; "" on the last one
	CSV         string
}

// Accept is the page that gives targets of a host the addresses to which they have moved, after a look.
type Accept struct {
	Replace
	Key, Called string
	Back        string // URL of the page about links
	Host        string
	Digest      string // of what is shown
	More        bool   // there are more targets than are changed at once
	Far         bool   // there may be targets, but after more findings than a page reads
}

// LinkSettings are how targets are checked, as a form.
type LinkSettings struct {
	Open   bool
	Quota  Field
	Copies bool // archived copies take the place of what is broken
	Own    []LinkOwn
	Pauses []LinkPause
}

// LinkOwn is a host of the owner and how many seconds are between two requests.
type LinkOwn struct {
	Number    int
	Host, Gap Field
}

// LinkPause is a host and until when it is not asked.
type LinkPause struct {
	Number      int
	Host, Until Field
}

// LinkKind is a number of findings of a kind.
type LinkKind struct {
	Kind, Text, URL string
	Count           int
	Shown           bool
}

// LinkHost is a whole host.
type LinkHost struct {
	Host, URL string
	Since     time.Time
	Seen      string
	Count     int
	Names     int
	Share     string // of the names that are asked
	Accept    string // URL of the page that accepts new addresses; "" if the user may not
}

// LinkGroup are findings of a kind.
type LinkGroup struct {
	Kind, Title, Text string
	Count             int
	All               string // URL of all of them, if there are more
	Rows              []LinkRow
}

// LinkRow is a finding.
type LinkRow struct {
	ID, Title, URL string // of the record
	Target         string // its address
	Number         int    // of the target
	New            string // address to which it moved
	Copy           string // address of an archived copy; may be empty
	KindText       string // "" if all of the list are of one kind
	Seen           string
	Facts          []string
	Checked, Now   time.Time
	Back           string // path of the page, to which a form comes back
	Edit           string // URL of the form, with the proposal filled in
	Add            bool   // the proposal is the archived copy, as a further target
	Withdraw       string // URL; "" if that is not proposed
	Look           bool   // the user may have it checked
	Says           bool   // the user may say what they saw
	Answer         string // what stands for the answer that is shown
}
