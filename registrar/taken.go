package registrar

import (
	"context"
	"errors"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// apply commits. Its error does not tell the caller of records that the caller may not
// see.
func (r *Registrar) apply(ctx context.Context, op string, c *stele.Commit) error {
	return r.hush(ctx, op, r.commit(ctx, op, c), c.Records...)
}

// hush returns why records could not be committed. Where a name of theirs is taken by a
// record that the caller may not see, the error does not name that record: a name in
// one namespace may be an alias of what is hidden in another.
func (r *Registrar) hush(ctx context.Context, op string, err error, records ...*stele.Record) error {
	if err == nil || auth.From(ctx).Admin || stele.KindOf(err) != stele.Conflict {
		return err
	}
	s, verr := r.view(ctx)
	if verr != nil {
		return verr
	}
	for _, rec := range records {
		for _, name := range rec.Names() {
			switch have, err := r.lookUp(ctx, op, name); {
			case errors.Is(err, stele.NotFound):
			case err != nil:
				return err // perhaps it is one that must not be named
			case have.ID != rec.ID && !s.maySee(ctx, have):
				return takenName(op, rec.ID, name)
			}
		}
	}
	return err
}

// maySee reports whether the caller may know of a record.
func (s *namespaceTree) maySee(ctx context.Context, rec *stele.Record) bool {
	return auth.MayRead(auth.From(ctx), rec, s.ancestorsOf(rec.ID)...)
}

func takenName(op string, id, name stele.ID) error {
	return refuse(op, id, stele.Conflict, "record.name-taken", "the name {name} is taken; no name is ever given away", name)
}
