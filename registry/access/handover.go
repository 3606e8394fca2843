package access

import (
	"context"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/giver"
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

	// CancelHandOver ends a hand-over, of a namespace that was sealed only if sealed says so and the heir does not say that it has adopted it.
	CancelHandOver(ctx context.Context, key stele.NamespaceKey, sealed bool) ([]*stele.Namespace, error)

	// EndGiver says that the registry has ended from which a namespace was taken over after a silence. It asks that registry and its other heirs once more.
	EndGiver(ctx context.Context, key stele.NamespaceKey, sure bool) ([]*stele.Namespace, error)
}

// Watches are registries that this one watches as their heir.
type Watches interface {
	Watches(ctx context.Context) ([]registrar.WatchedGiver, error)
	AddWatch(ctx context.Context, w registrar.WatchedGiver) error
	RemoveWatch(ctx context.Context, origin string) error

	// AskGiver asks a registry for its checkpoint now, and returns what is known of it then.
	AskGiver(ctx context.Context, origin string) (*registrar.WatchedGiver, error)
}

// WithGivers gives a registry of this process what asks the registries that it watches. It returns false if the registry is at a server, which asks itself.
func (l *Registry) WithGivers(w giver.Watcher) bool {
	f, near := l.Backend.(*Local)
	if near {
		w.Watches, w.Now = f.Registrar, l.Now
		f.givers = &w
	}
	return near
}

// AddWatch lets servers watch a registry.
func (f *Local) AddWatch(ctx context.Context, w registrar.WatchedGiver) error {
	if err := f.givers.Check(&w); err != nil {
		return err
	}
	return f.Registrar.AddWatch(ctx, w)
}

// AskGiver asks a registry that is watched.
func (f *Local) AskGiver(ctx context.Context, origin string) (*registrar.WatchedGiver, error) {
	return f.givers.Ask(ctx, origin)
}

// EndGiver says that the registry has ended from which a namespace was taken over.
func (f *Local) EndGiver(ctx context.Context, key stele.NamespaceKey, sure bool) ([]*stele.Namespace, error) {
	return f.Registrar.EndGiver(ctx, key, sure, f.givers.ConfirmEnd)
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

// CancelHandOver ends a hand-over.
func (f *Local) CancelHandOver(ctx context.Context, key stele.NamespaceKey, sealed bool) ([]*stele.Namespace, error) {
	return f.heirs.Cancel(ctx, key, sealed)
}
