package test

import (
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

const catalogZone = "catalog.example.net."

// consumers are BIND and Knot, configured with the catalog and with no other zone.
func (p *primary) consumers() []stockServer {
	list := p.secondaries()
	knot, bind := list[0], list[2]
	knot.config = strings.Replace(knot.config, "zone:\n", "template:\n  - id: listed\n    master: primary\n    acl: [told, taken]\n    zonefile-sync: -1\nzone:\n", 1)
	knot.zone = "  - domain: " + catalogZone + "\n    master: primary\n    acl: [told]\n    zonefile-sync: -1\n    catalog-role: interpret\n    catalog-template: listed\n"
	at := p.fill(stockServer{}, `port {primary} { 127.0.0.1 key "{key}"; }`).config
	bind.config = strings.Replace(bind.config, "recursion no;", "recursion no; catalog-zones { zone \""+catalogZone+"\" default-primaries "+at+" in-memory yes min-update-interval 0; };", 1)
	bind.zone = strings.ReplaceAll(bind.zone, "{zone}", catalogZone)
	return []stockServer{knot, bind}
}

// TestCatalog has BIND and Knot read a catalog: they transfer the zone that it lists, and one
// that is added later, and drop one that is listed no longer, without a change of their
// configuration.
func TestCatalog(t *testing.T) {
	p := newPrimary(t, func(a *archive) { a.stele("zone", "catalog", "add", catalogZone, archiveZone) })
	var list []*nameServer
	for _, s := range p.consumers() {
		list = append(list, s.start(t, zoneFile{zone: archiveZone})) // it has the zone from the catalog
	}
	p.notified(list)
	const late = "late.example."
	p.change("ns", "add", "urn:late")
	p.change("zone", "add", "urn:late", "--zone", late, "--parts", "1", "--ns", "ns1.example.net", "--ns", "ns2.example.net")
	p.put("urn:late:1", 0, "https://example.org/late")
	p.copiedBy(late, list)
	p.change("zone", "catalog", "add", catalogZone, late)
	for _, s := range list {
		s.awaitSerial(t, late, p.serial(late))
		if rules, code, _ := s.look(t, "1."+late); len(rules) == 0 || code != dns.RcodeSuccess {
			t.Errorf("%s has no rules in a zone that was listed later: %v", s.name, rules)
		}
	}
	p.put("urn:late:1", 1, "https://example.org/later")
	for _, s := range list {
		s.awaitSerial(t, late, p.serial(late)) // it is notified of changes as of other zones
	}
	p.change("zone", "catalog", "rm", late)
	deadline := time.Now().Add(30 * time.Second)
	for _, s := range list {
		for s.serial(late) != 0 {
			if time.Now().After(deadline) {
				t.Fatalf("%s has the zone that is listed no longer", s.name)
			}
			time.Sleep(20 * time.Millisecond)
		}
		if s.serial(archiveZone) == 0 {
			t.Errorf("%s dropped a zone that is listed", s.name)
		}
	}
}
