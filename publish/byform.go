package publish

import (
	"github.com/stele-id/stele"
	"github.com/stele-id/stele/ddds"
	"github.com/stele-id/stele/publish/naptr"
)

// addByForm adds the rules of the zone's namespace for names that are not registered. They
// come after those of all registered names, and before the resolver.
func (z *Zone) addByForm(out *naptr.Compiled, c *naptr.Compiler, list []naptr.Named) {
	for _, ns := range z.set.under(z.ns) {
		if ns != z.ns && z.set.isBelow(ns, z.ns) && !hasDestination(ns) {
			out.Notes = append(out.Notes, stele.Messagef("zone-note.rules-beside-namespace", "the rules of {namespace} are for HTTP only: {other} is in the same zone, and they would answer for its names, too", z.ns.Key(), ns.Key()))
			return
		}
	}
	first := uint16(naptr.Order + 1)
	for _, n := range list {
		for i := range n.Record.Targets {
			if order := n.Record.Targets[i].Order; order >= first {
				first = min(order, naptr.FurtherOrder) + 1
			}
		}
	}
	rules, notes := c.ByForm(z.ns, first)
	if len(out.Rules)+len(rules) > ddds.MaxRules-2 {
		rules, notes = nil, []*stele.Message{stele.Messagef("zone-note.rules-too-many", "the rules of {namespace} are for HTTP only: with those of its names there would be more than clients take", z.ns.Key())}
	}
	out.Rules = append(out.Rules, rules...)
	out.Notes = append(out.Notes, notes...)
}

// isAboutRules reports whether a note is about rules that are not published. Their names are
// found all the same, over HTTP.
func isAboutRules(note *stele.Message) bool {
	switch note.Code {
	case "zone-note.rules-beside-namespace", "zone-note.rules-too-many", "zone-note.rule-by-form-unpublished":
		return true
	}
	return false
}
