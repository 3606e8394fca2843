package registrar

import (
	"context"
	"iter"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// Get returns the record that has this name, for whoever acts: readers of its
// namespace see it in every state, others as [auth.MayRead] says. NotFound if there
// is none for them.
func (r *Registrar) Get(ctx context.Context, name stele.ID) (*stele.Record, error) {
	rec, _, err := r.get(ctx, "show", name)
	return rec, err
}

func (r *Registrar) get(ctx context.Context, op string, name stele.ID) (*stele.Record, []*stele.Namespace, error) {
	s, err := r.view(ctx)
	if err != nil {
		return nil, nil, err
	}
	return r.find(ctx, op, s, name)
}

// History yields all versions of the record that has this name, the newest first.
// A version from before a redaction comes without what it said, for everybody, and
// so does one that whoever acts could not have seen when it was current. NotFound
// if there is no record for them.
func (r *Registrar) History(ctx context.Context, name stele.ID) iter.Seq2[*stele.Record, error] {
	return func(yield func(*stele.Record, error) bool) {
		rec, chain, err := r.get(ctx, "history", name)
		if err != nil {
			yield(nil, err)
			return
		}
		redacted := false
		for v, err := range r.store.History(ctx, rec.ID) {
			if err != nil {
				yield(nil, tell("history", err))
				return
			}
			if redacted {
				v = withhold(v)
				v.Redacted = true
			} else if redacted = v.Redacted; !auth.MayRead(auth.From(ctx), v, chain...) {
				v = withhold(v)
			}
			if !yield(v, nil) {
				return
			}
		}
	}
}

// withhold returns an old version without what it said, and without why it was
// withdrawn.
func withhold(v *stele.Record) *stele.Record {
	v = clone(v)
	blank(v)
	if v.Tombstone != nil {
		v.Tombstone = &stele.Tombstone{At: v.Tombstone.At}
	}
	return v
}

// At returns the version of a record that was current at a time, as History shows
// it. NotFound if the record was not there yet.
func (r *Registrar) At(ctx context.Context, name stele.ID, t time.Time) (*stele.Record, error) {
	for v, err := range r.History(ctx, name) {
		if err != nil {
			return nil, err
		}
		if !v.Modified.After(t) {
			return v, nil
		}
	}
	return nil, refuse("show", name, stele.NotFound, "it was not registered yet at %s", t.UTC().Format(time.RFC3339))
}
