package publish

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/ddds"
	"github.com/stele-id/stele/internal/dnsrr"
	"github.com/stele-id/stele/publish/naptr"
	"github.com/stele-id/stele/publish/zonemap"
)

// maxCollection is how many rules the rules layout puts at one name.
const maxCollection = 100

// below returns the namespaces under a prefix that say where their names go on, the
// one of that prefix included, with the number of such ones above each. Those of
// other schemes count if their names begin so: LSIDs are URNs.
func (s *zoneSet) below(prefix string) (list []scope) {
	from, _ := slices.BinarySearchFunc(s.keys, stele.NamespaceKey{Prefix: prefix}, compareKeys)
	for _, key := range s.keys[from:] {
		if !strings.HasPrefix(key.Prefix, prefix) {
			break
		}
		ns := s.byKey[key]
		if !hasDestination(ns) || key.Prefix == "" || !isUnder(key.Prefix, prefix, s.joints[prefix]) {
			continue
		}
		depth := 0
		for _, other := range list {
			if above := other.ns.Prefix; above != key.Prefix && isUnder(key.Prefix, above, s.joints[above]) {
				depth++
			}
		}
		// A namespace below the key is a part only, even if its parent is not published.
		if depth == 0 && key.Prefix != prefix {
			depth = 1
		}
		list = append(list, newScope(s.schemes, ns, depth))
	}
	slices.SortStableFunc(list, func(a, b scope) int { return cmp.Compare(a.order, b.order) })
	return list
}

func compareKeys(a, b stele.NamespaceKey) int {
	return cmp.Or(cmp.Compare(a.Prefix, b.Prefix), cmp.Compare(a.Scheme, b.Scheme))
}

// isUnder reports whether a prefix is another one or below it: a separator follows,
// or the names of that one follow it directly, as with the shoulders of ARKs.
func isUnder(prefix, above, joint string) bool {
	rest, ok := strings.CutPrefix(prefix, above)
	return ok && (rest == "" || joint == "" && len(above) > zonemap.Head(above) || rest[0] == ':' || rest[0] == '/')
}

// rulesOf returns the rules at the apex of a zone. They are the same as at the key of its
// namespace, so that the server of that key needs one rule, which leads here.
func (s *zoneSet) rulesOf(z *Zone) (k keyRules) {
	if z.ns.Publication.Layout == stele.LayoutRoot {
		return k
	}
	for _, sc := range s.below(z.ns.Prefix) {
		if sc.ns == z.ns && z.ns.Publication.Layout == stele.LayoutRules {
			continue // the rules of its records stand here
		}
		s.addNamespaceRules(&k, sc)
	}
	for _, key := range s.keys {
		// Roots lead to the host in a URI, whichever namespace the zone of that name has.
		at, ok := zonemap.KeyOf(s.schemes, key)
		if ns := s.byKey[key]; ok && at.Host == z.Name && hasDestination(ns) && !s.isBelow(ns, z.ns) {
			s.addNamespaceRules(&k, s.uriScope(ns))
		}
	}
	return k
}

// isBelow reports whether a namespace is another one or below it.
func (s *zoneSet) isBelow(ns, above *stele.Namespace) bool {
	return ns.Scheme == above.Scheme && isUnder(ns.Prefix, above.Prefix, s.joints[above.Prefix])
}

// addNamespaceRules adds the rules for the names of one namespace.
func (s *zoneSet) addNamespaceRules(k *keyRules, sc scope) {
	p := &sc.ns.Publication
	switch {
	case sc.ns.HandOver.State == stele.Forwarded: // whatever is left of it here
		sc.delegate(k)
	case len(p.Elsewhere) > 0:
		sc.elsewhere(k)
	case p.Zone == "":
		sc.delegate(k)
	case s.zones[p.Zone] == nil || s.zones[p.Zone].ns != sc.ns:
		k.notef("zone-note.no-zone", "{namespace} has no zone of its own", sc.ns.Key())
	case p.Layout == stele.LayoutRules:
		sc.addRule(k, ddds.FlagNone, ddds.Services{}, naptr.Preference, p.Zone)
	default:
		s.rewrite(k, sc)
	}
}

// rewrite adds the rule that makes owner names, and the further rule for names that
// have none.
func (s *zoneSet) rewrite(k *keyRules, sc scope) {
	p := &sc.ns.Publication
	e, err := s.zones[p.Zone].mapping.Rule()
	if err != nil {
		k.notef("zone-note.rewriting-rule-unpublished", "{namespace}: the rewriting rule can't be published: {cause}; give the zone a shorter name, or cut names into fewer parts", sc.ns.Key(), err)
	} else {
		k.add(sc.ns, ddds.Rule{Order: sc.order, Preference: naptr.Preference, Expression: e})
	}
	if p.Resolver == "" {
		return
	}
	if !sc.whole {
		sc.addRule(k, ddds.FlagSRV, naptr.ResolverServices(), furtherPreference, naptr.HTTPService+p.Zone)
		sc.addRule(k, ddds.FlagSRV, naptr.OpenServices(), openPreference, naptr.HTTPService+p.Zone)
		return
	}
	if f, ok := naptr.FurtherRule(p.Zone, naptr.FurtherOrder, naptr.Preference); ok {
		k.list = append(k.list, f)
	}
	if f, ok := naptr.OpenRule(p.Zone, naptr.FurtherOrder, openPreference); ok {
		k.list = append(k.list, f)
	}
}

// addKeys adds the keys of a root zone: one for each thing that follows the scheme in the
// prefixes of published namespaces, paradisec in urn:paradisec.
func (s *zoneSet) addKeys(root *Zone) {
	if zonemap.RootOf(s.schemes, root.ns.Scheme) == zonemap.URIs {
		s.addURIKeys(root)
		return
	}
	heads := make(map[string]bool)
	begin := root.ns.Scheme + ":"
	for key, ns := range s.byKey {
		known := hasDestination(ns) || s.finds(root)
		if known && strings.HasPrefix(key.Prefix, begin) && len(key.Prefix) > len(begin) {
			heads[key.Prefix[:zonemap.Head(key.Prefix)]] = true
		}
	}
	for _, head := range slices.Sorted(maps.Keys(heads)) {
		s.addKey(root, head, strings.ToLower(strings.TrimPrefix(head, begin)))
	}
}

// urnRoot is the scheme whose names begin at keys by RFC 3404.
const urnRoot = "urn"

// finds reports whether the root leads to a host by itself, as it is done for names that
// are not URNs.
func (s *zoneSet) finds(root *Zone) bool {
	return root.ns.Scheme != urnRoot && root.ns.Publication.Resolver != ""
}

// addKey adds the rules at one key of a root zone.
func (s *zoneSet) addKey(root *Zone, head, label string) {
	name := label + "." + root.Name
	for i := range len(label) {
		if !naptr.IsLabelByte(label[i]) {
			root.notes = append(root.notes, stele.Messagef("zone-note.key-not-a-label", "{key} has no key: it is not a label of the DNS", head))
			return
		}
	}
	if len(label) > dnsrr.MaxLabel || len(name) > dnsrr.MaxNameText+1 {
		root.notes = append(root.notes, stele.Messagef("zone-note.key-too-long", "{key} has no key: the name would be too long", head))
		return
	}
	if s.zones[name] != nil {
		return // the key is a zone of its own, which has its rules at the apex
	}
	var k keyRules
	for _, sc := range s.below(head) {
		s.addNamespaceRules(&k, sc)
	}
	s.addHost(&k, root, head)
	root.notes = append(root.notes, k.notes...)
	for _, f := range k.list {
		root.add(naptr.NewNAPTR(name, root.ttl, f))
	}
}

// addHost adds the record by which names that are not URNs find their resolver: the service
// is the scheme, and the flag h says that a host stands in the replacement (ARK's draft,
// "Looking up NMAs via DNS").
func (s *zoneSet) addHost(k *keyRules, root *Zone, head string) {
	if root.ns.Scheme == urnRoot {
		return
	}
	text := root.ns.Publication.Resolver
	if ns := s.byKey[stele.NamespaceKey{Scheme: root.ns.Scheme, Prefix: head}]; ns != nil && ns.Publication.Resolver != "" {
		text = ns.Publication.Resolver
	}
	if h := naptr.ParseHost(text); !h.IsZero() {
		k.list = append(k.list, ddds.Fields{Order: naptr.Order, Preference: naptr.Preference, Flags: "h", Service: root.ns.Scheme, Replacement: h.Name})
	}
}

// collection compiles all records of a zone in the rules layout. Past its limit the
// rule that leads to the resolver stands there alone.
func (z *Zone) collection(ctx context.Context) (out naptr.Compiled, err error) {
	c := z.compiler()
	cut := naptr.NewMapping(z.zones.schemes, z.ns)
	c.Tells, c.Full = cut.Tells, true
	var list []naptr.Named
	var met metNames
	for r, err := range z.zones.store.Scan(ctx, z.ns.Scheme, z.ns.Prefix, "") {
		if err != nil {
			return out, err
		}
		met.add(z, r)
		if isVisible(r) && z.set.zoneOf(r.ID) == z {
			list = append(list, naptr.Named{ID: r.ID, Record: r, Namespace: z.set.namespaceOf(r.ID)})
		}
		if len(list) > maxCollection {
			break
		}
	}
	out = c.Compile(list)
	if len(list) > maxCollection || len(out.Rules) > maxCollection {
		out = naptr.Compiled{TTL: z.ttl}
		out.Note("zone-note.too-many-for-rules", "it has more than {most} rules, which is too many for the layout rules, and none is published; use the layout names", maxCollection)
	}
	if len(z.ns.Rules) > 0 {
		if err := z.addByForm(ctx, &out, c, met); err != nil {
			return out, err
		}
	}
	out.Rules = append(out.Rules, z.further...)
	if f, ok := naptr.OpenRule(z.Name, naptr.FurtherOrder, openPreference); ok && len(z.further) > 0 {
		out.Rules = append(out.Rules, f)
	}
	return out, nil
}
