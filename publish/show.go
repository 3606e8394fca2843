package publish

import (
	"context"
	"errors"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/naptr"
)

// Listed is a zone in a list.
type Listed struct {
	Zone      string
	Namespace stele.NamespaceKey
	Layout    stele.Layout
	Serial    uint32
	Shut      bool // it is not transferred; see [stele.ZoneState]
}

func (z *Zone) listed() Listed {
	return Listed{z.Name, z.ns.Key(), z.ns.Publication.Layout, z.serial.now(), z.serial.isShut()}
}

// List returns all zones, in order of their names.
func (z *Zones) List(ctx context.Context) (list []Listed, err error) {
	set, err := z.current(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range set.order {
		list = append(list, set.zones[name].listed())
	}
	return list, nil
}

// Entry is a record of the DNS, as a master file has it.
type Entry struct {
	Owner string
	Text  string // TTL, class, type and data
}

func entries(records []dns.RR) (list []Entry) {
	for _, rr := range records {
		list = append(list, Entry{rr.Header().Name, naptr.Text(rr)})
	}
	return list
}

// Shown is what a zone has beside its records' names.
type Shown struct {
	Listed
	Secondaries []stele.Secondary
	Records     []Entry
}

// Show returns what a zone has that does not depend on single records.
func (z *Zones) Show(ctx context.Context, name string) (*Shown, error) {
	one, err := z.zoneNamed(ctx, name)
	if err != nil {
		return nil, err
	}
	soa, ns := one.Apex()
	n, err := one.Lookup(ctx, one.Name)
	if err != nil {
		return nil, err
	}
	list := append(append([]dns.RR{soa}, ns...), n.Records...)
	if one.signer != nil {
		list = append(list, one.signer.Records...)
	}
	for _, name := range one.staticNames() {
		records, err := one.fixedAt(ctx, name)
		if err != nil && !errors.Is(err, errReading) {
			return nil, err
		}
		list = append(list, records...)
	}
	return &Shown{one.listed(), one.ns.Publication.Secondaries, entries(list)}, nil
}

// Place is where an identifier stands in the DNS.
type Place struct {
	Zone    string         // "" if it is not published
	Owner   string         // "" if it has no owner name
	Reason  *stele.Message // why it has none, or why nothing is there
	Records []Entry
	Notes   []*stele.Message // what could not be published as it is
}

// Where returns where an identifier stands, and what is there.
func (z *Zones) Where(ctx context.Context, id stele.ID) (*Place, error) {
	set, err := z.current(ctx)
	if err != nil {
		return nil, err
	}
	one := set.zoneOf(id)
	if one == nil {
		return &Place{Reason: set.whyNot(id)}, nil
	}
	p := &Place{Zone: one.Name}
	if one.mapping == nil {
		p.Owner = one.Name
	} else if p.Owner, p.Reason = one.mapping.Owner(id.String()); p.Reason != nil {
		return p, nil
	}
	if err := one.index.await(ctx); err != nil {
		return nil, err
	}
	n, err := one.Lookup(ctx, p.Owner)
	if err != nil {
		return nil, err
	}
	p.Records = entries(n.Records)
	if one.mapping == nil {
		return p, nil
	}
	list, err := one.at(ctx, p.Owner)
	if err != nil {
		return nil, err
	}
	p.Notes = one.compiler().Compile(list).Notes
	for _, n := range list {
		if n.ID == id {
			return p, nil
		}
	}
	p.Reason = stele.Messagef("place.not-public", "it is not registered, or not public")
	return p, nil
}

// whyNot says why an identifier is in no zone here.
func (s *zoneSet) whyNot(id stele.ID) *stele.Message {
	ns := s.published.DestinationOf(id)
	switch {
	case ns == nil:
		return stele.Messagef("place.namespace-unpublished", "its namespace is not published; 'stele zone add' does that")
	case len(ns.Publication.Elsewhere) > 0:
		return stele.Messagef("place.answered-elsewhere", "others answer for {namespace}: {where}", ns.Key(), ns.Publication.Elsewhere[0].At)
	case ns.Publication.IsZero():
		return stele.Messagef("place.delegated", "another resolver answers for {namespace}: {where}", ns.Key(), ns.AnsweredAt())
	}
	return stele.Messagef("place.namespace-unpublished", "its namespace is not published; 'stele zone add' does that")
}
