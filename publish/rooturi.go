package publish

import (
	"cmp"
	"maps"
	"slices"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/ddds"
	"github.com/stele-id/stele/internal/dnsrr"
	"github.com/stele-id/stele/publish/naptr"
	"github.com/stele-id/stele/publish/zonemap"
)

// hostOrder is the order of the rule that leads to the host in a URI. It is after those for
// names that are known here.
const hostOrder = 300

// addURIKeys adds the keys of a root for URIs: one for each scheme that URIs of published
// namespaces have, such as hdl and https. Namespaces share a key, so that each rule is for
// the names of one.
func (s *zoneSet) addURIKeys(root *Zone) {
	scopes := make(map[string][]scope)
	hosts := make(map[string]bool)
	for _, key := range s.keys {
		ns := s.byKey[key]
		k, ok := zonemap.KeyOf(s.schemes, key)
		if !hasDestination(ns) || key.Prefix == "" || k.Root != zonemap.URIs {
			continue
		}
		if !ok {
			root.notes = append(root.notes, stele.Messagef("zone-note.key-of-address", "{key} has no key: its host is an address", key.Prefix))
			continue
		}
		for _, label := range k.Labels {
			scopes[label] = append(scopes[label], s.uriScope(ns))
			hosts[label] = hosts[label] || k.Host != ""
		}
	}
	for _, label := range slices.Sorted(maps.Keys(scopes)) {
		list := scopes[label]
		slices.SortStableFunc(list, func(a, b scope) int { return cmp.Compare(a.order, b.order) })
		var k keyRules
		for _, sc := range list {
			s.addNamespaceRules(&k, sc)
		}
		if hosts[label] {
			k.list = append(k.list, hostRule(label, hostOrder))
		}
		name := label + "." + root.Name
		if s.zones[name] != nil {
			continue // the key is a zone of its own
		}
		if len(name) > dnsrr.MaxNameText+1 {
			k.notef("zone-note.key-too-long", "{key} has no key: the name would be too long", label)
			k.list = nil
		}
		root.notes = append(root.notes, k.notes...)
		for _, f := range k.list {
			root.add(naptr.NewNAPTR(name, root.ttl, f))
		}
	}
}

// uriScope returns the scope of a namespace at the key of its URIs, where its names are
// some of many.
func (s *zoneSet) uriScope(ns *stele.Namespace) scope {
	depth := 1
	for _, key := range s.keys {
		if other := s.byKey[key]; other != ns && key.Prefix != "" && hasDestination(other) && s.isBelow(ns, other) {
			depth++
		}
	}
	return newScope(s.schemes, ns, depth)
}

// hostRule is the rule that leads from the key of a scheme to the host in its URIs (RFC
// 3404, section 5.3).
func hostRule(label string, order uint16) ddds.Fields {
	e, err := ddds.NewExpression("^"+label+"://([^:/?#]+).*$", `\1`, true)
	if err != nil {
		return ddds.Fields{} // labels are letters
	}
	return ddds.Fields{Order: order, Preference: naptr.Preference, Regexp: e.String(), Replacement: "."}
}
