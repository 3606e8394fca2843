package publish

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/stele-id/stele"
)

// staticRecords is the records of a zone that do not depend on registered identifiers, and
// the settings by which those are published.
type staticRecords struct {
	form   string                   // with the same one, the same records are published and signed alike
	owners map[string]*OwnerRecords // by name, without the SOA record
	text   string                   // of all of them
}

// staticRecords returns the records of the zone that do not depend on registered
// identifiers.
func (z *Zone) staticRecords() *staticRecords {
	s := &staticRecords{form: z.form(), owners: make(map[string]*OwnerRecords)}
	if by := z.signer; by != nil {
		s.form += by.Version()
	}
	var b strings.Builder
	note := func(p *OwnerRecords) error {
		s.owners[p.Name] = p
		fmt.Fprintln(&b, p.Name, p.Delegated, p.Glue)
		for _, rr := range p.Records {
			fmt.Fprintln(&b, rr)
		}
		return nil
	}
	for _, name := range append([]string{z.Name}, z.staticNames()...) {
		if z.set.find(name) != z {
			continue
		}
		p := &OwnerRecords{Name: name, Records: z.static[name], yields: z.yields[name]}
		if name == z.Name {
			_, ns := z.Apex()
			p.Records = slices.Concat(ns, p.Records)
			if z.signer != nil {
				p.Records = append(p.Records, z.signer.Records...)
			}
		}
		_ = note(p) // never fails
	}
	_ = z.eachDelegation(note) // fails only if note does
	s.text = b.String()
	return s
}

// form is all that the publication of records depends on beside themselves: how their
// names are cut and where, the settings of the namespaces that they can belong to, and the
// SOA record except its serial.
func (z *Zone) form() string {
	var b strings.Builder
	fmt.Fprintln(&b, z.Name, z.ns.Scheme, z.primary(), z.mailbox(), z.ttl)
	if z.ns.Publication.Layout == stele.LayoutRoot || z.isCatalog() {
		return b.String() // the zone has no records of identifiers
	}
	for _, ns := range z.set.under(z.ns) {
		p := &ns.Publication
		fmt.Fprintf(&b, "%q %d %+v %t %q %s %q %d %q\n", ns.Prefix, ns.TTL, ns.Persistence, hasDestination(ns), p.Zone, p.Layout, p.Separator, p.Parts, p.Resolver)
		if p.Layout == stele.LayoutRules && len(ns.Rules) > 0 {
			fmt.Fprintf(&b, "%+v\n", ns.Rules)
		}
	}
	for _, name := range z.set.order {
		if z.contains(name) {
			fmt.Fprintln(&b, name)
		}
	}
	return b.String()
}

// under returns the namespaces whose prefixes begin as that of another one does.
func (s *zoneSet) under(above *stele.Namespace) []*stele.Namespace {
	begin, _ := slices.BinarySearchFunc(s.list, above, func(a, b *stele.Namespace) int {
		return cmp.Or(strings.Compare(a.Scheme, b.Scheme), strings.Compare(a.Prefix, b.Prefix))
	})
	end := begin
	for end < len(s.list) && s.list[end].Scheme == above.Scheme && strings.HasPrefix(s.list[end].Prefix, above.Prefix) {
		end++
	}
	return s.list[begin:end]
}

// maxGenerations is how many generations of a zone are kept.
const maxGenerations = 16

// generation is from which change to which a zone is known to have had the same static
// records.
type generation struct {
	from, to uint64
	*staticRecords
}

// generations know the static records that zones had: the store does not keep former
// settings. With them the server can make a delta for a secondary after the settings have
// changed. They are kept in memory only.
type generations struct {
	mu    sync.Mutex
	zones map[string]*zoneGenerations
}

type zoneGenerations struct {
	set  *zoneSet // of which the last one is
	list []generation
}

// note notes that a zone was of its set at a change, and returns what it had.
func (e *generations) note(z *Zone, set *zoneSet, at uint64) *staticRecords {
	e.mu.Lock()
	defer e.mu.Unlock()
	known := e.zones[z.Name]
	if known == nil {
		known = new(zoneGenerations)
		e.zones[z.Name] = known
	}
	n := len(known.list)
	if n > 0 && known.set == set {
		last := &known.list[n-1]
		last.from, last.to = min(last.from, at), max(last.to, at)
		return last.staticRecords
	}
	now := z.staticRecords()
	if n > 0 && known.list[n-1].form == now.form && known.list[n-1].text == now.text {
		now = known.list[n-1].staticRecords // once is enough
	}
	known.set, known.list = set, append(known.list, generation{at, at, now})
	if len(known.list) > maxGenerations {
		known.list = slices.Delete(known.list, 0, 1)
	}
	return now
}

// knows reports whether something is noted of a zone.
func (e *generations) knows(name string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.zones[name] != nil
}

// at returns what a zone had at a change, if the first change of a namespace after it has
// the number next; nil if that is not known.
func (e *generations) at(name string, change, next uint64) *staticRecords {
	e.mu.Lock()
	defer e.mu.Unlock()
	known := e.zones[name]
	if known == nil {
		return nil
	}
	for _, one := range known.list {
		if one.from <= change && change <= one.to || change < one.from && one.from < next {
			return one.staticRecords
		}
	}
	return nil
}

// forgetAll forgets all zones: the changes that their generations began with may be others now.
func (e *generations) forgetAll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.zones)
}

// forgetOthers forgets zones that no longer exist.
func (e *generations) forgetOthers(set *zoneSet) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for name := range e.zones {
		if set.zones[name] == nil {
			delete(e.zones, name)
		}
	}
}
