package registrar

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/namespaces"
)

// Register adds a record, in the state active or reserved (active if it has none).
// What the system keeps is set here, whatever it holds. It returns the record as it
// is kept. Conflict if one of its names is taken.
func (r *Registrar) Register(ctx context.Context, record *stele.Record) (*stele.Record, error) {
	const op = "register"
	s, err := r.view(ctx)
	if err != nil {
		return nil, err
	}
	next, err := r.begin(ctx, op, record)
	if err != nil {
		return nil, err
	}
	at := s.lookup()
	if err := r.admit(ctx, op, at, nil, next); err != nil {
		return nil, err
	}
	err = r.apply(ctx, op, &stele.Commit{Records: []*stele.Record{next}, Counter: at.counter})
	if err != nil {
		return nil, err
	}
	return clone(next), nil
}

// begin returns the first version of a record that the caller wants to register.
func (r *Registrar) begin(ctx context.Context, op string, record *stele.Record) (*stele.Record, error) {
	next := clone(record)
	if next.State == "" {
		next.State = stele.Active
	}
	if next.State == stele.Withdrawn {
		return nil, refuse(op, next.ID, stele.Invalid, "record.initial-state-wrong", "a record begins as active or reserved; withdraw it later")
	}
	next.Version, next.Redacted, next.By, next.Import = 1, false, auth.From(ctx).Name, 0
	next.Withheld = stele.Withheld{}
	next.Created = r.now()
	next.Modified = next.Created
	return next, nil
}

// counter says for which namespace a new name counts, an identifier or an alias.
func (s *namespaceTree) counter(id stele.ID) (stele.NamespaceKey, uint64) {
	return counts(id, s.Of(id))
}

// counts is counter for a name whose namespace was looked up.
func counts(id stele.ID, n *namespaces.Node) (stele.NamespaceKey, uint64) {
	if n != nil {
		return n.Key(), n.Quota
	}
	return stele.NamespaceKey{Scheme: id.Scheme()}, 0
}

// Update changes the record that has this name: change is called with a copy of
// it, and what the system keeps is not its to change. If ifVersion is not 0 and not
// the record's version, the answer is Conflict; if it is 0 and another writer was
// faster, change is called again with its version. A reserved record may become active.
// If nothing changed, no version is made.
func (r *Registrar) Update(ctx context.Context, name stele.ID, ifVersion uint64, change func(*stele.Record) error) (*stele.Record, error) {
	const op = "update"
	return r.revise(ctx, op, name, ifVersion, func(next *stele.Record) error {
		before := next.State
		if before == stele.Withdrawn {
			return refuse(op, next.ID, stele.Gone, "record.withdrawn", "it is withdrawn; reinstate it first")
		}
		kept := next.Withheld.Clone()
		if err := change(next); err != nil {
			return err
		}
		next.Tombstone, next.Redacted, next.Withheld = nil, false, kept
		switch {
		case next.State == before, next.State == stele.Active:
			return nil
		case next.State == stele.Withdrawn:
			return refuse(op, next.ID, stele.Invalid, "record.withdrawn-by-update", "a record is not withdrawn by an update; withdraw it, with a reason")
		}
		return refuse(op, next.ID, stele.Invalid, "record.state-change-not-allowed", `a record that is {state} does not become "{new-state}"`, before, next.State)
	})
}

// Withdraw ends the use of a record: it answers with a tombstone from now on. The
// reason must be given; the replacement may be zero. Of a record that is withdrawn
// already it changes both. Conflict if it is reserved: a tombstone would disclose to
// the public a name that was never public.
func (r *Registrar) Withdraw(ctx context.Context, name stele.ID, ifVersion uint64, reason string, replacement stele.ID) (*stele.Record, error) {
	const op = "withdraw"
	return r.revise(ctx, op, name, ifVersion, func(next *stele.Record) error {
		if next.State == stele.Reserved {
			return errReserved(op, next.ID)
		}
		at := r.now()
		if next.Tombstone != nil {
			at = next.Tombstone.At
		}
		next.State = stele.Withdrawn
		next.Tombstone = &stele.Tombstone{Reason: reason, At: at, Replacement: replacement}
		return nil
	})
}

// WithdrawWith is Withdraw with what change makes of the record, as one new version: a record that is withdrawn stays so. The
// replacement stays, too.
func (r *Registrar) WithdrawWith(ctx context.Context, name stele.ID, version uint64, reason string, change func(*stele.Record) error) (*stele.Record, error) {
	const op = "withdraw"
	return r.revise(ctx, op, name, version, func(next *stele.Record) error {
		if next.State == stele.Reserved {
			return errReserved(op, next.ID)
		}
		tombstone := stele.Tombstone{At: r.now()}
		if next.Tombstone != nil {
			tombstone = *next.Tombstone
		}
		tombstone.Reason = reason
		kept := next.Withheld.Clone()
		if err := change(next); err != nil {
			return err
		}
		next.State, next.Tombstone, next.Redacted, next.Withheld = stele.Withdrawn, &tombstone, false, kept
		return nil
	})
}

// errReserved says that a reserved record can't be withdrawn.
func errReserved(op string, id stele.ID) error {
	return refuse(op, id, stele.Conflict, "record.reserved-not-withdrawable", "it is reserved, so the public knows nothing of it that could be withdrawn; leave it so, or make it active first")
}

// Reinstate makes a withdrawn record active again, as a new version. Conflict if it
// is not withdrawn.
func (r *Registrar) Reinstate(ctx context.Context, name stele.ID, ifVersion uint64) (*stele.Record, error) {
	const op = "reinstate"
	return r.revise(ctx, op, name, ifVersion, func(next *stele.Record) error {
		if next.State != stele.Withdrawn {
			return refuse(op, next.ID, stele.Conflict, "record.not-withdrawn", "it is {state}, not withdrawn", next.State)
		}
		next.State, next.Tombstone = stele.Active, nil
		return nil
	})
}

// Revive makes a withdrawn record active again with what change makes of it, as one new version. Conflict
// if it is not withdrawn, or if it has another version than the given one.
func (r *Registrar) Revive(ctx context.Context, name stele.ID, version uint64, change func(*stele.Record) error) (*stele.Record, error) {
	const op = "revive"
	return r.revise(ctx, op, name, version, func(next *stele.Record) error {
		if next.State != stele.Withdrawn {
			return refuse(op, next.ID, stele.Conflict, "record.not-withdrawn", "it is {state}, not withdrawn", next.State)
		}
		kept := next.Withheld.Clone()
		if err := change(next); err != nil {
			return err
		}
		next.State, next.Tombstone, next.Redacted, next.Withheld = stele.Active, nil, false, kept
		return nil
	})
}

// AddAlias gives another name to a record. The caller must have rights in the namespace
// of that name too.
func (r *Registrar) AddAlias(ctx context.Context, name stele.ID, ifVersion uint64, alias stele.ID) (*stele.Record, error) {
	return r.revise(ctx, "add alias", name, ifVersion, func(next *stele.Record) error {
		if alias != next.ID && !slices.Contains(next.Aliases, alias) {
			next.Aliases = append(next.Aliases, alias)
		}
		return nil
	})
}

// revise commits what change makes of the record that has this name.
func (r *Registrar) revise(ctx context.Context, op string, name stele.ID, ifVersion uint64, change func(*stele.Record) error) (*stele.Record, error) {
	return r.reviseWith(ctx, op, name, ifVersion, change)
}

// reviseWith is revise, with changes of cells in the same commit.
func (r *Registrar) reviseWith(ctx context.Context, op string, name stele.ID, ifVersion uint64, change func(*stele.Record) error, cells ...stele.CellChange) (*stele.Record, error) {
	s, err := r.view(ctx)
	if err != nil {
		return nil, err
	}
	for {
		at := s.lookup()
		before, ancestors, err := r.find(ctx, op, at, name)
		if err != nil {
			return nil, err
		}
		if err := authorise(ctx, op, before.ID, ancestors); err != nil {
			return nil, err
		}
		if ifVersion != 0 && before.Version != ifVersion {
			return nil, refuse(op, name, stele.Conflict, "record.version-not-expected", "it has version {version}, not {expected}; look at it again", before.Version, ifVersion)
		}
		next, err := r.revision(ctx, op, at, before, change)
		if err != nil || next == nil {
			return before, err
		}
		err = r.apply(ctx, op, &stele.Commit{Records: []*stele.Record{next}, Cells: cells, Counter: at.counter})
		if err == nil {
			return clone(next), nil
		}
		if stele.KindOf(err) != stele.Conflict || ifVersion != 0 {
			return nil, err
		}
		// Another writer was faster; or a name is taken, and a retry can't succeed.
		if now, nerr := r.store.Record(ctx, name); nerr != nil || now.Version == before.Version {
			return nil, err
		}
	}
}

// revision returns the version that follows before, nil if nothing changed.
func (r *Registrar) revision(ctx context.Context, op string, s *lookup, before *stele.Record, change func(*stele.Record) error) (*stele.Record, error) {
	next := clone(before)
	next.Redacted = false
	if err := change(next); err != nil {
		return nil, tell(op, err)
	}
	if next.ID != before.ID {
		return nil, refuse(op, before.ID, stele.Invalid, "record.identifier-changed", "the identifier of a record never changes; add an alias, or register another record")
	}
	r.stamp(ctx, before, next)
	if err := r.admit(ctx, op, s, before, next); err != nil {
		return nil, err
	}
	if sameRecord(before, next) {
		return nil, nil
	}
	return next, nil
}

// stamp sets what the system keeps. A record whose content was removed is marked
// until it has content again.
func (r *Registrar) stamp(ctx context.Context, before, next *stele.Record) {
	next.Version, next.Created = before.Version+1, before.Created
	next.Modified, next.By, next.Import = r.now(), auth.From(ctx).Name, 0
	next.Withheld = next.Withheld.Following(&before.Withheld)
	if next.Modified.Before(before.Modified) { // the clock stepped back
		next.Modified = before.Modified
	}
	if before.Redacted && isBlank(next) {
		next.Redacted = true
	}
	if next.Redacted {
		next.Withheld.Redacted = next.Version
	}
}

// sameRecord reports whether two versions are equal in all that users set.
func sameRecord(a, b *stele.Record) bool {
	c := *b
	c.Version, c.Modified, c.By, c.Import = a.Version, a.Modified, a.By, a.Import
	if c.Redacted && a.Redacted {
		c.Withheld.Redacted = a.Withheld.Redacted // it grows with the version
	}
	return a.Equal(&c)
}

// blank removes what a record says.
func blank(rec *stele.Record) {
	rec.Spelling, rec.Targets, rec.Metadata, rec.Values = "", nil, nil, nil
	rec.Persistence.Statement, rec.Signatures = "", nil
}

func isBlank(rec *stele.Record) bool {
	return rec.Spelling == "" && len(rec.Targets) == 0 && len(rec.Metadata) == 0 && len(rec.Values) == 0 &&
		rec.Persistence.Statement == "" && len(rec.Signatures) == 0
}

// find returns the record that has this name, with its namespaces, if the caller may
// see it. For others the error is that of a name which is not registered, letter by
// letter.
func (r *Registrar) find(ctx context.Context, op string, s *lookup, name stele.ID) (*stele.Record, []*stele.Namespace, error) {
	began := r.beginReading()
	rec, err := r.store.Record(ctx, name)
	if err == nil {
		if ancestors := s.ancestorsOf(rec.ID); auth.MayRead(auth.From(ctx), rec, ancestors...) {
			return rec, ancestors, nil
		}
		err = stele.NotFound
	}
	if errors.Is(err, stele.NotFound) {
		return nil, nil, r.missing(op, name, began)
	}
	return nil, nil, tell(op, err)
}

// clone returns a copy that shares nothing with the record.
func clone(rec *stele.Record) *stele.Record {
	c := *rec
	c.Aliases = slices.Clone(rec.Aliases)
	c.Targets = slices.Clone(rec.Targets)
	c.Metadata = maps.Clone(rec.Metadata)
	c.Readers = slices.Clone(rec.Readers)
	c.Signatures = slices.Clone(rec.Signatures)
	c.Withheld = rec.Withheld.Clone()
	c.Values = slices.Clone(rec.Values)
	for i := range c.Values {
		v := &c.Values[i]
		v.Data, v.References = slices.Clone(v.Data), slices.Clone(v.References)
	}
	if rec.Tombstone != nil {
		t := *rec.Tombstone
		c.Tombstone = &t
	}
	return &c
}
