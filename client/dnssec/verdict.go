package dnssec

import (
	"fmt"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
)

// Status says how far an answer is authenticated. A lower one is weaker.
type Status uint8

const (
	Unchecked Status = iota // not validated
	Insecure                // the zone is proven to be unsigned, or there is no anchor
	Secure                  // signatures lead from it to an anchor
)

// String returns the status as traces show it: secure.
func (s Status) String() string {
	switch s {
	case Insecure:
		return "insecure"
	case Secure:
		return "secure"
	}
	return ""
}

// MarshalText makes a Status a word in JSON.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (s *Status) UnmarshalText(text []byte) error {
	for _, known := range []Status{Unchecked, Insecure, Secure} {
		if known.String() == string(text) {
			*s = known
			return nil
		}
	}
	return stele.Messagef("dnssec.status-unknown", `"{status}" is not a status; there are secure and insecure`, text)
}

// Verdict is what was found of an answer.
type Verdict struct {
	Status Status
	Why    string // of Insecure: where the chain ends
	TTL    uint32 // seconds for which it holds at most; 0 unless it is Secure

	// NoName says that a denial is of the name, and not of the type alone. A server
	// with compact denial says so in the proof, and not in the response code (RFC 9824,
	// section 3.1).
	NoName bool

	// Zone is the one that signed a denial: the one that the name is in. "" if the verdict
	// is about records, or not Secure.
	Zone string
}

// Weaker returns the weaker of two verdicts about parts of the same answer.
func (v Verdict) Weaker(other Verdict) Verdict {
	if other.Status < v.Status {
		v.Status, v.Why, v.Zone = other.Status, other.Why, ""
	}
	v.TTL = min(v.TTL, other.TTL)
	v.NoName = v.NoName || other.NoName
	return v
}

// Reason says in a word what is wrong with a link.
type Reason string

const (
	Expired        Reason = "expired"
	NotYetValid    Reason = "not yet valid"
	NoSignature    Reason = "no signature"
	NoKey          Reason = "no key"
	WrongSignature Reason = "wrong signature"
	NoProof        Reason = "no proof"
	TooMuchWork    Reason = "too much work"
	Reported       Reason = "reported" // by a resolver, which did the checking
)

// ErrBogus is the error that every Bogus matches.
var ErrBogus = stele.Messagef("dnssec.answer-bogus", "the answer does not prove itself")

// Bogus says that an answer can't be believed: the chain of signatures is broken, here.
type Bogus struct {
	Name   string `json:"name"`             // owner of the records
	Type   string `json:"type"`             // of the records, or of those that are denied
	Signer string `json:"signer,omitempty"` // zone whose key should have signed; "" if that is not known
	KeyTag uint16 `json:"keyTag,omitempty"` // of the key; 0 if none is meant
	Reason Reason `json:"reason"`
	Detail string `json:"detail"` // the same in words

	message *stele.Message // Detail with its code and its parameters
}

// Error names the link and says what is wrong with it.
func (e *Bogus) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "BOGUS: %s %s: %s", e.Name, e.Type, e.Detail)
	if e.Signer != "" && e.KeyTag != 0 {
		fmt.Fprintf(&b, " (key %d of %s)", e.KeyTag, e.Signer)
	}
	return b.String()
}

// Unwrap returns what is wrong as a [stele.Message].
func (e *Bogus) Unwrap() error {
	if e.message == nil {
		return nil
	}
	return e.message
}

// Is makes errors.Is(err, ErrBogus) true.
func (e *Bogus) Is(target error) bool { return target == ErrBogus }

func typeName(kind uint16) string {
	if name, ok := dns.TypeToString[kind]; ok {
		return name
	}
	return fmt.Sprintf("TYPE%d", kind)
}

// bogus makes the error of a link that is about no signature in particular.
func bogus(name string, kind uint16, reason Reason, code, text string, args ...any) *Bogus {
	m := stele.Messagef(code, text, args...)
	return &Bogus{Name: name, Type: typeName(kind), Reason: reason, Detail: m.Error(), message: m}
}

// badSignature makes the error of a signature.
func badSignature(s *dns.RRSIG, owner string, reason Reason, code, text string, args ...any) *Bogus {
	e := bogus(owner, s.TypeCovered, reason, code, text, args...)
	e.Signer, e.KeyTag = dns.CanonicalName(s.SignerName), s.KeyTag
	return e
}

// date writes the time of a signature, whose seconds go round in 2106 (RFC 4034,
// section 3.1.5), as it is meant at a time.
func date(seconds uint32, now time.Time) string {
	at := now.Unix() + int64(int32(seconds-uint32(now.Unix())))
	return time.Unix(at, 0).UTC().Format(time.RFC3339)
}
