package resolver

import (
	"context"

	"github.com/stele-id/stele"
)

// Namespace returns the namespace that a name belongs to, whether or not the name
// is registered; nil if there is none, so that nobody here could answer for it.
func (r *Resolver) Namespace(ctx context.Context, id stele.ID) (*stele.Namespace, error) {
	return r.namespaces.of(ctx, id)
}
