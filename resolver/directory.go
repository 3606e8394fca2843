package resolver

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/namespaces"
)

// directory keeps all namespaces in memory. They are few beside records, and
// every answer needs one.
type directory struct {
	store   stele.Namespaces
	schemes *stele.Schemes
	now     func() time.Time
	age     time.Duration
	loading chan struct{} // holds one value while a goroutine reads the store

	// As with the tickets of cache: what was read before forget was called is not kept.
	mu        sync.Mutex
	forgotten atomic.Uint64
	kept      atomic.Pointer[snapshot] // nil: to be read
}

// snapshot is all namespaces at one time.
type snapshot struct {
	*namespaces.Tree
	handed bool      // some are handed over, so that another registry answers for their names
	until  time.Time // zero: without limit
}

func newDirectory(store stele.Namespaces, schemes *stele.Schemes, o Options) *directory {
	d := &directory{store: store, schemes: schemes, now: o.Now, age: o.CacheAge, loading: make(chan struct{}, 1)}
	if d.now == nil {
		d.age = 0
	}
	return d
}

// forget makes the next request read all namespaces again.
func (d *directory) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forgotten.Add(1)
	d.kept.Store(nil)
}

// of returns the namespace that id belongs to, nil if there is none.
func (d *directory) of(ctx context.Context, id stele.ID) (*stele.Namespace, error) {
	s, err := d.all(ctx)
	if err != nil {
		return nil, err
	}
	if n := s.Of(id); n != nil {
		return n.Namespace, nil
	}
	return nil, nil
}

// node returns the namespace that id belongs to with what was compiled of it, nil if there
// is none.
func (d *directory) node(ctx context.Context, id stele.ID) (*namespaces.Node, error) {
	s, err := d.all(ctx)
	if err != nil {
		return nil, err
	}
	return s.Of(id), nil
}

// heirOf returns the namespace of a name if another registry answers for it, which it was handed over to; nil otherwise.
func (d *directory) heirOf(ctx context.Context, id stele.ID) (*stele.Namespace, error) {
	s, err := d.all(ctx)
	if err != nil || !s.handed {
		return nil, err
	}
	if n := s.Of(id); n != nil && n.HandOver.State == stele.Forwarded {
		return n.Namespace, nil
	}
	return nil, nil
}

// passesOn reports whether two names are in one namespace, and that asks for passthrough.
func (d *directory) passesOn(ctx context.Context, a, b stele.ID) (bool, error) {
	s, err := d.all(ctx)
	if err != nil {
		return false, err
	}
	n := s.Of(a)
	return n != nil && n.Passthrough && (a == b || s.Of(b) == n), nil
}

// ancestors returns the namespaces that id belongs to, the nearest first and the root of
// its scheme last, as far as there are any.
func (d *directory) ancestors(ctx context.Context, id stele.ID) ([]*stele.Namespace, error) {
	s, err := d.all(ctx)
	if err != nil {
		return nil, err
	}
	return s.AncestorsOf(id), nil
}

// all returns what is kept, or reads it.
func (d *directory) all(ctx context.Context) (*snapshot, error) {
	if s := d.find(); s != nil {
		return s, nil
	}
	select {
	case d.loading <- struct{}{}:
		defer func() { <-d.loading }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s := d.find(); s != nil {
		return s, nil
	}
	d.mu.Lock()
	forgotten := d.forgotten.Load()
	d.mu.Unlock()
	s, err := d.read(ctx)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.forgotten.Load() == forgotten {
		d.kept.Store(s)
	}
	return s, nil
}

// find returns what is kept, nil if nothing is or it is too old.
func (d *directory) find() *snapshot {
	s := d.kept.Load()
	if s == nil || !s.until.IsZero() && !d.now().Before(s.until) {
		return nil
	}
	return s
}

func (d *directory) read(ctx context.Context) (*snapshot, error) {
	s := &snapshot{Tree: namespaces.New(d.schemes)}
	if d.age > 0 {
		s.until = d.now().Add(d.age)
	}
	for ns, err := range d.store.Namespaces(ctx) {
		if err != nil {
			return nil, err
		}
		s.handed = s.handed || ns.HandOver.State == stele.Forwarded
		s.Add(ns) // the registrar reports one that it would not accept
	}
	return s, nil
}
