package resolver

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
)

// directory keeps all namespaces in memory. They are few beside records, and
// every answer needs one.
type directory struct {
	store   stele.Store
	now     func() time.Time
	age     time.Duration
	loading chan struct{} // holds one value while somebody reads the store

	// As with the tickets of cache: what was read before somebody said that it
	// changed is not kept.
	mu        sync.Mutex
	forgotten uint64
	kept      atomic.Pointer[snapshot] // nil: to be read
}

// snapshot is all namespaces at one time.
type snapshot struct {
	byKey map[stele.NamespaceKey]*stele.Namespace
	until time.Time // zero: without limit
}

func newDirectory(store stele.Store, o Options) *directory {
	d := &directory{store: store, now: o.Now, age: o.CacheAge, loading: make(chan struct{}, 1)}
	if d.now == nil {
		d.age = 0
	}
	return d
}

// forget makes the next request read all namespaces again.
func (d *directory) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forgotten++
	d.kept.Store(nil)
}

// of returns the namespace that id belongs to, nil if there is none: the longest
// that is id's text or one of its parents, or the root of its scheme. Parents
// decide, and not bytes, so that urn:par does not rule over urn:paradisec.
func (d *directory) of(ctx context.Context, schemes *stele.Schemes, id stele.ID) (*stele.Namespace, error) {
	s, err := d.all(ctx)
	if err != nil || len(s.byKey) == 0 {
		return nil, err
	}
	// In one variable, since the iterator makes whatever its loop uses escape.
	var look struct {
		key   stele.NamespaceKey
		byKey map[stele.NamespaceKey]*stele.Namespace
		found *stele.Namespace
	}
	look.byKey = s.byKey
	look.key = stele.NamespaceKey{Scheme: id.Scheme(), Prefix: id.String()}
	if look.found = s.byKey[look.key]; look.found != nil {
		return look.found, nil
	}
	schemes.Parents(id)(func(p stele.Prefix) bool {
		look.key.Prefix = p.String()
		look.found = look.byKey[look.key]
		return look.found == nil
	})
	if look.found == nil {
		look.key.Prefix = ""
		look.found = s.byKey[look.key]
	}
	return look.found, nil
}

// chain returns the namespaces that id belongs to, the nearest first and the root of
// its scheme last, as far as there are any.
func (d *directory) chain(ctx context.Context, schemes *stele.Schemes, id stele.ID) (chain []*stele.Namespace, err error) {
	s, err := d.all(ctx)
	if err != nil || len(s.byKey) == 0 {
		return nil, err
	}
	key := stele.NamespaceKey{Scheme: id.Scheme(), Prefix: id.String()}
	add := func() {
		if ns := s.byKey[key]; ns != nil {
			chain = append(chain, ns)
		}
	}
	add()
	for p := range schemes.Parents(id) {
		key.Prefix = p.String()
		add()
	}
	key.Prefix = ""
	add()
	return chain, nil
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
	forgotten := d.forgotten
	d.mu.Unlock()
	s, err := d.read(ctx)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.forgotten == forgotten {
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
	s := &snapshot{byKey: make(map[stele.NamespaceKey]*stele.Namespace)}
	if d.age > 0 {
		s.until = d.now().Add(d.age)
	}
	for ns, err := range d.store.Namespaces(ctx) {
		if err != nil {
			return nil, err
		}
		s.byKey[ns.Key()] = ns
	}
	return s, nil
}
