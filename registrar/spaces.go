package registrar

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish"
)

// spaces is all namespaces at one time. It does not change: another takes its
// place.
type spaces struct {
	schemes *stele.Schemes
	byKey   map[stele.NamespaceKey]*space

	// claims are prefixes that a minter's settings give to a namespace, such as
	// that of the IBIps of its IP address.
	claims map[stele.NamespaceKey]stele.NamespaceKey

	// What no namespace asks for need not be looked into, and neither need the parents
	// of names in a scheme that has but its root.
	checked, delegated bool
	divided            map[string]bool // by scheme: it has more

	versions  uint64 // sum of the versions of all namespaces
	zoned     bool   // some are published in a zone
	published atomic.Pointer[publish.Zones]

	epoch    []byte        // what epochCell had before they were read; nil: nothing
	replaced chan struct{} // closed when another takes this one's place
}

// space is a namespace and where its ancestors would be.
type space struct {
	*stele.Namespace
	below stele.ID // a name right below its prefix; zero for a root
	above []string // proper parents of its prefix, the longest first
}

// view returns the namespaces as this process knows them.
func (r *Registrar) view(ctx context.Context) (*spaces, error) {
	if s := r.spaces.Load(); s != nil {
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

// latest is view for those who hold the lock.
func (r *Registrar) latest(ctx context.Context) (*spaces, error) {
	if s := r.spaces.Load(); s != nil {
		return s, nil
	}
	s := &spaces{
		schemes:  r.schemes,
		byKey:    make(map[stele.NamespaceKey]*space),
		claims:   make(map[stele.NamespaceKey]stele.NamespaceKey),
		divided:  make(map[string]bool),
		replaced: make(chan struct{}),
	}
	var err error
	if s.epoch, err = r.store.Cell(ctx, epochCell); err != nil {
		return nil, tell("read namespaces", err)
	}
	for scheme := range r.schemes.All() {
		root := &stele.Namespace{Scheme: scheme.Name()}
		s.byKey[root.Key()] = &space{Namespace: root}
	}
	for ns, err := range r.store.Namespaces(ctx) {
		if err != nil {
			return nil, tell("read namespaces", err)
		}
		if err := s.put(ns); err != nil {
			r.o.Log.Error("a namespace in the store is not one that this program would make", "namespace", ns.Key().String(), "err", err)
		}
	}
	r.spaces.Store(s)
	return s, nil
}

// replace puts changed in the place of s; nil if it is to be read again. The
// caller holds the lock.
func (r *Registrar) replace(s, changed *spaces) {
	r.spaces.Store(changed)
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
	if s := r.spaces.Load(); s != nil {
		r.replace(s, nil)
	}
	return nil
}

// with returns spaces in which ns is what it is now.
func (s *spaces) with(ns *stele.Namespace) (*spaces, error) {
	next := &spaces{
		schemes: s.schemes, byKey: maps.Clone(s.byKey), claims: maps.Clone(s.claims), checked: s.checked, delegated: s.delegated,
		divided: maps.Clone(s.divided), versions: s.versions, zoned: s.zoned, epoch: s.epoch, replaced: make(chan struct{}),
	}
	maps.DeleteFunc(next.claims, func(_, holder stele.NamespaceKey) bool { return holder == ns.Key() })
	return next, next.put(ns)
}

// put adds a namespace. What it could not find out about it is an error.
func (s *spaces) put(ns *stele.Namespace) error {
	sp := &space{Namespace: ns}
	if before := s.byKey[ns.Key()]; before != nil {
		s.versions -= before.Version
	}
	s.versions += ns.Version
	s.zoned = s.zoned || ns.Publication.Zone != ""
	s.byKey[ns.Key()] = sp
	s.checked = s.checked || ns.Checked
	s.delegated = s.delegated || ns.Delegate != ""
	if ns.Prefix == "" {
		return nil
	}
	s.divided[ns.Scheme] = true
	_, below, err := parsePrefix(s.schemes, ns.Prefix)
	if err != nil {
		return err
	}
	sp.below = below
	for p := range s.schemes.Parents(below) {
		if len(p.String()) < len(ns.Prefix) {
			sp.above = append(sp.above, p.String())
		}
	}
	made, err := dateNames(s.schemes, ns)
	if err != nil || made == nil {
		return err
	}
	for _, prefix := range made.prefixes {
		s.claims[stele.NamespaceKey{Scheme: ns.Scheme, Prefix: prefix}] = ns.Key()
	}
	return nil
}

// at returns the namespace that a prefix belongs to by itself: it is its own, or
// its minter's settings claim it. Nil if there is none.
func (s *spaces) at(key stele.NamespaceKey) *space {
	if sp := s.byKey[key]; sp != nil {
		return sp
	}
	if holder, ok := s.claims[key]; ok {
		return s.byKey[holder]
	}
	return nil
}

// of returns the namespace of a name: the longest whose prefix is the name itself
// or one of its parents. Parents decide and not bytes, so that urn:par does not
// rule over urn:paradisec. Nil if the scheme is unknown.
func (s *spaces) of(id stele.ID) *space {
	if !s.divided[id.Scheme()] {
		return s.byKey[stele.NamespaceKey{Scheme: id.Scheme()}]
	}
	return s.nearest(id)
}

func (s *spaces) nearest(id stele.ID) *space {
	// One variable, since each that the loop's body captures is allocated.
	var at struct {
		key   stele.NamespaceKey
		found *space
	}
	at.key = stele.NamespaceKey{Scheme: id.Scheme(), Prefix: id.String()}
	if at.found = s.at(at.key); at.found != nil {
		return at.found
	}
	for p := range s.schemes.Parents(id) {
		at.key.Prefix = p.String()
		if at.found = s.at(at.key); at.found != nil {
			break
		}
	}
	if at.found == nil {
		at.key.Prefix = ""
		at.found = s.byKey[at.key]
	}
	return at.found
}

// isLeaf reports whether no namespace is below a prefix: names there belong to it.
func (s *spaces) isLeaf(key stele.NamespaceKey) bool {
	for _, sp := range s.byKey {
		if sp.Scheme == key.Scheme && slices.Contains(sp.above, key.Prefix) {
			return false
		}
	}
	return true
}

// chain returns a namespace with its ancestors, the nearest first and the root
// last.
func (s *spaces) chain(sp *space) []*stele.Namespace {
	chain := []*stele.Namespace{sp.Namespace}
	key := sp.Key()
	for _, key.Prefix = range sp.above {
		if up := s.at(key); up != nil {
			chain = append(chain, up.Namespace)
		}
	}
	key.Prefix = ""
	if root := s.byKey[key]; root != nil && root != sp {
		chain = append(chain, root.Namespace)
	}
	return chain
}

// chainOf returns the namespaces of a name, as chain does. A scheme that is not
// known has only its root.
func (s *spaces) chainOf(id stele.ID) []*stele.Namespace {
	if sp := s.of(id); sp != nil {
		return s.chain(sp)
	}
	return []*stele.Namespace{{Scheme: id.Scheme()}}
}
