package registrar

import (
	"context"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
)

// HandOvers returns the namespaces at and below a key that are handed over, were adopted or name heirs, in order, to everybody: the public sees where its
// requests go, and two registries see how far the other one is. If heirs of the key are named above it, the namespace that names them is in the list, too. It
// shows no other settings, and principals to administrators alone. With the zero key it returns those of all schemes, for which the caller must be an administrator.
func (r *Registrar) HandOvers(ctx context.Context, key stele.NamespaceKey) (list []*stele.Namespace, err error) {
	const op = "show hand-over"
	if key == (stele.NamespaceKey{}) {
		if err := administrateBy(ctx, op, stele.ID{}, auth.ScopeRead); err != nil {
			return nil, err
		}
	}
	s, err := r.view(ctx)
	if err != nil {
		return nil, err
	}
	keys := s.ordered()
	if key != (stele.NamespaceKey{}) {
		keys = s.below(key)
		for _, above := range s.ancestorsAt(key) {
			if len(above.Heirs) == 0 {
				continue
			}
			if above.Key() != key {
				keys = append([]stele.NamespaceKey{above.Key()}, keys...)
			}
			break
		}
	}
	named := auth.From(ctx).Administers(auth.ScopeRead)
	for _, at := range keys {
		ns := s.Get(at).Namespace
		if ns.SameHandOver(&stele.Namespace{}) && len(ns.Heirs) == 0 {
			continue
		}
		one := &stele.Namespace{Scheme: ns.Scheme, Prefix: ns.Prefix, Heirs: slices.Clone(ns.Heirs), HandOver: ns.HandOver, Adoptions: slices.Clone(ns.Adoptions)}
		if !named {
			one.HandOver.By = ""
			for i := range one.Adoptions {
				one.Adoptions[i].By = ""
			}
		}
		list = append(list, one)
	}
	return list, nil
}

// SealPlan is what a seal would do.
type SealPlan struct {
	Heir, Address string
	Registry      string // the name of this registry; "" if its log has none yet, without which no bundle is made

	Namespaces []PlannedNamespace // those that would be sealed, in order
	Reserved   uint64             // records that are reserved: they go to the heir as such
	Inward     Crossing           // aliases in the namespaces, of records elsewhere that are not handed over to the same heir: a seal is refused as long as there are any
	Outward    Crossing           // aliases elsewhere, of records in the namespaces
	Read       int                // records that were looked at
}

// PlannedNamespace is a namespace that would be sealed.
type PlannedNamespace struct {
	Key          stele.NamespaceKey
	State        stele.HandOverState // now
	Records      uint64
	Minter       stele.MinterKind // "" if it makes no names
	Given, Total uint64           // names of the minter's template; 0 if it has none
}

// Crossing are aliases of which the record is on the other side of the border of what is handed over.
type Crossing struct {
	Count uint64
	Some  []CrossingAlias // the first of them
}

// CrossingAlias is an alias, and the record that has it.
type CrossingAlias struct{ Alias, ID stele.ID }

// maxCrossing is how many aliases a plan has of each kind.
const maxCrossing = 10

func (c *Crossing) add(alias, id stele.ID) {
	if c.Count++; len(c.Some) < maxCrossing {
		c.Some = append(c.Some, CrossingAlias{alias, id})
	}
}

// Records returns how many records would be sealed.
func (p *SealPlan) Records() (n uint64) {
	for i := range p.Namespaces {
		n += p.Namespaces[i].Records
	}
	return n
}

// Document returns the plan as the API shows it.
func (p *SealPlan) Document() apijson.SealPlan {
	d := apijson.SealPlan{Done: true, Read: p.Read, Heir: p.Heir, Address: p.Address, Registry: p.Registry, Records: p.Records(), Reserved: p.Reserved, Inward: p.Inward.document(), Outward: p.Outward.document()}
	for _, ns := range p.Namespaces {
		d.Namespaces = append(d.Namespaces, apijson.SealNamespace{Scheme: ns.Key.Scheme, Prefix: ns.Key.Prefix, State: string(ns.State), Records: ns.Records, Minter: string(ns.Minter), Given: ns.Given, Total: ns.Total})
	}
	return d
}

func (c *Crossing) document() *apijson.SealCrossing {
	d := &apijson.SealCrossing{Count: c.Count, Some: []apijson.SealAlias{}}
	for _, a := range c.Some {
		d.Some = append(d.Some, apijson.SealAlias{Alias: a.Alias.String(), ID: a.ID.String()})
	}
	return d
}

// PlanSeal returns what SealNamespace would do, or the error with which it would refuse. It writes nothing. An alias can belong to any record, so
// it reads all records; it calls progress, if that is not nil, with the number of records read so far. Only an administrator may.
func (r *Registrar) PlanSeal(ctx context.Context, key stele.NamespaceKey, progress func(read int)) (*SealPlan, error) {
	const op = "seal namespace"
	s, top, err := r.maySeal(ctx, op, key)
	if err != nil {
		return nil, err
	}
	own, err := r.LogOrigin(ctx)
	if err != nil {
		return nil, err
	}
	p := &SealPlan{Heir: top.Heir, Address: top.Address, Registry: own.Origin}
	at := make(map[stele.NamespaceKey]int)
	for _, k := range s.below(key) {
		ns := s.Get(k).Namespace
		one := PlannedNamespace{Key: k, State: ns.HandOver.State, Minter: ns.Minter.Kind}
		if one.Minter != stele.NoMinter {
			status, err := r.MinterStatus(ctx, k)
			if err != nil {
				return nil, err
			}
			one.Given, one.Total = status.Given, status.Total
		}
		at[k] = len(p.Namespaces)
		p.Namespaces = append(p.Namespaces, one)
	}
	return p, r.planRecords(ctx, op, s, p, at, progress)
}

// MaySeal returns the error with which SealNamespace would refuse to seal a namespace as it is now.
func (r *Registrar) MaySeal(ctx context.Context, key stele.NamespaceKey) error {
	_, _, err := r.maySeal(ctx, "seal namespace", key)
	return err
}

func (r *Registrar) maySeal(ctx context.Context, op string, key stele.NamespaceKey) (*namespaceTree, stele.HandOver, error) {
	if err := administrate(ctx, op, stele.ID{}); err != nil {
		return nil, stele.HandOver{}, err
	}
	top, err := r.offered(ctx, op, key)
	if err != nil {
		return nil, stele.HandOver{}, err
	}
	s, err := r.view(ctx)
	if err != nil {
		return nil, stele.HandOver{}, err
	}
	step := sealing(op, key, top)
	for _, k := range s.below(key) {
		if _, err := step(s.Get(k).Namespace); err != nil {
			return nil, stele.HandOver{}, err
		}
	}
	return s, top, nil
}

// planRecords counts the records and the aliases of a plan, whose namespaces stand at these places.
func (r *Registrar) planRecords(ctx context.Context, op string, s *namespaceTree, p *SealPlan, at map[stele.NamespaceKey]int, progress func(read int)) error {
	in := func(id stele.ID) (int, bool) {
		ns := s.Of(id)
		if ns == nil {
			return 0, false
		}
		i, ok := at[ns.Key()]
		return i, ok
	}
	for scheme := range r.schemes.All() {
		for rec, err := range r.store.Scan(ctx, scheme.Name(), "", "") {
			if err != nil {
				return tell(op, err)
			}
			if p.Read++; progress != nil {
				progress(p.Read)
			}
			i, inside := in(rec.ID)
			if inside {
				p.Namespaces[i].Records++
				if rec.State == stele.Reserved {
					p.Reserved++
				}
			}
			for _, alias := range rec.Aliases {
				switch _, there := in(alias); {
				case inside && !there:
					p.Outward.add(alias, rec.ID)
				case there && !inside && !s.goesTo(rec.ID, p):
					p.Inward.add(alias, rec.ID)
				}
			}
		}
	}
	return nil
}

// goesTo reports whether the namespace of a name is handed over to the heir of a plan, or is offered to it: its records, with all their aliases, are that registry's then.
func (s *namespaceTree) goesTo(id stele.ID, p *SealPlan) bool {
	ns := s.Of(id)
	return ns != nil && ns.HandOver.State != stele.NotHandedOver && ns.HandOver.Heir == p.Heir && ns.HandOver.Address == p.Address
}

// maxSeeks bounds how often SampleNamespace asks the store.
const maxSeeks = 400

// SampleNamespace returns up to n records that the public can resolve, of a namespace and all below it, from everywhere among their names: as
// a sample of what another registry must know. Only an administrator may.
func (r *Registrar) SampleNamespace(ctx context.Context, key stele.NamespaceKey, n int) ([]*stele.Record, error) {
	const op = "sample namespace"
	if err := administrate(ctx, op, stele.ID{}); err != nil {
		return nil, err
	}
	s, err := r.view(ctx)
	if err != nil {
		return nil, err
	}
	below := make(map[stele.NamespaceKey]bool)
	for _, k := range s.below(key) {
		below[k] = true
	}
	found := make(map[stele.ID]*stele.Record)
	// The names are a tree of their beginnings. Each level has the beginnings that are a byte longer, and the first name with each of them. Names
	// that differ most are found first, and a level is looked at as a whole, so that its names are from everywhere.
	seeks := 0
	for level := []string{key.Prefix}; len(level) > 0 && len(found) < n && seeks < maxSeeks; {
		var next []string
		for _, start := range level {
			for after := ""; seeks < maxSeeks; {
				seeks++
				rec, err := r.firstAfter(ctx, key.Scheme, start, after)
				if err != nil {
					return nil, tell(op, err)
				}
				if rec == nil {
					break
				}
				if ns := s.Of(rec.ID); ns != nil && below[ns.Key()] && rec.State == stele.Active && rec.IsPublic() {
					found[rec.ID] = rec
				}
				text := rec.ID.String()
				if len(text) == len(start) {
					after = text
					continue
				}
				longer := text[:len(start)+1]
				next, after = append(next, longer), longer+"\xff" // which no name has: all that begin so come before it
			}
		}
		level = next
	}
	list := make([]*stele.Record, 0, len(found))
	for _, rec := range found {
		list = append(list, rec)
	}
	slices.SortFunc(list, func(a, b *stele.Record) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	if len(list) <= n {
		return list, nil
	}
	some := make([]*stele.Record, n)
	for i := range some {
		some[i] = list[i*(len(list)-1)/max(n-1, 1)]
	}
	return some, nil
}

// firstAfter returns the first record whose name begins so and comes after a text; nil if there is none.
func (r *Registrar) firstAfter(ctx context.Context, scheme, start, after string) (*stele.Record, error) {
	for rec, err := range r.store.Scan(ctx, scheme, start, after) {
		return rec, err
	}
	return nil, nil
}
