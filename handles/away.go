package handles

import (
	"context"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/destination"
)

// Elsewhere asks other servers of the Handle System about handles that are not in this registry. What it returns is what
// their home servers certify. An error of Kind Unavailable or Exhausted says that there is no answer now; what is not
// there, or not certified, is not an error.
type Elsewhere interface {
	// Values returns the values of a type that the public may read; all of this type if the index is 0.
	Values(ctx context.Context, handle string, index uint32, kind string) ([]stele.HandleValue, error)

	// Verify reports whether the home server of an identity says that a proof by its secret is right.
	Verify(ctx context.Context, who Identity, p *Proof) (bool, error)

	// VerifySecret does so for a secret that a client sent.
	VerifySecret(ctx context.Context, who Identity, secret []byte) (bool, error)
}

// clientKey is that of the client's name in a context.
type clientKey struct{}

// WithClient returns a context that says which client asks, by the name that limits count it under.
func WithClient(ctx context.Context, client string) context.Context {
	return context.WithValue(ctx, clientKey{}, client)
}

// ClientOf returns the name of the client that asks; "" if it is not known.
func ClientOf(ctx context.Context) string {
	name, _ := ctx.Value(clientKey{}).(string)
	return name
}

// homeKey is that of a question which another server asks.
type homeKey struct{}

// AtHome returns a context in which no other server is asked: a server that asks whether a proof is right must not make this one
// ask further, or servers that take each other for the home of a handle would ask each other without end.
func AtHome(ctx context.Context) context.Context { return context.WithValue(ctx, homeKey{}, true) }

// isAway reports whether a handle belongs to another registry, which can be asked. A handle of a prefix of this registry is never
// asked for elsewhere, also if it is not there.
func (s *Service) isAway(ctx context.Context, id stele.ID) (bool, error) {
	if s.o.Elsewhere == nil || ctx.Value(homeKey{}) != nil {
		return false, nil
	}
	ns, err := s.o.Resolver.Namespace(ctx, id)
	if err != nil {
		return false, refusalOf(err)
	}
	return ns == nil || ns.Prefix == "" || ns.AnsweredAt() != "", nil
}

// valuesOf returns the values of a handle of one type, with one index if it is not 0: those of the record here or, if the handle
// belongs to another registry, those that its home server gives to the public.
func (s *Service) valuesOf(ctx context.Context, id stele.ID, index uint32, kind string) (values []stele.HandleValue, away bool, err error) {
	rec, err := s.present(ctx, id)
	if err != nil {
		return nil, false, err
	}
	if rec == nil {
		if away, err = s.isAway(ctx, id); !away || err != nil {
			return nil, false, err
		}
		values, err = s.o.Elsewhere.Values(ctx, Bare(id), index, kind)
		if err != nil {
			return nil, true, refusalOf(err)
		}
		return pick(values, index, kind), true, nil
	}
	return pick(rec.Values, index, kind), false, nil
}

// pick returns the values of one type, with one index if it is not 0.
func pick(values []stele.HandleValue, index uint32, kind string) (some []stele.HandleValue) {
	for _, v := range values {
		if (index == 0 || v.Index == index) && destination.HasType(v.Type, kind) {
			some = append(some, v)
		}
	}
	return some
}
