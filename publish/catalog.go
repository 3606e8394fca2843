package publish

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/dnsrr"
)

// LayoutCatalog is the layout of a catalog (RFC 9432). No namespace has it: a catalog is made
// of the zones that name it.
const LayoutCatalog stele.Layout = "catalog"

// catalogServer is the name server of a catalog: there is none, since only secondaries ask
// for it (RFC 9432, section 4.1).
const catalogServer = "invalid."

// addCatalog adds a catalog to the zones: those that may have one of its zones may have it.
func (s *zoneSet) addCatalog(z *Zones, name string) {
	ns := &stele.Namespace{Publication: stele.Publication{Zone: name, Layout: LayoutCatalog, Servers: []stele.NameServer{{Name: catalogServer}}}}
	for _, member := range s.published.Members(name) {
		for _, one := range s.published.OwnerOf(member).Publication.Secondaries {
			if !slices.ContainsFunc(ns.Publication.Secondaries, func(o stele.Secondary) bool {
				return o.Network == one.Network && o.Key == one.Key && slices.Equal(o.Notify, one.Notify)
			}) {
				ns.Publication.Secondaries = append(ns.Publication.Secondaries, one)
			}
		}
	}
	for other := range s.zones {
		if s.zones[other].contains(name) || dns.IsSubDomain(name, other) { // the registrar refuses it
			s.clashes = append(s.clashes, clash{other, stele.Messagef("zone-check.catalog-overlaps", "{catalog} is a catalog, and overlaps the zone {zone}, so it is not served; give its zones another catalog", name, other)})
			return
		}
	}
	one := &Zone{Name: name, ns: ns, zones: z, set: s, serial: z.serials.of(name), ttl: z.ttl}
	one.index = newNameIndex(one)
	s.zones[name] = one
	s.order = append(s.order, name)
}

// isCatalog reports whether the zone is a catalog.
func (z *Zone) isCatalog() bool { return z.ns.Publication.Layout == LayoutCatalog }

// buildCatalog makes the records of a catalog: its version, and a PTR record for each zone
// that it lists (RFC 9432, sections 4.3.1 and 4.2).
func (z *Zone) buildCatalog() {
	z.static, z.empty = make(map[string][]dns.RR), make(map[string]bool)
	z.add(&dns.TXT{Hdr: dnsrr.Header("version."+z.Name, dns.TypeTXT, z.zones.ttl), Txt: []string{"2"}})
	for _, member := range z.set.published.Members(z.Name) {
		z.add(&dns.PTR{Hdr: dnsrr.Header(memberLabel(member)+".zones."+z.Name, dns.TypePTR, z.zones.ttl), Ptr: member})
	}
}

// memberLabel is the label of a zone in catalogs. It depends on the zone's name alone: it is
// unique, and the same on every server and after a restore. A secondary that met another one
// would drop the zone and take it anew (RFC 9432, section 5.4).
func memberLabel(zone string) string {
	sum := sha256.Sum256([]byte(zone))
	return hex.EncodeToString(sum[:16])
}
