package dnsd

import (
	"slices"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/publish/nsec3"
	"github.com/stele-id/stele/publish/zonesign"
)

// errBusy says that more would have to be signed than there is time for.
var errBusy = stele.Messagef("zone.signing-too-much", "too much is to be signed at once")

// secure signs a result for a question in the zone with that SOA record. n is what
// stands at the name; if the question was led on by aliases, at the last one.
func (r *result) secure(s *zonesign.Signer, chain *publish.NSEC3Chain, a *asked, n *publish.Node, soa *dns.SOA) error {
	r.signed = true
	r.until = s.FreshUntil()
	var err error
	if r.answer, err = withSignatures(s, r.answer); err != nil {
		return err
	}
	if len(r.authority) == 0 {
		r.additional, err = withSignatures(s, r.additional)
		return err
	}
	r.authority = append([]dns.RR{negative(soa)}, placeholderNegative(s, soa)...)
	if s.Mode == zonesign.Online {
		return r.denyOnline(s, a.name, n, soa)
	}
	return r.denyNSEC3(s, chain, a.name, soa)
}

// withSignatures returns records with the signatures of each set of them after it.
func withSignatures(s *zonesign.Signer, records []dns.RR) ([]dns.RR, error) {
	var list []dns.RR
	for len(records) > 0 {
		n := zonesign.SetLen(records)
		set := zonesign.EvenTTL(records[:n])
		records = records[n:]
		list = append(list, set...)
		switch rr := set[0].(type) {
		case *dns.SOA:
			list = append(list, s.PlaceholderRRSIGs(rr)...)
			continue
		case *dns.RRSIG:
			continue
		}
		signatures, err := s.Sign(set)
		if err != nil {
			return nil, err
		}
		list = append(list, signatures...)
	}
	return list, nil
}

// placeholderNegative is placeholderRRSIGs for the SOA record of a negative answer.
func placeholderNegative(s *zonesign.Signer, soa *dns.SOA) []dns.RR {
	list := s.PlaceholderRRSIGs(soa)
	for _, sig := range list {
		sig.Header().Ttl = zonesign.NegativeTTL(soa) // that of the record in this answer
	}
	return list
}

// denyOnline adds the proof that there is nothing to a result (RFC 9824): a record for the
// name itself. So the name exists for validators, and the response code says that too,
// except to clients that know better (section 5).
func (r *result) denyOnline(s *zonesign.Signer, name string, n *publish.Node, soa *dns.SOA) error {
	if r.rcode == dns.RcodeNameError {
		r.rcode, r.absent = dns.RcodeSuccess, true
	}
	rr, err := s.NSEC(name, n.Types(name == s.Zone), n.Exists || name == s.Zone, zonesign.NegativeTTL(soa))
	if err != nil {
		return err
	}
	return r.addProof(s, rr)
}

// denyNSEC3 adds the links of the chain that prove that there is nothing.
func (r *result) denyNSEC3(s *zonesign.Signer, chain *publish.NSEC3Chain, name string, soa *dns.SOA) error {
	r.chained = true
	if err := chain.Check(s.Zone); err != nil {
		return err
	}
	var list []nsec3.Link
	if p, ok := chain.Match(name); ok {
		list = append(list, p)
		r.rcode = dns.RcodeSuccess
	} else {
		list = chain.Deny(name)
		r.rcode = dns.RcodeNameError
	}
	for i := range list {
		if err := r.addProof(s, list[i].Record(s.Zone, zonesign.NegativeTTL(soa))); err != nil {
			return err
		}
	}
	return nil
}

// addProof adds a record and its signatures to the authority section.
func (r *result) addProof(s *zonesign.Signer, rr dns.RR) error {
	signatures, err := s.Sign([]dns.RR{rr})
	if err != nil {
		return err
	}
	r.authority = append(append(r.authority, rr), signatures...)
	return nil
}

// pickSecurity returns the records of the types that exist only because the zone is
// signed and that stand at every name.
func pickSecurity(s *zonesign.Signer, a *asked, n *publish.Node, soa *dns.SOA) ([]dns.RR, error) {
	switch {
	case a.qtype == dns.TypeNSEC && s.Mode == zonesign.Online:
		rr, err := s.NSEC(a.name, n.Types(a.name == s.Zone), n.Exists || a.name == s.Zone, zonesign.NegativeTTL(soa))
		return []dns.RR{rr}, err
	case a.qtype == dns.TypeRRSIG && a.signed && len(n.Records) > 0:
		// Those of one set are enough for a client that asks for them all (RFC 8482, section
		// 7).
		set := slices.DeleteFunc(slices.Clone(n.Records), func(rr dns.RR) bool {
			return rr.Header().Rrtype != n.Records[0].Header().Rrtype
		})
		return s.Sign(zonesign.EvenTTL(set))
	}
	return nil, nil
}

// budget bounds how much is signed in a second. A client that asks for names that are made
// up makes the server sign each time, and must not use up what others need: a half of the
// budget is reserved for names that exist, and a quarter for clients over TCP.
type budget struct {
	mu   sync.Mutex
	rate int64 // tokens a second, and as many are kept at most
	left int64 // in nanoseconds of filling
	last time.Time
}

func newBudget(rate int, now time.Time) *budget {
	return &budget{rate: int64(rate), left: int64(time.Second), last: now}
}

// take reports whether there is something left to sign an answer.
func (b *budget) take(now time.Time, exists, tcp bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if passed := now.Sub(b.last); passed > 0 {
		b.left = min(b.left+int64(passed), int64(time.Second))
		b.last = now
	} else if passed < -time.Second {
		b.last = now // the clock was set back
	}
	price, reserve := int64(time.Second)/b.rate, int64(0)
	if !exists {
		reserve += int64(time.Second) / 2
	}
	if !tcp {
		reserve += int64(time.Second) / 4
	}
	if b.left-price < reserve {
		return false
	}
	b.left -= price
	return true
}
