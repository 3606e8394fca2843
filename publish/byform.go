package publish

import (
	"context"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/ddds"
	"github.com/stele-id/stele/publish/naptr"
	"github.com/stele-id/stele/rules"
)

// addByForm adds the rules of the zone's namespace for names that are not registered, before the resolver. Clients of the DNS
// choose among all rules that match by media type first, and by order only then: a rule by form would answer for a registered name that
// has nothing of the type asked for, is withdrawn, or has its rule elsewhere. So they are published only where the public may know of no
// registered name, and where no name fits two of them. A name that the public may not know of is answered as one that is not
// registered, as it is over HTTP: otherwise the rules would leave the zone as soon as there is one.
func (z *Zone) addByForm(ctx context.Context, out *naptr.Compiled, c *naptr.Compiler, met metNames) error {
	for _, ns := range z.set.under(z.ns) {
		if ns != z.ns && z.set.isBelow(ns, z.ns) && !hasDestination(ns) {
			out.Notes = append(out.Notes, stele.Messagef("zone-note.rules-beside-namespace", "the rules of {namespace} are for HTTP only: {other} is in the same zone, and they would answer for its names, too", z.ns.Key(), ns.Key()))
			return nil
		}
	}
	if !met.visible {
		// Stores do not list aliases. If more names count for the namespace than its own records have, the others are aliases of
		// records elsewhere, for which the rules must not answer. They are too many to look up whether the public may know of them.
		counted, err := z.zones.store.Count(ctx, z.ns.Key())
		if err != nil {
			return err
		}
		met.visible = counted > met.names
	}
	if met.visible {
		out.Notes = append(out.Notes, stele.Messagef("zone-note.rules-beside-names", "the rules of {namespace} are for HTTP only: it has registered names, for which they would answer, too", z.ns.Key()))
		return nil
	}
	if set, problems := rules.Compile(z.ns); len(problems) == 0 {
		twice, all := set.Overlaps(z.zones.schemes, z.ns)
		switch {
		case len(twice) == 0 && !all:
			out.Notes = append(out.Notes, stele.Messagef("zone-note.rules-uncompared", "the rules of {namespace} are for HTTP only: they are too many, and their names too long, to hold them against each other", z.ns.Key()))
			return nil
		case len(twice) > 0:
			out.Notes = append(out.Notes, stele.Messagef("zone-note.rules-overlap", "the rules of {namespace} are for HTTP only: {name} fits rule {earlier} and rule {later}, and clients of the DNS choose by media type", z.ns.Key(), twice[0].Name, twice[0].Earlier+1, twice[0].Later+1))
			return nil
		}
	}
	byForm, notes := c.ByForm(z.ns, naptr.Order+1)
	if len(out.Rules)+len(byForm) > ddds.MaxRules-2 {
		byForm, notes = nil, []*stele.Message{stele.Messagef("zone-note.rules-too-many", "the rules of {namespace} are for HTTP only: with those of its names there would be more than clients take", z.ns.Key())}
	}
	out.Rules = append(out.Rules, byForm...)
	out.Notes = append(out.Notes, notes...)
	return nil
}

// metNames is what a reading of the records below the prefix of a zone's namespace has met.
type metNames struct {
	names   uint64 // those below the prefix, whether the public may know of them or not
	visible bool   // one of them is in the zone, and the public may know of it
}

// add notes the names of a record. What counts for the namespace does not say which these are: a name that was registered before the
// namespace was added counts for the one above it.
func (m *metNames) add(z *Zone, r *stele.Record) {
	for _, id := range r.Names() {
		if ns := z.set.namespaceOf(id); ns == nil || !z.set.isBelow(ns, z.ns) {
			continue
		}
		m.names++
		m.visible = m.visible || isVisible(r) && z.set.zoneOf(id) == z
	}
}

// isAboutRules reports whether a note is about rules that are not published. Their names are
// found all the same, over HTTP.
func isAboutRules(note *stele.Message) bool {
	switch note.Code {
	case "zone-note.rules-beside-namespace", "zone-note.rules-beside-names", "zone-note.rules-overlap", "zone-note.rules-uncompared", "zone-note.rules-too-many", "zone-note.rule-by-form-unpublished":
		return true
	}
	return false
}
