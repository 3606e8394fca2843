package dnsd

import (
	"encoding/base32"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// typesAt returns the types of the records at a name, in order.
func typesAt(records []dns.RR, more ...uint16) []uint16 {
	types := more
	for _, rr := range records {
		types = append(types, rr.Header().Rrtype)
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// denialTTL is how long it may be believed that there is nothing (RFC 9077).
func denialTTL(soa *dns.SOA) uint32 { return min(soa.Hdr.Ttl, soa.Minttl) }

// nsecRecord says what stands at a name, of which nothing else is told: the next name is the
// one that follows it in the order of all names there could be (RFC 9824, sections 3.1
// and 3.2). For a name that does not exist, types is nil.
func (s *signer) nsecRecord(name string, types []uint16, exists bool, ttl uint32) (dns.RR, error) {
	next, err := successor(name, s.zone)
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

// nsec3Record makes the record of a link.
func (s *signer) nsec3Record(p *proof, ttl uint32) dns.RR {
	return &dns.NSEC3{
		Hdr: header(hashLabel(&p.hash)+"."+s.zone, dns.TypeNSEC3, ttl), Hash: dns.SHA1,
		HashLength: uint8(len(p.next)), NextDomain: strings.ToUpper(hashLabel(&p.next)), TypeBitMap: p.types,
	}
}

// hashLabel is a hash as a label.
func hashLabel(h *nameHash) string {
	return strings.ToLower(base32.HexEncoding.EncodeToString(h[:])) // 20 bytes need no padding
}

// linkTypes is what a link says of a name with records. A cut has no signatures of its
// own, but for the DS records (RFC 5155, section 7.1).
func linkTypes(types []uint16) []uint16 {
	if len(types) == 0 || len(types) == 1 && types[0] == dns.TypeNS {
		return types
	}
	types = append(slices.Clone(types), dns.TypeRRSIG)
	slices.Sort(types)
	return types
}

// denyAll returns the links that show that a name does not exist, nor a wildcard that
// would stand for it (RFC 5155, section 7.2.1): that of the nearest name above it that
// does, and those that would be in front of the next one and of the wildcard.
func (s *signer) denyAll(name string) (list []proof) {
	add := func(p proof, ok bool) {
		if ok && !slices.ContainsFunc(list, func(q proof) bool { return q.hash == p.hash }) {
			list = append(list, p)
		}
	}
	nearer := name
	for off, end := dns.NextLabel(name, 0); !end; off, end = dns.NextLabel(name, off) {
		above := name[off:]
		if p, ok := s.nsec3.match(above); ok {
			add(p, ok)
			add(s.nsec3.cover(nearer))
			add(s.nsec3.cover("*." + above))
			break
		}
		nearer = above
	}
	return list
}
