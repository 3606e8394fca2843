package dnsd

import (
	"slices"

	"github.com/miekg/dns"
)

// TypesAt returns the types of the records at a name, in order.
func TypesAt(records []dns.RR, more ...uint16) []uint16 {
	types := more
	for _, rr := range records {
		types = append(types, rr.Header().Rrtype)
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// NegativeTTL is how long it may be believed that there is nothing (RFC 9077).
func NegativeTTL(soa *dns.SOA) uint32 { return min(soa.Hdr.Ttl, soa.Minttl) }

// NSEC says what stands at a name, of which nothing else is told: the next name is the
// one that follows it in the order of all names there could be (RFC 9824, sections 3.1
// and 3.2). For a name that does not exist, types is nil.
func (s *Signer) NSEC(name string, types []uint16, exists bool, ttl uint32) (dns.RR, error) {
	next, err := successor(name, s.Zone)
	if err != nil {
		return nil, err
	}
	marks := []uint16{dns.TypeRRSIG, dns.TypeNSEC}
	if !exists {
		marks = append(marks, dns.TypeNXNAME)
	}
	types = slices.Concat(types, marks)
	slices.Sort(types)
	return &dns.NSEC{Hdr: header(name, dns.TypeNSEC, ttl), NextDomain: next, TypeBitMap: slices.Compact(types)}, nil
}
