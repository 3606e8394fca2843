package dnsd

import (
	"context"
	"slices"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/publish/zonesign"
)

// source is where the server's zones come from: [Zones], through published.
type source interface {
	// find returns the zone in which a name is, or nil.
	find(ctx context.Context, name string) (authority, error)
	// Changed grows with every change, before onChange's function is called.
	Changed() uint64
	// Signs reports whether any zone is signed.
	Signs() bool
	// OnChange registers a function that receives the names that may have changed, before a
	// change is acknowledged. Without names everything may have.
	OnChange(func(names []string))
}

// authority is one zone.
type authority interface {
	Lookup(ctx context.Context, name string) (publish.Node, error)
	Apex() (soa *dns.SOA, ns []dns.RR)
	// Signer signs for the zone; nil if it is not signed.
	Signer() *zonesign.Signer
	// NSEC3 returns the chain of the zone's names, if it is signed in the mode transfer.
	NSEC3() *publish.NSEC3Chain
	// Delegation returns what the zone has of a zone inside it.
	Delegation(name string) publish.Node
}

// published makes Zones a source: a nil *zone is not an authority.
type published struct{ *publish.Zones }

func (p published) find(ctx context.Context, name string) (authority, error) {
	z, err := p.Zones.Find(ctx, name)
	if z == nil || err != nil {
		return nil, err
	}
	return z, nil
}

// asked is a question.
type asked struct {
	name   string // in lower case
	qtype  uint16
	signed bool                   // signatures are wanted
	afford func(exists bool) bool // whether the signing budget has room for them, for a name that exists or not; nil: it has

	zone authority     // in which the name is; nil: to be found
	node *publish.Node // what stands at the name; nil: to be looked up
}

// result is an answer before it is packed.
type result struct {
	rcode      int
	apex       string // of the zone; "" if the name is in none
	answer     []dns.RR
	authority  []dns.RR
	additional []dns.RR

	signed  bool      // it has signatures
	bare    bool      // it could have them, and the client does not want them
	absent  bool      // the name does not exist, though the code does not say so
	chained bool      // it depends on a chain of names, or on what an alias stands for
	until   time.Time // when signatures have to be made anew
}

// resolve answers a question (RFC 1034, section 4.3.2). The zones have no wildcards, and
// this server has all zones inside them, so a name that they lack does not exist.
func resolve(ctx context.Context, from source, a asked) (*result, error) {
	z := a.zone
	if z == nil {
		var err error
		if z, err = from.find(ctx, a.name); err != nil {
			return nil, err
		}
	}
	if z == nil {
		return &result{rcode: dns.RcodeRefused}, nil
	}
	soa, ns := z.Apex()
	if !dns.IsSubDomain(soa.Hdr.Name, a.name) {
		return &result{rcode: dns.RcodeRefused}, nil // a dot inside a label made it look so
	}
	if a.qtype == dns.TypeDS && a.name == soa.Hdr.Name {
		if r, err := resolveAbove(ctx, from, &a); r != nil || err != nil {
			return r, err
		}
	}
	var n publish.Node
	if a.node != nil {
		n = *a.node
	} else {
		var err error
		if n, err = z.Lookup(ctx, a.name); err != nil {
			return nil, err
		}
	}
	if s := z.Signer(); s != nil {
		n.Records = append(n.Records[:len(n.Records):len(n.Records)], s.ApexRecords(a.name)...)
	}
	return finish(ctx, from, z, &a, &n, soa, ns)
}

// resolveAbove answers for DS records, which stand in the zone above (RFC 4035, section
// 3.1.4.1). It returns nil if this server does not have that zone.
func resolveAbove(ctx context.Context, from source, a *asked) (*result, error) {
	off, end := dns.NextLabel(a.name, 0)
	if end {
		return nil, nil
	}
	above, err := from.find(ctx, a.name[off:])
	if above == nil || err != nil {
		return nil, err
	}
	n := above.Delegation(a.name)
	soa, ns := above.Apex()
	return finish(ctx, from, above, a, &n, soa, ns)
}

// finish makes a result of what stands at the name.
func finish(ctx context.Context, from source, z authority, a *asked, n *publish.Node, soa *dns.SOA, ns []dns.RR) (*result, error) {
	s := z.Signer()
	if s != nil && a.signed && a.afford != nil && !a.afford(n.Exists) {
		return nil, errBusy
	}
	r := &result{apex: soa.Hdr.Name}
	r.answer = pick(n.Records, a.name, a.qtype, soa, ns)
	if s != nil && len(r.answer) == 0 {
		var err error
		if r.answer, err = pickSecurity(s, a, n, soa); err != nil {
			return nil, err
		}
	}
	if len(r.answer) == 0 && n.Unsure != nil {
		return nil, n.Unsure
	}
	denied := len(r.answer) == 0
	if alias := aliasAt(n); alias != nil && denied {
		end, at, err := r.follow(ctx, from, a, alias)
		if err != nil {
			return nil, err
		}
		if denied = at != nil; denied {
			a, n = end, at // response code and proof are of the last name (RFC 6604, section 3)
		}
	}
	if denied {
		if !n.Exists && a.name != soa.Hdr.Name {
			r.rcode = dns.RcodeNameError
		}
		r.authority = []dns.RR{negative(soa)}
	} else {
		var err error
		if r.additional, err = addresses(ctx, z, soa.Hdr.Name, r.answer); err != nil {
			return nil, err
		}
	}
	if r.bare = s != nil && !a.signed; s == nil || r.bare {
		return r, nil
	}
	return r, r.secure(s, z.NSEC3(), a, n, soa)
}

// pick returns the records of a type. A client that asks for any gets one that says that
// there are some (RFC 8482, section 4.2): more would amplify questions with a forged source
// address.
func pick(records []dns.RR, name string, qtype uint16, soa *dns.SOA, ns []dns.RR) []dns.RR {
	atApex := name == soa.Hdr.Name
	switch {
	case qtype == dns.TypeANY && aliasAt(&publish.Node{Records: records}) != nil:
		qtype = dns.TypeCNAME // where there is one, it is the answer (RFC 8482, section 4.2)
	case qtype == dns.TypeANY && (atApex || len(records) > 0):
		return []dns.RR{&dns.HINFO{
			Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeHINFO, Class: dns.ClassINET, Ttl: soa.Hdr.Ttl},
			Cpu: "RFC8482",
		}}
	case qtype == dns.TypeSOA && atApex:
		return []dns.RR{soa}
	case qtype == dns.TypeNS && atApex:
		return ns
	}
	var found []dns.RR
	for _, rr := range records {
		if rr.Header().Rrtype == qtype {
			found = append(found, rr)
		}
	}
	return found
}

// negative is the SOA record as it goes with an answer that there is nothing, which
// may be kept for the lesser of its TTL and its minimum (RFC 2308, section 3).
func negative(soa *dns.SOA) *dns.SOA {
	s := *soa
	s.Hdr.Ttl = min(s.Hdr.Ttl, s.Minttl)
	return &s
}

// maxTargets bounds the names whose addresses go into the additional section.
const maxTargets = 8

// addresses returns the addresses of the servers that an answer names, as far as they
// are in the zone (RFC 1034, section 4.3.2, step 6; RFC 1035, section 3.3.9; RFC 2782).
func addresses(ctx context.Context, z authority, apex string, answer []dns.RR) ([]dns.RR, error) {
	var targets []string
	for _, rr := range answer {
		var target string
		switch rr := rr.(type) {
		case *dns.NS:
			target = rr.Ns
		case *dns.SRV:
			target = rr.Target
		case *dns.MX:
			target = rr.Mx
		default:
			return nil, nil // an answer has one type
		}
		target = dns.CanonicalName(target)
		if len(targets) < maxTargets && dns.IsSubDomain(apex, target) && !slices.Contains(targets, target) {
			targets = append(targets, target)
		}
	}
	var found []dns.RR
	for _, target := range targets {
		n, err := z.Lookup(ctx, target)
		if err != nil {
			return nil, err
		}
		for _, rr := range n.Records {
			if t := rr.Header().Rrtype; t == dns.TypeA || t == dns.TypeAAAA {
				found = append(found, rr)
			}
		}
	}
	return found, nil
}

// pack brings a result into wire form. buf is used if it is large enough; zone is the
// number of the zone.
func (r *result) pack(name string, qtype, zone uint16, buf []byte) (packed, error) {
	m := dns.Msg{
		Compress: true,
		Question: []dns.Question{{Name: name, Qtype: qtype, Qclass: dns.ClassINET}},
		Answer:   r.answer, Ns: r.authority, Extra: r.additional,
	}
	wire, err := m.PackBuffer(buf)
	if err != nil {
		return packed{}, err
	}
	if len(wire) > maxMessage-maxOPT {
		return packed{}, dns.ErrBuf
	}
	p := packed{
		rcode: uint8(r.rcode), aa: true, zone: zone,
		signed: r.signed, bare: r.bare, absent: r.absent, chained: r.chained, hour: hourOf(r.until),
		answers: uint16(len(r.answer)), authority: uint16(len(r.authority)), additional: uint16(len(r.additional)),
	}
	begin := skipName(wire, headerSize) + 4
	off := begin
	for range len(r.answer) + len(r.authority) {
		rr, next := readRecord(wire, off)
		if next == 0 {
			return packed{}, dns.ErrBuf
		}
		if rr.rtype == dns.TypeSOA {
			p.serial = next - 20 - begin // the first of five numbers at its end
		}
		off = next
	}
	p.extra = off - begin
	p.body = wire[begin:]
	return p, nil
}
