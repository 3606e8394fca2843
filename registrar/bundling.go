package registrar

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/namespaces"
	"github.com/stele-id/stele/registrar/minting"
)

// Bundling reads what a bundle has: all that is kept of some namespaces, in every version, except secrets and what is withheld from
// all.
type Bundling struct {
	r    *Registrar
	keys []stele.NamespaceKey // the beginnings of names, in order; none begins with another
	all  bool

	// A name that begins with a prefix may belong to another namespace: ark:123456/x begins with ark:12345. It is in the bundle
	// only if it is below a namespace that the caller was judged by.
	tree *namespaceTree
	in   []stele.NamespaceKey // those namespaces

	last atomic.Pointer[bundledSpace] // that was asked for last: neighbouring names are in the same one

	carried map[stele.NamespaceKey]bool // namespaces of which the bundle has all aliases; see Carries
}

// bundledSpace says whether the names of a namespace are in a bundle, as far as they begin with its prefixes.
type bundledSpace struct {
	node *namespaces.Node
	in   bool
}

// BundledVersion is a version of a record.
type BundledVersion struct {
	Shown *stele.Record // as a bundle has it

	// Logged is the version as it was logged. It is another record than Shown if the bundle can't have all of it: then it never leaves
	// the registry.
	Logged *stele.Record
}

// Bundling returns what reads all of the namespaces that begin with the prefixes, or of the whole registry if there is none. Only
// an administrator may have all; owners may have what is theirs. It refuses what [Bundling.Carries] does.
func (r *Registrar) Bundling(ctx context.Context, prefixes ...stele.NamespaceKey) (*Bundling, error) {
	const op = "bundle"
	b := &Bundling{r: r, all: len(prefixes) == 0, carried: make(map[stele.NamespaceKey]bool)}
	if b.all {
		if err := administrateBy(ctx, op, stele.ID{}, auth.ScopeBackup); err != nil {
			return nil, err
		}
		for s := range r.schemes.All() {
			b.keys = append(b.keys, stele.NamespaceKey{Scheme: s.Name()})
		}
	} else {
		s, err := r.view(ctx)
		if err != nil {
			return nil, err
		}
		if err := identify(ctx, op); err != nil {
			return nil, err
		}
		for _, key := range prefixes {
			ancestors := s.ancestorsAt(key)
			if who := auth.From(ctx); !auth.MayManage(who, ancestors...) {
				return nil, refuse(op, stele.ID{}, stele.Forbidden, "user.may-not-bundle", `"{user}" may not make a bundle of {prefix}; its owners and administrators can`, who.Name, key)
			}
			b.in = append(b.in, ancestors[0].Key())
		}
		b.tree = s
		b.keys = slices.Clone(prefixes)
	}
	slices.SortFunc(b.keys, compareKeys)
	b.keys = slices.CompactFunc(b.keys, func(a, b stele.NamespaceKey) bool {
		return a.Scheme == b.Scheme && strings.HasPrefix(b.Prefix, a.Prefix)
	})
	spaces, err := b.Current(ctx)
	if err != nil {
		return nil, err
	}
	return b, b.Carries(ctx, spaces)
}

// All reports whether the bundle is of the whole registry.
func (b *Bundling) All() bool { return b.all }

// Prefixes returns the beginnings of the names, by scheme and then by prefix. None begins with another.
func (b *Bundling) Prefixes() []stele.NamespaceKey { return b.keys }

// Has reports whether a change is of a record or a namespace of the bundle.
func (b *Bundling) Has(c *stele.Change) bool {
	if b.all {
		return true
	}
	if c.ID.IsValid() {
		return b.hasName(c.ID)
	}
	return b.has(c.Namespace)
}

// hasName reports whether a record is one of the bundle.
func (b *Bundling) hasName(id stele.ID) bool {
	if b.all || !b.begins(id.Scheme(), id.String()) {
		return b.all
	}
	node := b.tree.Of(id)
	if s := b.last.Load(); s != nil && s.node == node {
		return s.in
	}
	s := &bundledSpace{node, b.below(b.tree.ancestors(id, node))}
	if node != nil {
		b.last.Store(s)
	}
	return s.in
}

// has reports whether a namespace, or a prefix of names, is one of the bundle.
func (b *Bundling) has(key stele.NamespaceKey) bool {
	return b.all || b.begins(key.Scheme, key.Prefix) && b.below(b.tree.ancestorsAt(key))
}

// begins reports whether a text begins with a prefix of the bundle.
func (b *Bundling) begins(scheme, text string) bool {
	return slices.ContainsFunc(b.keys, func(k stele.NamespaceKey) bool { return k.Scheme == scheme && strings.HasPrefix(text, k.Prefix) })
}

// below reports whether one of the namespaces is one that the caller was judged by.
func (b *Bundling) below(ancestors []*stele.Namespace) bool {
	return slices.ContainsFunc(ancestors, func(ns *stele.Namespace) bool { return slices.Contains(b.in, ns.Key()) })
}

// IsRedactedSince reports whether a record of the bundle was redacted after a change: what was written of it before must not be kept.
func (b *Bundling) IsRedactedSince(ctx context.Context, change uint64) (bool, error) {
	list, err := readRedactions(ctx, b.r.store, change)
	if err != nil {
		return false, tell("bundle", err)
	}
	for id := range list {
		if b.hasName(id) {
			return true, nil
		}
	}
	return false, nil
}

// Scan yields the records that begin with a prefix of the bundle and come after a name, in their current version, as the store has
// them.
func (b *Bundling) Scan(ctx context.Context, key stele.NamespaceKey, after string) iter.Seq2[*stele.Record, error] {
	return func(yield func(*stele.Record, error) bool) {
		for rec, err := range b.r.store.Scan(ctx, key.Scheme, key.Prefix, after) {
			if err == nil && !b.hasName(rec.ID) {
				continue
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// longHistory is from how many versions on a history is read version by version.
const longHistory = 200

// Last returns the last version of a record.
func (b *Bundling) Last(current *stele.Record) BundledVersion { return bundled(current, current) }

// Versions yields the versions of a record from one on, the oldest first, given the current one.
func (b *Bundling) Versions(ctx context.Context, current *stele.Record, from uint64) iter.Seq2[BundledVersion, error] {
	return func(yield func(BundledVersion, error) bool) {
		if current.Version == from {
			yield(b.Last(current), nil)
			return
		}
		if current.Version-from < longHistory {
			var list []*stele.Record
			for v, err := range b.r.store.HistoryBefore(ctx, current.ID, current.Version+1) {
				if err != nil {
					yield(BundledVersion{}, err)
					return
				}
				if v.Version < from {
					break
				}
				list = append(list, v)
			}
			for _, v := range slices.Backward(list) {
				if !yield(bundled(current, v), nil) {
					return
				}
			}
			return
		}
		for version := from; version <= current.Version; version++ {
			v, err := b.r.store.Version(ctx, current.ID, version)
			if err != nil {
				yield(BundledVersion{}, err)
				return
			}
			if !yield(bundled(current, v), nil) {
				return
			}
		}
	}
}

// bundled returns a version as a bundle has it: without secrets, and without content if it is withheld from all.
func bundled(current, v *stele.Record) BundledVersion {
	if current.Withheld.Hides(v.Version) {
		return BundledVersion{Shown: v.Entry(), Logged: v}
	}
	if !hasClearSecret(v) {
		return BundledVersion{Shown: v, Logged: v}
	}
	shown := clone(v)
	for i := range shown.Values {
		if isClearSecret(&shown.Values[i]) {
			shown.Values[i].Data = nil
		}
	}
	return BundledVersion{Shown: shown, Logged: v}
}

// Namespaces returns the namespaces of the bundle, by scheme and then by prefix, with all versions of each that are kept, the oldest
// first.
func (b *Bundling) Namespaces(ctx context.Context) (list [][]*stele.Namespace, err error) {
	for ns, err := range b.r.store.Namespaces(ctx) {
		if err != nil {
			return nil, tell("bundle", err)
		}
		if ns.Version == 0 || !b.has(ns.Key()) {
			continue
		}
		var versions []*stele.Namespace
		for v, err := range b.r.store.NamespaceHistory(ctx, ns.Key()) {
			if err != nil {
				return nil, tell("bundle", err)
			}
			versions = append(versions, v)
		}
		slices.Reverse(versions)
		list = append(list, versions)
	}
	return list, nil
}

// Current returns the namespaces of the bundle as they are now.
func (b *Bundling) Current(ctx context.Context) (list []*stele.Namespace, err error) {
	for ns, err := range b.r.store.Namespaces(ctx) {
		if err != nil {
			return nil, tell("bundle", err)
		}
		if ns.Version > 0 && b.has(ns.Key()) {
			list = append(list, ns)
		}
	}
	return list, nil
}

// Minters returns the states of the minters that make names of the namespaces, by name.
func (b *Bundling) Minters(ctx context.Context, spaces []*stele.Namespace) (list []stele.MinterState, err error) {
	claimed := map[string]bool{}
	for _, ns := range spaces {
		keys, err := minting.DatePrefixes(b.r.schemes, ns)
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			claimed[minting.StateName(key)] = true
		}
	}
	for m, err := range b.r.store.MinterStates(ctx) {
		if err != nil {
			return nil, tell("bundle", err)
		}
		scheme, prefix, _ := strings.Cut(m.Name, " ")
		if minting.IsBookmark(m.Name) || b.r.schemes.Lookup(scheme) == nil || !claimed[m.Name] && !b.has(stele.NamespaceKey{Scheme: scheme, Prefix: prefix}) {
			continue
		}
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b stele.MinterState) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// Change returns a change of the feed by its number.
func (b *Bundling) Change(ctx context.Context, number uint64) (c stele.Change, err error) {
	for c, err := range b.r.store.Changes(ctx, number-1) {
		return c, tell("bundle", err)
	}
	return c, refuse("bundle", stele.ID{}, stele.Internal, "bundle.change-missing", "the change feed has no change {number}; 'stele verify' tells what is damaged", number)
}

// Hosts returns the hosts whose http names are PURLs, in order.
func (b *Bundling) Hosts() []string {
	hosts := b.r.Hosts()
	slices.Sort(hosts)
	return hosts
}
