package registrar

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/namespaces"
)

// maxAttempts is how often a write is tried again when others were faster.
const maxAttempts = 100

// ParsePrefix reads the prefix of a namespace in any spelling. A scheme's name and
// a colon is its root.
func (r *Registrar) ParsePrefix(text string) (stele.NamespaceKey, error) {
	return namespaces.ParsePrefix(r.schemes, text)
}

// AddNamespace makes a namespace. Its prefix is in canonical form; see
// [Registrar.ParsePrefix]. An administrator may, and an owner of the
// namespace above it. Conflict if it exists, or if its prefix, or that of a
// minter's names, belongs to another one. A template that shuffles its names and comes
// without a seed gets a random one.
func (r *Registrar) AddNamespace(ctx context.Context, ns *stele.Namespace) (*stele.Namespace, error) {
	return r.addNamespace(ctx, ns, r.seedTemplate)
}

func (r *Registrar) addNamespace(ctx context.Context, ns *stele.Namespace, seed func(before, next *stele.Namespace) error) (*stele.Namespace, error) {
	const op = "add namespace"
	if ns.Prefix == "" {
		return nil, refuse(op, stele.ID{}, stele.Conflict, "namespace.root-exists", "every scheme has its root namespace already; change that")
	}
	return r.writeNamespace(ctx, op, ns.Key(), func(before *stele.Namespace) (*stele.Namespace, error) {
		if before != nil {
			return nil, refuse(op, stele.ID{}, stele.Conflict, "namespace.exists", "the namespace {namespace} exists; change it, or choose another prefix", ns.Key())
		}
		next := cloneNamespace(ns)
		next.HandOver, next.Adoptions = stele.HandOver{}, nil
		return next, seed(nil, next)
	})
}

// SetNamespace changes a namespace: change is called with a copy of it. If
// ifVersion is not 0 and not the namespace's version, the answer is Conflict. Its owners
// may change it and its grants, but owner and quota are set by the owners of what is
// above it. NotFound for a caller without a role in it. Its template keeps its seed if
// the change leaves it out, and a new one gets a random seed.
func (r *Registrar) SetNamespace(ctx context.Context, key stele.NamespaceKey, ifVersion uint64, change func(*stele.Namespace) error) (*stele.Namespace, error) {
	return r.setNamespace(ctx, key, ifVersion, change, r.seedTemplate)
}

func (r *Registrar) setNamespace(ctx context.Context, key stele.NamespaceKey, ifVersion uint64, change func(*stele.Namespace) error, seed func(before, next *stele.Namespace) error) (*stele.Namespace, error) {
	return r.changeNamespace(ctx, "set namespace", key, ifVersion, change, seed)
}

// changeNamespace is setNamespace for an operation that the audit trail names.
func (r *Registrar) changeNamespace(ctx context.Context, op string, key stele.NamespaceKey, ifVersion uint64, change func(*stele.Namespace) error, seed func(before, next *stele.Namespace) error) (*stele.Namespace, error) {
	return r.writeNamespace(ctx, op, key, func(before *stele.Namespace) (*stele.Namespace, error) {
		if before == nil {
			return nil, refuse(op, stele.ID{}, stele.NotFound, "namespace.missing", "there is no namespace {namespace}; add it first", key)
		}
		if ifVersion != 0 && before.Version != ifVersion {
			return nil, refuse(op, stele.ID{}, stele.Conflict, "namespace.version-differs", "the namespace {namespace} has version {version}, not {expected}; look at it again", key, before.Version, ifVersion)
		}
		next := cloneNamespace(before)
		if err := change(next); err != nil {
			return nil, err
		}
		next.HandOver, next.Adoptions = before.HandOver, slices.Clone(before.Adoptions) // what the system keeps
		if next.Key() != key {
			return nil, refuse(op, stele.ID{}, stele.Invalid, "namespace.key-changed", "scheme and prefix of a namespace never change; add another")
		}
		if key.Prefix == "" && len(next.Heirs) > 0 {
			return nil, refuse(op, stele.ID{}, stele.Invalid, "heir.of-root", "the root of a scheme has no heirs; name them for a namespace with a prefix")
		}
		if before.Owner != next.Owner || !slices.Equal(before.Grants, next.Grants) || !before.SameHeirs(next) {
			if err := r.needProof(ctx, op); err != nil {
				return nil, err
			}
		}
		return next, seed(before, next)
	})
}

// writeNamespace commits what edit makes of a namespace, which is nil if there is
// none. One process changes one namespace at a time: they are few, and depend on
// each other. Also is committed with it.
func (r *Registrar) writeNamespace(ctx context.Context, op string, key stele.NamespaceKey, edit func(before *stele.Namespace) (*stele.Namespace, error), also ...stele.CellChange) (*stele.Namespace, error) {
	read := &namesRead{key: key}
	ctx = context.WithValue(ctx, namesRead{}, read)
	for {
		ns, err := r.writeNamespaceOnce(ctx, op, key, edit, also...)
		if !errors.Is(err, errNamesUnread) {
			return ns, err
		}
		if err := r.readNames(ctx, op, read); err != nil { // no lock is held meanwhile
			return nil, err
		}
	}
}

// writeNamespaceOnce is writeNamespace without the reading that some judgements need first.
func (r *Registrar) writeNamespaceOnce(ctx context.Context, op string, key stele.NamespaceKey, edit func(before *stele.Namespace) (*stele.Namespace, error), also ...stele.CellChange) (*stele.Namespace, error) {
	if !auth.From(ctx).IsKnown() {
		return nil, refuse(op, stele.ID{}, stele.Unauthenticated, "request.anonymous", "say who you are; send a token")
	}
	if err := r.lock(ctx); err != nil {
		return nil, err
	}
	defer r.unlock()
	for attempt := 1; ; attempt++ {
		s, err := r.latest(ctx)
		if err != nil {
			return nil, err
		}
		before, next, changed, minters, err := r.judgeEdit(ctx, op, s, key, edit)
		if err != nil {
			return nil, err
		}
		if before != nil && sameNamespace(before, next) {
			if len(also) > 0 {
				if err := r.apply(ctx, op, &stele.Commit{Cells: also}); err != nil {
					return nil, err
				}
			}
			return cloneNamespace(before), nil
		}
		epoch := s.changed()
		err = r.apply(ctx, op, &stele.Commit{Namespaces: []*stele.Namespace{next}, Minters: minters, Cells: append(also[:len(also):len(also)], epoch)})
		if err == nil {
			changed.epoch = epoch.After
			r.replace(s, changed)
			return cloneNamespace(next), nil
		}
		// A minter issued names meanwhile, or another process changed something: all is
		// read again, and tried again if that helps.
		r.replace(s, nil)
		if !r.again(ctx, err, attempt) {
			return nil, err
		}
	}
}

// judgeEdit returns what edit makes of a namespace, and what a commit of it needs; an error if it
// may not be written.
func (r *Registrar) judgeEdit(ctx context.Context, op string, s *namespaceTree, key stele.NamespaceKey, edit func(before *stele.Namespace) (*stele.Namespace, error)) (before, next *stele.Namespace, changed *namespaceTree, minters []stele.MinterState, err error) {
	if sp := s.listable(ctx, s.Get(key)); sp != nil {
		before = sp.Namespace
	}
	if next, err = edit(before); err != nil {
		return nil, nil, nil, nil, tell(op, err)
	}
	r.stampNamespace(ctx, before, next)
	changed, minters, err = r.admitNamespace(ctx, op, s, before, next)
	return before, next, changed, minters, err
}

// stampNamespace sets what the system keeps.
func (r *Registrar) stampNamespace(ctx context.Context, before, next *stele.Namespace) {
	next.Modified, next.By = r.now(), auth.From(ctx).Name
	next.Version, next.Created = 1, next.Modified
	if before != nil {
		next.Version = before.Version + 1
		if !before.Created.IsZero() { // except a root that was never changed
			next.Created = before.Created
		}
		if next.Modified.Before(before.Modified) { // the clock stepped back
			next.Modified = before.Modified
		}
	}
}

// sameNamespace reports whether two versions are equal in all that users set.
func sameNamespace(a, b *stele.Namespace) bool {
	b = cloneNamespace(b)
	b.Version, b.Created, b.Modified, b.By = a.Version, a.Created, a.Modified, a.By
	return a.Equal(b)
}

func cloneNamespace(ns *stele.Namespace) *stele.Namespace {
	c := *ns
	c.Hosts, c.Protocols, c.Grants = slices.Clone(ns.Hosts), slices.Clone(ns.Protocols), slices.Clone(ns.Grants)
	c.Keys, c.Heirs, c.Adoptions = slices.Clone(ns.Keys), slices.Clone(ns.Heirs), slices.Clone(ns.Adoptions)
	return &c
}

// listable returns a namespace if the caller may list it. For other callers its
// settings do not exist.
func (s *namespaceTree) listable(ctx context.Context, sp *namespaces.Node) *namespaces.Node {
	if sp == nil || !auth.MayList(auth.From(ctx), s.Ancestors(sp)...) {
		return nil
	}
	return sp
}

// Namespace returns the namespace of that key to a caller with a role in it. Every
// scheme has a root, with version 0 if it was never changed; administrators see that.
func (r *Registrar) Namespace(ctx context.Context, key stele.NamespaceKey) (*stele.Namespace, error) {
	s, err := r.view(ctx)
	if err != nil {
		return nil, err
	}
	if sp := s.listable(ctx, s.Get(key)); sp != nil {
		return cloneNamespace(sp.Namespace), nil
	}
	return nil, refuse("show namespace", stele.ID{}, stele.NotFound, "namespace.missing", "there is no namespace {namespace}; add it first", key)
}

// NamespaceHistory yields the versions of a namespace that are kept, the newest first, to
// a caller with a role in it now. NotFound if there is none for that caller.
func (r *Registrar) NamespaceHistory(ctx context.Context, key stele.NamespaceKey) iter.Seq2[*stele.Namespace, error] {
	return func(yield func(*stele.Namespace, error) bool) {
		if _, err := r.Namespace(ctx, key); err != nil {
			yield(nil, err)
			return
		}
		for ns, err := range r.store.NamespaceHistory(ctx, key) {
			if err != nil {
				yield(nil, tell("history", err))
				return
			}
			if !yield(ns, nil) {
				return
			}
		}
	}
}

// FindNamespace returns the namespace that a name belongs to: the one with the
// longest prefix, the root of its scheme if there is no other. A name that the
// settings of a minter lead to, such as an IBIp, belongs to that minter's
// namespace. NotFound for a caller without a role in it.
func (r *Registrar) FindNamespace(ctx context.Context, id stele.ID) (*stele.Namespace, error) {
	s, err := r.view(ctx)
	if err != nil {
		return nil, err
	}
	sp := s.Of(id)
	if sp == nil {
		return nil, refuse("find namespace", id, stele.Invalid, "scheme.unknown-here", `the scheme "{scheme}" is not known here`, id.Scheme())
	}
	if sp = s.listable(ctx, sp); sp == nil {
		return nil, refuse("find namespace", id, stele.NotFound, "namespace.none-for-name", "there is no namespace of it; add one first")
	}
	return cloneNamespace(sp.Namespace), nil
}

// ParentNamespace returns the namespace above one: that with the longest prefix
// among its ancestors. A root has none: NotFound. NotFound also if the caller may not
// list it.
func (r *Registrar) ParentNamespace(ctx context.Context, key stele.NamespaceKey) (*stele.Namespace, error) {
	s, err := r.view(ctx)
	if err != nil {
		return nil, err
	}
	if sp := s.Get(key); sp != nil {
		if ancestors := s.Ancestors(sp); len(ancestors) > 1 && auth.MayList(auth.From(ctx), ancestors[1:]...) {
			return cloneNamespace(ancestors[1]), nil
		}
	}
	return nil, refuse("show namespace", stele.ID{}, stele.NotFound, "namespace.none-above", "no namespace is above {namespace}", key)
}

// Namespaces yields the namespaces in which the caller has a role, by scheme and then
// by prefix: for an administrator all, the roots of all schemes included.
func (r *Registrar) Namespaces(ctx context.Context) iter.Seq2[*stele.Namespace, error] {
	return func(yield func(*stele.Namespace, error) bool) {
		s, err := r.view(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, key := range s.ordered() {
			sp := s.listable(ctx, s.Get(key))
			if sp != nil && !yield(cloneNamespace(sp.Namespace), nil) {
				return
			}
		}
	}
}

// compareKeys orders by scheme, then bytewise by prefix.
func compareKeys(a, b stele.NamespaceKey) int {
	return cmp.Or(cmp.Compare(a.Scheme, b.Scheme), cmp.Compare(a.Prefix, b.Prefix))
}
