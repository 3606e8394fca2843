// Package links judges where names lead: what an answer of a web server says about a target, when a
// target counts as broken, when it is asked again, and how often a host may be asked.
//
// It computes, and opens no connection: package links/ask asks, and package links/check keeps what is
// known and decides what is asked next. It never calls a target broken because a server refuses to
// answer programs: such a target is blocked, and a person has to look.
package links

import (
	"hash/fnv"
	"time"
)

// State is what is known of a target.
type State uint8

// The states. Their numbers are stored.
const (
	Unchecked State = iota
	OK
	Moved    // it works, and has a new address
	Blocked  // the server does not tell programs whether it is there
	Unsure   // it answers, but perhaps with another page
	Failing  // the last checks failed; not often enough to call it broken
	Broken   // it failed for days
	Gone     // the server says that it was removed
	Excluded // it is not asked: the settings or the rule of addresses do not allow it
)

var stateNames = [...]string{"unchecked", "ok", "moved", "blocked", "unsure", "failing", "broken", "gone", "excluded"}

// String returns the name of the state.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unchecked"
}

// ParseState returns the state of that name.
func ParseState(name string) (State, bool) {
	for i, n := range stateNames {
		if n == name {
			return State(i), true
		}
	}
	return Unchecked, false
}

// Cause is what was seen.
type Cause uint8

// The causes. Their numbers are stored.
const (
	NoCause        Cause = iota
	Answered             // a good answer
	Redirected           // a good answer after permanent redirects
	HomePage             // it redirects to the home page of a host
	ErrorPage            // it redirects to a page named like an error or a login
	SameAsOther          // a path that can't exist gives the same page
	SaysNotFound         // the title says that it is not there
	NeedsAccess          // 401, 402, 407 or a login page
	Wall                 // a page that keeps programs out
	Forbidden            // 403 and no more
	AskedToWait          // 429, or 503 with Retry-After
	RobotsForbid         // robots.txt forbids the path
	RobotsUnread         // robots.txt can't be read
	NotFound             // 404
	SaysGone             // 410
	BadStatus            // another status of 400 and above
	NoName               // the host does not exist in the DNS
	DNSFailed            // the DNS did not answer
	Refused              // the host refused the connection
	Reset                // the connection broke off
	TimedOut             // no answer in time
	BadCertificate       // the certificate is expired, for another name or of an unknown authority
	Loop                 // redirects lead in a circle, or there are too many
	PrivateAddress       // the host is at an address that the server does not ask
	NotAskable           // a protocol that is not asked, or a bad address in a redirect
	LookedGone           // a person looked and found nothing
	LookedFine           // a person looked and found it
	Paused               // the settings exclude the host
	OwnFault             // this server could not ask: its network or its resolver does not work, or it has no more files or ports
)

var causeNames = [...]string{"", "answered", "redirected", "home-page", "error-page", "same-as-other", "says-not-found", "needs-access", "wall", "forbidden",
	"asked-to-wait", "robots-forbid", "robots-unread", "not-found", "says-gone", "bad-status", "no-name", "dns-failed", "refused", "reset", "timed-out",
	"bad-certificate", "loop", "private-address", "not-askable", "looked-gone", "looked-fine", "paused", "own-fault"}

// String returns the name of the cause.
func (c Cause) String() string {
	if int(c) < len(causeNames) {
		return causeNames[c]
	}
	return ""
}

// ofHost reports whether a failure may be that of the whole host.
func (c Cause) ofHost() bool { return c >= NoName && c <= TimedOut }

// Weight is how much an answer says.
type Weight uint8

const (
	Nothing Weight = iota // the target may be there or not
	Good
	Weak // the answer may be another page
	Bad
)

// Evidence is what an answer says about a target.
type Evidence struct {
	Weight Weight
	Cause  Cause
	State  State         // that a good, weak or blocking answer leads to
	Status int           // of HTTP; 0 if there was no answer
	Final  string        // where redirects led
	Sign   string        // of a wall
	Wait   time.Duration // that the server asks for
	Print  Print         // of a good answer
	Title  string

	Redirected bool // the host of the target answered, whatever came after
}

// sight identifies an answer, so that what a person said about it is remembered for that answer only.
func (e *Evidence) sight() uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte{byte(e.Cause), byte(e.Status), byte(e.Status >> 8)})
	_, _ = h.Write([]byte(e.Final))
	return h.Sum32() | 1 // 0 is for none
}
