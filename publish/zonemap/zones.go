// Package zonemap knows which zones of the DNS a registry has, in which of them a name is
// published, and which of them a change touches. The registrar asks it when it commits, so
// that the store can index changes by zone, and the name server when it answers: both
// decide by the same rules. It compiles no zone; package publish does.
package zonemap

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/namespaces"
)

// Zones are the zones of some namespaces. They do not change, and are used by several
// goroutines at once.
type Zones struct {
	tree   *namespaces.Tree
	owners map[string]*stele.Namespace // by zone: the namespace that is published there
	claims map[string][]*stele.Namespace
	some   map[string]bool // schemes that have names in some zone

	catalogs map[string][]string // the zones that each lists, in order
}

// New returns the zones of namespaces. If several namespaces name the same zone, it is
// that of the first by scheme and then by prefix.
func New(tree *namespaces.Tree) *Zones {
	z := &Zones{
		tree: tree, owners: make(map[string]*stele.Namespace),
		claims: make(map[string][]*stele.Namespace), some: make(map[string]bool), catalogs: make(map[string][]string),
	}
	for _, n := range tree.All() {
		ns := n.Namespace
		zone := ns.Publication.Zone
		if zone == "" {
			continue
		}
		z.claims[zone] = append(z.claims[zone], ns)
		if have := z.owners[zone]; have == nil || before(ns, have) {
			z.owners[zone] = ns
		}
		if ns.Publication.Layout != stele.LayoutRoot {
			z.some[ns.Scheme] = true
		}
	}
	for _, zone := range z.All() {
		if catalog := z.owners[zone].Publication.Catalog; catalog != "" {
			z.catalogs[catalog] = append(z.catalogs[catalog], zone)
		}
	}
	return z
}

func before(a, b *stele.Namespace) bool {
	return a.Scheme < b.Scheme || a.Scheme == b.Scheme && a.Prefix < b.Prefix
}

// HasDestination reports whether a namespace has its own settings for where its names lead. The
// names of one without lead where those of the namespace above it do.
func HasDestination(ns *stele.Namespace) bool {
	return !ns.Publication.IsZero() || ns.AnsweredAt() != ""
}

// DestinationOf returns the namespace whose settings say where a name leads: the nearest that
// HasDestination among those with whose prefix the name begins. Nil if there is none.
func (z *Zones) DestinationOf(id stele.ID) *stele.Namespace { return z.tree.Around(id, HasDestination) }

// Owner returns the namespace in whose zone a name is published; nil if there is none.
func (z *Zones) Owner(id stele.ID) *stele.Namespace {
	if !z.some[id.Scheme()] {
		return nil
	}
	ns := z.DestinationOf(id)
	if ns == nil || ns.Publication.Layout == stele.LayoutRoot || z.owners[ns.Publication.Zone] != ns {
		return nil
	}
	return ns
}

// OfRecord returns the zones that a version of a record touches: those of all its names.
// No name is ever detached from a record, so the version before had no others.
func (z *Zones) OfRecord(r *stele.Record) (list []string) {
	add := func(id stele.ID) {
		if ns := z.Owner(id); ns != nil && !slices.Contains(list, ns.Publication.Zone) {
			list = append(list, ns.Publication.Zone)
		}
	}
	add(r.ID)
	for _, alias := range r.Aliases {
		add(alias)
	}
	return list
}

// All returns the names of the zones, in order.
func (z *Zones) All() []string { return slices.Sorted(maps.Keys(z.owners)) }

// OwnerOf returns the namespace that is published in a zone; nil if there is none.
func (z *Zones) OwnerOf(zone string) *stele.Namespace { return z.owners[zone] }

// Catalogs returns the names of the catalogs (RFC 9432), in order.
func (z *Zones) Catalogs() []string { return slices.Sorted(maps.Keys(z.catalogs)) }

// Members returns the zones that a catalog lists, in order; none if there is no such catalog.
func (z *Zones) Members(catalog string) []string { return z.catalogs[catalog] }

// Overlap reports whether two domains are the same, or one is below the other.
func Overlap(a, b string) bool {
	return a == b || strings.HasSuffix(a, "."+b) || strings.HasSuffix(b, "."+a)
}

// Around returns the zone right above another one; "" if the registry has none.
func (z *Zones) Around(zone string) string {
	for rest := zone; rest != ""; {
		if _, rest, _ = strings.Cut(rest, "."); z.owners[rest] != nil {
			return rest
		}
	}
	return ""
}

// Touched returns the zones that a change of namespaces touches, given the zones before
// and after it, and the namespaces that changed. It may return one whose contents stay
// the same, and leaves none out whose contents can differ.
func Touched(old, now *Zones, changed ...stele.NamespaceKey) []string {
	touched := make(map[string]bool)
	for _, key := range changed {
		was, is := old.get(key), now.get(key)
		if sameInDNS(was, is) {
			continue
		}
		for _, ns := range []*stele.Namespace{was, is} {
			if ns == nil {
				continue
			}
			for _, z := range []*Zones{old, now} {
				z.touch(touched, ns)
				for _, other := range z.claims[ns.Publication.Zone] { // it may get the zone now, or lose it
					z.touch(touched, other)
				}
			}
		}
	}
	for _, z := range []*Zones{old, now} {
		for catalog := range z.catalogs {
			if !slices.Equal(old.catalogs[catalog], now.catalogs[catalog]) {
				touched[catalog] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(touched))
}

func (z *Zones) get(key stele.NamespaceKey) *stele.Namespace {
	if n := z.tree.Get(key); n != nil {
		return n.Namespace
	}
	return nil
}

// touch adds the zones in which something of a namespace can be: its own, that around it,
// those with rules for its names, and those with its keys.
func (z *Zones) touch(touched map[string]bool, ns *stele.Namespace) {
	if zone := ns.Publication.Zone; zone != "" {
		touched[zone] = true
		if around := z.Around(zone); around != "" {
			touched[around] = true
		}
	}
	key, _ := KeyOf(z.tree.Schemes(), ns.Key())
	for zone, owner := range z.owners {
		switch {
		case key.Host == zone: // it has rules for all URIs with that host
			touched[zone] = true
		case owner.Publication.Layout == stele.LayoutRoot:
			// A root has keys of all that begin with the name of its scheme, that of URIs
			// of all whose names are URIs.
			root := RootOf(z.tree.Schemes(), owner.Scheme)
			if strings.HasPrefix(ns.Prefix, root+":") || root == URIs && RootOf(z.tree.Schemes(), ns.Scheme) == URIs {
				touched[zone] = true
			}
		case strings.HasPrefix(ns.Prefix, owner.Prefix),
			len(ns.Keys) > 0 && ns.Scheme == owner.Scheme && strings.HasPrefix(owner.Prefix, ns.Prefix):
			touched[zone] = true
		}
	}
}

// sameInDNS reports whether two versions of a namespace differ in nothing that is, or
// decides what is, in a zone.
func sameInDNS(a, b *stele.Namespace) bool {
	if a == nil || b == nil {
		return a == b
	}
	return inDNS(a).Equal(inDNS(b))
}

// inDNS returns a namespace without what is not in the DNS. What is added to namespaces
// counts, until this function says that it does not.
func inDNS(ns *stele.Namespace) *stele.Namespace {
	c := *ns
	c.Owner, c.Title, c.Hosts, c.Protocols, c.Quota, c.Grants, c.Checked, c.Passthrough, c.Reviewed, c.Listed, c.Handles, c.Status = "", "", nil, nil, 0, nil, false, false, false, false, stele.HandleService{}, 0
	if c.Publication.Layout != stele.LayoutRules { // at whose apex they are published
		c.Rules = nil
	}
	if c.Minter.Kind != stele.MinterIBI { // whose settings give the namespace names under other prefixes
		c.Minter = stele.Minter{}
	}
	c.Publication.Secondaries = nil
	c.Publication.Exact = false
	c.Publication.Catalog = "" // it is in the catalog; see Touched
	if c.HandOver.State != stele.Forwarded {
		c.HandOver = stele.HandOver{}
	}
	c.Heirs, c.Adoptions = nil, nil
	c.Version, c.Created, c.Modified, c.By = 0, time.Time{}, time.Time{}, ""
	return &c
}
