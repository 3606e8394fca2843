package mem

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
)

// These stores are broken too, in how they seal, number and replay.

// sorting commits records in the order of their names.
type sorting struct{ stele.Store }

func (b sorting) Apply(ctx context.Context, c *stele.Commit) error {
	d := *c
	d.Records = slices.Clone(c.Records)
	slices.SortStableFunc(d.Records, func(a, b *stele.Record) int { return a.ID.Compare(b.ID) })
	return b.Store.Apply(ctx, &d)
}

// present replays as if it were new.
type present struct{ stele.Store }

func (b present) Apply(ctx context.Context, c *stele.Commit) error {
	d := *c
	d.Replay = nil
	return b.Store.Apply(ctx, &d)
}

// punctual replays everything at the time of the first.
type punctual struct{ stele.Store }

func (b punctual) Apply(ctx context.Context, c *stele.Commit) error {
	d := *c
	d.Replay = slices.Clone(c.Replay)
	for i := range d.Replay {
		d.Replay[i].At = d.Replay[0].At
	}
	return b.Store.Apply(ctx, &d)
}

// leaky seals what is in the change feed, and nothing else.
type leaky struct {
	stele.Store
	reason atomic.Value
}

func (b *leaky) Seal(_ context.Context, reason string) error {
	b.reason.Store(reason)
	return nil
}

func (b *leaky) Sealed(context.Context) (string, error) {
	reason, _ := b.reason.Load().(string)
	return reason, nil
}

func (b *leaky) Apply(ctx context.Context, c *stele.Commit) error {
	if reason, _ := b.Sealed(ctx); reason != "" && len(c.Records)+len(c.Namespaces) > 0 {
		return refuse("commit", stele.ID{}, stele.Conflict, "x.y", "{reason}", reason)
	}
	return b.Store.Apply(ctx, c)
}

func (b *leaky) Ingest(ctx context.Context, records []*stele.Record, count stele.NamespaceCounter, touch *stele.Touch, state *stele.MinterState, models ...*stele.AuditEntry) ([]error, error) {
	if reason, _ := b.Sealed(ctx); reason != "" {
		return nil, refuse("ingest", stele.ID{}, stele.Conflict, "x.y", "{reason}", reason)
	}
	return b.Store.Ingest(ctx, records, count, touch, state, models...)
}

// hasty looks for the seal, and writes a while later.
type hasty struct {
	stele.Store
	reason atomic.Value
}

func (b *hasty) Seal(_ context.Context, reason string) error {
	b.reason.Store(reason)
	return nil
}

func (b *hasty) Sealed(context.Context) (string, error) {
	reason, _ := b.reason.Load().(string)
	return reason, nil
}

func (b *hasty) Apply(ctx context.Context, c *stele.Commit) error {
	if reason, _ := b.Sealed(ctx); reason != "" {
		return refuse("commit", stele.ID{}, stele.Conflict, "x.y", "{reason}", reason)
	}
	if len(c.Records) > 0 {
		time.Sleep(20 * time.Millisecond) // as a slow disk takes
	}
	return b.Store.Apply(ctx, c)
}
