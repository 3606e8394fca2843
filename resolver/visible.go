package resolver

import (
	"context"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// MaySee reports whether a principal may know of a record, or of a version of one;
// false for nil. Most records are open to the public and most requests are the
// public's, and neither needs namespaces.
func (r *Resolver) MaySee(ctx context.Context, who auth.Principal, record *stele.Record) (bool, error) {
	switch {
	case record == nil:
		return false, nil
	case isOpen(record):
		return true, nil
	case !who.IsKnown():
		return false, nil
	}
	ancestors, err := r.namespaces.ancestors(ctx, record.ID)
	return err == nil && auth.MayRead(who, record, ancestors...), err
}

// isOpen reports whether the public may know of a record.
func isOpen(record *stele.Record) bool { return record.State != stele.Reserved && record.IsPublic() }

// Record returns the record that has this very name, if who may see it; nil if there is none. It
// follows no links and looks for no shorter names. The caller does not change the record.
func (r *Resolver) Record(ctx context.Context, who auth.Principal, name stele.ID) (*stele.Record, error) {
	record, err := r.records.get(ctx, name)
	if err != nil || record == nil {
		return nil, err
	}
	if visible, err := r.MaySee(ctx, who, record); err != nil || !visible {
		return nil, err
	}
	return record, nil
}
