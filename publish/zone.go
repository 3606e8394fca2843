package publish

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/ddds"
	"github.com/stele-id/stele/internal/dnsrr"
	"github.com/stele-id/stele/publish/naptr"
	"github.com/stele-id/stele/publish/zonesign"
)

// Times in the SOA record, in seconds: how often secondaries ask, how soon again, when they
// give up, and how long resolvers cache a negative answer.
const (
	soaRefresh = 3600
	soaRetry   = 600
	SOAExpire  = 14 * 24 * 3600
	soaMinimum = 300
)

// Zone is a published zone. It is made of a namespace and not changed after that;
// what stands in it is read from the registry as it is asked for.
type Zone struct {
	Name  string
	ns    *stele.Namespace
	zones *Zones
	set   *zoneSet

	serial *zoneSerial
	index  *nameIndex

	mapping *naptr.Mapping // in the names layout
	ttl     uint32
	alone   bool // no other namespace is below its own

	divided bool // other zones are in it

	static  map[string][]dns.RR // what does not depend on records, by name
	empty   map[string]bool     // names above those, that have nothing themselves
	yields  map[string]bool     // names with records of the owner that give way to an identifier
	further []ddds.Fields       // the rule that leads to the resolver, if there is one
	notes   []*stele.Message    // what could not be published as the namespace says

	signer  *zonesign.Signer // nil: it is not signed
	chain   *NSEC3Chain      // in the mode transfer
	trouble error            // why it is not, though it should be
}

// Node is what stands at a name.
type Node struct {
	Exists  bool     // it has records, or there are names below it
	Records []dns.RR // all of them, of every type except SOA
	Unsure  error    // why there may be more of them; nil if there are not
}

// Types returns the types of the records at a node.
func (n *Node) Types(atApex bool) []uint16 {
	if atApex {
		return zonesign.TypesAt(n.Records, dns.TypeSOA, dns.TypeNS)
	}
	return zonesign.TypesAt(n.Records)
}

// Lookup returns what stands at a name of the zone, which is in lower case.
func (z *Zone) Lookup(ctx context.Context, name string) (Node, error) {
	records := z.static[name]
	list, err := z.registered(ctx, name)
	if (err != nil || len(list) > 0) && z.yields[name] {
		records = giveWay(records)
	}
	if errors.Is(err, errReading) && len(records) > 0 {
		return Node{true, records, err}, nil // the addresses of name servers are needed at once
	}
	if err != nil {
		return Node{}, err
	}
	if len(list) > 0 {
		out := z.compiler().Compile(list)
		records = append(records[:len(records):len(records)], out.Records(name)...)
	}
	if z.ns.Publication.Layout == stele.LayoutRules && name == z.Name {
		out, err := z.collection(ctx)
		if err != nil {
			return Node{}, err
		}
		records = append(records[:len(records):len(records)], out.Records(name)...)
	}
	if len(list) > 0 || len(records) > 0 || name == z.Name || z.empty[name] {
		return Node{Exists: true, Records: records}, nil
	}
	if z.mapping == nil {
		return Node{}, nil
	}
	exists, err := z.below(ctx, name)
	return Node{Exists: exists}, err
}

// namespaceOf returns the namespace of an identifier that is published in the zone.
func (z *Zone) namespaceOf(id stele.ID) *stele.Namespace {
	if z.alone {
		return z.ns
	}
	return z.set.namespaceOf(id)
}

// registered returns the identifiers at a name.
func (z *Zone) registered(ctx context.Context, name string) ([]naptr.Named, error) {
	if z.mapping == nil {
		return nil, nil
	}
	return z.at(ctx, name)
}

func (z *Zone) compiler() *naptr.Compiler {
	c := &naptr.Compiler{Schemes: z.zones.schemes, Resolver: naptr.ParseHost(z.ns.Publication.Resolver), Further: z.further, TTL: z.ttl}
	if z.mapping != nil {
		c.Tells = z.mapping.Tells
	}
	return c
}

// Apex returns the zone's SOA, with the present serial, and NS records.
func (z *Zone) Apex() (soa *dns.SOA, ns []dns.RR) {
	soa = &dns.SOA{
		Hdr: dnsrr.Header(z.Name, dns.TypeSOA, z.zones.ttl), Ns: z.primary(), Mbox: z.mailbox(),
		Serial: z.serial.now(), Refresh: soaRefresh, Retry: soaRetry, Expire: SOAExpire, Minttl: soaMinimum,
	}
	for _, s := range z.ns.Publication.Servers {
		ns = append(ns, &dns.NS{Hdr: dnsrr.Header(z.Name, dns.TypeNS, z.zones.ttl), Ns: s.Name})
	}
	return soa, ns
}

// primary is the first of the name servers. A zone that names none is served all the same:
// by this server, to clients that ask it.
func (z *Zone) primary() string {
	if s := z.ns.Publication.Servers; len(s) > 0 {
		return s[0].Name
	}
	return z.Name
}

// mailbox writes a mailbox as a domain name (RFC 1035, section 8): what stands
// before the @ is one label.
func (z *Zone) mailbox() string {
	local, domain, ok := strings.Cut(z.ns.Publication.Mailbox, "@")
	if !ok || len(local) > dnsrr.MaxLabel {
		return "hostmaster." + z.Name
	}
	var b strings.Builder
	for i := range len(local) {
		if !naptr.IsLabelByte(local[i]) {
			b.WriteByte('\\')
		}
		b.WriteByte(local[i])
	}
	return b.String() + "." + strings.ToLower(domain) + "."
}

// build makes what does not depend on records.
func (z *Zone) build(rules keyRules) {
	z.static, z.empty, z.yields = make(map[string][]dns.RR), make(map[string]bool), make(map[string]bool)
	z.notes = append(z.notes, rules.notes...)
	for _, f := range rules.list {
		z.add(naptr.NewNAPTR(z.Name, z.ttl, f))
	}
	p := &z.ns.Publication
	for _, s := range p.Servers {
		if z.contains(s.Name) {
			for _, rr := range addressRecords(s, z.zones.ttl) {
				z.add(rr)
			}
		}
	}
	if h := naptr.ParseHost(p.Resolver); !h.IsZero() && len(naptr.HTTPService)+len(z.Name) <= dnsrr.MaxNameText+1 {
		if f, ok := naptr.FurtherRule(z.Name, naptr.FurtherOrder, naptr.Preference); ok {
			z.further = append(z.further, f)
		}
		z.add(&dns.SRV{Hdr: dnsrr.Header(naptr.HTTPService+z.Name, dns.TypeSRV, z.zones.ttl), Target: h.Name, Port: h.Port})
	}
	z.addDiscovery()
	z.addSigningKeys()
}

// addDiscovery adds the SRV record by which clients of the scheme itself find the resolver, if the
// authority of the names is in the zone: in another zone only its owner can.
func (z *Zone) addDiscovery() {
	name := z.zones.schemes.Discovery(z.ns.Scheme, z.ns.Prefix)
	h := naptr.ParseHost(z.ns.Publication.Resolver)
	if name == "" || h.IsZero() {
		return
	}
	if z.set.find(name) != z {
		z.notes = append(z.notes, stele.Messagef("zone-note.discovery-elsewhere", "clients look for {record}, which is not in the zone; add there: SRV 0 0 {port} {host}", name, h.Port, h.Name))
		return
	}
	if len(name) <= dnsrr.MaxNameText+1 {
		z.add(&dns.SRV{Hdr: dnsrr.Header(name, dns.TypeSRV, z.zones.ttl), Target: h.Name, Port: h.Port})
	}
}

// add adds a record that does not depend on others, and the names above it.
func (z *Zone) add(rr dns.RR) {
	name := rr.Header().Name
	z.static[name] = append(z.static[name], rr)
	for name != z.Name {
		var ok bool
		if _, name, ok = strings.Cut(name, "."); !ok {
			return
		}
		z.empty[name] = true
	}
}

// IsShut reports whether the zone must not be transferred, since it came from a backup and
// it is not known which serial its secondaries have.
func (z *Zone) IsShut() bool { return z.serial.isShut() }

// Secondaries returns the name servers that may transfer the zone.
func (z *Zone) Secondaries() []stele.Secondary { return z.ns.Publication.Secondaries }

// reaches reports whether a name that it contains is in no zone inside of it.
func (z *Zone) reaches(name string) bool { return !z.divided || z.set.find(name) == z }

// contains reports whether a name is the zone's or below it.
func (z *Zone) contains(name string) bool {
	return name == z.Name || strings.HasSuffix(name, "."+z.Name)
}

// addressRecords are the addresses of a name server.
func addressRecords(s stele.NameServer, ttl uint32) (list []dns.RR) {
	for _, text := range s.Addresses {
		ip := net.ParseIP(text)
		switch {
		case ip == nil:
		case ip.To4() != nil:
			list = append(list, &dns.A{Hdr: dnsrr.Header(s.Name, dns.TypeA, ttl), A: ip})
		default:
			list = append(list, &dns.AAAA{Hdr: dnsrr.Header(s.Name, dns.TypeAAAA, ttl), AAAA: ip})
		}
	}
	return list
}

// staticNames returns the names of the zone that do not depend on records, in order.
func (z *Zone) staticNames() []string {
	var list []string
	for name := range z.static {
		if name != z.Name {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// has reports whether the zone is the zoneOf an identifier. It is called for every name of
// a zone that is sent.
func (z *Zone) has(id stele.ID) bool {
	switch {
	case !z.alone:
		return z.set.zoneOf(id) == z
	case id.Scheme() != z.ns.Scheme || z.ns.Publication.Layout == stele.LayoutRoot:
		return false
	}
	return z.ns.Prefix == "" || z.set.schemes.IsWithin(id, z.ns.Prefix)
}
