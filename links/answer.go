package links

import (
	"strings"
	"time"
)

// Failure is why there is no answer.
type Failure uint8

const (
	NoFailure Failure = iota
	FailNoName
	FailDNS
	FailRefused
	FailReset
	FailTimeout
	FailLoop
	FailPrivate
	FailRobots       // robots.txt forbids it
	FailRobotsUnread // robots.txt can't be read
	FailNotAskable
	FailNoFile  // FTP: there is no such file
	FailNoLogin // FTP: the server lets no anonymous user in
	FailTLS     // the host answers, and agrees on no TLS with this server: it wants a certificate, or a version or a cipher that is not known here
	FailBusy    // FTP: the server has no room or no file for now
	FailOurs    // this server could not ask
)

// Hop is a redirect.
type Hop struct {
	URL    string // that was asked
	Status int
}

// Answer is what came back when a target was asked.
type Answer struct {
	URL      string // that was asked
	Hops     []Hop  // redirects before the last answer
	Final    string // the address of the last answer
	Status   int    // 0: none
	Header   Header
	Body     []byte        // the beginning; nil if the certificate was not trusted
	Cut      bool          // the body has more, or broke off
	Length   int64         // of the body; -1 if it is not known
	Digest   [32]byte      // SHA-256 of the whole body; zero if not all was read
	Failure  Failure       // why there is no status
	Distrust bool          // the certificate is not trusted
	Wait     time.Duration // of Retry-After; 0: none
	Address  string        // that was connected to last
	Took     time.Duration // of the last request

	// Neighbour is a path beside the target that can't exist, and Home the home page of its host,
	// if they were asked.
	Neighbour, Home *Sighting
}

// Copy is a copy of a page in an archive.
type Copy struct {
	URL string    // "": there is none
	At  time.Time // when it was made; zero: that is not known
}

// Header has the fields of an answer, their names in lower case.
type Header map[string][]string

// Get returns the first value of a field.
func (h Header) Get(name string) string {
	if v := h[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// mediaType returns the type of the body, without parameters.
func (h Header) mediaType() string {
	t, _, _ := strings.Cut(h.Get("content-type"), ";")
	return strings.ToLower(strings.TrimSpace(t))
}

// Sighting is what is remembered of a page to compare another with.
type Sighting struct {
	Status int
	Title  string
	Text   uint64 // SimHash
	Words  int
}

// See makes a sighting of a page.
func See(status int, body []byte) *Sighting {
	p := readPage(body)
	return &Sighting{Status: status, Title: p.title, Text: p.simHash(), Words: len(p.words)}
}

// isSame reports whether two sightings are of the same page. A page may have a few words of its own, such as
// the address that was asked for.
func (s *Sighting) isSame(other *Sighting) bool {
	if s.Status != other.Status || s.Title != other.Title || distance(s.Text, other.Text) > 3 {
		return false
	}
	return s.Words-other.Words <= 8 && other.Words-s.Words <= 8
}
