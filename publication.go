package stele

// Publication is how a namespace is published in the DNS, for clients that
// resolve its names there (RFC 3401-3405, and the EDDDS). The zero Publication is
// none.
type Publication struct {
	Zone   string // the zone's name, absolute and in lower case: "paradisec.example."
	Layout Layout

	// How names are cut into parts, each of which becomes labels of an owner name:
	// what stands between them, and how many there are.
	Separator string // ":"
	Parts     int    // 3

	Servers  []NameServer // of the zone, the primary first
	Mailbox  string       // of who looks after the zone: hostmaster@example.org
	Resolver string       // host, perhaps with a port, that answers over HTTP for clients which can't go on in the DNS

	// Elsewhere says who answers for the namespace instead, if others do. The
	// namespace has no zone of its own then.
	Elsewhere []Discovery
}

// IsZero reports whether the namespace is not published.
func (p *Publication) IsZero() bool {
	return p.Zone == "" && p.Layout == "" && p.Separator == "" && p.Parts == 0 &&
		len(p.Servers) == 0 && p.Mailbox == "" && p.Resolver == "" && len(p.Elsewhere) == 0
}

// Layout is how rules are laid out in a zone.
type Layout string

const (
	LayoutNames Layout = "names" // each record at an owner name of its own
	LayoutRules Layout = "rules" // all rules of a small collection at one name
	LayoutRoot  Layout = "root"  // a key for each namespace of a scheme that is published
)

// IsValid reports whether l is a layout.
func (l Layout) IsValid() bool { return l == LayoutNames || l == LayoutRules || l == LayoutRoot }

// NameServer is a server of a zone.
type NameServer struct {
	Name      string   // absolute and in lower case: "ns1.example.org."
	Addresses []string // in canonical form; needed if the name is in the zone itself
}

// Discovery is where clients go on for a namespace that others answer for: the
// EDDDS's discovery rules.
type Discovery struct {
	Kind DiscoveryKind
	At   string // a domain name, absolute and in lower case; for a URL that
}

// DiscoveryKind is what is found at a Discovery.
type DiscoveryKind string

const (
	DiscoverNAPTR DiscoveryKind = "NAPTR" // more rules
	DiscoverSRV   DiscoveryKind = "SRV"   // servers, with their ports
	DiscoverA     DiscoveryKind = "A"     // an IPv4 address
	DiscoverAAAA  DiscoveryKind = "AAAA"  // an IPv6 address
	DiscoverURL   DiscoveryKind = "URL"   // a resolver's URL
)

// IsValid reports whether k is a kind of discovery.
func (k DiscoveryKind) IsValid() bool {
	switch k {
	case DiscoverNAPTR, DiscoverSRV, DiscoverA, DiscoverAAAA, DiscoverURL:
		return true
	}
	return false
}
