package dnssec

import (
	"context"
	"fmt"

	"github.com/miekg/dns"
)

// Nothing judges a reply that says that there are no records of a type at a name, or no
// such name.
func (r *Reply) Nothing(ctx context.Context, owner string, kind uint16) (Verdict, error) {
	owner = dns.CanonicalName(owner)
	var signatures []*dns.RRSIG
	for _, record := range r.msg.Ns {
		if sig, ok := record.(*dns.RRSIG); ok && (sig.TypeCovered == dns.TypeNSEC || sig.TypeCovered == dns.TypeNSEC3) &&
			dns.IsSubDomain(dns.CanonicalName(sig.SignerName), owner) { // others prove what led here
			signatures = append(signatures, sig)
		}
	}
	signer, wrong := r.signerOf(owner, signatures)
	if signer == "" {
		return r.unsigned(ctx, owner, wrong, func() error {
			return bogus(owner, kind, NoProof, "dnssec.denial-missing", "the zone is signed, but nothing proves that there is nothing; does the name server pass DNSSEC records on?")
		})
	}
	z, err := r.zone(ctx, signer, set{owner: owner, kind: kind})
	if err != nil {
		return Verdict{}, err
	}
	if !z.isSecure() {
		return Verdict{Status: Insecure, Why: z.why}, nil
	}
	return r.proven(z, owner, kind)
}

// proven judges the proof of a secure zone.
func (r *Reply) proven(z *zone, owner string, kind uint16) (Verdict, error) {
	found, err := r.denied(z, owner, kind)
	if err != nil {
		return Verdict{}, err
	}
	v := Verdict{Status: Secure, TTL: found.ttl, NoName: found.noName, Zone: z.name}
	switch {
	case found.heavy:
		return Verdict{Status: Insecure, Why: found.tooHeavy(z.name)}, nil
	case found.optOut:
		v.Status, v.Zone, v.Why = Insecure, "", z.name+" leaves zones that are not signed out of its proofs, and one may be there"
	}
	if r.msg.Rcode == dns.RcodeNameError && !found.noName {
		e := bogus(owner, kind, NoProof, "dnssec.denial-contradicts-itself", "the answer is that there is no such name, but it proves that there is one")
		e.Signer = z.name
		return Verdict{}, e
	}
	// How long it may be kept is said by the zone's SOA record, so that it must be
	// genuine.
	if soa := setOf(r.msg.Ns, z.name, dns.TypeSOA); len(soa.records) > 0 {
		by, err := r.verify(soa, z)
		if err != nil {
			return Verdict{}, err
		}
		v.TTL = min(v.TTL, lasts(by, soa.ttl(), r.v.now()))
	}
	return v, nil
}

// denial is the NSEC and NSEC3 records of a zone in an answer whose signatures are
// good.
type denial struct {
	zone   string
	nsec   []*dns.NSEC
	nsec3  []*dns.NSEC3
	heavy  *dns.NSEC3 // that takes too much hashing
	ttl    uint32
	hashes map[string]string // by name
	budget *Budget
}

// absence is what a denial proves.
type absence struct {
	noName    bool // there is no such name; otherwise no such type
	delegates bool // a zone begins at the name, without DS records
	optOut    bool // a zone that is not signed may begin at the name or above it
	heavy     bool // undecided: it takes too much work
	rounds    uint16
	ttl       uint32
}

func (a *absence) tooHeavy(zone string) string {
	return fmt.Sprintf("the proofs of %s take %d rounds of hashing, more than %d (RFC 9276)", zone, a.rounds, maxIterations)
}

// denied finds the proof of a zone that there are no records of a type at a name.
func (r *Reply) denied(z *zone, name string, kind uint16) (absence, error) {
	d, failed := r.denial(z)
	if d.heavy != nil {
		return absence{heavy: true, rounds: d.heavy.Iterations, ttl: d.ttl}, nil
	}
	found, ok := d.byNSEC(name, kind)
	if !ok {
		var err error
		if found, ok, err = d.byNSEC3(name, kind); err != nil {
			return absence{}, err
		}
	}
	switch {
	case ok:
		found.ttl = d.ttl
		return found, nil
	case failed != nil:
		return absence{}, failed
	}
	e := bogus(name, kind, NoProof, "dnssec.denial-of-something-else", "nothing proves that there is nothing: there are {records} records of a proof, which are of something else", len(d.nsec)+len(d.nsec3))
	e.Signer = z.name
	return absence{}, e
}

// denial returns the records of a zone's denial in the authority section, of those
// whose signatures are good. The error says what is wrong with another.
func (r *Reply) denial(z *zone) (d *denial, failed error) {
	d = &denial{zone: z.name, ttl: maxTTL, hashes: make(map[string]string), budget: r.budget}
	seen := make(map[string]bool)
	for _, record := range r.msg.Ns {
		h := record.Header()
		if h.Rrtype != dns.TypeNSEC && h.Rrtype != dns.TypeNSEC3 {
			continue
		}
		s := setOf(r.msg.Ns, dns.CanonicalName(h.Name), h.Rrtype)
		key := typeName(s.kind) + " " + s.owner
		if seen[key] || len(seen) >= maxDenials || len(s.records) != 1 || !s.isOf(z) {
			continue
		}
		seen[key] = true
		by, err := r.verify(s, z)
		if err != nil {
			failed = err
			continue
		}
		// What is made of a wildcard says nothing of the name it was made for.
		if _, wild := s.wildcard(by); wild {
			failed = badSignature(by, s.owner, WrongSignature, "dnssec.proof-from-wildcard", "the proof is made of a wildcard")
			continue
		}
		d.add(s.records[0])
		d.ttl = min(d.ttl, lasts(by, s.ttl(), r.v.now()))
	}
	return d, failed
}

func (d *denial) add(record dns.RR) {
	switch r := record.(type) {
	case *dns.NSEC:
		d.nsec = append(d.nsec, r)
	case *dns.NSEC3:
		d.addNSEC3(r)
	}
}

// nothingCloser proves that records that were made of a wildcard may be: that there is
// no name between the owner and the wildcard, whose parent has so many labels.
func (r *Reply) nothingCloser(s set, z *zone, labels int) (Verdict, error) {
	d, failed := r.denial(z)
	v := Verdict{Status: Secure, TTL: d.ttl}
	if d.heavy != nil {
		a := absence{rounds: d.heavy.Iterations}
		return Verdict{Status: Insecure, Why: a.tooHeavy(z.name)}, nil
	}
	next := ancestor(s.owner, labels+1)
	for _, n := range d.nsec {
		if d.covers(n, s.owner) && closestBy(n, s.owner) == ancestor(s.owner, labels) {
			return v, nil
		}
	}
	by, err := d.coveredNSEC3(next)
	switch {
	case err != nil:
		return Verdict{}, err
	case by != nil && isOptOut(by):
		v.Status, v.Why = Insecure, z.name+" leaves zones that are not signed out of its proofs, and "+next+" may be one"
		return v, nil
	case by != nil:
		return v, nil
	case failed != nil:
		return Verdict{}, failed
	}
	e := bogus(s.owner, s.kind, NoProof, "dnssec.wildcard-unproved", "the records are those of *.{ancestor}, and nothing proves that there is nothing closer", ancestor(s.owner, labels))
	e.Signer = z.name
	return Verdict{}, e
}

// bitmap is what NSEC and NSEC3 records say of the types at their name.
type bitmap []uint16

func (b bitmap) has(kind uint16) bool {
	for _, t := range b {
		if t == kind {
			return true
		}
	}
	return false
}

// isDelegation reports whether the zone above a cut made it. Then it says nothing about
// names at or below the cut, except about DS records (RFC 6840, section 4.1).
func (b bitmap) isDelegation() bool { return b.has(dns.TypeNS) && !b.has(dns.TypeSOA) }

// hides reports whether names below that name do not belong to the zone.
func (b bitmap) hides() bool { return b.isDelegation() || b.has(dns.TypeDNAME) }

// denies reports whether there are no records of a type at a name that exists.
func (b bitmap) denies(name string, kind uint16) (a absence, ok bool) {
	switch {
	case b.has(dns.TypeNXNAME): // RFC 9824, section 3.1
		return absence{noName: true}, true
	case b.has(kind), b.has(dns.TypeCNAME):
		return a, false
	case kind == dns.TypeDS && b.has(dns.TypeSOA) && name != ".":
		return a, false // from the child zone; DS records belong to the parent
	case kind != dns.TypeDS && b.isDelegation():
		return a, false
	}
	return absence{delegates: b.isDelegation()}, true
}
