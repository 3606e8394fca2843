package access

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/audit"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/client/remote"
	"github.com/stele-id/stele/giver"
	"github.com/stele-id/stele/heir"
	"github.com/stele-id/stele/links/check"
	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/resolver"
)

// Local is a registry that this process has open.
type Local struct {
	*registrar.Registrar
	Registry *registry.Registry
	links    *check.Checker // see WithLinks
	heirs    *heir.Checker  // see WithHeirs
	givers   *giver.Watcher // see WithGivers
}

// NewLocal returns a registry that this process has open. The place is for messages.
func NewLocal(r *registry.Registry, now func() time.Time, place string) *Registry {
	return &Registry{Backend: &Local{Registrar: r.Registrar, Registry: r}, Schemes: r.Schemes, Now: now, Place: place, ChunkRows: bulk.ChunkRows}
}

// List yields the records that a listing asks for.
func (f *Local) List(ctx context.Context, q remote.Listing) iter.Seq2[*stele.Record, error] {
	list := f.Scan(ctx, q.Key, q.After)
	if q.At != (stele.Location{}) {
		list = f.pointing(ctx, q)
	}
	return func(yield func(*stele.Record, error) bool) {
		count := uint64(0)
		for rec, err := range list {
			if err == nil && q.State != "" && rec.State != q.State {
				continue
			}
			if !yield(rec, err) || err != nil {
				return
			}
			if count++; count == q.Limit {
				return
			}
		}
	}
}

// Export yields the records that begin so, or all their versions.
func (f *Local) Export(ctx context.Context, key stele.NamespaceKey, history bool) iter.Seq2[*stele.Record, error] {
	list := f.Scan(ctx, key, "")
	if !history {
		return list
	}
	return func(yield func(*stele.Record, error) bool) {
		for rec, err := range list {
			if err != nil {
				yield(nil, err)
				return
			}
			versions, err := f.versions(ctx, rec.ID)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, v := range slices.Backward(versions) {
				if !yield(v, nil) {
					return
				}
			}
		}
	}
}

// versions returns all versions of a record, the newest first.
func (f *Local) versions(ctx context.Context, id stele.ID) (list []*stele.Record, err error) {
	for v, err := range f.History(ctx, id) {
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// pointing yields the records that have a target at the listing's location.
func (f *Local) pointing(ctx context.Context, q remote.Listing) iter.Seq2[*stele.Record, error] {
	return func(yield func(*stele.Record, error) bool) {
		var last stele.ID
		if q.After != "" {
			var err error
			if last, err = f.Registry.Schemes.Parse(q.After); err != nil {
				yield(nil, err)
				return
			}
		}
		for rec, err := range f.Pointing(ctx, q.At, last) {
			if err == nil && q.Key.Scheme != "" && (rec.ID.Scheme() != q.Key.Scheme || !strings.HasPrefix(rec.ID.String(), q.Key.Prefix)) {
				continue
			}
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

// Meant adds suggestions to the error of a name that is not found.
func (f *Local) Meant(ctx context.Context, name stele.ID, err error) error {
	if !errors.Is(err, stele.NotFound) {
		return err
	}
	_, unknown := f.Registry.Resolver.Resolve(ctx, resolver.Request{ID: name})
	if e, ok := errors.AsType[*resolver.UnknownError](unknown); ok && e.Mistyped {
		return &stele.Error{Op: "show", ID: name, Kind: stele.NotFound, Err: e}
	}
	return err
}

// Count returns how many records count for a namespace.
func (f *Local) Count(ctx context.Context, key stele.NamespaceKey) (uint64, error) {
	return f.Registry.Store.Count(ctx, key)
}

// PURLHosts returns the hosts whose http names are PURLs.
func (f *Local) PURLHosts(context.Context) ([]string, error) { return f.Hosts(), nil }

// AddPURLHosts adds hosts whose http names are PURLs, and returns all.
func (f *Local) AddPURLHosts(ctx context.Context, hosts ...string) ([]string, error) {
	if _, err := f.AddHosts(ctx, hosts...); err != nil {
		return nil, err
	}
	return f.Hosts(), nil
}

// auditPage is how many entries are read at a time.
const auditPage = 1000

// AuditPage reads a part of the audit trail.
func (f *Local) AuditPage(ctx context.Context, q registrar.AuditQuery) (page []audit.Document, after uint64, last bool, err error) {
	after = q.After
	for item, err := range f.Audit(ctx, q) {
		if err != nil {
			return nil, 0, false, err
		}
		after = item.Number
		if item.Entry != nil {
			page = append(page, audit.NewDocument(item.Entry))
		}
		if len(page) == auditPage {
			return page, after, false, nil
		}
	}
	return page, after, true, nil
}

// Me returns the user that the program acts as.
func (f *Local) Me(ctx context.Context) (auth.Principal, error) { return auth.From(ctx), nil }

// Source returns what zones are made from.
func (f *Local) Source() publish.Store { return f.Registry.Store }

// Purge removes from the store's files what was erased.
func (f *Local) Purge(ctx context.Context) error {
	if err := f.Registry.Registrar.Witness(ctx, "compact", "", ""); err != nil {
		return err
	}
	return f.Registry.Purge(ctx)
}

// Backup copies the store.
func (f *Local) Backup(ctx context.Context, to string) (changes uint64, err error) {
	if err := f.Witness(ctx, "backup", to, "begin"); err != nil {
		return 0, err
	}
	err = f.Registry.Store.Backup(ctx, to)
	if f.NoteEnd(ctx, "backup", to, err); err != nil {
		return 0, err
	}
	return f.Registry.Store.LastChange(ctx)
}

// Check checks the store, and the registrar's data in it.
func (f *Local) Check(ctx context.Context, tell remote.Inspection) (changes uint64, err error) {
	if err := f.Registry.Inspect(ctx, registry.Inspection(tell)); err != nil {
		return 0, err
	}
	return f.Registry.Store.LastChange(ctx)
}

// writers is how many records are written at a time: concurrent commits share a sync of
// the disk. After an interrupt, or an error of one, the writes under way get the grace to
// finish, so that the program can print what became of them.
const (
	writers = 64
	grace   = 2 * time.Second
)

// MintRecords makes names and registers records under them, some at a time.
func (f *Local) MintRecords(ctx context.Context, rec *stele.Record, pool []stele.NamespaceKey, n int) iter.Seq2[*stele.Record, error] {
	type result struct {
		rec *stele.Record
		err error
	}
	return func(yield func(*stele.Record, error) bool) {
		began, stop := context.WithCancel(ctx)
		defer stop()
		late, cancel := lingering(began, grace)
		defer cancel()
		results := make(chan result)
		var workers sync.WaitGroup
		var begun atomic.Int64
		for range min(n, writers) {
			workers.Go(func() {
				for began.Err() == nil && begun.Add(1) <= int64(n) {
					done, err := f.MintAndRegister(late, rec, pool...)
					results <- result{done, err}
				}
			})
		}
		go func() {
			workers.Wait()
			close(results)
		}()
		wanted := true
		for res := range results { // to the end, or a worker would block
			if res.err != nil {
				stop()
			}
			if wanted = wanted && yield(res.rec, res.err); !wanted {
				stop()
			}
		}
	}
}

// lingering returns a context that ends that long after ctx does.
func lingering(ctx context.Context, after time.Duration) (context.Context, context.CancelFunc) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() { time.AfterFunc(after, cancel) })
	return late, cancel
}

// namespaceSamples is how many names are made up of a namespace that is tried.
const namespaceSamples = 5

// NamespaceSamples judges a namespace that does not exist yet, and returns names such as its minter
// would make.
func (f *Local) NamespaceSamples(ctx context.Context, ns *stele.Namespace) ([]string, error) {
	if err := f.TryNamespace(ctx, ns, true); err != nil {
		return nil, err
	}
	return f.SampleNames(ctx, ns, namespaceSamples), nil
}
