package publish

import (
	"context"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/naptr"
)

// maxSurveyed is how many records are looked at to learn how names are cut.
const maxSurveyed = 100_000

// Judge says why a namespace can't be published with its settings; nil if it can. The
// caller asks before it writes the namespace.
func (z *Zones) Judge(ctx context.Context, ns *stele.Namespace) error {
	list, found := []*stele.Namespace{}, false
	for other, err := range z.store.Namespaces(ctx) {
		if err != nil {
			return err
		}
		if other.Key() == ns.Key() {
			other, found = ns, true
		}
		list = append(list, other)
	}
	if !found {
		list = append(list, ns)
	}
	set := newZoneSet(z, list)
	for _, other := range list {
		if other != ns && ns.Publication.Zone != "" && other.Publication.Zone == ns.Publication.Zone {
			return refused("zone.name-taken", "{zone} is the zone of {namespace} already; take another name", ns.Publication.Zone, other.Key())
		}
	}
	if notes := set.rulesNotes(ns); len(notes) > 0 {
		return unpublished("", notes)
	}
	one := set.zones[ns.Publication.Zone]
	if one == nil || ns.Publication.Layout != stele.LayoutRules {
		return nil
	}
	out, err := one.collection(ctx)
	if err == nil && len(out.Notes) > 0 {
		return unpublished(ns.Key().String(), out.Notes)
	}
	return err
}

// unpublished is the error of what can't be published below a path.
func unpublished(path string, notes []*stele.Message) error {
	var list stele.Problems
	for _, note := range notes {
		list = append(list, stele.Problem{Path: path, Err: note})
	}
	return &stele.Error{Op: "publish", Kind: stele.Conflict, Err: list}
}

func refused(code, text string, args ...any) error {
	return &stele.Error{Op: "publish", Kind: stele.Conflict, Err: stele.Messagef(code, text, args...)}
}

// rulesNotes tells which rules of a namespace can't be published.
func (s *zoneSet) rulesNotes(ns *stele.Namespace) []*stele.Message {
	if !hasDestination(ns) || ns.Publication.Layout == stele.LayoutRoot {
		return nil
	}
	var k keyRules
	s.addNamespaceRules(&k, newScope(s.schemes, ns, 0))
	return k.notes
}

// Survey tells how the names of a namespace are cut: by the separator, or if it is "" by
// the one that follows the prefix, into how many parts. NotFound if nothing is registered
// there; Conflict, with the separator, if names differ.
func (z *Zones) Survey(ctx context.Context, key stele.NamespaceKey, sep string) (_ string, parts int, err error) {
	c := naptr.NewMapping(z.schemes, &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix,
		Publication: stele.Publication{Separator: sep, Parts: 1}})
	if sep == "" {
		if sep = c.Joint; sep == "" {
			sep = "/"
		}
	}
	least, most, n := 0, 0, 0
	for r, err := range z.store.Scan(ctx, key.Scheme, key.Prefix, "") {
		if err != nil {
			return sep, 0, err
		}
		rest, ok := strings.CutPrefix(r.ID.String(), c.Prefix+c.Joint)
		if !ok {
			continue
		}
		parts := strings.Count(rest, sep) + 1
		if n == 0 {
			least = parts
		}
		least, most = min(least, parts), max(most, parts)
		if n++; n == maxSurveyed {
			break
		}
	}
	switch {
	case n == 0:
		return sep, 0, &stele.Error{Op: "publish", Kind: stele.NotFound, Err: stele.Messagef("zone.parts-unknown", "no name is registered there yet, so it is not known how names are cut; say into how many parts with --parts")}
	case least != most:
		return sep, 0, refused("zone.parts-ambiguous", `names of {namespace} have from {least} to {most} parts with "{separator}" between them; say with --parts how many are to have an owner name`, key, least, most, sep)
	}
	return sep, least, nil
}
