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
// NotFound if there is no such version. Conflict if the contents of the version were
// erased or removed by a legal order, if an owner disavowed it, or if the version was
// reserved and the record is not any more.
func (r *Registrar) Revert(ctx context.Context, name stele.ID, ifVersion, to uint64) (*stele.Record, error) {
	const op = "revert"
	s, err := r.view(ctx)
	if err != nil {
		return nil, err
	}
	return r.revise(ctx, op, name, ifVersion, func(next *stele.Record) error {
		old, err := r.Version(ctx, next.ID, to)
		if err != nil {
			return err
		}
		return r.takeBack(op, s, next, old)
	})
}

// takeBack gives a record what it said in an old version. next is a copy of the current
// one.
func (r *Registrar) takeBack(op string, s *namespaceTree, next, old *stele.Record) error {
	switch d := next.Withheld.Disavowal(old.Version); {
	case old.Redacted, next.Withheld.Hides(old.Version):
		return refuse(op, next.ID, stele.Conflict, "record.revert-to-redacted-version", "the contents of version {version} were removed by a legal order; a revert does not bring them back", old.Version)
	case d != nil:
		return refuse(op, next.ID, stele.Conflict, "record.revert-to-disavowed-version", `version {version} was disavowed ("{reason}"); a revert does not bring it back: choose another version, or write the contents with an update`, old.Version, d.Reason)
	case old.State == stele.Reserved && next.State != stele.Reserved:
		return refuse(op, next.ID, stele.Conflict, "record.revert-to-reserved-version", "version {version} was reserved, and a record that is {state} does not become reserved; withdraw it instead", old.Version, next.State)
	}
	j, keys := judge{r, s.lookup(), nil}, keysOf(s.ancestorsOf(next.ID))
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
