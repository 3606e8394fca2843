package access

import (
	"context"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/usage"
)

// Usage reads figures of use.
type Usage interface {
	Usage(ctx context.Context, q apijson.UsageQuery) (*apijson.Usage, error)
	Breakdown(ctx context.Context, q apijson.UsageQuery) (*apijson.UsageBreakdown, error)
	Unused(ctx context.Context, q apijson.UnusedQuery) (*apijson.Unused, error)
	CounterReport(ctx context.Context, q apijson.UsageReportQuery) (*apijson.UsageReport, error)
}

// Usage returns how often names are used.
func (f *Local) Usage(ctx context.Context, q apijson.UsageQuery) (*apijson.Usage, error) {
	return f.book().Report(ctx, q)
}

// Breakdown returns what is counted for a namespace: referring hosts, countries, names that lead nowhere, or answers of the DNS.
func (f *Local) Breakdown(ctx context.Context, q apijson.UsageQuery) (*apijson.UsageBreakdown, error) {
	return f.book().Breakdown(ctx, q)
}

// Unused returns a page of names that were not used.
func (f *Local) Unused(ctx context.Context, q apijson.UnusedQuery) (*apijson.Unused, error) {
	return f.book().Unused(ctx, q)
}

// CounterReport returns a page of a report of the use of names.
func (f *Local) CounterReport(ctx context.Context, q apijson.UsageReportQuery) (*apijson.UsageReport, error) {
	return f.book().CounterReport(ctx, q)
}

func (f *Local) book() *usage.Book {
	return &usage.Book{Registrar: f.Registry.Registrar, Schemes: f.Registry.Schemes}
}

// CountsFor has a log importer count for the records of a registry.
func CountsFor(r *registry.Registry, im *usage.LogImporter) {
	im.Store, im.Schemes = r.Registrar, r.Schemes
	im.Space = func(ctx context.Context, id stele.ID) (key stele.NamespaceKey, err error) {
		ns, err := r.Resolver.Namespace(ctx, id)
		if err == nil && ns != nil {
			key = ns.Key()
		}
		return key, err
	}
	im.Find = func(ctx context.Context, id stele.ID) (stele.ID, bool, error) {
		res, err := r.Resolver.Resolve(ctx, resolver.Request{ID: id}) // for the public, as a server counts
		switch kind := stele.KindOf(err); {
		case kind == stele.NotFound, kind == stele.Invalid, kind == stele.Conflict: // also what can't be passed on, and names that lead to each other
			return stele.ID{}, false, nil
		case err == nil && res.Rule != nil && res.Namespace.Prefix != "": // as a server counts, for the namespace
			return stele.StoredID(res.Namespace.Scheme, res.Namespace.Prefix), true, nil
		case err != nil || res.Record == nil: // another resolver has the name
			return stele.ID{}, false, err
		}
		return res.Record.ID, true, nil
	}
}
