package links

import (
	"hash/fnv"
	"strconv"
	"time"
)

// Print is what is kept of a good answer, to notice later that something else is there. Texts are kept
// as hashes, since there may be millions.
type Print struct {
	Title    uint32    // hash of the title; 0: none
	Text     uint64    // SimHash of the text; 0: no text
	Type     uint16    // hash of the media type; 0: not known
	Length   int64     // -1 or 0: not known
	Digest   [16]byte  // the beginning of the SHA-256 of the whole body; zero: not known
	Tag      string    // ETag, for the next request, if it is short; it is sent as it came or not at all
	Modified time.Time // Last-Modified, for the next request, if there is no Tag
}

// maxTag is the longest ETag that is kept. A part of a longer one would stand for another page, so Last-Modified is kept instead.
const maxTag = 16

func takePrint(a *Answer, p *page) Print {
	pr := Print{Length: a.Length}
	if p.title != "" {
		pr.Title = hash32(fold(p.title))
	}
	pr.Text = p.simHash()
	pr.Type = hashType(a.Header.mediaType())
	if !a.Cut {
		copy(pr.Digest[:], a.Digest[:])
	}
	if tag := a.Header.Get("etag"); len(tag) <= maxTag {
		pr.Tag = tag
	}
	if at, err := time.Parse(time.RFC1123, a.Header.Get("last-modified")); err == nil && pr.Tag == "" {
		pr.Modified = at.UTC()
	}
	return pr
}

// hashType returns the hash of a media type; 0: none.
func hashType(media string) uint16 {
	if media == "" {
		return 0
	}
	return uint16(hash32(media)) | 1
}

func hash32(text string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text))
	return h.Sum32() | 1
}

// Drift is how a good answer differs from those before.
type Drift uint8

// The kinds of drift. Their numbers are stored.
const (
	NoDrift       Drift = iota
	Suspected           // title and text differ; it is told after a second look a week later
	TextChanged         // title and text differ
	TypeChanged         // such as a page where a PDF was
	PromiseBroken       // the persistence statement says unchanging, and the digest is another
	HostOfOthers        // the text differs, and the domain has other name servers: it was sold, or is parked
)

var driftNames = [...]string{"", "suspected", "text-changed", "type-changed", "promise-broken", "host-of-others"}

// String returns the name of the drift.
func (d Drift) String() string {
	if int(d) < len(driftNames) {
		return driftNames[d]
	}
	return "drift-" + strconv.Itoa(int(d))
}

// IsTold reports whether users are told.
func (d Drift) IsTold() bool { return d > Suspected }

const (
	driftBits = 20                 // in which texts differ that are not the same
	driftWait = 7 * 24 * time.Hour // between two looks
)

// differs says how a new print differs from the kept one.
func (p *Print) differs(next *Print, unchanging bool) Drift {
	var none [16]byte
	switch {
	case unchanging && p.Digest != none && next.Digest != none && p.Digest != next.Digest:
		return PromiseBroken
	case p.Type != 0 && next.Type != 0 && p.Type != next.Type:
		return TypeChanged
	case p.Text != 0 && next.Text != 0 && p.Title != next.Title && distance(p.Text, next.Text) > driftBits:
		return Suspected
	}
	return NoDrift
}

// newServers is how long ago the name servers of a domain changed if a page that differs is that of another owner. A page is
// compared with one that was there a turn or two before.
const newServers = 3 * Turn

// compare reports whether signatures are about content of the type of an answer, and whether the answer is signed.
func (t *Target) compare(next *Print) (comparable, signed bool) {
	for _, s := range t.Signed {
		if s.Type == "" || next.Type == 0 || hashType(s.Type) == next.Type {
			comparable = true
			signed = signed || s.Digest == next.Digest
		}
	}
	return comparable, signed
}

// drift compares a good answer with what is kept. What is told stays until a user accepts it, or until what was there is back.
func (s *Status) drift(next *Print, t *Target, now time.Time) {
	var none [16]byte
	unchanging := t.Unchanging
	comparable, signed := t.compare(next)
	if unchanging && len(t.Signed) > 0 && !comparable {
		unchanging = false // the signatures are about another representation than the one that was sent
	} else if unchanging && comparable && next.Digest != none {
		switch {
		case signed && s.Drift == PromiseBroken, signed && s.Print.Digest != next.Digest: // another version was signed
			s.Drift, s.DriftSince, s.Print = NoDrift, time.Time{}, *next
			return
		case !signed:
			if s.Drift != PromiseBroken {
				s.Drift, s.DriftSince = PromiseBroken, now
			}
			if s.Print == (Print{}) {
				s.Print = *next
			}
			return
		}
	}
	if s.Print == (Print{}) {
		s.Print = *next
		return
	}
	d := s.Print.differs(next, unchanging)
	if d == Suspected && !t.Servers.IsZero() && now.Sub(t.Servers) < newServers {
		d = HostOfOthers
	}
	switch {
	case d == NoDrift && (s.Drift != PromiseBroken || next.Digest != none):
		s.Drift, s.DriftSince = NoDrift, time.Time{}
		if !unchanging || next.Digest != none {
			s.Print = *next // so that slow changes are not added up
		}
	case d == Suspected:
		if s.Drift == NoDrift {
			s.Drift, s.DriftSince = Suspected, now
		} else if s.Drift == Suspected && now.Sub(s.DriftSince) >= driftWait {
			s.Drift = TextChanged
		}
	case d > s.Drift:
		s.Drift, s.DriftSince = d, now
	}
}

// AcceptDrift takes what is there now as what should be there.
func (s *Status) AcceptDrift() {
	s.Drift, s.DriftSince, s.Print = NoDrift, time.Time{}, Print{}
}
