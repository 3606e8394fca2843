package access

import (
	"context"

	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/usage"
)

// Usage reads figures of use.
type Usage interface {
	Usage(ctx context.Context, q apijson.UsageQuery) (*apijson.Usage, error)
}

// Usage returns how often names are used.
func (f *Local) Usage(ctx context.Context, q apijson.UsageQuery) (*apijson.Usage, error) {
	r := f.Registry
	return (&usage.Book{Registrar: r.Registrar, Schemes: r.Schemes}).Report(ctx, q)
}
