package registrar

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/namespaces"
)

// RoleIn returns the role that the caller has in the namespace that a prefix belongs
// to: its own if it has one, or else the nearest above.
func (r *Registrar) RoleIn(ctx context.Context, key stele.NamespaceKey) (stele.Role, error) {
	s, err := r.view(ctx)
	if err != nil {
		return stele.NoRole, err
	}
	return auth.RoleIn(auth.From(ctx), s.ancestorsAt(key)...), nil
}

// ancestorsAt returns the namespaces of a prefix, which need not be that of a namespace,
// as ancestors does. A text that is not a prefix belongs to the root.
func (s *namespaceTree) ancestorsAt(key stele.NamespaceKey) []*stele.Namespace {
	if sp := s.At(key); sp != nil {
		return s.Ancestors(sp)
	}
	if id, err := stele.NewID(key.Scheme, key.Prefix); err == nil {
		if again, err := s.schemes.Parse(key.Prefix); err == nil && again == id {
			return s.ancestorsOf(id) // a whole name is the beginning of itself
		}
	}
	if parsed, below, err := namespaces.ReadPrefix(s.schemes, key.Prefix); err == nil && parsed == key {
		// The name below the prefix may be in a namespace of its own, which is below the prefix, too.
		list := slices.DeleteFunc(s.ancestorsOf(below), func(ns *stele.Namespace) bool { return strings.HasPrefix(ns.Prefix, key.Prefix) })
		if len(list) > 0 {
			return list
		}
	}
	return []*stele.Namespace{{Scheme: key.Scheme}}
}

// Scan yields the records whose identifiers begin with a prefix and come after a
// text, in order of their texts, for a caller that may list the namespace that the
// prefix belongs to: only an administrator where that is a scheme's root. Records in a
// namespace that the caller may not list are left out.
func (r *Registrar) Scan(ctx context.Context, key stele.NamespaceKey, after string) iter.Seq2[*stele.Record, error] {
	const op = "list"
	return func(yield func(*stele.Record, error) bool) {
		s, err := r.view(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		if err := mayList(ctx, op, s, key); err != nil {
			yield(nil, err)
			return
		}
		sight := sight{namespaceTree: s, who: auth.From(ctx)}
		for rec, err := range r.store.Scan(ctx, key.Scheme, key.Prefix, after) {
			if err != nil {
				yield(nil, tell(op, err))
				return
			}
			if sight.lists(rec.ID) && !yield(rec, nil) {
				return
			}
		}
	}
}

// mayList makes sure that the caller may list what begins with a prefix.
func mayList(ctx context.Context, op string, s *namespaceTree, key stele.NamespaceKey) error {
	if err := identify(ctx, op); err != nil {
		return err
	}
	who := auth.From(ctx)
	ancestors := s.ancestorsAt(key)
	switch {
	case auth.MayList(who, ancestors...):
		return nil
	case ancestors[0].Prefix == "":
		return refuse(op, stele.ID{}, stele.Forbidden,
			"user.may-not-list-outside-namespaces", `"{user}" may not list {prefix}: it is in no namespace, so only an administrator can; give the prefix of a namespace`, who.Name, key)
	}
	return refuse(op, stele.ID{}, stele.Forbidden,
		"user.may-not-list-namespace", `"{user}" may not list the namespace {namespace}; ask its owner or an administrator for the role reader`, who.Name, ancestors[0].Key())
}

// sight is what a principal may list. Names come in order, so that most are in the
// namespace of the one before.
type sight struct {
	namespaceTree *namespaceTree
	who           auth.Principal
	last          *namespaces.Node
	may           bool
}

// lists reports whether the record with this identifier may be listed.
func (v *sight) lists(id stele.ID) bool {
	if v.who.Administers(auth.ScopeRead) {
		return true
	}
	sp := v.namespaceTree.Of(id)
	if sp == nil {
		return false
	}
	if sp != v.last {
		v.last, v.may = sp, auth.MayList(v.who, v.namespaceTree.Ancestors(sp)...)
	}
	return v.may
}

// Pointing yields the records that have a target at a location and come after an
// identifier, in order, as far as they are in namespaces that the caller may list. It
// looks only there, so that the work does not grow with what others have.
func (r *Registrar) Pointing(ctx context.Context, at stele.Location, after stele.ID) iter.Seq2[*stele.Record, error] {
	const op = "look up"
	return func(yield func(*stele.Record, error) bool) {
		if err := identify(ctx, op); err != nil {
			yield(nil, err)
			return
		}
		s, err := r.view(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		look := &reverse{r, sight{namespaceTree: s, who: auth.From(ctx)}, at, yield}
		if look.who.Administers(auth.ScopeRead) {
			look.walk(ctx, after, func(stele.ID) bool { return true })
			return
		}
		for _, key := range s.listed(look.who) {
			if !look.below(ctx, key, after) {
				return
			}
		}
	}
}

// listed returns the prefixes of all that a principal may list, in order, none of which
// begins with another.
func (s *namespaceTree) listed(who auth.Principal) []stele.NamespaceKey {
	var keys []stele.NamespaceKey
	for key, sp := range s.All() {
		if auth.MayList(who, s.Ancestors(sp)...) {
			keys = append(keys, key)
		}
	}
	for key, sp := range s.Claims() {
		if auth.MayList(who, s.Ancestors(sp)...) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, compareKeys)
	var apart []stele.NamespaceKey
	for _, key := range keys {
		if n := len(apart); n == 0 || apart[n-1].Scheme != key.Scheme || !strings.HasPrefix(key.Prefix, apart[n-1].Prefix) {
			apart = append(apart, key)
		}
	}
	return apart
}

// reverse is a Pointing under way.
type reverse struct {
	*Registrar
	sight
	at    stele.Location
	yield func(*stele.Record, error) bool
}

// below yields what begins with a prefix. It returns false if that was the end.
func (v *reverse) below(ctx context.Context, key stele.NamespaceKey, after stele.ID) bool {
	first, err := stele.NewID(key.Scheme, key.Prefix)
	if err != nil {
		v.yield(nil, err)
		return false
	}
	within := func(id stele.ID) bool {
		return id.Scheme() == key.Scheme && strings.HasPrefix(id.String(), key.Prefix)
	}
	if after.Compare(first) >= 0 {
		return !within(after) || v.walk(ctx, after, within)
	}
	// The store yields what comes after a name, and a prefix may be a name itself.
	rec, err := v.store.Record(ctx, first)
	switch {
	case err != nil && !errors.Is(err, stele.NotFound):
		v.yield(nil, tell("look up", err))
		return false
	case err == nil && rec.ID == first && slices.ContainsFunc(rec.Targets, v.isAt) && v.lists(first) && !v.yield(rec, nil):
		return false
	}
	return v.walk(ctx, first, within)
}

// isAt reports whether a target is at the location.
func (v *reverse) isAt(t stele.Target) bool {
	if v.at.URL != "" {
		return t.URL == v.at.URL
	}
	return t.Host() == v.at.Host
}

// walk yields what comes after a name as long as it is within. It returns false if
// that was the end.
func (v *reverse) walk(ctx context.Context, after stele.ID, within func(stele.ID) bool) bool {
	for id, err := range v.store.Pointing(ctx, v.at, after) {
		if err != nil {
			v.yield(nil, tell("look up", err))
			return false
		}
		if !within(id) {
			return true
		}
		if !v.lists(id) {
			continue
		}
		rec, err := v.store.Record(ctx, id)
		if errors.Is(err, stele.NotFound) {
			continue
		}
		if err != nil {
			v.yield(nil, tell("look up", err))
			return false
		}
		if !v.yield(rec, nil) {
			return false
		}
	}
	return true
}

// Changes yields what was committed after the change with that number, in order.
// Only an administrator may ask: it tells of all that there is.
func (r *Registrar) Changes(ctx context.Context, after uint64) iter.Seq2[stele.Change, error] {
	const op = "list changes"
	return func(yield func(stele.Change, error) bool) {
		if err := administrateBy(ctx, op, stele.ID{}, auth.ScopeBackup); err != nil {
			yield(stele.Change{}, err)
			return
		}
		for c, err := range r.store.Changes(ctx, after) {
			if !yield(c, tell(op, err)) || err != nil {
				return
			}
		}
	}
}

// Sight is what a caller may list and search.
type Sight struct{ sight }

// Sight returns what the caller may list. Within is the prefix to which the caller limits a
// search, as in [Registrar.Scan]: Forbidden if the caller may not list that; the zero key, or
// that of a scheme, sets no limit. Unauthenticated if the caller is not known.
func (r *Registrar) Sight(ctx context.Context, within stele.NamespaceKey) (*Sight, error) {
	const op = "search"
	if err := identify(ctx, op); err != nil {
		return nil, err
	}
	s, err := r.view(ctx)
	if err != nil {
		return nil, err
	}
	if within.Prefix != "" {
		if err := mayList(ctx, op, s, within); err != nil {
			return nil, err
		}
	}
	return &Sight{sight{namespaceTree: s, who: auth.From(ctx)}}, nil
}

// Everything reports whether the caller may list all records.
func (s *Sight) Everything() bool { return s.who.Administers(auth.ScopeRead) }

// Prefixes returns the prefixes of all that the caller may list, in order, none of which begins
// with another.
func (s *Sight) Prefixes() []stele.NamespaceKey { return s.namespaceTree.listed(s.who) }

// Lists reports whether the caller may list the record with an identifier.
func (s *Sight) Lists(id stele.ID) bool { return s.lists(id) }
