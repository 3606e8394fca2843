package registrar

import (
	"context"
	"errors"
	"slices"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// Redact follows a legal order: it removes what the record says (targets,
// metadata, handle values, persistence statement, signatures, the owner's spelling) and
// withdraws it for the reason given. Only an administrator may, and only an
// administrator may change the record after that. Its names stay, and no other record
// gets them.
//
// With the same commit the store erases all versions before: only their numbers, times
// and authors are left. The bytes leave the store's files when the store is compacted;
// see [stele.Store]. Backups that were made before still have them. Redacting a record
// again erases what an earlier program left of it.
func (r *Registrar) Redact(ctx context.Context, name stele.ID, ifVersion uint64, reason string) (*stele.Record, error) {
	const op = "redact"
	if err := administrate(ctx, op, name); err != nil {
		return nil, err
	}
	if err := r.needProof(ctx, op); err != nil {
		return nil, err
	}
	rec, err := r.store.Record(ctx, name)
	if err != nil && !errors.Is(err, stele.NotFound) {
		return nil, tell(op, err)
	}
	var proposals []stele.CellChange
	if rec != nil { // proposals have content of the record too
		if proposals, err = r.endedProposals(ctx, op, rec.ID); err != nil {
			return nil, err
		}
	}
	erase := func(next *stele.Record) error {
		blank(next)
		next.State, next.Redacted = stele.Withdrawn, true
		next.Tombstone = &stele.Tombstone{Reason: reason, At: r.now()}
		next.Withheld.Erased = next.Version // of the version before; it gets its own number later
		return nil
	}
	if rec == nil || r.o.OnErase == nil {
		return r.reviseWith(ctx, op, name, ifVersion, erase, proposals...)
	}
	for attempt := 1; ; attempt++ {
		// The log keeps the digests of what is erased, with the same commit.
		logged, err := r.o.OnErase(ctx, rec.ID, rec.Version)
		if err != nil {
			return nil, tell(op, err)
		}
		version := rec.Version
		if ifVersion != 0 {
			version = ifVersion
		}
		done, err := r.reviseWith(ctx, op, name, version, erase, append(slices.Clone(proposals), logged...)...)
		if err == nil || ifVersion != 0 && ifVersion != rec.Version || !r.again(ctx, err, attempt) {
			return done, err
		}
		if rec, err = r.store.Record(ctx, name); err != nil {
			return nil, tell(op, err)
		}
	}
}

// Disavow declares that versions of a record, from first to last, are not to be used: a
// new version says so, with a reason that the public reads. From then on the content of
// those versions is shown only to callers that may change the record, and no client is
// redirected to their targets. The versions stay listed, and the statement can't be
// withdrawn. Only an owner may. Invalid if the current version is among them: it has to
// be changed first.
func (r *Registrar) Disavow(ctx context.Context, name stele.ID, ifVersion, first, last uint64, reason string) (*stele.Record, error) {
	const op = "disavow"
	s, err := r.view(ctx)
	if err != nil {
		return nil, err
	}
	before, ancestors, err := r.find(ctx, op, s.lookup(), name)
	if err != nil {
		return nil, err
	}
	if who := auth.From(ctx); !auth.MayManage(who, ancestors...) {
		return nil, forbid(op, before.ID, who, ancestors[0])
	}
	return r.revise(ctx, op, name, ifVersion, func(next *stele.Record) error {
		switch {
		case reason == "":
			return refuse(op, name, stele.Invalid, "record.disavowal-reason-missing", "the reason is missing; the public reads it in the place of the version")
		case first == 0 || first > last:
			return refuse(op, name, stele.Invalid, "record.disavowal-range-wrong", "versions {first} to {last} can't be disavowed; the first is at least 1 and not after the last", first, last)
		case last > next.Version:
			return refuse(op, name, stele.Invalid, "record.version-missing", "it has no version {version}; its versions are 1 to {last}", last, next.Version)
		case last == next.Version:
			return refuse(op, name, stele.Invalid, "record.disavowal-of-current-version", "version {version} is the current one; update or withdraw the record first, and disavow the version then", last)
		case len(next.Withheld.Disavowed) >= stele.MaxDisavowals:
			return refuse(op, name, stele.Invalid, "record.too-many-disavowals", "it has {most} disavowals, and that is the most", stele.MaxDisavowals)
		}
		for version := first; version <= last; version++ {
			if next.Withheld.Disavowal(version) == nil && !next.Withheld.Hides(version) {
				next.Withheld.Disavowed = append(next.Withheld.Disavowed, stele.Disavowal{
					First: first, Last: last, Reason: reason, At: r.now(), By: auth.From(ctx).Name})
				return nil
			}
		}
		return nil // all of them are withheld already
	})
}
