package drill

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/registry/access"
)

// compare compares what was restored with the registry, which may have gone on since. Whatever
// has versions must be in both, up to the last version that the backup has. Versions that only
// the registry has are later ones: there can't be more of them than changes since the backup.
func (r *run) compare(ctx context.Context, progress func(float64)) error {
	have, err := r.Position(ctx)
	if err != nil {
		return err
	}
	copied, err := r.copy.Store.Position(ctx)
	if err != nil {
		return err
	}
	if have.Generation != copied.Generation {
		r.differs("drill.generation-differs", "the registry has been restored since the backup was made, or it is another registry; make a new backup")
		return nil
	}
	if have.Change < copied.Change {
		r.differs("drill.registry-lacks-changes", "the backup has {backup} changes, and the registry has only {registry}", copied.Change, have.Change)
		return nil
	}
	c := &comparison{run: r, progress: progress, total: float64(max(1, copied.Change))}
	if err := c.versions(ctx); err != nil {
		return err
	}
	if r.Store != nil {
		if err := c.kept(ctx, copied.Change); err != nil {
			return err
		}
	}
	if have, err = r.Position(ctx); err != nil {
		return err
	}
	r.report.Since = have.Change - copied.Change
	if c.later > r.report.Since {
		r.differs("drill.versions-missing", "the registry has {count} versions of records and namespaces that the backup lacks, and only {since} changes were made since", c.later, r.report.Since)
	}
	return nil
}

// comparison is a comparison under way.
type comparison struct {
	*run
	progress func(float64)
	total    float64
	later    uint64 // versions that only the registry has

	canonical document.Canonical
	a, b      []byte
}

// versions compares all versions of all records and namespaces.
func (c *comparison) versions(ctx context.Context) error {
	restored := access.NewLocal(c.copy, c.Now, "")
	keys, err := restored.Beginnings("")
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := c.records(c.history(ctx, c.Source, c.Store, key), c.history(ctx, restored, c.copy.Store, key)); err != nil {
			return err
		}
	}
	return c.namespaces(ctx, restored)
}

// history yields all versions of the records of a scheme in the order of their names, the
// oldest first: as the store has them, if the registry of the drill is open here, and otherwise
// as registries show them, here and at the server alike.
func (c *comparison) history(ctx context.Context, from *access.Registry, store stele.Store, key stele.NamespaceKey) iter.Seq2[*stele.Record, error] {
	if c.Store == nil {
		return from.Export(ctx, key, true)
	}
	return func(yield func(*stele.Record, error) bool) {
		for rec, err := range store.Scan(ctx, key.Scheme, "", "") {
			list := []*stele.Record{rec}
			if err == nil && rec.Version > 1 {
				list, err = collect(store.History(ctx, rec.ID))
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for _, v := range slices.Backward(list) {
				if !yield(v, nil) {
					return
				}
			}
		}
	}
}

// collect returns what a sequence yields.
func collect[T any](seq iter.Seq2[T, error]) (list []T, err error) {
	for v, err := range seq {
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

func byVersion(a, b *stele.Record) int {
	return cmp.Or(cmp.Compare(a.ID.String(), b.ID.String()), cmp.Compare(a.Version, b.Version))
}

// records compares versions of records.
func (c *comparison) records(have, copied iter.Seq2[*stele.Record, error]) error {
	return pairs(have, copied, byVersion, func(have, copied *stele.Record) error {
		switch {
		case copied == nil:
			c.later++
			return nil
		case have == nil:
			c.differs("drill.registry-lacks-version", "the backup has version {version} of {id}, and the registry has not", copied.Version, copied.ID)
			return nil
		}
		same, err := c.same(have, copied)
		switch {
		case err != nil:
			return err
		case same:
		case have.Redacted && !copied.Redacted:
			c.report.Moved++ // its content was erased since
			return nil
		default:
			c.differs("drill.version-differs", "version {version} of {id} is another one in the backup", have.Version, have.ID)
		}
		if c.report.Versions++; have.Version == 1 {
			c.report.Records++
		}
		if c.report.Versions%1000 == 0 {
			c.progress(float64(c.report.Versions) / c.total)
		}
		return nil
	})
}

// same compares the documents of two versions: what comes from a server was read from one.
func (c *comparison) same(have, copied *stele.Record) (bool, error) {
	var err1, err2 error
	c.a, err1 = c.canonical.AppendRecord(c.a[:0], have)
	c.b, err2 = c.canonical.AppendRecord(c.b[:0], copied)
	return bytes.Equal(c.a, c.b), errors.Join(err1, err2)
}

// namespaces compares namespaces in all versions that are kept.
func (c *comparison) namespaces(ctx context.Context, restored *access.Registry) error {
	byKey := func(a, b *stele.Namespace) int {
		return cmp.Or(cmp.Compare(a.Scheme, b.Scheme), cmp.Compare(a.Prefix, b.Prefix))
	}
	have, err := collect(c.Source.Namespaces(ctx))
	if err != nil {
		return err
	}
	copied, err := collect(restored.Namespaces(ctx))
	if err != nil {
		return err
	}
	// Those of whole schemes are listed even if nothing is stored of them.
	unset := func(ns *stele.Namespace) bool { return ns.Version == 0 }
	have, copied = slices.DeleteFunc(have, unset), slices.DeleteFunc(copied, unset)
	slices.SortFunc(have, byKey)
	slices.SortFunc(copied, byKey)
	return pairs(values(have), values(copied), byKey, func(have, copied *stele.Namespace) error {
		switch {
		case copied == nil:
			c.later++
			return nil
		case have == nil:
			c.differs("drill.registry-lacks-namespace", "the backup has the namespace {namespace}, and the registry has not", copied.Key())
			return nil
		}
		c.report.Namespaces++
		return c.namespace(ctx, restored, copied.Key())
	})
}

// namespace compares the versions of a namespace. One that the registry makes meanwhile is later.
func (c *comparison) namespace(ctx context.Context, restored *access.Registry, key stele.NamespaceKey) error {
	back := func(a, b *stele.Namespace) int { return cmp.Compare(b.Version, a.Version) }
	return pairs(c.Source.NamespaceHistory(ctx, key), restored.NamespaceHistory(ctx, key), back, func(have, copied *stele.Namespace) error {
		switch {
		case copied == nil:
			c.later++
			return nil
		case have == nil:
			c.differs("drill.registry-lacks-namespace-version", "the backup has version {version} of the namespace {namespace}, and the registry has not", copied.Version, key)
			return nil
		}
		var err1, err2 error
		c.a, err1 = c.canonical.AppendNamespace(c.a[:0], have)
		c.b, err2 = c.canonical.AppendNamespace(c.b[:0], copied)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		if !bytes.Equal(c.a, c.b) {
			c.differs("drill.namespace-differs", "version {version} of the namespace {namespace} is another one in the backup", have.Version, key)
		}
		return nil
	})
}

// values yields a list.
func values[T any](list []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, v := range list {
			if !yield(v, nil) {
				return
			}
		}
	}
}

// pairs goes through two lists that are in order, and calls visit with what both have at a
// place: one of both may be the zero value.
func pairs[T any](a, b iter.Seq2[T, error], order func(a, b T) int, visit func(a, b T) error) error {
	nextA, stopA := iter.Pull2(a)
	defer stopA()
	nextB, stopB := iter.Pull2(b)
	defer stopB()
	x, errA, okA := nextA()
	y, errB, okB := nextB()
	for okA || okB {
		if err := errors.Join(errA, errB); err != nil {
			return err
		}
		var l, r T
		first := okA && (!okB || order(x, y) <= 0)
		second := okB && (!okA || order(x, y) >= 0)
		if first {
			l = x
		}
		if second {
			r = y
		}
		if err := visit(l, r); err != nil {
			return err
		}
		if first {
			x, errA, okA = nextA()
		}
		if second {
			y, errB, okB = nextB()
		}
	}
	return nil
}
