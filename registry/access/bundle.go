package access

import (
	"context"
	"iter"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk/bundle"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/transparency"
	"github.com/stele-id/stele/usage"
)

// BundleBelow returns what writes a bundle of the names that begin with prefixes, or of all names if there are none. The prefixes are as on
// the command line.
func (l *Registry) BundleBelow(ctx context.Context, r *registry.Registry, prefixes []string, keys func(context.Context) (*transparency.Keys, error), now time.Time) (*bundle.Job, error) {
	var begin []stele.NamespaceKey
	for _, prefix := range prefixes {
		list, err := l.Beginnings(prefix)
		if err != nil {
			return nil, err
		}
		begin = append(begin, list...)
	}
	from, err := r.Registrar.Bundling(ctx, begin...)
	if err != nil {
		return nil, err
	}
	signing, err := keys(ctx)
	if err != nil {
		return nil, err
	}
	return BundleJob(ctx, r, from, signing, now)
}

// BundleJob returns what writes a bundle of a registry, with the figures of use of the names that it has. The keys are those of the registry's log.
func BundleJob(ctx context.Context, r *registry.Registry, from *registrar.Bundling, keys *transparency.Keys, now time.Time) (*bundle.Job, error) {
	j := &bundle.Job{From: from, Log: r.Log, Keys: keys, Now: now, Temp: bundle.TempFile}
	book := &usage.Book{Registrar: r.Registrar, Schemes: r.Schemes}
	used, err := book.HasMonths(ctx)
	if used { // otherwise nothing in a bundle depends on the month in which it is made
		j.Usage = func(ctx context.Context, prefix stele.NamespaceKey, until string) iter.Seq2[bundle.Usage, error] {
			return bundledUsage(ctx, book, prefix, until)
		}
	}
	return j, err
}

// bundledUsage yields figures as a bundle has them.
func bundledUsage(ctx context.Context, book *usage.Book, prefix stele.NamespaceKey, until string) iter.Seq2[bundle.Usage, error] {
	return func(yield func(bundle.Usage, error) bool) {
		last, err := usage.ParseDate(until)
		if err != nil {
			yield(bundle.Usage{}, err)
			return
		}
		for m, err := range book.Months(ctx, prefix, last) {
			u := bundle.Usage{Scheme: prefix.Scheme, Name: m.ID.String(), Month: m.Month.String(), Counts: m.Counts.Named()}
			if !yield(u, err) || err != nil {
				return
			}
		}
	}
}
