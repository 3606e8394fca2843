package dnsd

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/stele-id/stele"
)

// standing is what a zone has beside what is registered, and by what that is published.
type standing struct {
	form  string           // with the same one, the same records are published and signed alike
	spots map[string]*spot // by name, without the SOA record
	text  string           // of all of them
}

// stands returns what the zone has beside what is registered.
func (z *zone) stands() *standing {
	s := &standing{form: z.form(), spots: make(map[string]*spot)}
	if by := z.seals; by != nil {
		s.form += fmt.Sprintln(by.mode, by.since.Unix(), tags(by.forKeys), tags(by.forZone))
	}
	var b strings.Builder
	note := func(p *spot) error {
		s.spots[p.name] = p
		fmt.Fprintln(&b, p.name, p.cut, p.glue)
		for _, rr := range p.records {
			fmt.Fprintln(&b, rr)
		}
		return nil
	}
	for _, name := range append([]string{z.name}, z.names()...) {
		if z.set.find(name) != z {
			continue
		}
		p := &spot{name: name, records: z.fixed[name], yields: z.yields[name]}
		if name == z.name {
			_, ns := z.apex()
			p.records = slices.Concat(ns, p.records)
			if z.seals != nil {
				p.records = append(p.records, z.seals.records...)
			}
		}
		_ = note(p) // never fails
	}
	_ = z.everyCut(note) // fails only if note does
	s.text = b.String()
	return s
}

// form is all that the publication of records depends on beside themselves: how their
// names are cut and where, the settings of the namespaces that they can belong to, and the
// SOA record but for its serial.
func (z *zone) form() string {
	var b strings.Builder
	fmt.Fprintln(&b, z.name, z.ns.Scheme, z.primary(), z.mailbox(), z.ttl)
	if z.ns.Publication.Layout == stele.LayoutRoot || z.isCatalog() {
		return b.String() // nothing of records is in it
	}
	for _, ns := range z.set.under(z.ns) {
		p := &ns.Publication
		fmt.Fprintf(&b, "%q %d %+v %t %q %s %q %d %q\n", ns.Prefix, ns.TTL, ns.Persistence, leads(ns), p.Zone, p.Layout, p.Separator, p.Parts, p.Resolver)
	}
	for _, name := range z.set.order {
		if z.contains(name) {
			fmt.Fprintln(&b, name)
		}
	}
	return b.String()
}

func tags(keys []signingKey) (list []uint16) {
	for _, k := range keys {
		list = append(list, k.tag)
	}
	return list
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

// maxEras is how many eras of a zone are known.
const maxEras = 16

// era is from which change to which a zone is known to have had the same standing.
type era struct {
	from, to uint64
	*standing
}

// eras know what zones were beside what is registered: the store has no former
// settings. Whoever gets a zone gets it in an era, so what has changed for them since can
// be told if the settings have. It is forgotten with the process.
type eras struct {
	mu    sync.Mutex
	zones map[string]*zoneEras
}

type zoneEras struct {
	set  *zoneSet // of which the last one is
	list []era
}

// note notes that a zone was of its set at a change, and returns what it had.
func (e *eras) note(z *zone, set *zoneSet, at uint64) *standing {
	e.mu.Lock()
	defer e.mu.Unlock()
	known := e.zones[z.name]
	if known == nil {
		known = new(zoneEras)
		e.zones[z.name] = known
	}
	n := len(known.list)
	if n > 0 && known.set == set {
		last := &known.list[n-1]
		last.from, last.to = min(last.from, at), max(last.to, at)
		return last.standing
	}
	now := z.stands()
	if n > 0 && known.list[n-1].form == now.form && known.list[n-1].text == now.text {
		now = known.list[n-1].standing // once is enough
	}
	known.set, known.list = set, append(known.list, era{at, at, now})
	if len(known.list) > maxEras {
		known.list = slices.Delete(known.list, 0, 1)
	}
	return now
}

// knows reports whether something is noted of a zone.
func (e *eras) knows(name string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.zones[name] != nil
}

// at returns what a zone had at a change, behind which some namespace changed first with
// the next; nil if nobody knows.
func (e *eras) at(name string, change, next uint64) *standing {
	e.mu.Lock()
	defer e.mu.Unlock()
	known := e.zones[name]
	if known == nil {
		return nil
	}
	for _, one := range known.list {
		if one.from <= change && change <= one.to || change < one.from && one.from < next {
			return one.standing
		}
	}
	return nil
}

// forgetAll forgets all zones: the changes that their eras began with may be others now.
func (e *eras) forgetAll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.zones)
}

// forgetOthers forgets zones that are no more.
func (e *eras) forgetOthers(set *zoneSet) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for name := range e.zones {
		if set.zones[name] == nil {
			delete(e.zones, name)
		}
	}
}
