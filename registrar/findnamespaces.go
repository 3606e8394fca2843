package registrar

import (
	"context"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// NamespaceQuery says which namespaces a caller looks for.
type NamespaceQuery struct {
	Text  string                      // that is in the prefix or the title, in any case; "": any
	Role  stele.Role                  // that the caller has there at least; NoRole: reader
	After stele.NamespaceKey          // in order, the last one that the caller has seen; the zero key: none
	Limit int                         // how many at most
	Match func(*stele.Namespace) bool // reports which ones are meant, without changing them; nil: all
}

// FoundNamespace is a namespace, and what the caller is there.
type FoundNamespace struct {
	*stele.Namespace
	Role stele.Role
}

// FindNamespaces returns namespaces in which the caller has a role, by scheme and then by
// prefix, without the roots of schemes, and whether there are more. It reads nothing from the
// store: a page of ten thousand namespaces costs what it shows.
func (r *Registrar) FindNamespaces(ctx context.Context, q NamespaceQuery) (list []FoundNamespace, more bool, err error) {
	s, err := r.view(ctx)
	if err != nil {
		return nil, false, err
	}
	who, text := auth.From(ctx), strings.ToLower(q.Text)
	least := q.Role
	if least == stele.NoRole {
		least = stele.RoleReader
	}
	keys := s.ordered()
	at, found := slices.BinarySearchFunc(keys, q.After, compareKeys)
	if found {
		at++
	}
	for _, key := range keys[at:] {
		sp := s.Get(key)
		if key.Prefix == "" || text != "" && !strings.Contains(strings.ToLower(key.Prefix), text) && !strings.Contains(strings.ToLower(sp.Title), text) {
			continue
		}
		if q.Match != nil && !q.Match(sp.Namespace) {
			continue
		}
		role := auth.RoleIn(who, s.Ancestors(sp)...)
		if !role.Includes(least) {
			continue
		}
		if len(list) == q.Limit {
			return list, true, nil
		}
		list = append(list, FoundNamespace{cloneNamespace(sp.Namespace), role})
	}
	return list, false, nil
}

// ordered returns the keys of all namespaces in order, which is found once.
func (s *namespaceTree) ordered() []stele.NamespaceKey {
	s.order.Do(func() {
		for key := range s.All() {
			s.keys = append(s.keys, key)
		}
		slices.SortFunc(s.keys, compareKeys)
	})
	return s.keys
}
