package access

import (
	"context"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/heir"
	"github.com/stele-id/stele/registrar"
)

// HandOver hands namespaces over to other registries.
type HandOver interface {
	// HandOvers returns the namespaces at and below a key that are handed over or were adopted; all with the zero key.
	HandOvers(ctx context.Context, key stele.NamespaceKey) ([]*stele.Namespace, error)
	OfferNamespace(ctx context.Context, key stele.NamespaceKey, heir, address string) ([]*stele.Namespace, error)

	// PlanSeal says what SealNamespace would do.
	PlanSeal(ctx context.Context, key stele.NamespaceKey, progress func(read int)) (*registrar.SealPlan, error)
	SealNamespace(ctx context.Context, key stele.NamespaceKey) ([]*stele.Namespace, error)

	// CheckHeir asks the heir how far it is, and Forward redirects requests there if it answers, or, with sure, without asking it.
	CheckHeir(ctx context.Context, key stele.NamespaceKey) (apijson.HeirCheck, error)
	Forward(ctx context.Context, key stele.NamespaceKey, sure bool) ([]*stele.Namespace, error)
	CancelHandOver(ctx context.Context, key stele.NamespaceKey, sealed bool) ([]*stele.Namespace, error)
}

// WithHeirs gives a registry of this process what asks heirs. It returns false if the registry is at a server, which asks itself.
func (l *Registry) WithHeirs(c heir.Checker) bool {
	f, near := l.Backend.(*Local)
	if near {
		c.Registrar, c.Schemes = f.Registrar, l.Schemes
		f.heirs = &c
	}
	return near
}

// CheckHeir asks the heir of a namespace.
func (f *Local) CheckHeir(ctx context.Context, key stele.NamespaceKey) (apijson.HeirCheck, error) {
	return f.heirs.Check(ctx, key)
}

// Forward redirects requests to the heir.
func (f *Local) Forward(ctx context.Context, key stele.NamespaceKey, sure bool) ([]*stele.Namespace, error) {
	return f.heirs.Forward(ctx, key, sure)
}
