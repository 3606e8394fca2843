package mem

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/stele-id/stele"
)

// The stores in this file are broken, each in one way. They prove that the suite
// finds it.

// noAliases finds records by their identifiers only.
type noAliases struct{ stele.Store }

func (b noAliases) Record(ctx context.Context, name stele.ID) (*stele.Record, error) {
	r, err := b.Store.Record(ctx, name)
	if err == nil && r.ID != name {
		return nil, refuse("get", name, stele.NotFound, "x.y", "lost")
	}
	return r, err
}

// sharing hands out the same record again and again.
type sharing struct {
	stele.Store
	kept sync.Map
}

func (b *sharing) Record(ctx context.Context, name stele.ID) (*stele.Record, error) {
	r, err := b.Store.Record(ctx, name)
	if err != nil {
		return nil, err
	}
	kept, _ := b.kept.LoadOrStore(r.ID, r)
	return kept.(*stele.Record), nil
}

// stale keeps what it read of a name for ever, and what it scanned.
type stale struct {
	stele.Store
	kept sync.Map
}

func (b *stale) Record(ctx context.Context, name stele.ID) (*stele.Record, error) {
	if r, ok := b.kept.Load(name); ok {
		return r.(*stele.Record), nil
	}
	r, err := b.Store.Record(ctx, name)
	if err == nil {
		b.kept.Store(name, r)
	}
	return r, err
}

func (b *stale) Scan(ctx context.Context, scheme, prefix, after string) iter.Seq2[*stele.Record, error] {
	seq, _ := b.kept.LoadOrStore([3]string{scheme, prefix, after}, slices.Collect(firsts(b.Store.Scan(ctx, scheme, prefix, after))))
	return func(yield func(*stele.Record, error) bool) {
		for _, r := range seq.([]*stele.Record) {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func firsts[T any](seq iter.Seq2[T, error]) iter.Seq[T] {
	return func(yield func(T) bool) {
		for v, err := range seq {
			if err != nil || !yield(v) {
				return
			}
		}
	}
}

// greedy draws all candidates before it looks at the first.
type greedy struct{ stele.Store }

func (b greedy) First(ctx context.Context, candidates iter.Seq[stele.Prefix]) (*stele.Record, stele.Prefix, error) {
	return b.Store.First(ctx, slices.Values(slices.Collect(candidates)))
}

// cutting cuts names anywhere, whatever cuts says.
type cutting struct{ stele.Store }

func (b cutting) Longest(ctx context.Context, name stele.ID, _ func(n int) bool) (*stele.Record, stele.Prefix, error) {
	return b.Store.Longest(ctx, name, func(int) bool { return true })
}

// inclusive scans from the cursor, not after it.
type inclusive struct{ stele.Store }

func (b inclusive) Scan(ctx context.Context, scheme, prefix, after string) iter.Seq2[*stele.Record, error] {
	return func(yield func(*stele.Record, error) bool) {
		for r, err := range b.Store.Scan(ctx, scheme, prefix, "") {
			if (err != nil || r.ID.String() >= after) && !yield(r, err) {
				return
			}
		}
	}
}

// live scans what is there at each step.
type live struct{ stele.Store }

func (b live) Scan(ctx context.Context, scheme, prefix, after string) iter.Seq2[*stele.Record, error] {
	return func(yield func(*stele.Record, error) bool) {
		for more := true; more; {
			more = false
			for r, err := range b.Store.Scan(ctx, scheme, prefix, after) {
				if !yield(r, err) || err != nil {
					return
				}
				more, after = true, r.ID.String()
				break
			}
		}
	}
}

// double yields each record that points at a location twice.
type double struct{ stele.Store }

func (b double) Pointing(ctx context.Context, at stele.Location, after stele.ID) iter.Seq2[stele.ID, error] {
	return func(yield func(stele.ID, error) bool) {
		for id, err := range b.Store.Pointing(ctx, at, after) {
			for range 2 {
				if !yield(id, err) {
					return
				}
			}
		}
	}
}

// clinging never forgets which records pointed at a location.
type clinging struct {
	stele.Store
	seen map[stele.Location][]stele.ID
}

func (b clinging) Pointing(ctx context.Context, at stele.Location, after stele.ID) iter.Seq2[stele.ID, error] {
	now := slices.Collect(firsts(b.Store.Pointing(ctx, at, after)))
	b.seen[at] = append(b.seen[at], now...)
	slices.SortFunc(b.seen[at], stele.ID.Compare)
	b.seen[at] = slices.Compact(b.seen[at])
	return func(yield func(stele.ID, error) bool) {
		for _, id := range b.seen[at] {
			if id.Compare(after) > 0 && !yield(id, nil) {
				return
			}
		}
	}
}

// upright yields a history from its beginning.
type upright struct{ stele.Store }

func (b upright) History(ctx context.Context, id stele.ID) iter.Seq2[*stele.Record, error] {
	list := slices.Collect(firsts(b.Store.History(ctx, id)))
	slices.Reverse(list)
	return func(yield func(*stele.Record, error) bool) {
		for _, r := range list {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// forgiving says that all is well where the commit was refused.
type forgiving struct {
	stele.Store
	kind stele.Kind
}

func (b forgiving) Apply(ctx context.Context, c *stele.Commit) error {
	if err := b.Store.Apply(ctx, c); !errors.Is(err, b.kind) {
		return err
	}
	return nil
}

func (b forgiving) Ingest(ctx context.Context, records []*stele.Record, count stele.NamespaceCounter, touch *stele.Touch, state *stele.MinterState, models ...*stele.AuditEntry) ([]error, error) {
	errs, err := b.Store.Ingest(ctx, records, count, touch, state, models...)
	for i := range errs {
		if errors.Is(errs[i], b.kind) {
			errs[i] = nil
		}
	}
	return errs, err
}

// piecemeal commits one thing after the other.
type piecemeal struct{ stele.Store }

func (b piecemeal) Apply(ctx context.Context, c *stele.Commit) error {
	for _, r := range c.Records {
		if err := b.Store.Apply(ctx, &stele.Commit{Records: []*stele.Record{r}, Counter: c.Counter}); err != nil {
			return err
		}
	}
	return b.Store.Apply(ctx, &stele.Commit{Namespaces: c.Namespaces, Minters: c.Minters, Cells: c.Cells})
}

// gaps leaves out a number now and then.
type gaps struct{ stele.Store }

func (b gaps) Changes(ctx context.Context, after uint64) iter.Seq2[stele.Change, error] {
	return func(yield func(stele.Change, error) bool) {
		for c, err := range b.Store.Changes(ctx, after) {
			c.Seq += c.Seq / 3
			if !yield(c, err) {
				return
			}
		}
	}
}

// careless takes an empty state of a minter for none.
type careless struct{ stele.Store }

func (b careless) MinterState(ctx context.Context, name string) ([]byte, error) {
	state, err := b.Store.MinterState(ctx, name)
	if len(state) == 0 {
		state = nil
	}
	return state, err
}

// generous allows one record more than the quota.
type generous struct{ stele.Store }

func (b generous) more(count stele.NamespaceCounter) stele.NamespaceCounter {
	if count == nil {
		return nil
	}
	return func(id stele.ID) (stele.NamespaceKey, uint64) {
		key, quota := count(id)
		return key, quota + min(quota, 1)
	}
}

func (b generous) Apply(ctx context.Context, c *stele.Commit) error {
	d := *c
	d.Counter = b.more(c.Counter)
	return b.Store.Apply(ctx, &d)
}

func (b generous) Ingest(ctx context.Context, records []*stele.Record, count stele.NamespaceCounter, touch *stele.Touch, state *stele.MinterState, models ...*stele.AuditEntry) ([]error, error) {
	return b.Store.Ingest(ctx, records, b.more(count), touch, state, models...)
}

// partial counts identifiers only.
type partial struct{ stele.Store }

func (b partial) identifiers(records []*stele.Record, count stele.NamespaceCounter) stele.NamespaceCounter {
	if count == nil {
		return nil
	}
	return func(name stele.ID) (stele.NamespaceKey, uint64) {
		if slices.ContainsFunc(records, func(r *stele.Record) bool { return slices.Contains(r.Aliases, name) }) {
			return stele.NamespaceKey{}, 0
		}
		return count(name)
	}
}

func (b partial) Apply(ctx context.Context, c *stele.Commit) error {
	d := *c
	d.Counter = b.identifiers(c.Records, c.Counter)
	return b.Store.Apply(ctx, &d)
}

func (b partial) Ingest(ctx context.Context, records []*stele.Record, count stele.NamespaceCounter, touch *stele.Touch, state *stele.MinterState, models ...*stele.AuditEntry) ([]error, error) {
	return b.Store.Ingest(ctx, records, b.identifiers(records, count), touch, state, models...)
}

// stateless ingests without the minter's state.
type stateless struct{ stele.Store }

func (b stateless) Ingest(ctx context.Context, records []*stele.Record, count stele.NamespaceCounter, touch *stele.Touch, _ *stele.MinterState, models ...*stele.AuditEntry) ([]error, error) {
	return b.Store.Ingest(ctx, records, count, touch, nil, models...)
}

// short finds no name that is longer than a database's index likes.
type short struct{ stele.Store }

func (b short) Record(ctx context.Context, name stele.ID) (*stele.Record, error) {
	if len(name.String()) > 2704 {
		return nil, refuse("get", name, stele.NotFound, "x.y", "too long")
	}
	return b.Store.Record(ctx, name)
}

// small cuts large metadata.
type small struct{ stele.Store }

func (b small) Record(ctx context.Context, name stele.ID) (*stele.Record, error) {
	r, err := b.Store.Record(ctx, name)
	if err == nil {
		for key, text := range r.Metadata {
			r.Metadata[key] = text[:min(len(text), 1<<16)]
		}
	}
	return r, err
}

// stubborn ignores that its caller has cancelled.
type stubborn struct{ stele.Store }

func (b stubborn) Scan(ctx context.Context, scheme, prefix, after string) iter.Seq2[*stele.Record, error] {
	return b.Store.Scan(context.WithoutCancel(ctx), scheme, prefix, after)
}

func (b stubborn) Apply(ctx context.Context, c *stele.Commit) error {
	return b.Store.Apply(context.WithoutCancel(ctx), c)
}

// immortal can't be closed.
type immortal struct{ stele.Store }

func (b immortal) Close() error { return nil }

// suspicious reports a fault where there is none.
type suspicious struct{ stele.Store }

func (b suspicious) Verify(_ context.Context, report func(*stele.Message)) error {
	report(stele.Messagef("x.y", "a fault"))
	return nil
}

// late backs up the beginning of what is there: no more than was acknowledged long
// before, however fast others write.
type late struct{ stele.Store }

func (b late) Backup(ctx context.Context, folder string) error {
	last, err := b.Store.LastChange(ctx)
	if err != nil {
		return err
	}
	s := New(time.Now)
	for c := range firsts(b.Store.Changes(ctx, 0)) {
		if c.Seq > min(last/2, 64) {
			break
		}
		if r, err := b.Store.Record(ctx, c.ID); err == nil {
			if _, err := s.Ingest(ctx, []*stele.Record{r}, nil, nil, nil); err != nil {
				return err
			}
		}
	}
	return s.Backup(ctx, folder)
}

// miscounting does not count what it does.
type miscounting struct{ stele.Store }

func (miscounting) Measure() stele.StoreMeasure { return stele.StoreMeasure{} }
