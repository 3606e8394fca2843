package minting

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/namespaces"
)

// keepAll appends the labels of draws that may be used. It looks many up on all processors,
// since the look-up takes time where the store is slow.
func (m *minter) keepAll(ctx context.Context, made maker, draws []draw, labels []Label) ([]Label, error) {
	const many = 256
	if len(draws) < many {
		return m.keep(ctx, made, draws, labels)
	}
	parts := slices.Collect(slices.Chunk(draws, (len(draws)-1)/runtime.GOMAXPROCS(0)+1))
	kept := make([][]Label, len(parts))
	errs := make([]error, len(parts))
	var wg sync.WaitGroup
	for i, part := range parts {
		wg.Go(func() { kept[i], errs[i] = m.keep(ctx, made, part, make([]Label, 0, len(part))) })
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

// keep appends the labels of draws that may be used. A label must not be used if one of its
// names is registered, perhaps by hand, was issued before, or belongs to another namespace.
func (m *minter) keep(ctx context.Context, made maker, draws []draw, labels []Label) ([]Label, error) {
	before := len(labels)
	for _, x := range draws {
		label, err := made.label(x)
		if err != nil {
			return labels[:before], stele.AsError("mint", err)
		}
		if !label.ID.IsValid() {
			continue
		}
		v, err := m.registry.View(ctx)
		if err != nil {
			return labels[:before], err
		}
		ok, err := m.owns(v.Tree, made, label)
		if err != nil {
			return labels[:before], err
		}
		if ok {
			labels = append(labels, label)
		}
	}
	fresh := labels[before:]
	free, err := m.allFree(ctx, made, draws, fresh)
	switch {
	case err != nil: // it is not known whether they may be used
		return labels[:before], err
	case free:
		return labels, nil
	}
	kept := fresh[:0]
	for _, label := range fresh {
		taken, err := m.isTaken(ctx, label)
		if err != nil {
			return labels[:before+len(kept)], err
		}
		if !taken {
			kept = append(kept, label)
		}
	}
	return labels[:before+len(kept)], nil
}

// areFree reports whether no name of the labels is registered. The names of one form come
// together, in order, so that the store reads forward.
func (ms *Minters) areFree(ctx context.Context, labels []Label) (bool, error) {
	if len(labels) == 0 {
		return true, nil
	}
	return ms.registry.AreFree(ctx, "mint", func(yield func(stele.ID) bool) {
		for form := range 1 + len(labels[0].Aliases) {
			for _, label := range labels {
				name := label.ID
				if form > 0 {
					name = label.Aliases[form-1]
				}
				if !yield(name) {
					return
				}
			}
		}
	})
}

// owns reports whether all names of the label belong to the namespace. It returns false for
// names of a template that belong to a namespace below, and for names of settings that
// changed meanwhile. A name of dates that belongs to another namespace is an error, because
// all that follow would too. The tree must be read after the name was taken, so that it has
// namespaces that were added meanwhile.
func (m *minter) owns(tree *namespaces.Tree, made maker, label Label) (bool, error) {
	dated, ok := made.(*dateNames)
	if ok && m.isAlone(tree, dated) {
		return true, nil
	}
	for name := range label.names {
		ns := tree.Of(name)
		if ns != nil && ns.Key() == m.key {
			continue
		}
		if dated == nil || !m.isCurrent(tree, dated) {
			return false, nil
		}
		return false, stele.Errorf("mint", name, stele.Conflict, "mint.name-outside-namespace", "the name falls out of the namespace {namespace}; look at its settings and at the namespaces below it", m.key)
	}
	return true, nil
}

// isAlone reports whether the prefixes belong to the namespace and no namespace is
// below them. It looks once for each change of namespaces.
func (m *minter) isAlone(tree *namespaces.Tree, made *dateNames) bool {
	if a := m.alone.Load(); a != nil && a.tree == tree && a.made == made {
		return true
	}
	for _, prefix := range made.prefixes {
		key := stele.NamespaceKey{Scheme: m.key.Scheme, Prefix: prefix}
		if ns := tree.At(key); ns == nil || ns.Key() != m.key || !tree.IsLeaf(key) {
			return false
		}
	}
	m.alone.Store(&alone{tree, made})
	return true
}

// isCurrent reports whether names are still made so.
func (m *minter) isCurrent(tree *namespaces.Tree, made *dateNames) bool {
	w, ns := m.work.Load(), tree.Get(m.key)
	if w == nil || ns == nil || w.settings != ns.Minter {
		return false
	}
	now, ok := w.source.(*dates)
	return ok && now.made == made
}

// isTaken reports whether a name of the label is registered.
func (ms *Minters) isTaken(ctx context.Context, label Label) (bool, error) {
	for name := range label.names {
		_, err := ms.registry.LookUp(ctx, "mint", name)
		if err == nil {
			ms.o.Log.InfoContext(ctx, "a name was registered before it was made; it is skipped", "name", name.String())
			return true, nil
		}
		if !errors.Is(err, stele.NotFound) {
			return false, err
		}
	}
	return false, nil
}
