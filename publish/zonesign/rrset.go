package zonesign

import (
	"slices"

	"github.com/miekg/dns"
)

// RRsets divides the records of a name by type, in the order in which types come.
func RRsets(records []dns.RR) (sets [][]dns.RR) {
	at := make(map[uint16]int)
	for _, rr := range records {
		t := rr.Header().Rrtype
		i, ok := at[t]
		if !ok {
			i = len(sets)
			at[t] = i
			sets = append(sets, nil)
		}
		sets[i] = append(sets[i], rr)
	}
	return sets
}

// TypesAt returns the types of the records at a name, in order.
func TypesAt(records []dns.RR, more ...uint16) []uint16 {
	types := more
	for _, rr := range records {
		types = append(types, rr.Header().Rrtype)
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// NegativeTTL is how long resolvers may cache a negative answer (RFC 9077).
func NegativeTTL(soa *dns.SOA) uint32 { return min(soa.Hdr.Ttl, soa.Minttl) }

// EvenTTL gives all records of a set the least of their TTLs: they have one (RFC 2181,
// section 5.2), which is signed.
func EvenTTL(set []dns.RR) []dns.RR {
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

// SetLen is how many records at the beginning of a list are of one name and type.
func SetLen(records []dns.RR) int {
	first := records[0].Header()
	for i, rr := range records {
		if h := rr.Header(); h.Rrtype != first.Rrtype || h.Name != first.Name {
			return i
		}
	}
	return len(records)
}
