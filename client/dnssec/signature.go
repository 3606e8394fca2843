package dnssec

import (
	"slices"
	"time"

	"github.com/miekg/dns"
)

// set is the records of a type at a name, with their signatures.
type set struct {
	owner      string // canonical
	kind       uint16
	records    []dns.RR // whose names are written as owner is
	signatures []*dns.RRSIG
}

// setOf finds records and their signatures in a section of a message. Those of other
// classes don't count.
func setOf(section []dns.RR, owner string, kind uint16) set {
	s := set{owner: owner, kind: kind}
	for _, r := range section {
		h := r.Header()
		if h.Class != dns.ClassINET || dns.CanonicalName(h.Name) != owner {
			continue
		}
		if sig, ok := r.(*dns.RRSIG); ok && sig.TypeCovered == kind {
			s.signatures = append(s.signatures, sig)
			continue
		}
		if h.Rrtype == kind && isRead(r) {
			// The library compares names as they are written, which may be in the mixed
			// case of the question.
			r = dns.Copy(r)
			r.Header().Name = owner
			s.records = append(s.records, r)
		}
	}
	return s
}

// isRead reports whether the library has read a record as what its type says, where
// this package looks into it.
func isRead(r dns.RR) (ok bool) {
	switch r.Header().Rrtype {
	case dns.TypeCNAME:
		_, ok = r.(*dns.CNAME)
	case dns.TypeDNAME:
		_, ok = r.(*dns.DNAME)
	case dns.TypeDNSKEY:
		_, ok = r.(*dns.DNSKEY)
	case dns.TypeDS:
		_, ok = r.(*dns.DS)
	case dns.TypeNSEC:
		_, ok = r.(*dns.NSEC)
	case dns.TypeNSEC3:
		_, ok = r.(*dns.NSEC3)
	default:
		ok = true
	}
	return ok
}

// isOf reports whether records may be a zone's: it has the name, and some signature is of
// it, or there is none.
func (s *set) isOf(z *zone) bool {
	return dns.IsSubDomain(z.name, s.owner) && (len(s.signatures) == 0 || slices.ContainsFunc(s.signatures, z.made))
}

// made reports whether a signature says that it is of the zone.
func (z *zone) made(sig *dns.RRSIG) bool { return dns.CanonicalName(sig.SignerName) == z.name }

// ttl returns the least TTL of the records.
func (s *set) ttl() uint32 {
	ttl := uint32(1<<31 - 1)
	for _, r := range s.records {
		ttl = min(ttl, r.Header().Ttl)
	}
	return ttl
}

// wildcard reports whether a signature is of a wildcard that the records were made of,
// and how many labels the name has above which it stands (RFC 4035, section 5.3.4).
func (s *set) wildcard(by *dns.RRSIG) (labels int, ok bool) {
	n := dns.CountLabel(s.owner)
	if len(s.owner) > 1 && s.owner[:2] == "*." {
		n-- // RFC 4034, section 3.1.3: it is not counted
	}
	return int(by.Labels), int(by.Labels) < n
}

// lasts is for how many seconds what a signature proves is to be believed (RFC 4035,
// section 5.3.3).
func lasts(by *dns.RRSIG, ttl uint32, now time.Time) uint32 {
	left := int32(by.Expiration - uint32(now.Unix()))
	return min(ttl, by.OrigTtl, uint32(max(left, 0)))
}

// verify finds a signature of a zone that is good for the records (RFC 4035, section
// 5.3). One is enough (RFC 6840, section 5.11). If none is, the error is about the one
// that came closest.
func (r *Reply) verify(s set, z *zone) (*dns.RRSIG, error) {
	var worst *Bogus
	closest := 0
	complain := func(e *Bogus, got int) {
		if worst == nil || got > closest {
			worst, closest = e, got
		}
	}
	for _, sig := range s.signatures[:min(len(s.signatures), maxSignatures)] {
		if !z.made(sig) {
			continue
		}
		if e := timely(sig, s.owner, r.v.now()); e != nil {
			complain(e, 2)
			continue
		}
		keys := z.keysOf(sig)
		if len(keys) == 0 {
			complain(badSignature(sig, s.owner, NoKey, "", "{without}", z.without(sig)), 1)
		}
		for _, key := range keys {
			if e := r.spend(s.owner, s.kind); e != nil {
				return nil, e
			}
			if sig.Verify(key, s.records) == nil {
				return sig, nil
			}
			complain(badSignature(sig, s.owner, WrongSignature, "dnssec.signature-wrong", "the signature is wrong: records or signature were changed, or another key made it"), 3)
		}
	}
	if worst == nil {
		worst = bogus(s.owner, s.kind, NoSignature, "dnssec.signature-of-zone-missing", "there is no signature of {zone}", z.name)
	}
	return nil, worst
}

// spend counts a check of a signature.
func (r *Reply) spend(owner string, kind uint16) *Bogus {
	if r.left--; r.left < 0 {
		return bogus(owner, kind, TooMuchWork, "dnssec.answer-checks-too-many", "the answer takes more than {limit} checks of signatures", maxChecksAnswer)
	}
	if !take(&r.budget.checks, 1, maxChecks) {
		return bogus(owner, kind, TooMuchWork, "dnssec.name-checks-too-many", "the name takes more than {limit} checks of signatures", maxChecks)
	}
	return nil
}

// timely returns the error of a signature that is not valid yet, or has expired.
func timely(sig *dns.RRSIG, owner string, now time.Time) *Bogus {
	at := uint32(now.Unix())
	switch clock := now.UTC().Format(time.RFC3339); {
	case int32(sig.Expiration-at) < 0:
		return badSignature(sig, owner, Expired, "dnssec.signature-expired", "the signature expired on {expiration}, and it is {now} by this machine's clock", date(sig.Expiration, now), clock)
	case int32(at-sig.Inception) < 0:
		return badSignature(sig, owner, NotYetValid, "dnssec.signature-not-yet-valid", "the signature holds from {inception} on, and it is {now} by this machine's clock", date(sig.Inception, now), clock)
	}
	return nil
}

// keysOf returns the keys that may have made a signature. Several keys of one tag happen
// by accident; many do not.
func (z *zone) keysOf(sig *dns.RRSIG) (list []*dns.DNSKEY) {
	if !isSupported(sig.Algorithm) {
		return nil
	}
	for _, k := range z.keys {
		if k.tag == sig.KeyTag && k.key.Algorithm == sig.Algorithm && len(list) < maxSameTag {
			list = append(list, k.key)
		}
	}
	return list
}

// without says in which way there is no key for a signature.
func (z *zone) without(sig *dns.RRSIG) string {
	if !isSupported(sig.Algorithm) {
		return "signatures of algorithm " + algorithmName(sig.Algorithm) + " can't be checked, and the zone promises others"
	}
	return "the zone has no such key"
}
