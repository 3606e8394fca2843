package doctor

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client"
)

// examineZones reports zones that are not transferred since a restore, and signed zones that
// secondaries get without signatures.
func examineZones(_ context.Context, x *subject) {
	if x.registry == nil {
		return
	}
	published := make(map[string]bool)
	for _, ns := range x.registry.namespaces {
		if ns.Publication.Zone != "" {
			published[ns.Publication.Zone] = true
		}
		if ns.Publication.Catalog != "" {
			published[ns.Publication.Catalog] = true
		}
	}
	for _, ns := range x.registry.namespaces {
		if ns.Publication.HasUnsignedCopies() {
			x.problem(UnsignedCopiesAdvice(ns.Publication.Zone), "%s is signed in the mode online and has secondaries: their copies have no signatures, so validating resolvers refuse what they answer", ns.Publication.Zone)
		}
	}
	open := len(published)
	for _, z := range x.registry.zones {
		if z.Shut && published[z.Zone] {
			open--
			x.problem("ask each secondary for its SOA record, and name the highest serial: stele zone raise "+z.Zone+" --above SERIAL", "%s came from a backup and is shut: its secondaries get no transfers, since it is not known which serials they have", z.Zone)
		}
	}
	if open > 0 {
		x.ok("%d of %d zones are open for transfers to their secondaries", open, len(published))
	}
}

// examineDelegations asks the DNS for each published zone, as the world does: whether
// the zone above leads to its servers, and whether these answer, all alike.
func examineDelegations(ctx context.Context, x *subject) {
	if x.registry == nil {
		return
	}
	var ask *client.Delegations
	for _, ns := range x.registry.namespaces {
		if ns.Publication.Zone == "" {
			continue
		}
		if ask == nil {
			var err error
			if ask, err = x.Delegations(); err != nil {
				x.problem("name one with --dns", "%v", err)
				return
			}
		}
		x.examineZone(ctx, ask, &ns.Publication)
	}
}

// examineZone looks at one zone.
func (x *subject) examineZone(ctx context.Context, ask *client.Delegations, p *stele.Publication) {
	found, err := ask.Check(ctx, p.Zone, p.Servers)
	if found == nil {
		x.problem("", "%v", err)
		return
	}
	before := x.problems
	var should []string
	for _, server := range p.Servers {
		should = append(should, strings.ToLower(server.Name))
	}
	slices.Sort(should)
	const tell = "tell who runs the zone above which name servers it has: %s"
	switch {
	case err != nil:
		x.warn("name another name server with --dns", "who leads to %s is not known: %v", p.Zone, err)
	case len(found.Names) == 0:
		x.problem(fmt.Sprintf(tell, strings.Join(should, " ")), "%s knows nothing of %s, so resolvers can't find it", found.Parent, p.Zone)
	case !slices.Equal(found.Names, should):
		x.warn(fmt.Sprintf(tell, strings.Join(should, " "))+", or put those of the zone right: stele zone add", "for %s, %s names the servers %s, and the zone itself %s", p.Zone, found.Parent, strings.Join(found.Names, " "), strings.Join(should, " "))
	}
	if x.judgeServers(found) && x.problems == before && err == nil && slices.Equal(found.Names, should) {
		x.ok("%s leads to %s, and its %d servers agree (serial %d)", found.Parent, p.Zone, len(found.Servers), found.Servers[0].Serial)
	}
	if err == nil && len(found.Names) > 0 {
		x.judgeTrust(found)
	}
}

// judgeTrust reports whether the DS records of the zone above are those of the zone's keys.
func (x *subject) judgeTrust(found *client.Delegation) {
	t, zone := &found.Trust, found.Zone
	give := "have the administrator of " + found.Parent + " publish what 'stele zone ds " + zone + "' prints, and no other DS records of the zone"
	switch {
	case t.Err != nil:
		x.warn("look again later", "whether %s vouches for the keys of %s is not known: %v", found.Parent, zone, t.Err)
	case len(t.DS) == 0 && t.Keys:
		x.warn(give, "%s is signed, and %s has no DS records of it, so resolvers do not check the signatures", zone, found.Parent)
	case len(t.DS) > 0 && !t.Keys:
		x.problem("have the administrator of "+found.Parent+" remove them, or sign the zone: stele zone sign", "%s has DS records of %s, which is not signed, so validating resolvers refuse it", found.Parent, zone)
	case len(t.DS) > 0 && !t.Fits:
		x.problem(give, "%s has DS records of %s that are of none of its keys, so validating resolvers refuse it", found.Parent, zone)
	case len(t.DS) > 0 && !t.IsWanted():
		x.warn(give, "%s has other DS records of %s than the zone wants", found.Parent, zone)
	case len(t.DS) > 0:
		x.ok("%s has the DS records of %s", found.Parent, zone)
	}
}

// judgeServers reports servers that do not answer as they should; true if all do, and alike.
func (x *subject) judgeServers(found *client.Delegation) bool {
	alike := true
	newest := uint32(0)
	for _, s := range found.Servers {
		if s.Err == nil && (newest == 0 || stele.SerialAfter(s.Serial, newest)) {
			newest = s.Serial
		}
	}
	for _, s := range found.Servers {
		at := s.Name
		if s.At != (netip.AddrPort{}) {
			at += " at " + s.At.Addr().String()
		}
		switch {
		case s.Err != nil:
			x.problem("see that it runs, has the zone, and is reached at port 53 by UDP and TCP (the setting dns, the firewall)", "%s does not answer for %s: %v", at, found.Zone, s.Err)
		case s.Late:
			x.warn("wait a few minutes; if it stays so, see whether this server may transfer the zone", "%s has serial %d of %s, and another server %d", at, s.Serial, found.Zone, newest)
		default:
			continue
		}
		alike = false
	}
	return alike
}

// UnsignedCopiesAdvice says what to do about a signed zone that secondaries get without
// signatures.
func UnsignedCopiesAdvice(zone string) string {
	return fmt.Sprintf("'stele zone sign %s --mode transfer' sends signatures along; or let the secondaries sign, and end the signing here with --mode off", zone)
}
