package resolver

import (
	"cmp"
	"context"

	"github.com/stele-id/stele"
)

// ResolveVersion answers as [Resolver.Resolve] does, but from a version of the
// record that somebody has: what the name led to when that was current. The name
// that the record answers for is matched, the request's own or its beginning.
// Targets that are names of this resolver are not followed, since these led
// elsewhere then. Whether whoever asks may see the version is for the caller to
// know; it is NotFound if the version was not public.
func (r *Resolver) ResolveVersion(ctx context.Context, version *stele.Record, matched string, q Request) (Resolution, error) {
	q.Service = cmp.Or(q.Service, stele.N2L)
	w := walk{Resolver: r, q: q}
	if !isVisible(version, q.Principals) || len(matched) > len(q.ID.String()) {
		return Resolution{}, &stele.Error{Op: "resolve", ID: q.ID, Kind: stele.NotFound, Err: &UnknownError{}}
	}
	res, err := w.fromRecord(ctx, version, matched)
	if err != nil {
		return Resolution{}, err
	}
	res.ID = q.ID
	return res, nil
}
