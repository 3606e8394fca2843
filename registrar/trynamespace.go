package registrar

import (
	"context"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registrar/minting"
)

// TryNamespace returns the error with which [Registrar.AddNamespace] would refuse a namespace, or
// [Registrar.SetNamespace] if there is one with its key; nil if it would be written. It writes
// nothing, and asks for no fresh proof.
func (r *Registrar) TryNamespace(ctx context.Context, ns *stele.Namespace, isNew bool) error {
	const op = "try namespace"
	if !auth.From(ctx).IsKnown() {
		return refuse(op, stele.ID{}, stele.Unauthenticated, "request.anonymous", "say who you are; send a token")
	}
	s, err := r.view(ctx)
	if err != nil {
		return err
	}
	_, _, _, _, err = r.judgeEdit(ctx, op, s, ns.Key(), func(before *stele.Namespace) (*stele.Namespace, error) {
		switch {
		case isNew && before != nil:
			return nil, refuse(op, stele.ID{}, stele.Conflict, "namespace.exists", "the namespace {namespace} exists; change it, or choose another prefix", ns.Key())
		case !isNew && before == nil:
			return nil, refuse(op, stele.ID{}, stele.NotFound, "namespace.missing", "there is no namespace {namespace}; add it first", ns.Key())
		}
		next := cloneNamespace(ns)
		return next, r.seedTemplate(before, next)
	})
	return err
}

// SampleNames returns names such as the minter of a namespace makes with its settings, which may be
// those of a form: names that it has not made yet. It takes none of them, and there are none if its
// settings are wrong.
func (r *Registrar) SampleNames(ctx context.Context, ns *stele.Namespace, n int) []string {
	given := uint64(0)
	if status, err := r.MinterStatus(ctx, ns.Key()); err == nil {
		given = status.Given
	}
	return minting.Samples(r.schemes, ns, given, r.now(), n)
}
