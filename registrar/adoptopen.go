package registrar

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
	"github.com/stele-id/stele/registrar/minting"
)

// ToOpen returns the namespaces that Finish will open since the giver has sealed them for this registry, or, with silent, since the giver fell silent; none if an earlier
// run did so.
func (a *Adopting) ToOpen(silent bool) (list []AdoptedSpace) {
	if a.opened {
		return nil
	}
	for _, sp := range a.spaces {
		if !sp.Reading && (sp.Silent != "") == silent {
			list = append(list, sp)
		}
	}
	return list
}

// Forwarded notes that the giver redirects requests for these namespaces to this registry already. So this registry, or the one that it was restored from, has
// opened them before, and may have made names that it does not know.
func (a *Adopting) Forwarded(keys ...stele.NamespaceKey) {
	if a.forwarded == nil {
		a.forwarded = make(map[stele.NamespaceKey]bool)
	}
	for _, key := range keys {
		a.forwarded[key] = true
	}
}

// Finish lets the minters go on where the giver's are, makes sure that this registry has all names of the bundle and no others, and
// then opens the namespaces that the giver has sealed for this registry: from then on they are this registry's.
func (a *Adopting) Finish(ctx context.Context) (Adopted, error) {
	ctx = context.WithValue(ctx, adopting{}, true)
	if err := a.advance(ctx); err != nil {
		return a.result, err
	}
	if !a.opened {
		if err := a.isWhole(ctx); err != nil {
			if done, derr := a.isOpened(ctx); derr != nil || !done {
				return a.result, err
			}
		} else if err := a.open(ctx); err != nil {
			return a.result, err
		}
	}
	err := a.r.NoteImport(ctx, a.number, ImportCounts{Created: a.result.Created, Updated: a.result.Written - a.result.Created, Unchanged: a.result.Present, Refused: len(a.result.Left)})
	return a.result, err
}

// advance lets the minters go on where those of the giver are, and never back.
func (a *Adopting) advance(ctx context.Context) error {
	ours := map[string]bool{}
	for _, ns := range a.b.Spaces {
		ours[minting.StateName(ns.Key())] = true
		keys, err := minting.DatePrefixes(a.r.schemes, ns)
		if err != nil {
			return tell(opAdopt, err)
		}
		for _, key := range keys {
			ours[minting.StateName(key)] = true
		}
	}
	var list []stele.MinterState
	for _, m := range a.b.Minters {
		scheme, prefix, _ := strings.Cut(m.Name, " ")
		node := a.tree.At(stele.NamespaceKey{Scheme: scheme, Prefix: prefix})
		if ours[m.Name] || node != nil && a.keys[node.Key()] {
			list = append(list, m)
		}
	}
	for attempt := 1; ; attempt++ {
		states, err := a.r.minters.Adopt(ctx, opAdopt, list)
		if err != nil {
			return err
		}
		err = a.r.applyMinters(ctx, opAdopt, states)
		if err == nil || !a.r.again(ctx, err, attempt) {
			return err
		}
	}
}

// isWhole makes sure that the namespaces have as many names as the bundle, and no later versions.
func (a *Adopting) isWhole(ctx context.Context) error {
	for id := range a.ahead {
		return refuse(opAdopt, id, stele.Conflict, "adopt.version-not-in-bundle", "it has a later version here than in the bundle: {giver} has lost that since, perhaps by a restore from a backup; the namespaces stay for reading only", a.b.From)
	}
	sum, want := uint64(0), a.b.Names
	for _, more := range a.left {
		want -= uint64(more) // less than 0 if there are fewer in the bundle, which wraps around to the right sum
	}
	for _, sp := range a.spaces {
		n, err := a.r.store.Count(ctx, sp.Key)
		if err != nil {
			return tell(opAdopt, err)
		}
		sum += n
	}
	if sum != want {
		return refuse(opAdopt, stele.ID{}, stele.Conflict, "adopt.names-differ", "the namespaces have {have} names here, and {want} in the bundle: names were registered here that did not come from {giver}; they stay for reading only", sum, want, a.b.From)
	}
	return nil
}

// isOpened reports whether another process, which adopts the same bundle, has opened the namespaces: they have names since that the
// bundle does not have.
func (a *Adopting) isOpened(ctx context.Context) (bool, error) {
	if err := a.r.Reload(ctx); err != nil {
		return false, err
	}
	s, err := a.r.view(ctx)
	if err != nil {
		return false, err
	}
	opened := false
	for _, sp := range a.spaces {
		node := s.Get(sp.Key)
		switch {
		case node == nil || !a.isLast(node.Namespace) || node.IsRead() != sp.Reading:
			return false, nil
		case !sp.Reading:
			opened = true
		}
	}
	return opened, nil
}

// wasOpened reports whether the final commit for a namespace was made before.
func (a *Adopting) wasOpened(before *stele.Namespace) bool {
	return before != nil && a.isLast(before) && !before.IsRead()
}

// isLast reports whether the bundle is the last one that was adopted in a namespace, or began to be.
func (a *Adopting) isLast(ns *stele.Namespace) bool {
	n := len(ns.Adoptions)
	return n > 0 && ns.Adoptions[n-1].Bundle == a.b.Bundle
}

// open makes the namespaces that were sealed for this registry its own, all with one commit.
func (a *Adopting) open(ctx context.Context) error {
	if err := a.r.lock(ctx); err != nil {
		return err
	}
	defer a.r.unlock()
	for attempt := 1; ; attempt++ {
		s, err := a.r.latest(ctx)
		if err != nil {
			return err
		}
		c, changed := new(stele.Commit), s
		var shut []*stele.Namespace
		for i := range a.spaces {
			sp := &a.spaces[i]
			node := s.Get(sp.Key)
			if node == nil || !node.IsRead() || sp.Reading {
				continue
			}
			if !a.isLast(node.Namespace) { // what that one adds may not be here yet
				return refuse(opAdopt, stele.ID{}, stele.Conflict, "adopt.overtaken", "another bundle of {namespace} has begun to be taken over meanwhile, so that the namespace stays for reading only; adopt that one again", sp.Key)
			}
			next := cloneNamespace(node.Namespace)
			last := &next.Adoptions[len(next.Adoptions)-1]
			if last.Reading = false; sp.Silent != "" {
				last.Silent, last.To = true, sp.Silent
			}
			a.r.stampNamespace(ctx, node.Namespace, next)
			if changed, err = changed.with(next); err != nil {
				return tell(opAdopt, err)
			}
			c.Namespaces = append(c.Namespaces, next)
			again, err := a.isOpenedAgain(ctx, node.Namespace, sp)
			if err != nil {
				return err
			} else if again {
				shut = append(shut, next)
			}
		}
		if len(c.Namespaces) == 0 {
			return nil
		}
		if c.Minters, err = a.shut(ctx, changed, shut); err != nil {
			return err
		}
		c.Cells = []stele.CellChange{s.changed()}
		if err = a.r.apply(ctx, opAdopt, c); err == nil {
			changed.epoch = c.Cells[0].After
			a.r.replace(s, changed)
			a.result.Shut = templatesOf(shut)
			return nil
		}
		a.r.replace(s, nil)
		if !a.r.again(ctx, err, attempt) {
			return err
		}
	}
}

// clocksDiffer is how far the clocks of two registries are apart at most, as it is assumed here.
const clocksDiffer = time.Hour

// isOpenedAgain reports whether this registry may have opened a namespace by this seal before, and lost that and the names that it made since: it was restored from a
// backup after the seal, or the giver redirects requests here already.
func (a *Adopting) isOpenedAgain(ctx context.Context, before *stele.Namespace, sp *AdoptedSpace) (bool, error) {
	if sp.Silent != "" {
		return false, nil
	}
	opened := func(o stele.Adoption) bool { return !o.Reading && !o.Silent }
	if (a.forwarded[sp.Key] || sp.HandOver.State == stele.Forwarded) && !slices.ContainsFunc(before.Adoptions, opened) {
		return true, nil
	}
	list, err := a.r.store.Generations(ctx)
	if err != nil {
		return false, tell(opAdopt, err)
	}
	return len(list) > 1 && list.Last().Began.Add(clocksDiffer).After(sp.HandOver.Since), nil
}

// shut returns the states of minters of which this registry may have made names that it does not know, as after a restore: templates are shut until an administrator
// skips their counters ahead, and dates go on from now.
func (a *Adopting) shut(ctx context.Context, s *namespaceTree, list []*stele.Namespace) ([]stele.MinterState, error) {
	if len(list) == 0 {
		return nil, nil
	}
	now, err := mint.DateOf(a.r.now())
	if err != nil {
		return nil, refuse(opAdopt, stele.ID{}, stele.Unavailable, "mint.clock-wrong", "the clock is wrong: {cause}; set it", err)
	}
	return a.r.afterGiver(ctx, opAdopt, now, s, list)
}

// templatesOf returns the namespaces whose names are made by a template.
func templatesOf(list []*stele.Namespace) (keys []stele.NamespaceKey) {
	for _, ns := range list {
		if ns.Minter.Kind == stele.MinterNOID {
			keys = append(keys, ns.Key())
		}
	}
	return keys
}
