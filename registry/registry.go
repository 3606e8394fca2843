// Package registry is one open registry: a store, and over it the registrar that writes, the
// resolver and the directory of users that read, and the publisher of zones.
//
// What a process keeps in memory is never older than a write that it has acknowledged: the
// registrar tells the registry of each commit before it answers the writer, and the
// registry tells every part that keeps something. Where several processes share a store, a
// [Follower] does the same for what the others write, and [Registry.Await] waits for a
// state that a client asks for with a version token.
package registry

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/outbound"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/search"
	"github.com/stele-id/stele/secret"
	"github.com/stele-id/stele/transparency"
)

// Publisher publishes zones from what it keeps of the registry; package publish has one.
type Publisher interface {
	Invalidate(records ...*stele.Record)
	InvalidateNamespaces()
	InvalidateAll()
	Replace() // another registry has replaced this one
	Close()
}

// Registry is a store, and the parts that write to it and read from it.
type Registry struct {
	Schemes   *stele.Schemes
	Store     stele.Store
	Registrar *registrar.Registrar
	Resolver  *resolver.Resolver
	Directory *auth.Directory // of users and tokens
	Secrets   *secret.Ring
	Published Publisher      // of the zones that are answered for; nil if none are
	Follower  *Follower      // of what other processes write; nil if none do
	Search    *search.Finder // nil if no search index is open; see OpenSearch
	Log       *transparency.Log

	now         func() time.Time
	temporary   string                            // the folder of the search index, if Close removes it
	place       Place                             // the zero Place if it is not known
	generations atomic.Pointer[stele.Generations] // as they were at the last look; nil before the first
}

// Options are how a registry is opened.
type Options struct {
	Now      func() time.Time
	Random   func(n int) int
	Log      *slog.Logger
	Resolver resolver.Options // without Now, Random and Lagging
	Secrets  *secret.Ring

	BlockSize        int            // of identifiers that a minter reserves; 0: the registrar's own
	Notify, Transfer *outbound.Rule // see [registrar.Options]
	Shared           bool           // other processes write to the store, too
}

// New returns a registry over a store, with the parts that write to it and read from
// it.
func New(store stele.Store, schemes *stele.Schemes, o Options) *Registry {
	r := &Registry{Schemes: schemes, Store: store, Secrets: o.Secrets, Directory: auth.NewDirectory(store, o.Now), now: o.Now}
	o.Resolver.Now, o.Resolver.Random, o.Resolver.Lagging = o.Now, o.Random, r.lagging
	r.Resolver = resolver.New(store, schemes, o.Resolver)
	r.Registrar = registrar.New(store, schemes, registrar.Options{
		Now:      o.Now,
		Log:      o.Log,
		OnCommit: r.Committed,
		OnIngest: r.offer,
		OnErase: func(ctx context.Context, id stele.ID, upTo uint64) ([]stele.CellChange, error) {
			return r.Log.Erase(ctx, id, upTo)
		},
		OnNamespaces: r.NamespacesCommitted,
		OnAccess:     r.Directory.Forget,
		CatchUp:      r.catchUp,
		BlockSize:    o.BlockSize,
		Secrets:      o.Secrets,
		Notify:       o.Notify,
		Transfer:     o.Transfer,
		Shared:       o.Shared,
		Lagging:      r.lagging,
	})
	r.Log = transparency.New(transparency.Options{
		Source: store, Cells: r.Registrar, Lagging: r.lagging, Random: rand.Reader, Now: o.Now, Log: o.Log,
		Listed: func(ctx context.Context) (transparency.Listed, error) { return r.Registrar.Public(ctx) },
	})
	return r
}

// flushPatience is how long Close waits for the audit trail.
const flushPatience = 5 * time.Second

// Close writes what was counted for the audit trail, and closes the store.
func (r *Registry) Close() error {
	if r.Published != nil {
		r.Published.Close()
	}
	r.Resolver.Close()
	searched := r.closeSearch()
	ctx, cancel := context.WithTimeout(context.Background(), flushPatience)
	defer cancel()
	err := r.Registrar.FlushAudit(ctx, true)
	if errors.Is(err, stele.ErrSealed) {
		err = nil
	}
	if err = errors.Join(err, searched, r.Store.Close()); err != nil && r.place != (Place{}) {
		err = stele.Messagef("registry.not-closed", "closing {place}: {cause}", r.place, err)
	}
	return err
}

// Place returns where the registry is kept; the zero Place if it was made by [New].
func (r *Registry) Place() Place { return r.place }

// ReadGenerations notes the generations of the registry.
func (r *Registry) ReadGenerations(ctx context.Context) error {
	list, err := r.Store.Generations(ctx)
	if err == nil {
		r.generations.Store(&list)
	}
	return err
}

// KnownGenerations returns the generations of the registry as they were noted.
func (r *Registry) KnownGenerations() stele.Generations {
	if list := r.generations.Load(); list != nil {
		return *list
	}
	return nil
}

// Committed tells the resolver and the publisher, which keep something in memory, what
// was written, before the writer gets its answer.
func (r *Registry) Committed(records ...*stele.Record) {
	r.Resolver.Invalidate(records...)
	if r.Published != nil {
		r.Published.Invalidate(records...)
	}
	if r.Search != nil {
		r.Search.Index.Notify()
	}
	r.Log.Notify()
}

// offer hands records of an import to the search index and the transparency log while they are in memory.
func (r *Registry) offer(records []*stele.Record) {
	r.Log.Offer(records)
	if r.Search != nil {
		r.Search.Index.Offer(records)
	}
}

// NamespacesCommitted is the same for namespaces.
func (r *Registry) NamespacesCommitted() {
	r.Resolver.InvalidateNamespaces()
	if r.Published != nil {
		r.Published.InvalidateNamespaces()
	}
}

func failf(op string, kind stele.Kind, code, text string, args ...any) error {
	return &stele.Error{Op: op, Kind: kind, Err: stele.Messagef(code, text, args...)}
}
