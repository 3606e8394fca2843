package publish

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/zonemap"
	"github.com/stele-id/stele/publish/zonesign"
)

// addOwn adds the owner's own records, after all that is made of the registry's settings,
// which come first in a conflict. 'stele zone check' tells the owner of conflicts.
func (z *Zone) addOwn() {
	made := make(map[string][]uint16, len(z.static))
	for name, records := range z.static {
		made[name] = zonesign.TypesAt(records)
	}
	for _, r := range z.ns.Publication.Records {
		rr, err := zonemap.ParseRecord(r)
		if err != nil { // it is checked before it is written
			z.notes = append(z.notes, stele.Messagef("zone-note.own-record-unreadable", "the {type} record at {name} is not served: {cause}", r.Type, r.Name, err))
			continue
		}
		if reason := z.ownReason(rr, made[r.Name]); reason != nil {
			z.notes = append(z.notes, stele.Messagef("zone-note.own-record-hidden", "the {type} record at {name} is not served: {cause}; take it away with 'stele zone record rm'", r.Type, r.Name, reason))
			continue
		}
		z.add(rr)
		if givesWay(rr) {
			z.yields[r.Name] = true
		}
	}
}

// ownReason says why a record of the owner can't stand at its name, where there are
// records of some types that Stele makes; nil if it can.
func (z *Zone) ownReason(rr dns.RR, made []uint16) *stele.Message {
	h := rr.Header()
	kind := dns.TypeToString[h.Rrtype]
	switch in := z.set.find(h.Name); {
	case !z.contains(h.Name):
		return stele.Messagef("zone-record.outside", "the name is not in the zone")
	case in != z && in != nil:
		return stele.Messagef("zone-record.inside-another", "the name is in the zone {zone}", in.Name)
	case h.Rrtype == dns.TypeCNAME && (len(made) > 0 || h.Name == z.Name):
		return stele.Messagef("zone-record.cname-beside-others", "a CNAME record stands alone at its name (RFC 2181, section 10.1), and there are others")
	case slices.Contains(made, h.Rrtype):
		return stele.Messagef("zone-record.made-by-settings", "the settings of the zone make the {type} records there", kind)
	}
	return nil
}

// givesWay reports whether a record of the owner can't stand beside what is published of
// an identifier: a CNAME record stands alone, and TXT records are the identifier's.
func givesWay(rr dns.RR) bool {
	t := rr.Header().Rrtype
	return t == dns.TypeCNAME || t == dns.TypeTXT
}

// giveWay returns the records of a name except those of the owner that give way.
func giveWay(records []dns.RR) []dns.RR {
	return slices.DeleteFunc(slices.Clone(records), givesWay)
}

// fixedAt returns what stands at a name beside what is registered there.
func (z *Zone) fixedAt(ctx context.Context, name string) ([]dns.RR, error) {
	records := z.static[name]
	if !z.yields[name] {
		return records, nil
	}
	list, err := z.registered(ctx, name)
	if len(list) > 0 {
		records = giveWay(records)
	}
	return records, err
}

// MayAdd returns an error of Kind Conflict if a record of the owner can't stand in a zone
// because of what is published in it at present, or will be.
func (z *Zones) MayAdd(ctx context.Context, zone string, r stele.ZoneRecord) error {
	one, err := z.zoneNamed(ctx, zone)
	if err != nil {
		return err
	}
	rr, err := zonemap.ParseRecord(r)
	if err != nil {
		return &stele.Error{Op: "add record", Kind: stele.Invalid, Err: stele.Problem{Path: "data", Err: err}}
	}
	conflict := func(code, text string, args ...any) error {
		return &stele.Error{Op: "add record", Kind: stele.Conflict, Err: stele.Messagef("zone-record.conflict", "{name} can't have this {type} record: {cause}", r.Name, r.Type, stele.Messagef(code, text, args...))}
	}
	made := slices.DeleteFunc(slices.Clone(one.static[r.Name]), func(rr dns.RR) bool { return one.isOwn(rr) })
	if reason := one.ownReason(rr, zonesign.TypesAt(made)); reason != nil {
		return conflict("", "{cause}", reason)
	}
	list, err := one.registered(ctx, r.Name)
	if errors.Is(err, errReading) {
		return nil // if an alias has the name, 'zone check' tells of it
	}
	if err != nil {
		return err
	}
	if len(list) > 0 {
		return conflict("zone-record.owner-name-taken", "it is the owner name of {id}, and what stands there is made of its record", list[0].ID)
	}
	return nil
}

// isOwn reports whether a record is one of the owner's own.
func (z *Zone) isOwn(rr dns.RR) bool {
	h := rr.Header()
	return slices.ContainsFunc(z.ns.Publication.Records, func(r stele.ZoneRecord) bool {
		return r.Name == h.Name && string(r.Type) == dns.TypeToString[h.Rrtype]
	})
}

// checkOwn tells of records of the owner that give way to an identifier.
func (c *checker) checkOwn(id stele.ID, owner string) {
	if !c.zone.yields[owner] {
		return
	}
	var kinds []string
	for _, rr := range c.zone.static[owner] {
		if givesWay(rr) {
			kinds = append(kinds, dns.TypeToString[rr.Header().Rrtype])
		}
	}
	slices.Sort(kinds)
	c.tell(id, true, "zone-check.own-records-hidden", "its owner name {owner} has {types} records of the owner's own, which are not served: an identifier comes first; take them away with 'stele zone record rm {zone} {owner} {type}'",
		owner, strings.Join(slices.Compact(kinds), " and "), c.zone.Name, kinds[0])
}
