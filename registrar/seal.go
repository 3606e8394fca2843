package registrar

import (
	"context"
	"time"

	"github.com/stele-id/stele"
)

// How long the look after a seal may take, and its undoing, if the caller has gone away.
const (
	looking = 10 * time.Minute
	undoing = time.Minute
)

// SealNamespace ends minting and all changes in a namespace that was offered, and in all below it. Nothing that was judged before is
// written after it, by no server. It is refused as long as records elsewhere have aliases there that would stay here: the heir does not get these, and could give them to
// other things. An alias can belong to any record, so it reads all of them. Of what is sealed already it says so again, and leaves it sealed: a seal whose look was interrupted is looked at again. Only an administrator may.
func (r *Registrar) SealNamespace(ctx context.Context, key stele.NamespaceKey) ([]*stele.Namespace, error) {
	const op = "seal namespace"
	if err := r.needProof(ctx, op); err != nil {
		return nil, err
	}
	s, top, err := r.maySeal(ctx, op, key)
	if err != nil {
		return nil, err
	}
	open := make(map[stele.NamespaceKey]bool) // those that are not sealed yet
	for _, k := range s.below(key) {
		open[k] = !s.Get(k).IsSealed()
	}
	before, err := r.store.LastChange(ctx)
	if err != nil {
		return nil, tell(op, err)
	}
	if err := r.mayLeave(ctx, op, s, key, top); err != nil {
		return nil, err
	}
	list, err := r.handOver(ctx, op, key, true, sealing(op, key, top))
	if err != nil {
		return nil, err
	}
	// What follows belongs to the seal: a caller that goes away does not end it.
	ctx = context.WithoutCancel(ctx)
	look, ended := context.WithTimeout(ctx, looking)
	defer ended()
	after, err := r.store.LastChange(look)
	if err != nil {
		return nil, tell(op, err)
	}
	if after == before+1 { // the seal is all that was written
		return list, nil
	}
	if s, err = r.view(look); err != nil {
		return nil, err
	}
	// An alias that was added meanwhile is found now, and none is added any more.
	if err := r.mayLeave(look, op, s, key, top); err != nil {
		undo, ended := context.WithTimeout(ctx, undoing)
		defer ended()
		_, undone := r.handOver(undo, op, key, false, func(ns *stele.Namespace) (stele.HandOver, error) {
			if h := ns.HandOver; h.State != stele.Sealed || !open[ns.Key()] {
				return h, nil
			}
			return stele.HandOver{State: stele.Offered, Heir: top.Heir, Address: top.Address}, nil
		})
		if undone != nil {
			return nil, undone
		}
		return nil, err
	}
	return list, nil
}

// mayLeave refuses to seal namespaces in which records elsewhere have aliases that would stay here. Of namespaces that are all forwarded nothing is asked.
func (r *Registrar) mayLeave(ctx context.Context, op string, s *namespaceTree, key stele.NamespaceKey, top stele.HandOver) error {
	p, at, over := &SealPlan{Heir: top.Heir, Address: top.Address}, make(map[stele.NamespaceKey]int), true
	for _, k := range s.below(key) {
		at[k] = len(p.Namespaces)
		p.Namespaces = append(p.Namespaces, PlannedNamespace{Key: k})
		over = over && s.Get(k).HandOver.State == stele.Forwarded
	}
	if over {
		return nil
	}
	if err := r.planRecords(ctx, op, s, p, at, nil); err != nil || p.Inward.Count == 0 {
		return err
	}
	return refuse(op, stele.ID{}, stele.Conflict, "hand-over.aliases-inward", "{count} aliases in {namespace} belong to records elsewhere, and would stay with them: {heir} does not get them, and could give these names to other things. Offer the namespaces of these records to it, too, before you seal. The aliases are: {aliases}", p.Inward.Count, key, top.Heir, p.Inward.text())
}

// sealing returns the step by which each namespace at and below a key is sealed for the heir of the top one.
func sealing(op string, key stele.NamespaceKey, top stele.HandOver) func(ns *stele.Namespace) (stele.HandOver, error) {
	return func(ns *stele.Namespace) (stele.HandOver, error) {
		h := ns.HandOver
		switch {
		case ns.IsRead():
			return h, readOnly(op, stele.ID{}, ns)
		case ns.IsSilent():
			return h, silent(op, stele.ID{}, ns)
		case h.State != stele.NotHandedOver && (h.Heir != top.Heir || h.Address != top.Address):
			return h, refuse(op, stele.ID{}, stele.Conflict, "hand-over.other-heir", "{namespace} is offered to {heir}, and {above} to another registry; offer both to one, or hand the lower one over first", ns.Key(), h.Heir, key)
		case ns.IsSealed():
			return h, nil
		}
		return stele.HandOver{State: stele.Sealed, Heir: top.Heir, Address: top.Address}, nil
	}
}
