package registrar

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/namespaces"
	"github.com/stele-id/stele/publish/zonemap"
	"github.com/stele-id/stele/registrar/minting"
)

// mayPublish makes sure that the caller may publish a namespace in its zone. All zones
// of a server are in one tree, and the owner of a zone has its keys. So zones are granted:
// an administrator sets the zone of a namespace, which grants the names below the zone in
// the DNS to the namespaces below it. An owner may use such a name, if it is not, and is
// not above or below, the zone of a namespace that is not theirs to manage, and if the
// registry has no keys of it from before. Owners may withdraw a zone.
func (r *Registrar) mayPublish(ctx context.Context, op string, s *namespaceTree, before, next *stele.Namespace) error {
	who, zone := auth.From(ctx), next.Publication.Zone
	if zone == "" || who.Admin || before != nil && before.Publication.Zone == zone {
		return nil
	}
	granted := ""
	theirs := false
	for _, sp := range s.All() {
		other := sp.Publication.Zone
		if other == "" || !zonemap.Overlap(zone, other) {
			continue
		}
		if !auth.MayManage(who, s.Ancestors(sp)...) {
			return refuse(op, stele.ID{}, stele.Forbidden,
				"zone.of-other-namespace", `"{user}" may not publish {namespace} in {zone}: {other-zone} is the zone of {other-namespace}; choose another, or ask an administrator`, who.Name, next.Key(), zone, other, sp.Key())
		}
		theirs = theirs || other == zone
		if strings.HasSuffix(zone, "."+other) && s.isAbove(sp, next) {
			granted = other
		}
	}
	if granted == "" {
		return refuse(op, stele.ID{}, stele.Forbidden,
			"zone.not-granted", `"{user}" may not publish {namespace} in {zone}: zones are granted by administrators; ask one to run 'stele zone add {namespace} --zone {zone}', or choose a name below the zone of a namespace above it`, who.Name, next.Key(), zone)
	}
	if theirs {
		return nil
	}
	keys, err := r.zoneKeys(ctx, op, zone)
	if err != nil {
		return err
	}
	if len(keys) > 0 {
		return refuse(op, stele.ID{}, stele.Forbidden,
			"zone.keys-from-before", `"{user}" may not publish {namespace} in {zone}: there are keys of that zone from before; choose another, or ask an administrator`, who.Name, next.Key(), zone)
	}
	return nil
}

// isAbove reports whether a namespace is an ancestor of another one, which may be new. The
// root of a scheme does not count: its zone has keys of all namespaces, and grants none.
func (s *namespaceTree) isAbove(sp *namespaces.Node, ns *stele.Namespace) bool {
	if sp.Scheme != ns.Scheme || sp.Prefix == "" || sp.Prefix == ns.Prefix {
		return false
	}
	return namespaces.IsBelow(s.schemes, ns.Prefix, sp.Prefix)
}

// maySend makes sure that the operator allows the addresses of the secondaries that a
// namespace did not have before.
func (r *Registrar) maySend(op string, before, next *stele.Namespace) error {
	var known []stele.Secondary
	if before != nil {
		known = before.Publication.Secondaries
	}
	for _, s := range next.Publication.Secondaries {
		if slices.ContainsFunc(known, func(k stele.Secondary) bool {
			return k.Network == s.Network && k.Key == s.Key && slices.Equal(k.Notify, s.Notify)
		}) {
			continue
		}
		for _, text := range s.Notify {
			at, err := netip.ParseAddrPort(text)
			if err == nil && r.o.Notify != nil && !r.o.Notify.May(at.Addr()) {
				return refuse(op, stele.ID{}, stele.Forbidden, "zone.notify-address-not-public", "this server sends no notices of changes to {address}, which is not a public address; its operator can allow it with the setting notify-allow", at.Addr())
			}
		}
		if r.o.Transfer == nil || s.Network == "" {
			continue
		}
		network, err := netip.ParsePrefix(s.Network)
		if addr, e := netip.ParseAddr(s.Network); e == nil {
			network, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		if err == nil && !r.o.Transfer.MayNetwork(network) {
			return refuse(op, stele.ID{}, stele.Forbidden, "zone.transfer-network-not-public", "this server transfers no zones to {network}, which is not public; its operator can allow it with the setting transfer-allow", s.Network)
		}
	}
	return nil
}

// mayCatalog makes sure that the caller may list the zone of a namespace in its catalog.
// Secondaries take every zone that a catalog lists, so an administrator decides which. The
// name of a catalog is not a name of a zone, nor above or below one: both could not be served.
func (r *Registrar) mayCatalog(ctx context.Context, op string, s *namespaceTree, before, next *stele.Namespace) error {
	p := &next.Publication
	if before != nil && before.Publication.Catalog == p.Catalog && before.Publication.Zone == p.Zone {
		return nil
	}
	if p.Catalog != "" && !auth.From(ctx).Admin {
		return refuse(op, stele.ID{}, stele.Forbidden, "zone.catalog-needs-administrator", "secondaries take all zones of the catalog {catalog}, so administrators decide which zones are listed in it; ask one, or leave the catalog out", p.Catalog)
	}
	others := s.zones()
	for _, zone := range append(others.All(), p.Zone) {
		if p.Catalog != "" && zone != "" && zonemap.Overlap(p.Catalog, zone) && !(before != nil && zone == before.Publication.Zone && zone != p.Zone) {
			return refuse(op, stele.ID{}, stele.Conflict, "zone.catalog-overlaps-zone", "{catalog} can't be a catalog: it is, or is above or below, the zone {zone}; choose a name that is in no zone", p.Catalog, zone)
		}
	}
	for _, catalog := range others.Catalogs() {
		if p.Zone != "" && zonemap.Overlap(p.Zone, catalog) {
			return refuse(op, stele.ID{}, stele.Conflict, "zone.overlaps-catalog", "{zone} can't be a zone: it is, or is above or below, the catalog {catalog}, which lists {members}; choose another name", p.Zone, catalog, strings.Join(others.Members(catalog), ", "))
		}
	}
	return nil
}

// hasKey refuses to publish a namespace whose names have no key in the DNS, so that no
// client finds them. One that was published so before this rule may be changed.
func (r *Registrar) hasKey(op string, before, next *stele.Namespace) error {
	p := &next.Publication
	if p.IsZero() || p.Layout == stele.LayoutRoot || before != nil && !before.Publication.IsZero() {
		return nil
	}
	if _, ok := zonemap.KeyOf(r.schemes, next.Key()); ok {
		return nil
	}
	return refuse(op, stele.ID{}, stele.Invalid,
		"zone.namespace-without-dns-key", "{namespace} can't be published in the DNS: clients begin at a key that is made of the name, as of urn:paradisec, ark:12345, hdl:20.500.12345/ or https://purl.example.org/, and there is none for these: they are not URIs, or the host in them is an address; they are found over HTTP", next.Key())
}

// minterFits makes sure that the minter of a namespace makes names with as many parts as
// names have where they are published, if that namespace asks for it: others could not be
// registered.
func (r *Registrar) minterFits(op string, s *namespaceTree, next *stele.Namespace) error {
	if !s.exact || next.Minter.Kind == stele.NoMinter || next.Prefix == "" {
		return nil
	}
	id, err := minting.Placeholder(r.schemes, next, 0)
	if err != nil {
		return err
	}
	ns := s.Around(id, zonemap.HasDestination)
	if ns == nil || !ns.Publication.Exact {
		return nil
	}
	p := &ns.Publication
	made := zonemap.Parts(r.schemes, ns, id) + strings.Count(minting.Shape(next.Minter), p.Separator)
	if made == p.Parts {
		return nil
	}
	return refuse(op, stele.ID{}, stele.Invalid, "minter.number-of-parts-differs", "the minter of {namespace} makes names of {made-parts}, and names in {zone-namespace} have {parts}; give the minter to a namespace below it, or leave exact out",
		next.Key(), countParts(made), ns.Key(), countParts(p.Parts))
}
