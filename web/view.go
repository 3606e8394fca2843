package web

import (
	"html/template"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/web/figures"
	"github.com/stele-id/stele/web/language"
)

// Frame is what all pages have.
type Frame struct {
	Language *language.Language // in which the page is; the site's first one if nil
	Here     string             // path and query of the page, for links that come back to it; may be empty
	Section  string             // of the navigation, where the page is: "home", "about", "api", "docs"; may be empty
	Query    string             // what stands in the form; may be empty
}

func (f *Frame) frame() *Frame { return f }

// Name is an identifier, or anything else that has a text and perhaps an address.
type Name struct {
	Text string
	URL  string // in this site, from its first slash, or absolute; may be empty
}

// Row is a line of a table of names and values.
type Row struct {
	Name  string
	Value string
	Note  string // for people; may be empty
}

// Target is where something about the thing is.
type Target struct {
	Service  stele.Service
	URL      string
	Type     string
	Language string
	Note     string // such as "the first choice"; may be empty
}

// Format is another form of what the page says.
type Format struct {
	Name  string // such as "bibtex"
	Title string
	Type  string // media type
	URL   string
}

// Change is a line of a record's history.
type Change struct {
	Version uint64
	At      time.Time
	By      string   // the principal; empty if the reader may not know
	What    []string // see [Changes]
	URL     string   // of the record as it was then; may be empty
}

// Info is the view of an identifier and its record.
type Info struct {
	Frame
	ID       string // canonical
	Spelling string // the owner's; may be empty
	Title    string // of the thing; may be empty
	URL      string // of the identifier at this resolver, absolute

	// From the scheme (stele.Explanation).
	Scheme    string
	Form      string
	Parts     []Row
	Spellings []stele.Spelling
	Warnings  []string

	// From the record.
	State       stele.State
	Tombstone   *Tombstone // of a withdrawn record
	Aliases     []Name
	Targets     []Target
	Metadata    []Row
	Namespace   Name // title and prefix; may be empty
	Persistence stele.Persistence
	Promised    string // the namespace that promises, if not the record itself: "ark:12345"
	Old         *Old   // of an old version
	Signatures  []Signature
	History     []Change
	Use         *UseLine // nil if it is not public
	Proof       string   // URL of the proof of this version; empty if there is none

	Citation string
	Formats  []Format
	QR       QR
}

// UseLine is how often a name is used, on the page about it.
type UseLine struct {
	Total string        // in words
	Chart template.HTML // empty if nothing was counted
	URL   string        // of the page of the figures
}

// Use is the view of how often a name, or the names of a namespace, are used.
type Use struct {
	Frame
	Title   string // of the thing or the namespace; may be empty
	ID      string
	Record  bool
	Info    string    // URL of the page about the record; empty for a namespace
	Space   Name      // of a record: its namespace, with the URL of its figures
	Began   time.Time // zero if nothing was counted yet
	Damaged int       // figures that can't be read
	Periods []Period
	Facts   []figures.Fact
	Chart   template.HTML
	Table   figures.Table
}

// Period is a link to the figures of a period.
type Period struct {
	Text, URL string
	Current   bool
}

// Old says which old version of a record a page shows.
type Old struct {
	Number  uint64
	At      time.Time
	Current string // URL of the page about the record as it is
	Follow  string // URL that leads where the name led then
}

// Signature says that a key of the namespace signed some bytes.
type Signature struct {
	Date      time.Time
	Key       string // its thumbprint
	Algorithm string // "ED25519"; empty if it is not known
	SHA256    []byte
	Size      uint64
	Type      string // media type; may be empty
}

// Tombstone says why a record was withdrawn.
type Tombstone struct {
	Reason      string
	At          time.Time
	Replacement Name // empty if there is nothing
	Redacted    bool // content was removed by a legal order
}

// Gone is the view of a withdrawn identifier.
type Gone struct {
	Frame
	ID        string
	Spelling  string
	Title     string
	Tombstone Tombstone
	Metadata  []Row // empty if it was redacted
	Citation  string
	Info      string // URL of the page about it
	Formats   []Format
}

// Missing is the view of an identifier that is not known, or of a text that is not an
// identifier.
type Missing struct {
	Frame
	Looked    string // what was looked for, as it was given
	Canonical string // how that was read; empty if it could not be
	Scheme    string
	Reason    string // why it can't be a name at all; empty if it is one
	Mistyped  bool   // its check character does not hold
	Nearest   []Name // what may have been meant
	Namespace Name   // the nearest that is known here; may be empty
}

// Problem is the view of a failure.
type Problem struct {
	Frame
	Status    int
	Title     string   // a few words: "Too many requests"
	Detail    string   // what happened, and what to do
	Available []string // media types to choose from; may be empty
	Request   string   // id of the request, for the operator; may be empty
}

// Choices is the view of several targets.
type Choices struct {
	Frame
	ID      string
	Title   string
	Service stele.Service // what was asked for
	Targets []Target
	Info    string // URL of the page about it
}

// Home is the view of the first page.
type Home struct {
	Frame
	About    []Span // in the operator's words; may be empty
	Examples []Example
	Schemes  []Row // name, what it is, an example as Note
}

// Example is an identifier to try.
type Example struct {
	Name
	Note string
}

// Step is a line of how an answer was found.
type Step struct{ Name, Result string }

// About is the view of the page about the registry, or of a page with a text of the operator.
type About struct {
	Frame
	Page    string // title of the text's page; "" for the page about the registry
	Text    []Block
	Levels  []stele.Level
	States  []stele.State
	Schemes []string // their names
}

// Protocol is the view of the page that registers the site as the handler of links to names.
type Protocol struct {
	Frame
	Template string // URL of the handler, with %s in place of the link
	Example  string // a name to try; may be empty
}

// Log is the view of the page about the transparency log.
type Log struct {
	Frame
	Site    string // URL of the server
	Origin  string // of the last checkpoint; "" if there is none yet
	Size    uint64
	At      time.Time
	Behind  uint64 // changes that the checkpoint does not have yet
	Keys    []LogKey
	Restore []LogRestore // after which the log went on, the oldest first

	Witnesses []string // that have co-signed the checkpoint, as its lines say
}

// LogKey is a public key of the log.
type LogKey struct {
	Key     string
	Retired time.Time // zero: it signs
}

// LogRestore is when a registry was restored, and how many entries its log had then.
type LogRestore struct {
	At   time.Time
	Size uint64
}

// Explanation is the view of how an answer was found.
type Explanation struct {
	Frame
	Given   string // as it was asked for
	ID      string // how that was read; may be empty
	Steps   []Step
	Answer  string // in a few words
	URL     string // where it leads; may be empty
	Status  int    // of the answer; 0 says nothing
	Targets []Target
	Info    string // URL of the page about it; may be empty
}
