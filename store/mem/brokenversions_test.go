package mem

import (
	"context"
	"iter"
	"time"

	"github.com/stele-id/stele"
)

// The stores in this file are broken too, each in what it does with old versions.

// imprecise finds the version after the one that was current at a time.
type imprecise struct{ stele.Store }

func (b imprecise) VersionAt(ctx context.Context, id stele.ID, at time.Time) (*stele.Record, error) {
	return b.Store.VersionAt(ctx, id, at.Truncate(time.Hour))
}

// oblivious takes versions that forget what is withheld.
type oblivious struct{ stele.Store }

func (b oblivious) Apply(ctx context.Context, c *stele.Commit) error {
	d := *c
	d.Records = nil
	for _, r := range c.Records {
		if have, err := b.Store.Record(ctx, r.ID); err == nil && r.Withheld.IsZero() && r.Version == have.Version+1 {
			n := *r
			n.Withheld = have.Withheld
			r = &n
		}
		d.Records = append(d.Records, r)
	}
	return b.Store.Apply(ctx, &d)
}

// keeping says that versions are erased, and keeps them.
type keeping struct {
	stele.Store
	kept map[uint64]*stele.Record
}

func (b keeping) Apply(ctx context.Context, c *stele.Commit) error {
	for _, r := range c.Records {
		b.kept[r.Version] = r
	}
	return b.Store.Apply(ctx, c)
}

func (b keeping) Version(ctx context.Context, id stele.ID, version uint64) (*stele.Record, error) {
	r, err := b.Store.Version(ctx, id, version)
	if old := b.kept[version]; err == nil && old != nil && old.ID == id {
		return old, nil
	}
	return r, err
}

// fleeting has the present version of a namespace only.
type fleeting struct{ stele.Store }

func (b fleeting) NamespaceHistory(ctx context.Context, key stele.NamespaceKey) iter.Seq2[*stele.Namespace, error] {
	return func(yield func(*stele.Namespace, error) bool) {
		if n, err := b.Namespace(ctx, key); err == nil {
			yield(n, nil)
		}
	}
}
