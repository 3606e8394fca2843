package registrar

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/stele-id/stele"
)

// keepAll adds the labels of draws that may be used. To find out takes time where
// the store is slow, so all processors help with many.
func (d *desk) keepAll(ctx context.Context, made maker, draws []draw, labels []Label) ([]Label, error) {
	const many = 256
	if len(draws) < many {
		return d.keep(ctx, made, draws, labels)
	}
	parts := slices.Collect(slices.Chunk(draws, (len(draws)-1)/runtime.GOMAXPROCS(0)+1))
	kept := make([][]Label, len(parts))
	errs := make([]error, len(parts))
	var wg sync.WaitGroup
	for i, part := range parts {
		wg.Go(func() { kept[i], errs[i] = d.keep(ctx, made, part, make([]Label, 0, len(part))) })
	}
	wg.Wait()
	for i := range parts {
		labels = append(labels, kept[i]...)
		if errs[i] != nil {
			return labels, errs[i]
		}
	}
	return labels, nil
}

// keep adds the labels of draws. Those are left out that must not be used: one of
// their names is registered, perhaps by hand, was given before, or belongs to
// another namespace.
func (d *desk) keep(ctx context.Context, made maker, draws []draw, labels []Label) ([]Label, error) {
	before := len(labels)
	for _, x := range draws {
		label, err := made.label(x)
		if err != nil {
			return labels[:before], tell("mint", err)
		}
		if !label.ID.IsValid() {
			continue
		}
		s, err := d.view(ctx)
		if err != nil {
			return labels[:before], err
		}
		ok, err := d.owns(s.lookup(), made, label)
		if err != nil {
			return labels[:before], err
		}
		if ok {
			labels = append(labels, label)
		}
	}
	fresh := labels[before:]
	free, err := d.allFree(ctx, made, draws, fresh)
	switch {
	case err != nil: // nobody knows whether they may be used
		return labels[:before], err
	case free:
		return labels, nil
	}
	kept := fresh[:0]
	for _, label := range fresh {
		taken, err := d.taken(ctx, label)
		if err != nil {
			return labels[:before+len(kept)], err
		}
		if !taken {
			kept = append(kept, label)
		}
	}
	return labels[:before+len(kept)], nil
}

// allFree reports whether no name of the labels is registered. It asks once for all
// of them, which a store answers several times as fast as one after the other. The
// names of one form come together, in order, so that its reading goes forward.
// Where the store is away it is enough that none was when they were reserved. It must say
// so itself first: one that takes long is not away, and knows of names that somebody
// registered by hand meanwhile.
func (d *desk) allFree(ctx context.Context, made maker, draws []draw, labels []Label) (bool, error) {
	if !foreseen(made, draws) {
		return d.areFree(ctx, labels)
	}
	known := d.o.Now().Sub(time.Unix(0, d.lost.Load())) < stayAway
	asked, cancel := ctx, context.CancelFunc(func() {})
	if known {
		asked, cancel = context.WithTimeout(ctx, askBriefly)
	}
	defer cancel()
	free, err := d.areFree(asked, labels)
	if err == nil || stele.KindOf(err) != stele.Unavailable || ctx.Err() != nil {
		if err == nil {
			d.lost.Store(0)
		}
		return free, err
	}
	if asked.Err() == nil {
		d.lost.Store(d.o.Now().UnixNano()) // it said so itself
	}
	d.o.Log.Warn("names are given out without the store, which is away", "namespace", d.key.String(), "names", len(labels))
	return true, nil
}

func (d *desk) areFree(ctx context.Context, labels []Label) (bool, error) {
	if len(labels) == 0 {
		return true, nil
	}
	whole, began := true, d.beginReading()
	_, _, err := d.store.First(ctx, func(yield func(stele.Prefix) bool) {
		for form := range 1 + len(labels[0].Aliases) {
			for _, label := range labels {
				name := label.ID
				if form > 0 {
					name = label.Aliases[form-1]
				}
				// First takes prefixes, and a name is one of a longer name.
				longer, err := stele.NewID(name.Scheme(), name.String()+"x")
				if whole = whole && err == nil; !whole || !yield(longer.Prefix(len(name.String()))) {
					return
				}
			}
		}
	})
	switch {
	case err == nil || !whole:
		return false, nil
	case errors.Is(err, stele.NotFound):
		if err = d.missing("mint", labels[0].ID, began); stele.KindOf(err) == stele.NotFound {
			return true, nil
		}
	}
	return false, tell("mint", err)
}

// owns reports whether all names of the label are the namespace's. The names of a
// template that fall into a namespace below are left out, and so are those of
// settings that changed meanwhile; where dates fall out, all would, and that is an
// error. The namespaces must be those after the name was taken, so that one which is added
// meanwhile is seen.
func (d *desk) owns(s *lookup, made maker, label Label) (bool, error) {
	dated, ok := made.(*madeOfDates)
	if ok && d.isAlone(s.spaces, dated) {
		return true, nil
	}
	for name := range label.names {
		sp := s.Of(name)
		if sp != nil && sp.Key() == d.key {
			continue
		}
		if dated == nil || !d.isCurrent(s.spaces, dated) {
			return false, nil
		}
		return false, refuse("mint", name, stele.Conflict, "the name falls out of the namespace %s; look at its settings and at the namespaces below it", d.key)
	}
	return true, nil
}

// isAlone reports whether the prefixes are the namespace's and no namespace is
// below them. It is found out once for each change of namespaces.
func (d *desk) isAlone(s *spaces, made *madeOfDates) bool {
	if a := d.alone.Load(); a != nil && a.spaces == s && a.made == made {
		return true
	}
	for _, prefix := range made.prefixes {
		key := stele.NamespaceKey{Scheme: d.key.Scheme, Prefix: prefix}
		if sp := s.At(key); sp == nil || sp.Key() != d.key || !s.IsLeaf(key) {
			return false
		}
	}
	d.alone.Store(&alone{s, made})
	return true
}

// isCurrent reports whether names are still made so.
func (d *desk) isCurrent(s *spaces, made *madeOfDates) bool {
	w, sp := d.work.Load(), s.Get(d.key)
	if w == nil || sp == nil || w.settings != sp.Minter {
		return false
	}
	now, ok := w.source.(*dates)
	return ok && now.made == made
}

// taken reports whether a name of the label is registered.
func (d *desk) taken(ctx context.Context, label Label) (bool, error) {
	for name := range label.names {
		_, err := d.lookUp(ctx, "mint", name)
		if err == nil {
			d.o.Log.Info("a name was registered before it was made; it is skipped", "name", name.String())
			return true, nil
		}
		if !errors.Is(err, stele.NotFound) {
			return false, err
		}
	}
	return false, nil
}
