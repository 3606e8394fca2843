package publish

import (
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/namespaces"
	"github.com/stele-id/stele/publish/naptr"
	"github.com/stele-id/stele/publish/zonemap"
)

// clash is a zone that is not served because of another one.
type clash struct {
	zone    string // the other one
	problem *stele.Message
}

// zoneSet is the zones at one time.
type zoneSet struct {
	schemes *stele.Schemes
	list    []*stele.Namespace   // in order of their keys
	keys    []stele.NamespaceKey // by prefix
	byKey   map[stele.NamespaceKey]*stele.Namespace
	joints  map[string]string // of the namespaces that say where their names go on, by prefix
	zones   map[string]*Zone
	order   []string // names of zones

	tree      *namespaces.Tree
	published *zonemap.Zones // decides what is in which

	clashes []clash       // zones that were left out
	settled chan struct{} // closed when it can answer: a small registry is read by then
}

// newZoneSet makes the zones of namespaces, which come in order of their keys.
func newZoneSet(z *Zones, list []*stele.Namespace) *zoneSet {
	set := &zoneSet{
		schemes: z.schemes, list: list, byKey: make(map[stele.NamespaceKey]*stele.Namespace), joints: make(map[string]string),
		zones: make(map[string]*Zone), settled: make(chan struct{}),
	}
	for _, ns := range list {
		set.byKey[ns.Key()] = ns
		set.keys = append(set.keys, ns.Key())
		if hasDestination(ns) {
			set.joints[ns.Prefix] = naptr.NewMapping(z.schemes, ns).Joint
		}
	}
	set.tree = namespaces.New(z.schemes)
	set.tree.Add(list...) // the registrar tells of those that it would not accept
	set.published = zonemap.New(set.tree)
	slices.SortFunc(set.keys, compareKeys)
	for _, ns := range list {
		set.addZone(z, ns)
	}
	for _, name := range set.published.Catalogs() {
		set.addCatalog(z, name)
	}
	slices.Sort(set.order)
	for _, name := range set.order {
		zone := set.zones[name]
		if zone.isCatalog() {
			zone.buildCatalog()
			continue
		}
		if outer := set.outer(zone); outer != nil {
			outer.divided = true
		}
		zone.build(set.rulesOf(zone))
		if zone.ns.Publication.Layout == stele.LayoutRoot {
			set.addKeys(zone)
		}
		zone.addOwn()
	}
	return set
}

func (s *zoneSet) addZone(z *Zones, ns *stele.Namespace) {
	p := &ns.Publication
	if p.Zone == "" {
		return
	}
	if other := s.zones[p.Zone]; other != nil {
		s.clashes = append(s.clashes, clash{p.Zone, stele.Messagef("zone-check.zone-taken", "{namespace} is published in {zone}, which is the zone of {owner}; give it another one", ns.Key(), p.Zone, other.ns.Key())})
		return
	}
	one := &Zone{Name: p.Zone, ns: ns, zones: z, set: s, serial: z.serials.of(p.Zone), ttl: z.ttl, alone: s.isAlone(ns)}
	if ns.TTL > 0 {
		one.ttl = ns.TTL
	}
	if p.Layout == stele.LayoutNames {
		one.mapping = naptr.NewMapping(z.schemes, ns)
	}
	one.index = newNameIndex(one)
	s.zones[p.Zone] = one
	s.order = append(s.order, p.Zone)
}

// isAlone reports whether all names that begin with the prefix of a namespace are its own:
// no other one is below it, and no minter of another one claims some.
func (s *zoneSet) isAlone(ns *stele.Namespace) bool {
	if len(s.under(ns)) != 1 {
		return false
	}
	for key, holder := range s.tree.Claims() {
		if key.Scheme == ns.Scheme && holder.Namespace != ns && strings.HasPrefix(key.Prefix, ns.Prefix) {
			return false
		}
	}
	return true
}

// find returns the zone in which a name is.
func (s *zoneSet) find(name string) *Zone {
	for name != "" {
		if z := s.zones[name]; z != nil {
			return z
		}
		_, name, _ = strings.Cut(name, ".")
	}
	return nil
}

// reuse gives the zones the indexes of those that they were before, if they would be the
// same.
func (s *zoneSet) reuse(before *zoneSet) {
	if before == nil {
		return
	}
	for name, one := range s.zones {
		if was := before.zones[name]; was != nil && was.index.shape == one.index.shape {
			one.index = was.index
		}
	}
}

// namespaceOf returns the namespace that a name belongs to; nil if there is none.
func (s *zoneSet) namespaceOf(id stele.ID) *stele.Namespace {
	if n := s.tree.Of(id); n != nil {
		return n.Namespace
	}
	return nil
}

// zoneOf returns the zone in which an identifier is published; nil if there is none.
func (s *zoneSet) zoneOf(id stele.ID) *Zone {
	if ns := s.published.Owner(id); ns != nil {
		return s.zones[ns.Publication.Zone]
	}
	return nil
}

// hasDestination reports whether a namespace has its own settings for where its names lead. The
// names of one without lead where those of the namespace above it do.
func hasDestination(ns *stele.Namespace) bool { return zonemap.HasDestination(ns) }

// appendNames appends the names whose answers may have changed with a record: its
// owner names and, since they may have been nothing before, those above them.
func (s *zoneSet) appendNames(list []string, r *stele.Record) []string {
	for _, id := range r.Names() {
		z := s.zoneOf(id)
		if z == nil {
			continue
		}
		if z.mapping == nil {
			list = append(list, z.Name)
			continue
		}
		name, reason := z.mapping.Owner(id.String())
		if reason != nil {
			continue
		}
		for name != z.Name {
			list = append(list, name)
			_, name, _ = strings.Cut(name, ".")
		}
	}
	return list
}

// outer returns the zone in which another one is; nil if there is none.
func (s *zoneSet) outer(inner *Zone) *Zone {
	_, above, _ := strings.Cut(inner.Name, ".")
	return s.find(above)
}
