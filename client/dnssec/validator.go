package dnssec

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// Validator judges answers by trust anchors, and remembers the keys of zones. It is
// used by many goroutines at once.
type Validator struct {
	anchors *Anchors
	now     func() time.Time

	mu   sync.Mutex
	cuts map[string]cut // by name
	tops map[string]cut // of zones with anchors
}

// New makes a validator. By the clock now it judges signatures, and expires what it has
// cached.
func New(anchors *Anchors, now func() time.Time) *Validator {
	return &Validator{anchors: anchors, now: now, cuts: make(map[string]cut), tops: make(map[string]cut)}
}

// Ask asks the DNS for records, with the DO bit and the CD bit, and hands the reply,
// which is to this question and NOERROR or NXDOMAIN, to judge. If judge fails, Ask may
// ask another server; it returns nil once judge did.
type Ask func(ctx context.Context, name string, kind uint16, judge func(reply *dns.Msg) error) error

// Check is the judging of an answer.
type Check struct {
	v      *Validator
	budget *Budget
	ask    Ask
}

// Check begins to judge answers. The budget is that of the name for which they are.
func (v *Validator) Check(budget *Budget, ask Ask) *Check { return &Check{v, budget, ask} }

// Reply is a message that is judged.
type Reply struct {
	*Check
	msg  *dns.Msg
	left int // signatures that may be checked
}

// Reply begins to judge a message.
func (c *Check) Reply(msg *dns.Msg) *Reply { return &Reply{c, msg, maxChecksAnswer} }

// Records judges the records of a type at a name, of which there must be some in the
// answer section. An alias that follows from a DNAME record is judged by that one (RFC
// 6672, section 5.3.1). The error is a [Bogus], or that of asking.
func (r *Reply) Records(ctx context.Context, owner string, kind uint16) (Verdict, error) {
	owner = dns.CanonicalName(owner)
	s := setOf(r.msg.Answer, owner, kind)
	if kind == dns.TypeCNAME {
		s = r.orSource(s)
	}
	return r.signed(ctx, s)
}

// orSource returns the DNAME record that an alias follows from, if it has no signature
// of its own, or else the alias.
func (r *Reply) orSource(alias set) set {
	if len(alias.records) != 1 || len(alias.signatures) > 0 {
		return alias
	}
	if from, ok := r.source(alias); ok {
		return from
	}
	return alias
}

// source returns the DNAME record that an alias follows from.
func (r *Reply) source(alias set) (from set, ok bool) {
	target := dns.CanonicalName(alias.records[0].(*dns.CNAME).Target)
	for n := dns.CountLabel(alias.owner) - 1; n >= 0; n-- {
		from = setOf(r.msg.Answer, ancestor(alias.owner, n), dns.TypeDNAME)
		if len(from.records) != 1 {
			continue
		}
		front := strings.TrimSuffix(alias.owner, from.owner)
		if n == 0 {
			front = alias.owner
		}
		to := dns.CanonicalName(from.records[0].(*dns.DNAME).Target)
		if to == "." {
			to = ""
		}
		return from, target == front+to
	}
	return set{}, false
}

// signed judges a set of records by its signatures, and by the proof that there is
// nothing closer if they were made of a wildcard.
func (r *Reply) signed(ctx context.Context, s set) (Verdict, error) {
	if len(s.records) == 0 {
		return Verdict{}, bogus(s.owner, s.kind, NoSignature, "dnssec.records-missing", "there are no such records")
	}
	signer, err := r.signerOf(s.owner, s.signatures)
	if signer == "" {
		return r.unsigned(ctx, s.owner, err, func() error {
			return bogus(s.owner, s.kind, NoSignature, "dnssec.signature-missing", "there is no signature, but the zone is signed; does the name server pass DNSSEC records on?")
		})
	}
	z, err := r.zone(ctx, signer, s)
	if err != nil {
		return Verdict{}, err
	}
	if !z.isSecure() {
		return Verdict{Status: Insecure, Why: z.why}, nil
	}
	by, err := r.verify(s, z)
	if err != nil {
		return Verdict{}, err
	}
	v := Verdict{Status: Secure, TTL: lasts(by, s.ttl(), r.v.now())}
	if n, ok := s.wildcard(by); ok {
		beside, err := r.nothingCloser(s, z, n)
		if err != nil {
			return Verdict{}, err
		}
		v = v.Weaker(beside)
	}
	return v, nil
}

// signerOf returns the zone that should have made signatures of records at a name: the
// deepest that some signature names, of those that can have it. With "", the error says
// what is wrong with those that are there; it is nil if there are none.
func (c *Check) signerOf(owner string, list []*dns.RRSIG) (signer string, err error) {
	top, anchored := c.v.anchors.above(owner)
	for _, s := range list[:min(len(list), maxSignatures)] {
		name := dns.CanonicalName(s.SignerName)
		switch {
		case !dns.IsSubDomain(name, owner):
			err = badSignature(s, owner, WrongSignature, "dnssec.signer-not-above-name", "the signature is of a zone that this name is not in")
		case anchored && !dns.IsSubDomain(top, name):
			err = badSignature(s, owner, WrongSignature, "dnssec.signer-above-anchor", "the signature is of a zone above {anchor}, which has a trust anchor of its own", top)
		case signer == "" || isBelow(signer, name):
			signer = name
		}
	}
	return signer, err
}

// unsigned judges what has no signature at a name: that is right if a zone on the way is
// proven to be unsigned. Otherwise the error is wrong, or else missing's.
func (c *Check) unsigned(ctx context.Context, name string, wrong error, missing func() error) (Verdict, error) {
	z, err := c.enclosing(ctx, name)
	switch {
	case err != nil:
		return Verdict{}, err
	case !z.isSecure():
		return Verdict{Status: Insecure, Why: z.why}, nil
	case wrong != nil:
		return Verdict{}, wrong
	}
	return Verdict{}, missing()
}

// zone returns the zone that signatures name.
func (c *Check) zone(ctx context.Context, signer string, s set) (*zone, error) {
	z, err := c.enclosing(ctx, signer)
	if err != nil {
		return nil, err
	}
	if z.isSecure() && z.name != signer {
		e := bogus(s.owner, s.kind, NoKey, "dnssec.signer-not-a-zone", "the signature is of {signer}, which is not a zone of its own but a part of {zone}", signer, z.name)
		e.Signer = signer
		return nil, e
	}
	return z, nil
}
