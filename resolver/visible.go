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
