package resolver

import (
	"context"

	"github.com/stele-id/stele"
)

// SigningKeys returns the public keys that may have signed a name: those of its
// namespace first, then of all above it. The name need not be registered; it may be
// the prefix of a namespace.
func (r *Resolver) SigningKeys(ctx context.Context, id stele.ID) (keys []stele.SigningKey, err error) {
	ancestors, err := r.namespaces.ancestors(ctx, id)
	for _, ns := range ancestors {
		keys = append(keys, ns.Keys...)
	}
	return keys, err
}
