package dnsd

import (
	"errors"
	"slices"

	"github.com/miekg/dns"

	"github.com/stele-id/stele/publish/nsec3"
)

// errBusy says that more would have to be signed than there is time for.
var errBusy = errors.New("too much is to be signed at once")

// secure signs a result for a question in the zone with that SOA record. n is what
// stands at the name; if the question was led on by aliases, at the last one.
func (s *signer) secure(r *result, a *asked, n *node, soa *dns.SOA) error {
	r.signed = true
	r.until = s.now().Add(signatureFresh)
	var err error
	if r.answer, err = s.withSignatures(r.answer); err != nil {
		return err
	}
	if len(r.authority) == 0 {
		r.additional, err = s.withSignatures(r.additional)
		return err
	}
	r.authority = append([]dns.RR{negative(soa)}, s.placeholderNegative(soa)...)
	if s.mode == signOnline {
		return s.denyOnline(r, a.name, n, soa)
	}
	return s.denyChained(r, a.name, soa)
}

// withSignatures returns records with the signatures of each set of them behind it.
func (s *signer) withSignatures(records []dns.RR) ([]dns.RR, error) {
	var list []dns.RR
	for len(records) > 0 {
		n := setLen(records)
		set := evenTTL(records[:n])
		records = records[n:]
		list = append(list, set...)
		switch rr := set[0].(type) {
		case *dns.SOA:
			list = append(list, s.placeholderRRSIGs(rr)...)
			continue
		case *dns.RRSIG:
			continue
		}
		signatures, err := s.sign(set)
		if err != nil {
			return nil, err
		}
		list = append(list, signatures...)
	}
	return list, nil
}

// evenTTL gives all records of a set the least of their TTLs: they have one (RFC 2181,
// section 5.2), which is signed.
func evenTTL(set []dns.RR) []dns.RR {
	least, most := set[0].Header().Ttl, set[0].Header().Ttl
	for _, rr := range set {
		least, most = min(least, rr.Header().Ttl), max(most, rr.Header().Ttl)
	}
	if least == most {
		return set
	}
	even := make([]dns.RR, len(set))
	for i, rr := range set {
		even[i] = dns.Copy(rr)
		even[i].Header().Ttl = least
	}
	return even
}

// setLen is how many records at the beginning of a list are of one name and type.
func setLen(records []dns.RR) int {
	first := records[0].Header()
	for i, rr := range records {
		if h := rr.Header(); h.Rrtype != first.Rrtype || h.Name != first.Name {
			return i
		}
	}
	return len(records)
}

// placeholderNegative is placeholderRRSIGs for the SOA record of a negative answer.
func (s *signer) placeholderNegative(soa *dns.SOA) []dns.RR {
	list := s.placeholderRRSIGs(soa)
	for _, sig := range list {
		sig.Header().Ttl = denialTTL(soa) // that of the record in this answer
	}
	return list
}

// denyOnline adds the proof that there is nothing to a result (RFC 9824): a record for
// the name itself. So the name exists for those who validate, and the response code
// says that too, but for clients that know better (section 5).
func (s *signer) denyOnline(r *result, name string, n *node, soa *dns.SOA) error {
	if r.rcode == dns.RcodeNameError {
		r.rcode, r.absent = dns.RcodeSuccess, true
	}
	rr, err := s.nsecRecord(name, n.types(name == s.zone), n.exists || name == s.zone, denialTTL(soa))
	if err != nil {
		return err
	}
	return s.addProof(r, rr)
}

// denyChained adds the links of the chain that prove that there is nothing.
func (s *signer) denyChained(r *result, name string, soa *dns.SOA) error {
	r.chained = true
	if err := s.nsec3.check(s.zone); err != nil {
		return err
	}
	var list []nsec3.Link
	if p, ok := s.nsec3.Match(name); ok {
		list = append(list, p)
		r.rcode = dns.RcodeSuccess
	} else {
		list = s.nsec3.Deny(name)
		r.rcode = dns.RcodeNameError
	}
	for i := range list {
		if err := s.addProof(r, list[i].Record(s.zone, denialTTL(soa))); err != nil {
			return err
		}
	}
	return nil
}

// addProof adds a record and its signatures to the authority section.
func (s *signer) addProof(r *result, rr dns.RR) error {
	signatures, err := s.sign([]dns.RR{rr})
	if err != nil {
		return err
	}
	r.authority = append(append(r.authority, rr), signatures...)
	return nil
}

// types returns the types of the records at a node.
func (n *node) types(atApex bool) []uint16 {
	if atApex {
		return typesAt(n.records, dns.TypeSOA, dns.TypeNS)
	}
	return typesAt(n.records)
}

// pickSecurity returns the records of the types that exist only because the zone is
// signed and that stand at every name.
func (s *signer) pickSecurity(a *asked, n *node, soa *dns.SOA) ([]dns.RR, error) {
	switch {
	case a.qtype == dns.TypeNSEC && s.mode == signOnline:
		rr, err := s.nsecRecord(a.name, n.types(a.name == s.zone), n.exists || a.name == s.zone, denialTTL(soa))
		return []dns.RR{rr}, err
	case a.qtype == dns.TypeRRSIG && a.signed && len(n.records) > 0:
		// Those of one set are enough for who asks for them all (RFC 8482, section 7).
		set := slices.DeleteFunc(slices.Clone(n.records), func(rr dns.RR) bool {
			return rr.Header().Rrtype != n.records[0].Header().Rrtype
		})
		return s.sign(evenTTL(set))
	}
	return nil, nil
}
