package registrar

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/namespaces"
	"github.com/stele-id/stele/publish/zonemap"
)

// namespaceTree is all namespaces at one time. It does not change: a new value replaces it.
type namespaceTree struct {
	*namespaces.Tree
	schemes *stele.Schemes

	checked, delegated, exact, handed bool // a check that no namespace asks for is skipped

	versions  uint64 // sum of the versions of all namespaces
	zoned     bool   // some are published in a zone
	published atomic.Pointer[zonemap.Zones]

	order sync.Once
	keys  []stele.NamespaceKey // of all, in order; see ordered

	epoch    []byte        // what epochCell had before they were read; nil: nothing
	replaced chan struct{} // closed when another value replaces this one
}

// view returns the namespaces as this process knows them.
func (r *Registrar) view(ctx context.Context) (*namespaceTree, error) {
	if s := r.namespaceTree.Load(); s != nil {
		return s, nil
	}
	if err := r.lock(ctx); err != nil {
		return nil, err
	}
	defer r.unlock()
	return r.latest(ctx)
}

// lock makes the caller the only one that changes namespaces.
func (r *Registrar) lock(ctx context.Context) error {
	select {
	case r.changes <- struct{}{}:
		return nil
	case <-ctx.Done():
		return tell("read namespaces", ctx.Err())
	}
}

func (r *Registrar) unlock() { <-r.changes }

// latest is view for a caller that holds the lock.
func (r *Registrar) latest(ctx context.Context) (*namespaceTree, error) {
	if s := r.namespaceTree.Load(); s != nil {
		return s, nil
	}
	s := &namespaceTree{Tree: namespaces.New(r.schemes), schemes: r.schemes, replaced: make(chan struct{})}
	var err error
	if s.epoch, err = r.store.Cell(ctx, epochCell); err != nil {
		return nil, tell("read namespaces", err)
	}
	for scheme := range r.schemes.All() {
		s.Add(&stele.Namespace{Scheme: scheme.Name()})
	}
	for ns, err := range r.store.Namespaces(ctx) {
		if err != nil {
			return nil, tell("read namespaces", err)
		}
		s.note(ns)
		for _, err := range s.Add(ns) {
			r.o.Log.ErrorContext(ctx, "a namespace in the store is not one that this program would make", "namespace", ns.Key().String(), "err", err)
		}
	}
	r.namespaceTree.Store(s)
	return s, nil
}

// replace replaces s by changed; nil makes the next view read the store again. The
// caller holds the lock.
func (r *Registrar) replace(s, changed *namespaceTree) {
	r.namespaceTree.Store(changed)
	close(s.replaced)
}

// Reload forgets what is kept of namespaces. It is for a process that shares its
// store with others, and has heard that one of them changed a namespace. What this
// process changes it knows.
func (r *Registrar) Reload(ctx context.Context) error {
	if err := r.lock(ctx); err != nil {
		return err
	}
	defer r.unlock()
	if s := r.namespaceTree.Load(); s != nil {
		r.replace(s, nil)
	}
	return nil
}

// with returns a namespaceTree in which ns is what it is now.
func (s *namespaceTree) with(ns *stele.Namespace) (*namespaceTree, error) {
	tree, err := s.Tree.With(ns)
	next := &namespaceTree{
		Tree: tree, schemes: s.schemes, checked: s.checked, delegated: s.delegated, exact: s.exact, handed: s.handed,
		versions: s.versions, zoned: s.zoned, epoch: s.epoch, replaced: make(chan struct{}),
	}
	if before := s.Get(ns.Key()); before != nil {
		next.versions -= before.Version
	}
	next.note(ns)
	return next, err
}

// note keeps what some namespace asks for.
func (s *namespaceTree) note(ns *stele.Namespace) {
	s.versions += ns.Version
	s.zoned = s.zoned || ns.Publication.Zone != ""
	s.checked = s.checked || ns.Checked
	s.exact = s.exact || ns.Publication.Exact
	s.handed = s.handed || ns.IsSealed() || ns.IsRead() || ns.IsSilent()
	s.delegated = s.delegated || ns.Delegate != ""
}

// ancestorsOf returns the namespaces of a name, the nearest first and the root last. A scheme
// that is not known has only its root.
func (s *namespaceTree) ancestorsOf(id stele.ID) []*stele.Namespace {
	return s.ancestors(id, s.Of(id))
}

// ancestors is ancestorsOf for a name whose namespace was looked up.
func (s *namespaceTree) ancestors(id stele.ID, n *namespaces.Node) []*stele.Namespace {
	if n == nil {
		return []*stele.Namespace{{Scheme: id.Scheme()}}
	}
	return s.Ancestors(n)
}
