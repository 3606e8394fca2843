package registrar

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
)

// Public is what the public may list at one time: the names of namespaces that are listed ([stele.Namespace.Listed]). It is for
// interfaces that list names for all, and it never depends on the caller.
type Public struct{ tree *namespaceTree }

// Public returns what the public may list now.
func (r *Registrar) Public(ctx context.Context) (*Public, error) {
	s, err := r.view(ctx)
	if err != nil {
		return nil, err
	}
	return &Public{s}, nil
}

// Namespaces returns the namespaces that are listed, by scheme and then by prefix. The caller does not change them.
func (p *Public) Namespaces() (list []*stele.Namespace) {
	for _, key := range p.tree.ordered() {
		if sp := p.tree.Get(key); sp != nil && sp.Namespace.Listed {
			list = append(list, sp.Namespace)
		}
	}
	return list
}

// Of returns the namespace that a name belongs to, if that is listed; nil if not. The caller does not change it.
func (p *Public) Of(id stele.ID) *stele.Namespace {
	if sp := p.tree.Of(id); sp != nil && sp.Namespace.Listed {
		return sp.Namespace
	}
	return nil
}

// Shows reports whether a record is shown in lists: it is in a listed namespace, the public may see it, and its present version
// is not disavowed.
func (p *Public) Shows(rec *stele.Record) bool {
	return rec.State != stele.Reserved && rec.IsPublic() && rec.Withheld.Disavowal(rec.Version) == nil && p.Of(rec.ID) != nil
}

// Prefixes returns with which prefixes the names of some namespaces begin, in order, none of which begins with another. Names of
// other namespaces may begin with them, too.
func (p *Public) Prefixes(list []*stele.Namespace) (apart []stele.NamespaceKey) {
	var keys []stele.NamespaceKey
	for _, ns := range list {
		keys = append(keys, ns.Key())
		if sp := p.tree.Get(ns.Key()); sp != nil {
			for _, claim := range sp.Claims() {
				keys = append(keys, stele.NamespaceKey{Scheme: ns.Scheme, Prefix: claim})
			}
		}
	}
	slices.SortFunc(keys, compareKeys)
	for _, key := range keys {
		if n := len(apart); n == 0 || apart[n-1].Scheme != key.Scheme || !strings.HasPrefix(key.Prefix, apart[n-1].Prefix) {
			apart = append(apart, key)
		}
	}
	return apart
}

// longestImport is how long an import may take. One that has not ended after this time was cut off.
const longestImport = 7 * 24 * time.Hour

// ImportedBy returns a time by which all records of an import were written, and whether it stays the same. The records
// themselves may say that they are older: an import keeps when they were changed elsewhere.
func (r *Registrar) ImportedBy(ctx context.Context, number uint64) (by time.Time, final bool, err error) {
	cell, err := r.store.Cell(ctx, importCell(number))
	if err != nil || cell == nil {
		return by, cell == nil, tell("import", err)
	}
	i, err := readImport(cell)
	if err != nil || !i.Ended.IsZero() {
		return i.Ended, true, err
	}
	if by = i.Began.Add(longestImport); r.now().Before(by) {
		return r.now(), false, nil
	}
	return by, true, nil
}

// ListedSince returns when a namespace was listed that is listed now: the public could not see the names of older records
// before.
func (r *Registrar) ListedSince(ctx context.Context, key stele.NamespaceKey) (since time.Time, err error) {
	for ns, err := range r.store.NamespaceHistory(ctx, key) {
		if err != nil {
			return since, tell("history", err)
		}
		if !ns.Listed {
			break
		}
		since = ns.Modified
	}
	return since, nil
}
