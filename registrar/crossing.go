package registrar

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// A record of one namespace may have an alias in another one. The heir of the other one has the alias only with the record. So a seal is refused as long as the record does not go
// to the heir, too (see SealNamespace), and what the seal relied on must hold after it.

// errUnread says that the records of namespaces were not read for aliases in all namespaces that are sealed now.
var errUnread = stele.Messagef("hand-over.aliases-unread", "another namespace was sealed meanwhile; try again")

// backward are namespaces whose hand-over ends or goes to another registry, though none of them is sealed.
type backward struct {
	heir map[stele.NamespaceKey]stele.HandOver // that each was offered to
	read map[stele.NamespaceKey]bool           // namespaces that were sealed when the records were read for aliases in them
}

// note remembers what becomes of a namespace.
func (b *backward) note(before, next *stele.Namespace) {
	if h, n := before.HandOver, next.HandOver; h.State == stele.Offered && (n.Heir != h.Heir || n.Address != h.Address) {
		b.heir[before.Key()] = h
	}
}

// sealed returns the namespaces that are sealed for a registry that loses one of the others.
func (b *backward) sealed(s *namespaceTree) (list []stele.NamespaceKey) {
	for _, key := range s.ordered() {
		ns := s.Get(key)
		if !ns.IsSealed() {
			continue
		}
		for _, h := range b.heir {
			if h.Heir == ns.HandOver.Heir {
				list = append(list, key)
				break
			}
		}
	}
	return list
}

// backHandOver is handOver for a step after which namespaces that were offered to a registry do not go there. It refuses that if records in them have aliases in namespaces that are
// sealed for that registry. The records are read while no lock is held. To a namespace that is sealed no alias is added any more, so that they are read once for each.
func (r *Registrar) backHandOver(ctx context.Context, op string, key stele.NamespaceKey, step func(ns *stele.Namespace) (stele.HandOver, error)) ([]*stele.Namespace, error) {
	b := &backward{read: make(map[stele.NamespaceKey]bool)}
	for {
		b.heir = make(map[stele.NamespaceKey]stele.HandOver)
		list, err := r.writeNamespacesAnd(ctx, op, key, false, func(before, next *stele.Namespace) error {
			err := r.stepTo(ctx, next, step)
			b.note(before, next)
			return err
		}, func(_ *stele.Commit, changed *namespaceTree) error {
			for _, at := range b.sealed(changed) {
				if !b.read[at] {
					return errUnread
				}
			}
			return nil
		})
		if !errors.Is(err, errUnread) {
			return list, err
		}
		if err := r.mayTakeBack(ctx, op, key, b); err != nil {
			return nil, err
		}
	}
}

// mayTakeBack refuses to take back an offer of a namespace in which records have aliases in namespaces that are sealed for the same registry.
func (r *Registrar) mayTakeBack(ctx context.Context, op string, key stele.NamespaceKey, b *backward) error {
	s, err := r.latestView(ctx)
	if err != nil {
		return err
	}
	sealed := make(map[stele.NamespaceKey]bool)
	for _, at := range b.sealed(s) {
		sealed[at] = true
	}
	below := make(map[stele.NamespaceKey]bool) // also those that were added since the offer, and took names over
	for _, at := range s.below(key) {
		below[at] = !s.Get(at).IsSealed()
	}
	var found Crossing
	for rec, err := range r.store.Scan(ctx, key.Scheme, key.Prefix, "") {
		if err != nil {
			return tell(op, err)
		}
		if node := s.Of(rec.ID); node == nil || !below[node.Key()] {
			continue
		}
		for _, alias := range rec.Aliases {
			if node := s.Of(alias); node != nil && sealed[node.Key()] {
				found.add(alias, rec.ID)
			}
		}
	}
	if found.Count > 0 {
		heir := ""
		for _, h := range b.heir {
			heir = h.Heir
		}
		return refuse(op, stele.ID{}, stele.Conflict, "hand-over.aliases-sealed", "{count} aliases of records in {namespace} are in namespaces that are sealed for {heir}: it gets them only with these records, and could give these names to other things. Hand {namespace} over to it, too, or cancel the seal of those namespaces first. The aliases are: {aliases}", found.Count, key, heir, found.text())
	}
	for at := range sealed {
		b.read[at] = true
	}
	return nil
}

// latestView returns the namespaces as they are in the store now.
func (r *Registrar) latestView(ctx context.Context) (*namespaceTree, error) {
	if err := r.Reload(ctx); err != nil {
		return nil, err
	}
	return r.view(ctx)
}

// text returns the first aliases as a list for people.
func (c *Crossing) text() string {
	some := make([]string, 0, len(c.Some))
	for _, a := range c.Some {
		some = append(some, a.Alias.String()+" of "+a.ID.String())
	}
	return strings.Join(some, ", ")
}

// Carries refuses a bundle of namespaces that were handed over if names in them are aliases of records that the bundle does not have: its heir would not know these names, and
// could give them to other things. An alias can belong to any record, so it reads all of them, once for each namespace.
func (b *Bundling) Carries(ctx context.Context, spaces []*stele.Namespace) error {
	const op = "bundle"
	sealed := make(map[stele.NamespaceKey]bool)
	for _, ns := range spaces {
		if ns.IsSealed() && !b.all && !b.carried[ns.Key()] {
			sealed[ns.Key()] = true
		}
	}
	if len(sealed) == 0 {
		return nil
	}
	var found Crossing
	var lack []string
	for scheme := range b.r.schemes.All() {
		for rec, err := range b.r.store.Scan(ctx, scheme.Name(), "", "") {
			if err != nil {
				return tell(op, err)
			}
			if len(rec.Aliases) == 0 || b.hasName(rec.ID) {
				continue
			}
			for _, alias := range rec.Aliases {
				if node := b.tree.Of(alias); node == nil || !sealed[node.Key()] {
					continue
				}
				found.add(alias, rec.ID)
				if node := b.tree.Of(rec.ID); node != nil && !slices.Contains(lack, node.Key().String()) && len(lack) < maxCrossing {
					lack = append(lack, node.Key().String())
				}
			}
		}
	}
	if found.Count > 0 {
		some := found.text()
		if !auth.From(ctx).Administers(auth.ScopeRead) { // the records may be hidden from an owner of the aliases
			var aliases []string
			for _, a := range found.Some {
				aliases = append(aliases, a.Alias.String())
			}
			some = strings.Join(aliases, ", ")
		}
		return refuse(op, stele.ID{}, stele.Conflict, "bundle.aliases-inward", "{count} aliases in namespaces that were handed over belong to records that are not in the bundle: the heir would not know these names, and could give them to other things; make one bundle with {namespaces}, too. The aliases are: {aliases}", found.Count, strings.Join(lack, ", "), some)
	}
	for key := range sealed {
		b.carried[key] = true
	}
	return nil
}
