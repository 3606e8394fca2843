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
			x.problem(UnsignedCopiesAdvice(ns.Publication.Zone), "doctor.online-signed-with-secondaries", "{zone} is signed in the mode online and has secondaries: their copies have no signatures, so validating resolvers refuse what they answer", ns.Publication.Zone)
		}
	}
	open := len(published)
	for _, z := range x.registry.zones {
		if z.Shut && published[z.Zone] {
			open--
			x.problem("ask each secondary for its SOA record, and name the highest serial: stele zone raise "+z.Zone+" --above SERIAL", "doctor.zone-shut", "{zone} came from a backup and is shut: its secondaries get no transfers, since it is not known which serials they have", z.Zone)
		}
	}
	if open > 0 {
		x.ok("doctor.zones-open", "{open} of {zones} zones are open for transfers to their secondaries", open, len(published))
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
				x.problem("name one with --dns", "", "{cause}", err)
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
		x.problem("", "", "{cause}", err)
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
		x.warn("name another name server with --dns", "doctor.delegation-unknown", "who leads to {zone} is not known: {cause}", p.Zone, err)
	case len(found.Names) == 0:
		x.problem(fmt.Sprintf(tell, strings.Join(should, " ")), "doctor.zone-not-delegated", "{parent} knows nothing of {zone}, so resolvers can't find it", found.Parent, p.Zone)
	case !slices.Equal(found.Names, should):
		x.warn(fmt.Sprintf(tell, strings.Join(should, " "))+", or put those of the zone right: stele zone add", "doctor.name-servers-differ", "for {zone}, {parent} names the servers {parent-servers}, and the zone itself {zone-servers}", p.Zone, found.Parent, strings.Join(found.Names, " "), strings.Join(should, " "))
	}
	if x.judgeServers(found) && x.problems == before && err == nil && slices.Equal(found.Names, should) {
		x.ok("doctor.zone-delegated", "{parent} leads to {zone}, and its {servers} servers agree (serial {serial})", found.Parent, p.Zone, len(found.Servers), found.Servers[0].Serial)
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
		x.warn("look again later", "doctor.ds-unknown", "whether {parent} vouches for the keys of {zone} is not known: {cause}", found.Parent, zone, t.Err)
	case len(t.DS) == 0 && t.Keys:
		x.warn(give, "doctor.ds-missing", "{zone} is signed, and {parent} has no DS records of it, so resolvers do not check the signatures", zone, found.Parent)
	case len(t.DS) > 0 && !t.Keys:
		x.problem("have the administrator of "+found.Parent+" remove them, or sign the zone: stele zone sign", "doctor.ds-of-unsigned-zone", "{parent} has DS records of {zone}, which is not signed, so validating resolvers refuse it", found.Parent, zone)
	case len(t.DS) > 0 && !t.Fits:
		x.problem(give, "doctor.ds-of-unknown-key", "{parent} has DS records of {zone} that are of none of its keys, so validating resolvers refuse it", found.Parent, zone)
	case len(t.DS) > 0 && !t.IsWanted():
		x.warn(give, "doctor.ds-differs", "{parent} has other DS records of {zone} than the zone wants", found.Parent, zone)
	case len(t.DS) > 0:
		x.ok("doctor.ds-present", "{parent} has the DS records of {zone}", found.Parent, zone)
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
			x.problem("see that it runs, has the zone, and is reached at port 53 by UDP and TCP (the setting dns, the firewall)", "doctor.name-server-silent", "{server} does not answer for {zone}: {cause}", at, found.Zone, s.Err)
		case s.Late:
			x.warn("wait a few minutes; if it stays so, see whether this server may transfer the zone", "doctor.serial-behind", "{server} has serial {serial} of {zone}, and another server {newest}", at, s.Serial, found.Zone, newest)
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
