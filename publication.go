package stele

// Publication is how a namespace is published in the DNS, for clients that
// resolve its names there (RFC 3401-3405, and the EDDDS). The zero Publication means
// that it is not published.
type Publication struct {
	Zone   string // the zone's name, absolute and in lower case: "paradisec.example."
	Layout Layout

	// How names are cut into parts, each of which becomes labels of an owner name:
	// what stands between them, and how many there are.
	Separator string // ":"
	Parts     int    // 3
	Exact     bool   // new names with another number of parts are refused

	Servers  []NameServer // of the zone, the primary first
	Mailbox  string       // of the zone's administrator: hostmaster@example.org
	Resolver string       // host[:port] that answers over HTTP for clients that can't continue in the DNS

	Signing     Signing     // of the zone
	Secondaries []Secondary // to which the zone is transferred

	// Records are the owner's own: they stand in the zone beside what is made of the
	// registry.
	Records []ZoneRecord

	// Catalog is the catalog zone (RFC 9432) in which the zone is listed for secondaries,
	// absolute and in lower case; "" if it is in none.
	Catalog string

	// Elsewhere says which services answer for the namespace instead, if others do. The
	// namespace has no zone of its own then.
	Elsewhere []Discovery
}

// IsZero reports whether the namespace is not published.
func (p *Publication) IsZero() bool {
	return !p.isSecured() && !p.isExtended() && p.Zone == "" && p.Layout == "" && p.Separator == "" && p.Parts == 0 &&
		len(p.Servers) == 0 && p.Mailbox == "" && p.Resolver == "" && len(p.Elsewhere) == 0
}

// isSecured reports whether something is said of signing or transfers.
func (p *Publication) isSecured() bool { return p.Signing != NotSigned || len(p.Secondaries) > 0 }

// isExtended reports whether there are records of the owner, or a catalog, or names are exact.
func (p *Publication) isExtended() bool { return len(p.Records) > 0 || p.Catalog != "" || p.Exact }

// ZoneRecord is a resource record of the owner's own in a zone. All records of a name and
// type have one TTL (RFC 2181, section 5.2).
type ZoneRecord struct {
	Name string // absolute and in lower case: "mail.paradisec.example."
	TTL  uint32 // in seconds
	Type RecordType
	Data string // as a master file has it, with absolute names: "10 mx.example.org."
}

// RecordType is a type of resource records that owners may have in their zones.
type RecordType string

const (
	RecordA     RecordType = "A"
	RecordAAAA  RecordType = "AAAA"
	RecordCAA   RecordType = "CAA"
	RecordCNAME RecordType = "CNAME"
	RecordMX    RecordType = "MX"
	RecordSRV   RecordType = "SRV"
	RecordTXT   RecordType = "TXT"
)

// RecordTypes returns all types that owners may have in their zones. NS records are not
// among them: zones inside a zone are published by namespaces. Neither are NAPTR and URI
// records, which are made of the registry.
func RecordTypes() []RecordType {
	return []RecordType{RecordA, RecordAAAA, RecordCAA, RecordCNAME, RecordMX, RecordSRV, RecordTXT}
}

// Signing is how a zone is signed (DNSSEC). Its keys are not part of it: they are
// secret.
type Signing string

const (
	NotSigned       Signing = ""
	SigningOnline   Signing = "online"   // when a client asks; a client can't list the names
	SigningTransfer Signing = "transfer" // as a whole, so that signatures go out to secondaries
)

// IsValid reports whether s is a way of signing; NotSigned is one.
func (s Signing) IsValid() bool {
	return s == NotSigned || s == SigningOnline || s == SigningTransfer
}

// Secondary is a name server, or a network of them, that may have the whole zone. It
// must come from the network, if one is given, and show the key, if one is given.
type Secondary struct {
	Network string   // an address, or a network: "192.0.2.1", "2001:db8::/48"
	Key     string   // name of a TSIG key, as a domain name: "secondary1.example.org."
	Notify  []string // addresses and ports that get a NOTIFY of each change: "192.0.2.1:53"
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

// Discovery is where clients continue for a namespace that others answer for: the
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

// HasUnsignedCopies reports whether the zone is signed, and goes out to secondaries without
// signatures.
func (p *Publication) HasUnsignedCopies() bool {
	return p.Zone != "" && p.Signing == SigningOnline && len(p.Secondaries) > 0
}
