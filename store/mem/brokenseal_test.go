package mem

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

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

// hasty looks for the seal, and writes after Seal has returned. A commit of records that began before the seal is held until
// the check has read the number of the last change, so that the check sees the fault on machines of every speed.
type hasty struct {
	stele.Store
	reason atomic.Value
	held   chan struct{} // closed when a commit has looked for the seal and has not written yet
	read   chan struct{} // closed when LastChange was asked after Seal
	hold   func()
	goOn   func()
}

func newHasty(s stele.Store) *hasty {
	b := &hasty{Store: s, held: make(chan struct{}), read: make(chan struct{})}
	b.hold = sync.OnceFunc(func() { close(b.held) })
	b.goOn = sync.OnceFunc(func() { close(b.read) })
	return b
}

func (b *hasty) Seal(_ context.Context, reason string) error {
	<-b.held
	b.reason.Store(reason)
	return nil
}

func (b *hasty) Sealed(context.Context) (string, error) {
	reason, _ := b.reason.Load().(string)
	return reason, nil
}

func (b *hasty) LastChange(ctx context.Context) (uint64, error) {
	n, err := b.Store.LastChange(ctx)
	if reason, _ := b.Sealed(ctx); reason != "" {
		b.goOn()
	}
	return n, err
}

func (b *hasty) Apply(ctx context.Context, c *stele.Commit) error {
	if reason, _ := b.Sealed(ctx); reason != "" {
		return refuse("commit", stele.ID{}, stele.Conflict, "x.y", "{reason}", reason)
	}
	if len(c.Records) > 0 {
		b.hold()
		<-b.read
	}
	return b.Store.Apply(ctx, c)
}
