package registrar

import (
	"context"
	"slices"

	"github.com/stele-id/stele"
)

// Revert gives a record the contents that it had in an earlier version, as a new
// version: targets, metadata, persistence, handle values, readers, spelling, and its
// state with the tombstone. Its names stay, since none is ever detached. A signature
// comes back if the record still has it, or if its key may still sign.
//
// NotFound if there is no such version. Conflict if the contents of the version, or of
// the record as it is, were removed by a legal order, or if the version was reserved and
// the record is not any more.
func (r *Registrar) Revert(ctx context.Context, name stele.ID, ifVersion, to uint64) (*stele.Record, error) {
	const op = "revert"
	s, err := r.view(ctx)
	if err != nil {
		return nil, err
	}
	return r.revise(ctx, op, name, ifVersion, func(next *stele.Record) error {
		old, err := r.versionOf(ctx, op, next.ID, to)
		if err != nil {
			return err
		}
		return r.takeBack(op, s, next, old)
	})
}

// versionOf returns a version of a record, as the caller may see it.
func (r *Registrar) versionOf(ctx context.Context, op string, id stele.ID, version uint64) (*stele.Record, error) {
	newest := uint64(0)
	for v, err := range r.History(ctx, id) {
		if err != nil {
			return nil, err
		}
		newest = max(newest, v.Version)
		if v.Version == version {
			return v, nil
		}
		if v.Version < version {
			break
		}
	}
	return nil, refuse(op, id, stele.NotFound, "it has no version %d; its versions are 1 to %d", version, newest)
}

// takeBack gives a record what it said in an old version. next is a copy of the current
// one.
func (r *Registrar) takeBack(op string, s *spaces, next, old *stele.Record) error {
	switch {
	case old.Redacted:
		return refuse(op, next.ID, stele.Conflict, "the contents of version %d were removed by a legal order; a revert does not bring them back", old.Version)
	case old.State == stele.Reserved && next.State != stele.Reserved:
		return refuse(op, next.ID, stele.Conflict, "version %d was reserved, and a record that is %s does not become reserved; withdraw it instead", old.Version, next.State)
	}
	j, keys := judge{r, s, nil}, keysOf(s.chainOf(next.ID))
	had := next.Signatures
	old = clone(old)
	next.Spelling, next.State, next.Tombstone = old.Spelling, old.State, old.Tombstone
	next.Targets, next.Metadata, next.Persistence = old.Targets, old.Metadata, old.Persistence
	next.Values, next.Readers = old.Values, old.Readers
	next.Signatures = slices.DeleteFunc(old.Signatures, func(sig stele.Signature) bool {
		return !hasSignature(had, sig) && j.signature(keys, next.ID, sig, false) != nil
	})
	return nil
}
