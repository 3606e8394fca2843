package registrar

import (
	"context"
	"errors"
	"iter"
	"math"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/trace"
)

// Get returns the record that has this name, as the caller may see it: readers of its
// namespace see it in every state, others as [auth.MayRead] says. NotFound if there is
// none that the caller may see.
func (r *Registrar) Get(ctx context.Context, name stele.ID) (*stele.Record, error) {
	rec, _, err := r.get(ctx, "show", name)
	return rec, err
}

func (r *Registrar) get(ctx context.Context, op string, name stele.ID) (*stele.Record, []*stele.Namespace, error) {
	ctx, span := trace.Start(ctx, "registrar "+op)
	s, err := r.view(ctx)
	if err != nil {
		span.End(err)
		return nil, nil, err
	}
	rec, ancestors, err := r.find(ctx, op, s.lookup(), name)
	span.End(err)
	return rec, ancestors, err
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
	if err != nil {
		return nil, absent(op, err, name, "record.version-missing", "it has no version {version}; its versions are 1 to {last}", version, now.Version)
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
	if err != nil {
		return nil, absent(op, err, name, "record.not-yet-registered", "it was not registered yet at {time}", t.UTC().Format(time.RFC3339))
	}
	return shown(ctx, now, v, ancestors), nil
}

// shown returns a version as far as the caller may see it. Now is the current one, or
// one that was current a moment ago.
func shown(ctx context.Context, now, v *stele.Record, ancestors []*stele.Namespace) *stele.Record {
	hidden := hides(ctx, now, v, ancestors)
	if hidden {
		v = withhold(v)
	}
	if v.Version < now.Version {
		v.Redacted = v.Redacted || now.Withheld.Hides(v.Version)
		v.Withheld = now.Withheld.Clone()
	}
	return v
}

// hides reports whether what a version says is hidden from the caller.
func hides(ctx context.Context, now, v *stele.Record, ancestors []*stele.Namespace) bool {
	who := auth.From(ctx)
	if v.Version < now.Version && (now.Withheld.Hides(v.Version) || now.Withheld.Disavowal(v.Version) != nil && !auth.MayPropose(who, ancestors...)) {
		return true
	}
	return !auth.MayRead(who, v, ancestors...)
}

// Disclosure says how far the caller may see a version of a record.
type Disclosure struct {
	ID      stele.ID
	Version uint64
	Content bool // what the version says, as the public may see it; otherwise only that it was there, and when
	All     bool // all of its content: the caller has a role in the namespace

	Record *stele.Record // the version, as the store has it, with what the caller may not see
}

// Disclose returns how far the caller may see a version of the record that has this name, by the rules of
// [Registrar.Version]: the version with a number, or that which was current at a time, or the current one if both are zero.
func (r *Registrar) Disclose(ctx context.Context, name stele.ID, version uint64, at time.Time) (d Disclosure, err error) {
	const op = "show"
	now, ancestors, err := r.get(ctx, op, name)
	if err != nil {
		return d, err
	}
	v := now
	switch {
	case !at.IsZero():
		v, err = r.store.VersionAt(ctx, now.ID, at)
		err = absent(op, err, name, "record.not-yet-registered", "it was not registered yet at {time}", at.UTC().Format(time.RFC3339))
	case version != 0 && version != now.Version:
		v, err = r.store.Version(ctx, now.ID, version)
		err = absent(op, err, name, "record.version-missing", "it has no version {version}; its versions are 1 to {last}", version, now.Version)
	}
	if err != nil {
		return d, err
	}
	d = Disclosure{ID: now.ID, Version: v.Version, Content: !hides(ctx, now, v, ancestors), Record: v}
	d.All = d.Content && auth.RoleIn(auth.From(ctx), ancestors...).Includes(stele.RoleReader)
	return d, nil
}

// absent returns the error of a version that a store was asked for: the message if there is none.
func absent(op string, err error, name stele.ID, code, text string, args ...any) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, stele.NotFound):
		return refuse(op, name, stele.NotFound, code, text, args...)
	}
	return tell(op, err)
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
