package dnsd

import (
	"context"
	"slices"

	"github.com/miekg/dns"

	"github.com/stele-id/stele/publish"
)

// maxAliases is how many CNAME records one answer follows.
const maxAliases = 8

// aliasAt returns the CNAME record at a node, if it has one.
func aliasAt(n *publish.Node) *dns.CNAME {
	for _, rr := range n.Records {
		if alias, ok := rr.(*dns.CNAME); ok {
			return alias
		}
	}
	return nil
}

// follow answers with a CNAME record, and goes on with the name that it stands for as long
// as that is in the same zone (RFC 1034, section 4.3.2, step 3a). It returns what stands at
// the last name, if there is nothing of the type, or nil if there is, or if the client has
// to ask elsewhere.
func (r *result) follow(ctx context.Context, from source, a *asked, alias *dns.CNAME) (*asked, *publish.Node, error) {
	r.chained = true // it changes with names that were not asked for
	seen := []string{a.name}
	for range maxAliases {
		r.answer = append(r.answer, alias)
		name := alias.Target
		if slices.Contains(seen, name) || !dns.IsSubDomain(r.apex, name) {
			return nil, nil, nil
		}
		seen = append(seen, name)
		in, err := from.find(ctx, name)
		if err != nil || in == nil {
			return nil, nil, err
		}
		soa, ns := in.Apex()
		if soa.Hdr.Name != r.apex {
			return nil, nil, nil
		}
		n, err := in.Lookup(ctx, name)
		if err == nil {
			err = n.Unsure
		}
		if err != nil {
			return nil, nil, err
		}
		if s := in.Signer(); s != nil {
			n.Records = append(n.Records[:len(n.Records):len(n.Records)], s.ApexRecords(name)...)
		}
		found := pick(n.Records, name, a.qtype, soa, ns)
		r.answer = append(r.answer, found...)
		if len(found) > 0 {
			return nil, nil, nil
		}
		if alias = aliasAt(&n); alias == nil {
			return &asked{name: name, qtype: a.qtype, signed: a.signed}, &n, nil
		}
	}
	return nil, nil, nil
}
