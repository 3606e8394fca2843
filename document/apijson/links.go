package apijson

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
)

// LinkChecks are how the targets of a namespace are checked.
type LinkChecks struct {
	On       bool        `json:"on" doc:"Targets of the namespace, and of those below without settings of their own, are checked."`
	Quota    int         `json:"quota,omitempty" minimum:"0" doc:"Checks a day; 0: no limit."`
	Own      []OwnHost   `json:"own,omitempty" doc:"Hosts of yours that may be asked faster than others."`
	Pauses   []HostPause `json:"pauses,omitempty" doc:"Hosts that are not asked for a time."`
	FallBack bool        `json:"fallBack,omitempty" doc:"A target that has been broken for 30 days is replaced by its archived copy."`
	By       string      `json:"by,omitempty" readOnly:"true"`
	Changed  time.Time   `json:"changed,omitzero" readOnly:"true"`
}

// OwnHost is a host of the owner.
type OwnHost struct {
	Host string `json:"host" example:"data.example.org"`
	Gap  int64  `json:"gap" minimum:"100" doc:"Milliseconds between two requests." example:"500"`
}

// HostPause says until when a host is not asked.
type HostPause struct {
	Host  string    `json:"host,omitempty" doc:"Without it, all hosts." example:"data.example.org"`
	Until time.Time `json:"until"`
}

// LinkFinding is what is known of a target.
type LinkFinding struct {
	ID      string    `json:"id" example:"ark:12345/x1"`
	Scheme  string    `json:"-"`
	Target  int       `json:"target" doc:"The number of the target in the record, from 0."`
	URL     string    `json:"url"`
	Host    string    `json:"host"`
	State   string    `json:"state" enum:"unchecked,ok,moved,blocked,unsure,failing,broken,gone,excluded"`
	Cause   string    `json:"cause,omitempty" doc:"What was seen, in one word." example:"not-found"`
	Status  int       `json:"status,omitempty" doc:"Of the last answer over HTTP."`
	Wall    string    `json:"wall,omitempty" doc:"The wall that keeps programs out."`
	Final   string    `json:"final,omitempty" doc:"Where redirects led; of a moved target, its new address."`
	Title   string    `json:"title,omitempty" doc:"Of the page that was seen."`
	Since   time.Time `json:"since,omitzero" doc:"When the state began."`
	First   time.Time `json:"first,omitzero" doc:"The first of the last failures in a row."`
	Fails   int       `json:"fails,omitempty" doc:"Failures in a row."`
	Checked time.Time `json:"checked,omitzero"`
	Good    time.Time `json:"good,omitzero" doc:"The last good answer."`
	Next    time.Time `json:"next,omitzero" doc:"When it is asked again."`
	Drift   string    `json:"drift,omitempty" doc:"How the content differs from what was there." enum:"text-changed,type-changed,promise-broken,host-of-others"`
	Drifted time.Time `json:"drifted,omitzero" doc:"When it began to differ."`

	Answer    string    `json:"answer,omitempty" doc:"Stands for the address that was asked and for what was seen there. Send it with what you saw yourself."`
	Look      bool      `json:"look,omitempty" doc:"It has been blocked for half a year: a person should look."`
	Copy      string    `json:"copy,omitempty" doc:"The address of an archived copy, which may be added as a further target."`
	CopyAt    time.Time `json:"copyAt,omitzero" doc:"When the copy was made."`
	CopyAsked time.Time `json:"copyAsked,omitzero" doc:"When the archive was asked for a copy last."`
}

// IsBroken reports whether the target leads nowhere, or not to what was promised.
func (f *LinkFinding) IsBroken() bool {
	return f.State == "broken" || f.State == "gone" || f.Drift == "promise-broken"
}

// Waits reports whether the last check could not be made, and the state of a target that works is the one that was known before: its site asked to wait, or
// the server could not ask.
func (f *LinkFinding) Waits() bool {
	return (f.State == "ok" || f.State == "moved") && f.Good.Before(f.Checked)
}

// Sight returns what stands for the address and the answer of its server: what a person says who looked is about these and no others.
func (f *LinkFinding) Sight() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{f.URL, f.Cause, strconv.Itoa(f.Status), f.Final, f.Drift}, "\n")))
	return hex.EncodeToString(sum[:16])
}

// What findings are about, for people: a state, or one of these. Content that differs is told as drifted, unless it breaks a promise.
const (
	LinkDrifted      = "drifted"
	LinkLookYourself = "look" // a blocked one at which a person should look
)

// Kind returns what the finding is about.
func (f *LinkFinding) Kind() string {
	switch {
	case f.State == "gone":
		return f.State
	case f.IsBroken():
		return "broken"
	case f.Drift != "":
		return LinkDrifted
	}
	return f.State
}

// Told returns since when what the finding is about is so: the state, or content that differs.
func (f *LinkFinding) Told() time.Time {
	if f.State != "broken" && f.State != "gone" && f.Drift != "" && !f.Drifted.IsZero() {
		return f.Drifted
	}
	return f.Since
}

// ErrLinksCut says that as many findings were read as a filter allows, and that there may be more after the finding that comes with it.
var ErrLinksCut = stele.Messagef("links.findings-cut", "there are more findings than are read at once")

// LinkFilter describes findings; what is empty stands for all.
type LinkFilter struct {
	Kind string // of [LinkFinding.Kind], or [LinkLookYourself]
	Host string
	Most int // findings that are read; 0: all. See ErrLinksCut
}

// LinkHost is what is told about a host as a whole.
type LinkHost struct {
	Host  string    `json:"host"`
	Down  time.Time `json:"down,omitzero" doc:"Since when it is known that the host does not answer."`
	First time.Time `json:"first,omitzero" doc:"The first of the last failures in a row."`
	Cause string    `json:"cause,omitempty" example:"no-name"`
	Names int       `json:"names,omitempty" doc:"How many names lead there, if only a sample of them is asked."`
	Share int       `json:"share,omitempty" doc:"Which part of them is asked, in thousandths."`
	Count int       `json:"count,omitempty" doc:"How many targets there do not work as they should."`
}

// LinkOverview is what is known of the targets of a namespace, in numbers.
type LinkOverview struct {
	Counts  map[string]int `json:"counts" doc:"How many targets are broken, gone, moved, drifted, unsure, failing, blocked or excluded; look counts the blocked ones at which a person should look."`
	Waiting int            `json:"waiting" doc:"Targets that wait for their first check; 10,000 stands for more."`

	WaitingMore bool                     `json:"-"` // there are more of them
	Partial     bool                     `json:"partial,omitempty" doc:"There are more findings than were counted."`
	Hosts       []*LinkHost              `json:"hosts,omitempty" doc:"Hosts that do not answer, or of which only a sample is asked. Their names are not counted as failing."`
	Moved       []LinkMoved              `json:"moved,omitempty" doc:"Hosts whose targets have new addresses."`
	First       map[string][]LinkFinding `json:"-"`
}

// LinkAcceptance asks for the addresses to which targets at a host have moved.
type LinkAcceptance struct {
	Prefix string `json:"prefix" doc:"What the names begin with." example:"ark:12345"`
	Host   string `json:"host" minLength:"1" doc:"From which the targets have moved." example:"old.example.org"`
	Digest string `json:"digest,omitempty" doc:"That of the answer to a request without it. Nothing is written without it, or if other targets have moved by now."`
}

// LinkMoved is a host whose targets have new addresses.
type LinkMoved struct {
	Host  string    `json:"host"`
	Count int       `json:"count"`
	Last  time.Time `json:"last" doc:"When the last of them moved."`
}

// LinkFindingPage is a part of a list of findings.
type LinkFindingPage struct {
	Items []LinkFinding `json:"items"`
	Next  string        `json:"next,omitempty" doc:"The cursor of the next page; without it this is the last."`
}

// LinkHosts are hosts as a whole.
type LinkHosts struct {
	Items []LinkHost `json:"items"`
}

// LinkCheck asks for checks of names.
type LinkCheck struct {
	IDs   []string  `json:"ids" maxItems:"500" doc:"Names." example:"[\"ark:12345/x1\"]"`
	Since time.Time `json:"since,omitzero" doc:"Targets that were checked before are checked again. Without it, those that never were."`
}

// LinkChecked is what is known of names, while others are being checked.
type LinkChecked struct {
	Items   []LinkFinding `json:"items"`
	Waiting int           `json:"waiting" doc:"How many targets are not checked yet. Send the same request again to see them."`
}

// LinkLook is what a person saw who looked at a target.
type LinkLook struct {
	Target int    `json:"target" minimum:"0" doc:"The number of the target in the record, from 0."`
	Works  bool   `json:"works" doc:"It works; otherwise it is gone."`
	Answer string `json:"answer" minLength:"1" doc:"That of the finding that you looked at. Another one by now is a conflict." example:"5f0c3a91d2f3e4855a6b7c8d9e0f1a2b"`
}
