package resolver

import (
	"context"

	"github.com/stele-id/stele"
)

// Explain tells all that is encoded in a text, as [stele.Schemes.Explain] does, with what
// the registered namespaces add to it.
func (r *Resolver) Explain(ctx context.Context, text string) (stele.Explanation, error) {
	x, err := r.schemes.Explain(text)
	if err != nil || !r.schemes.IsPlaced(x.ID) {
		return x, err
	}
	ancestors, err := r.namespaces.ancestors(ctx, x.ID)
	if err != nil {
		return stele.Explanation{}, err
	}
	return r.schemes.Place(x, ancestors), nil
}

// Namespace returns the namespace that a name belongs to, whether or not the name
// is registered; nil if there is none, so that this resolver can't answer for it.
func (r *Resolver) Namespace(ctx context.Context, id stele.ID) (*stele.Namespace, error) {
	return r.namespaces.of(ctx, id)
}
