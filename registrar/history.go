package registrar

import (
	"context"
	"errors"
	"iter"
	"math"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// Get returns the record that has this name, as the caller may see it: readers of its
// namespace see it in every state, others as [auth.MayRead] says. NotFound if there is
// none that the caller may see.
func (r *Registrar) Get(ctx context.Context, name stele.ID) (*stele.Record, error) {
	rec, _, err := r.get(ctx, "show", name)
	return rec, err
}

func (r *Registrar) get(ctx context.Context, op string, name stele.ID) (*stele.Record, []*stele.Namespace, error) {
	s, err := r.view(ctx)
	if err != nil {
		return nil, nil, err
	}
	return r.find(ctx, op, s.lookup(), name)
}

// History yields all versions of the record that has this name, the newest first, as
// [Registrar.Version] shows them. NotFound if there is no record that the caller may
// see.
func (r *Registrar) History(ctx context.Context, name stele.ID) iter.Seq2[*stele.Record, error] {
	return r.HistoryBefore(ctx, name, math.MaxUint64)
}

// HistoryBefore is History without the versions from the given one on. It does not read
// those.
func (r *Registrar) HistoryBefore(ctx context.Context, name stele.ID, version uint64) iter.Seq2[*stele.Record, error] {
	return func(yield func(*stele.Record, error) bool) {
		now, ancestors, err := r.get(ctx, "history", name)
		if err != nil {
			yield(nil, err)
			return
		}
		for v, err := range r.store.HistoryBefore(ctx, now.ID, version) {
			if err != nil {
				yield(nil, tell("history", err))
				return
			}
			if v.Version > now.Version { // it was made a moment ago
				now = v
			}
			if !yield(shown(ctx, now, v, ancestors), nil) {
				return
			}
		}
	}
}

// Version returns one version of the record that has this name. Its cost does not depend
// on how many versions there are.
//
// Each version comes with what the current one withholds. A version that was erased, or
// that is older than a redaction, comes without its content and marked as redacted, for
// all callers. A disavowed version comes without its content for callers that may not
// change the record, and so does a version that the caller could not have seen when it
// was current.
func (r *Registrar) Version(ctx context.Context, name stele.ID, version uint64) (*stele.Record, error) {
	const op = "show"
	now, ancestors, err := r.get(ctx, op, name)
	if err != nil {
		return nil, err
	}
	v, err := r.store.Version(ctx, now.ID, version)
	if errors.Is(err, stele.NotFound) {
		return nil, refuse(op, name, stele.NotFound, "record.version-missing", "it has no version {version}; its versions are 1 to {last}", version, now.Version)
	} else if err != nil {
		return nil, tell(op, err)
	}
	return shown(ctx, now, v, ancestors), nil
}

// At returns the version of a record that was current at a time, as [Registrar.Version]
// shows it and at the same cost. NotFound if the record was not there yet.
func (r *Registrar) At(ctx context.Context, name stele.ID, t time.Time) (*stele.Record, error) {
	const op = "show"
	now, ancestors, err := r.get(ctx, op, name)
	if err != nil {
		return nil, err
	}
	v, err := r.store.VersionAt(ctx, now.ID, t)
	if errors.Is(err, stele.NotFound) {
		return nil, refuse(op, name, stele.NotFound, "record.not-yet-registered", "it was not registered yet at {time}", t.UTC().Format(time.RFC3339))
	} else if err != nil {
		return nil, tell(op, err)
	}
	return shown(ctx, now, v, ancestors), nil
}

// shown returns a version as far as the caller may see it. Now is the current one, or
// one that was current a moment ago.
func shown(ctx context.Context, now, v *stele.Record, ancestors []*stele.Namespace) *stele.Record {
	if v.Version >= now.Version {
		if !auth.MayRead(auth.From(ctx), v, ancestors...) {
			v = withhold(v)
		}
		return v
	}
	switch who := auth.From(ctx); {
	case now.Withheld.Hides(v.Version):
		v = withhold(v)
		v.Redacted = true
	case now.Withheld.Disavowal(v.Version) != nil && !auth.MayPropose(who, ancestors...):
		v = withhold(v)
	case !auth.MayRead(who, v, ancestors...):
		v = withhold(v)
	}
	v.Withheld = now.Withheld.Clone()
	return v
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
