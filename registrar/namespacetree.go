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

	// told: this process has forgotten all that other processes had changed when these namespaces were read, records included. Before that,
	// no write is judged by them: the registrar would acknowledge a write in a namespace that another process has just adopted, while the
	// resolver still answers that names of that namespace are not registered.
	told atomic.Bool

	epoch    []byte        // what epochCell had before they were read; nil: nothing
	replaced chan struct{} // closed when another value replaces this one
}

// view returns the namespaces as this process knows them.
func (r *Registrar) view(ctx context.Context) (*namespaceTree, error) {
	for attempt := 1; ; attempt++ {
		s := r.namespaceTree.Load()
		if s != nil && s.told.Load() {
			return s, nil
		}
		var err error
		if s == nil {
			if s, err = r.read(ctx); err != nil {
				return nil, err
			}
		}
		if err = r.o.CatchUp(ctx); ctx.Err() != nil {
			return nil, tell("read namespaces", ctx.Err())
		}
		if err != nil || r.namespaceTree.Load() == s || attempt == maxAttempts {
			s.told.Store(true) // a store that does not answer now tells the follower later, and can't be written to before
			return s, nil
		}
	}
}

// read returns the namespaces, which may be newer than all else that this process keeps.
func (r *Registrar) read(ctx context.Context) (*namespaceTree, error) {
	if err := r.acquire(ctx); err != nil {
		return nil, err
	}
	defer r.unlock()
	return r.load(ctx)
}

// lock makes the caller the only one that changes namespaces.
func (r *Registrar) lock(ctx context.Context) error {
	if _, err := r.view(ctx); err != nil {
		return err
	}
	return r.acquire(ctx)
}

// acquire takes the lock alone.
func (r *Registrar) acquire(ctx context.Context) error {
	select {
	case r.changes <- struct{}{}:
		return nil
	case <-ctx.Done():
		return tell("read namespaces", ctx.Err())
	}
}

func (r *Registrar) unlock() { <-r.changes }

// latest is view for a caller that holds the lock. It does not wait until this process was told: the follower may wait for the lock.
func (r *Registrar) latest(ctx context.Context) (*namespaceTree, error) {
	s, err := r.load(ctx)
	if err == nil {
		s.told.Store(true)
	}
	return s, err
}

// load returns the namespaces for a caller that holds the lock.
func (r *Registrar) load(ctx context.Context) (*namespaceTree, error) {
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
	if err := r.acquire(ctx); err != nil {
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
	next.told.Store(s.told.Load())
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
