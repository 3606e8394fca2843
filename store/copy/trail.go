package copy

import (
	"cmp"
	"context"

	"github.com/stele-id/stele"
)

// copyTrail copies the audit trail, from where the copy has it, with numbers and times.
func (c *Copier) copyTrail(ctx context.Context) error {
	first, last, err := c.To.AuditRange(ctx)
	if err != nil {
		return err
	}
	var block []*stele.AuditEntry
	flush := func(trim uint64) error {
		if len(block) == 0 {
			return nil
		}
		commit := &stele.Commit{Audit: block, TrimAudit: trim}
		block = nil
		return c.To.Apply(ctx, commit)
	}
	for e, err := range c.From.Audit(ctx, last) {
		if err != nil {
			return err
		}
		if first == 0 {
			first = e.Number
		}
		// What was trimmed since the copy was begun is trimmed in the copy too.
		trim := uint64(0)
		if e.Trimmed >= first {
			if err := flush(0); err != nil {
				return err
			}
			trim, first = e.Trimmed, e.Trimmed+1
		}
		if block = append(block, e); trim > 0 || len(block) == min(keptAtOnce, c.AtOnce) {
			if err := flush(trim); err != nil {
				return err
			}
		}
	}
	return flush(0)
}

// compareTrail compares the audit trails, entry by entry.
func (c *Copier) compareTrail(ctx context.Context, t *Tallies) error {
	number := func(a, b *stele.AuditEntry) int { return cmp.Compare(a.Number, b.Number) }
	return pairs(c.From.Audit(ctx, 0), c.To.Audit(ctx, 0), number, func(have, copied **stele.AuditEntry) error {
		if have == nil || copied == nil {
			return c.differs("copy.audit-entry-missing", "one of both lacks an entry of the audit trail")
		}
		// Stores keep times to the microsecond.
		same := **copied
		same.At = (*have).At
		if !(*have).Equal(&same) || (*have).At.UnixMicro() != (*copied).At.UnixMicro() {
			return c.differs("copy.audit-entry-differs", "entry {number} of the audit trail differs", (*have).Number)
		}
		t.Audit++
		return nil
	})
}

// finish makes the copy a registry, and says so in its audit trail.
func (c *Copier) finish(ctx context.Context) error {
	value, err := c.To.Cell(ctx, MarkCell)
	if err != nil {
		return err
	}
	e := c.Entry
	e.Operation, e.Outcome, e.Object, e.Details = "copy store", stele.AuditDone, "store:"+c.ToPlace.String(), "from "+c.FromPlace.String()
	e.Bound()
	return c.To.Apply(ctx, &stele.Commit{Cells: []stele.CellChange{{Name: MarkCell, Before: value}}, Audit: []*stele.AuditEntry{&e}})
}
