package client

import (
	"fmt"
	"slices"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/dnssec"
	"github.com/stele-id/stele/ddds"
)

// Upper bounds on the time for which an answer is cached, whatever its TTL.
const (
	maxTTL         = 24 * 60 * 60
	maxNegativeTTL = 60 * 60 // RFC 2308, section 5, has one to three hours
)

// answer is what the DNS says to a question.
type answer struct {
	owner   string   // of the records: the name, or what it is an alias of
	records []dns.RR // of the type asked for
	rules   []ddds.Rule
	ttl     uint32 // seconds; the least along the way
	missing missing
	err     error // of Kind NotFound, for a negative answer
	verdict dnssec.Verdict
	zone    string // that gave the negative answer, as well proven as the verdict says; "" if it is not known

	path      []string // names that are aliases, in the order in which they were followed
	aliases   int      // how many they are
	elsewhere bool     // the server does not know the owner; it must be asked for
	cached    bool
}

// missing says which kind of negative answer it is.
type missing uint8

const (
	noSuchName missing = iota + 1 // NXDOMAIN
	noData                        // the name has other records, or names below it
)

// take adds what was found at the target of an alias.
func (a *answer) take(part *answer) {
	a.owner, a.records, a.missing, a.zone = part.owner, part.records, part.missing, part.zone
	a.ttl = min(a.ttl, part.ttl)
	a.aliases += part.aliases
	a.verdict = a.verdict.Weaker(part.verdict)
}

// name makes the error of a negative answer.
func (a *answer) name(q question) {
	at := q.name
	if a.owner != q.name {
		at += ", which is an alias of " + a.owner
	}
	switch {
	case a.missing == noSuchName:
		a.err = ddds.NoSuchName(at)
	case a.missing == noData && q.kind == dns.TypeNAPTR:
		a.err = ddds.NoData(at)
	case a.missing == noData:
		a.err = &stele.Error{Op: "look up", Kind: stele.NotFound, Err: stele.Messagef("dns.records-missing", "{name}: no {type} records", at, dns.TypeToString[q.kind])}
	}
}

// told returns the trace of a cached answer.
func (a *answer) told(q question) *Query {
	rcode := dns.RcodeSuccess
	if a.missing == noSuchName {
		rcode = dns.RcodeNameError
	}
	return &Query{
		Name: q.name, Type: dns.TypeToString[q.kind], Cached: true, Rcode: dns.RcodeToString[rcode], Answers: len(a.records), TTL: a.ttl,
		DNSSEC: a.verdict.Status,
	}
}

// readAnswer reads a reply to a question. It ignores records of other names, types and
// classes. An error says why the server is of no use; it is a stele.Error if
// all servers will say the same.
func readAnswer(reply *dns.Msg, q question) (*answer, error) {
	switch reply.Rcode {
	case dns.RcodeSuccess, dns.RcodeNameError:
	case dns.RcodeServerFailure:
		return nil, stele.Messagef("dns.server-failed", "the server failed (SERVFAIL)")
	default:
		return nil, refusal{stele.Messagef("dns.not-answered", "the server does not answer this ({rcode})", rcodeName(reply.Rcode))}
	}
	if reply.Truncated {
		return nil, stele.Messagef("dns.answer-truncated", "the answer is cut off, even over TCP")
	}
	a := &answer{owner: q.name, ttl: maxTTL}
	seen := []string{a.owner}
	for {
		if a.records = recordsAt(reply.Answer, a.owner, q.kind); len(a.records) > 0 {
			a.ttl = min(a.ttl, ttlOf(a.records))
			return a, nil
		}
		next := recordsAt(reply.Answer, a.owner, dns.TypeCNAME)
		if len(next) == 0 || q.kind == dns.TypeCNAME {
			break
		}
		a.ttl = min(a.ttl, ttlOf(next))
		a.path = append(a.path, a.owner)
		a.owner = dns.CanonicalName(next[0].(*dns.CNAME).Target)
		if a.aliases++; slices.Contains(seen, a.owner) || a.aliases > maxAliases {
			return nil, &stele.Error{Op: "look up", Kind: stele.Exhausted, Err: stele.Messagef("dns.aliases-circular", "{name}: aliases lead in a circle, or are more than {limit}", q.name, maxAliases)}
		}
		seen = append(seen, a.owner)
	}
	return a, a.negative(reply)
}

func rcodeName(rcode int) string {
	if name, ok := dns.RcodeToString[rcode]; ok {
		return name
	}
	return fmt.Sprintf("RCODE %d", rcode)
}

// recordsAt returns the records of a name and a type, of class IN. The library reads
// some types only in part; of those it makes another Go type.
func recordsAt(list []dns.RR, owner string, kind uint16) (found []dns.RR) {
	for _, r := range list {
		h := r.Header()
		if h.Rrtype != kind || h.Class != dns.ClassINET || dns.CanonicalName(h.Name) != owner || !isWhole(r) {
			continue
		}
		found = append(found, r)
	}
	return found
}

// isWhole reports whether the library has read a record as what its type says.
func isWhole(r dns.RR) bool {
	switch r.Header().Rrtype {
	case dns.TypeNAPTR:
		_, ok := r.(*dns.NAPTR)
		return ok
	case dns.TypeSRV:
		_, ok := r.(*dns.SRV)
		return ok
	case dns.TypeA:
		_, ok := r.(*dns.A)
		return ok
	case dns.TypeAAAA:
		_, ok := r.(*dns.AAAA)
		return ok
	case dns.TypeCNAME:
		_, ok := r.(*dns.CNAME)
		return ok
	case dns.TypeTXT:
		_, ok := r.(*dns.TXT)
		return ok
	}
	return true
}

// ttlOf returns the least TTL of records. A TTL with the first bit set counts as 0 (RFC
// 2181, section 8).
func ttlOf(list []dns.RR) uint32 {
	ttl := uint32(maxTTL)
	for _, r := range list {
		t := r.Header().Ttl
		if t > 1<<31-1 {
			t = 0
		}
		ttl = min(ttl, t)
	}
	return ttl
}

// negative reads a reply that has no records for the question (RFC 2308, section 2).
func (a *answer) negative(reply *dns.Msg) error {
	soa := a.authority(reply)
	switch {
	case reply.Rcode == dns.RcodeNameError:
		a.missing = noSuchName
	case a.aliases > 0 && soa == nil:
		a.elsewhere = true
		return nil
	case a.aliases == 0 && len(reply.Answer) > 0:
		return refusal{stele.Messagef("dns.answer-to-another-question", "the answer is about something else")}
	case soa == nil && !reply.Authoritative && hasReferral(reply):
		return refusal{stele.Messagef("dns.referral", "the server refers to others; ask one that asks them itself")}
	default:
		a.missing = noData
	}
	if soa == nil {
		a.ttl = 0
		return nil
	}
	a.zone = dns.CanonicalName(soa.Hdr.Name)
	a.ttl = min(a.ttl, ttlOf([]dns.RR{soa}), soa.Minttl, maxNegativeTTL)
	return nil
}

// authority returns the SOA record of the zone that denies it, nil if there is none.
func (a *answer) authority(reply *dns.Msg) *dns.SOA {
	for _, r := range reply.Ns {
		soa, ok := r.(*dns.SOA)
		if ok && soa.Hdr.Class == dns.ClassINET && dns.IsSubDomain(dns.CanonicalName(soa.Hdr.Name), a.owner) {
			return soa
		}
	}
	return nil
}

func hasReferral(reply *dns.Msg) bool {
	return slices.ContainsFunc(reply.Ns, func(r dns.RR) bool { return r.Header().Rrtype == dns.TypeNS })
}
