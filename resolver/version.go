package resolver

import (
	"cmp"
	"context"

	"github.com/stele-id/stele"
)

// ResolveVersion answers as [Resolver.Resolve] does, but from the given version of the
// record: what the name led to when that was current. The name that the record answers
// for is matched, the request's own or its beginning. Targets that are names of this
// resolver are not followed, since these led elsewhere then. NotFound if the client may
// not see the version.
func (r *Resolver) ResolveVersion(ctx context.Context, version *stele.Record, matched string, q Request) (Resolution, error) {
	q.Service = cmp.Or(q.Service, stele.N2L)
	w := walk{Resolver: r, q: q}
	visible, err := r.MaySee(ctx, q.Who, version)
	if err != nil {
		return Resolution{}, err
	}
	if !visible || len(matched) > len(q.ID.String()) {
		return Resolution{}, &stele.Error{Op: "resolve", ID: q.ID, Kind: stele.NotFound, Err: &UnknownError{}}
	}
	res, err := w.fromRecord(ctx, version, matched)
	if err != nil {
		return Resolution{}, err
	}
	res.ID = q.ID
	return res, nil
}
