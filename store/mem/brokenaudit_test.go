package mem

import (
	"context"
	"errors"

	"github.com/stele-id/stele"
)

// The stores in this file are broken too, each in what it does with the audit trail.

// talkative writes the entries of a commit whether it is made or not.
type talkative struct{ stele.Store }

func (b talkative) Apply(ctx context.Context, c *stele.Commit) error {
	err := b.Store.Apply(ctx, c)
	if err != nil && len(c.Audit) > 0 && len(c.Records) > 0 {
		return errors.Join(err, b.Store.Apply(ctx, &stele.Commit{Audit: c.Audit}))
	}
	return err
}

// silent forgets to write entries that come with something else.
type silent struct{ stele.Store }

func (b silent) Apply(ctx context.Context, c *stele.Commit) error {
	d := *c
	if len(c.Records) > 0 {
		d.Audit = nil
	}
	return b.Store.Apply(ctx, &d)
}

func (b silent) Ingest(ctx context.Context, records []*stele.Record, count stele.NamespaceCounter, touch *stele.Touch, state *stele.MinterState, _ ...*stele.AuditEntry) ([]error, error) {
	return b.Store.Ingest(ctx, records, count, touch, state)
}

// untrimmed says that it trims, and does not.
type untrimmed struct{ stele.Store }

func (b untrimmed) Apply(ctx context.Context, c *stele.Commit) error {
	d := *c
	if c.TrimAudit > 0 {
		d.TrimAudit = 0
		e := *c.Audit[0]
		e.Trimmed = 0
		d.Audit = []*stele.AuditEntry{&e}
	}
	return b.Store.Apply(ctx, &d)
}

// renumbering gives entries that are copied numbers of its own.
type renumbering struct{ stele.Store }

func (b renumbering) Apply(ctx context.Context, c *stele.Commit) error {
	d := *c
	d.Audit = nil
	for _, e := range c.Audit {
		if e != nil && e.Number != 0 {
			again := *e
			again.Number, again.Trimmed = 0, 0
			e = &again
		}
		d.Audit = append(d.Audit, e)
	}
	return b.Store.Apply(ctx, &d)
}
