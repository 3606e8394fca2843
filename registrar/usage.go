package registrar

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// UsageCells begins the names of the cells with the figures of use, which package usage counts. They are in
// backups. After a restore they are those of the backup: what was counted since is lost, and nothing is counted twice.
const UsageCells = "use "

const opUsage = "keep usage"

// mayUsage makes sure that the caller is a server, or an operator at its files. A name outside of UsageCells is
// another part's.
func mayUsage(ctx context.Context, name string) error {
	if who := auth.From(ctx); !who.Admin || who.Token != "" {
		return refuse(opUsage, stele.ID{}, stele.Forbidden, "usage.kept-by-server-only", "only a server keeps figures of use")
	}
	if !strings.HasPrefix(name, UsageCells) {
		return refuse(opUsage, stele.ID{}, stele.Internal, "usage.cell-of-another-part", `the cell "{cell}" does not belong to the figures of use`, name)
	}
	return nil
}

// UsageCell returns a cell of figures; nil if there is none.
func (r *Registrar) UsageCell(ctx context.Context, name string) ([]byte, error) {
	if err := mayUsage(ctx, name); err != nil {
		return nil, err
	}
	value, err := r.store.Cell(ctx, name)
	return value, tell(opUsage, err)
}

// UsageValues returns cells of figures, in the order of their names, and nil for one that is not there. It is fastest if the names are in order.
func (r *Registrar) UsageValues(ctx context.Context, names []string) ([][]byte, error) {
	for _, name := range names {
		if err := mayUsage(ctx, name); err != nil {
			return nil, err
		}
	}
	values, err := r.gatherCells(ctx, names)
	return values, tell(opUsage, err)
}

// UsageList yields the cells of figures whose names begin with a text and come after another, in order.
func (r *Registrar) UsageList(ctx context.Context, prefix, after string) iter.Seq2[stele.Cell, error] {
	return func(yield func(stele.Cell, error) bool) {
		if err := mayUsage(ctx, prefix); err != nil {
			yield(stele.Cell{}, err)
			return
		}
		for c, err := range r.store.Cells(ctx, prefix, after) {
			if !yield(c, tell(opUsage, err)) || err != nil {
				return
			}
		}
	}
}

// KeepUsage changes cells of figures, all or none. Conflict if one does not have the value that the change expects.
// It leaves no entry in the audit trail: a server does so every half minute.
func (r *Registrar) KeepUsage(ctx context.Context, changes ...stele.CellChange) error {
	for _, c := range changes {
		if err := mayUsage(ctx, c.Name); err != nil {
			return err
		}
	}
	return r.apply(ctx, opUsage, &stele.Commit{Cells: changes})
}

// Now returns the time by the registrar's clock, in UTC.
func (r *Registrar) Now() time.Time { return r.now() }

// UsageSight says whose figures of use a caller may see.
type UsageSight struct {
	// Sees reports whether figures of a namespace below may be seen.
	Sees func(key stele.NamespaceKey) bool

	// Lists reports whether a name may be listed.
	Lists func(id stele.ID) bool
}

const opReadUsage = "read usage"

// SightOfUsage returns what a caller may see of the use of names with a prefix. Forbidden, or Unauthenticated, if that is nothing.
func (r *Registrar) SightOfUsage(ctx context.Context, key stele.NamespaceKey) (UsageSight, error) {
	s, err := r.view(ctx)
	if err != nil {
		return UsageSight{}, err
	}
	who := auth.From(ctx)
	if err := mayList(ctx, opReadUsage, s, key); err != nil {
		return UsageSight{}, err
	}
	names := sight{namespaceTree: s, who: who}
	return UsageSight{
		Sees:  func(key stele.NamespaceKey) bool { return auth.MayList(who, s.ancestorsAt(key)...) },
		Lists: names.lists,
	}, nil
}

// UsedRecord returns the record that has a name, if the caller may see all figures of its use.
func (r *Registrar) UsedRecord(ctx context.Context, name stele.ID) (*stele.Record, error) {
	rec, above, err := r.get(ctx, opReadUsage, name)
	if err != nil {
		return nil, err
	}
	who := auth.From(ctx)
	switch {
	case auth.MayList(who, above...):
		return rec, nil
	case !who.IsKnown():
		return nil, refuse(opReadUsage, name, stele.Unauthenticated, "request.anonymous", "say who you are; send a token")
	}
	return nil, refuse(opReadUsage, name, stele.Forbidden, "user.may-not-list-namespace", `"{user}" may not list the namespace {namespace}; ask its owner or an administrator for the role reader`, who.Name, above[0].Key())
}
