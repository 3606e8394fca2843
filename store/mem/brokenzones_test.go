package mem

import (
	"context"
	"iter"

	"github.com/stele-id/stele"
)

// coarse takes all changes for changes of every zone.
type coarse struct{ stele.Store }

func (b coarse) Apply(ctx context.Context, c *stele.Commit) error {
	if c.Touch == nil || len(c.Namespaces) > 0 {
		return b.Store.Apply(ctx, c)
	}
	d := *c
	d.Touch = nil
	return b.Store.Apply(ctx, &d)
}

func (b coarse) Ingest(ctx context.Context, records []*stele.Record, count stele.NamespaceCounter, _ *stele.Touch, state *stele.MinterState, models ...*stele.AuditEntry) ([]error, error) {
	return b.Store.Ingest(ctx, records, count, nil, state, models...)
}

// unseeing takes commits that were judged by records as they were.
type unseeing struct{ stele.Store }

func (s unseeing) Apply(ctx context.Context, c *stele.Commit) error {
	d := *c
	d.Seen = nil
	return s.Store.Apply(ctx, &d)
}

// trusting believes every caller to know all namespaces.
type trusting struct{ stele.Store }

func (b trusting) Apply(ctx context.Context, c *stele.Commit) error {
	if c.Touch == nil {
		return b.Store.Apply(ctx, c)
	}
	d, touch := *c, *c.Touch
	touch.NamespaceVersions = 0
	for ns, err := range b.Namespaces(ctx) {
		if err != nil {
			return err
		}
		touch.NamespaceVersions += ns.Version
	}
	d.Touch = &touch
	return b.Store.Apply(ctx, &d)
}

// rewinding forgets that a zone was raised.
type rewinding struct{ stele.Store }

func (b rewinding) ZoneState(ctx context.Context, zone string) (stele.ZoneState, error) {
	z, err := b.Store.ZoneState(ctx, zone)
	z.Base = 0
	return z, err
}

// unindexed yields all changes as those of every zone.
type unindexed struct{ stele.Store }

func (b unindexed) ZoneChanges(ctx context.Context, _ string, after uint64) iter.Seq2[stele.Change, error] {
	return b.Changes(ctx, after)
}
