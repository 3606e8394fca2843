package registrar

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// A namespace is handed over together with all below it. Each of them says so itself, in one commit, so that a
// decision about a name needs no other namespace than its own. See docs/decisions/0076.

// OfferNamespace names the registry that is to take over a namespace, with all below it: the heir, by the origin of its
// log, and the address of its resolver. All goes on as before. Another heir may be named until the namespace is sealed, or another namespace in which its records have aliases.
// Only an administrator may. It returns the namespaces as they are then.
func (r *Registrar) OfferNamespace(ctx context.Context, key stele.NamespaceKey, heir, address string) ([]*stele.Namespace, error) {
	const op = "offer namespace"
	if own, err := r.LogOrigin(ctx); err != nil {
		return nil, err
	} else if heir != "" && heir == own.Origin {
		return nil, refuse(op, stele.ID{}, stele.Invalid, "hand-over.heir-is-giver", `"{heir}" is this registry itself; give the origin of the other one's log, which 'stele log key' prints there`, heir)
	}
	return r.backHandOver(ctx, op, key, func(ns *stele.Namespace) (stele.HandOver, error) {
		if ns.IsSealed() {
			return ns.HandOver, refuse(op, stele.ID{}, stele.Conflict, "hand-over.already-sealed", "{namespace} is sealed for {heir} already; 'stele handover status' says how far it is", ns.Key(), ns.HandOver.Heir)
		}
		return stele.HandOver{State: stele.Offered, Heir: heir, Address: address}, nil
	})
}

// offered returns to which registry a namespace is offered.
func (r *Registrar) offered(ctx context.Context, op string, key stele.NamespaceKey) (stele.HandOver, error) {
	ns, err := r.Namespace(ctx, key)
	if err != nil {
		return stele.HandOver{}, err
	}
	if ns.HandOver.State == stele.NotHandedOver {
		return stele.HandOver{}, refuse(op, stele.ID{}, stele.Conflict, "hand-over.not-offered", "{namespace} is offered to no registry; use 'stele handover offer' first", key)
	}
	return ns.HandOver, nil
}

// ForwardNamespace redirects all requests for names of a namespace that was sealed, and of all below it, to the heir. The caller has made
// sure that the heir answers for them. Only an administrator may.
func (r *Registrar) ForwardNamespace(ctx context.Context, key stele.NamespaceKey) ([]*stele.Namespace, error) {
	const op = "forward namespace"
	if err := r.needProof(ctx, op); err != nil {
		return nil, err
	}
	return r.handOver(ctx, op, key, false, func(ns *stele.Namespace) (stele.HandOver, error) {
		h := ns.HandOver
		if !ns.IsSealed() {
			return h, refuse(op, stele.ID{}, stele.Conflict, "hand-over.not-sealed", "{namespace} is not sealed, so names of it could still be made here; use 'stele handover seal' first", ns.Key())
		}
		if h.State == stele.Sealed {
			h.State = stele.Forwarded
		}
		return h, nil
	})
}

// CancelHandOver ends the hand-over of a namespace and of all below it. Of one that was sealed the caller has made sure that the heir has
// not adopted it and will not: from then on names are made here. Only an administrator may.
func (r *Registrar) CancelHandOver(ctx context.Context, key stele.NamespaceKey, sealed bool) ([]*stele.Namespace, error) {
	const op = "cancel hand-over"
	if err := r.needProof(ctx, op); err != nil {
		return nil, err
	}
	return r.backHandOver(ctx, op, key, func(ns *stele.Namespace) (stele.HandOver, error) {
		if ns.IsSealed() && !sealed {
			return ns.HandOver, refuse(op, stele.ID{}, stele.Conflict, "hand-over.sealed-not-cancelled", "{namespace} is sealed for {heir}, which may have adopted it: two registries could make the same names; ask there first, and cancel with --i-know if it has not and will not", ns.Key(), ns.HandOver.Heir)
		}
		return stele.HandOver{}, nil
	})
}

// handOver commits what step makes of the hand-over of a namespace and of all below it. With fence nothing is written after it
// that was judged before.
func (r *Registrar) handOver(ctx context.Context, op string, key stele.NamespaceKey, fence bool, step func(ns *stele.Namespace) (stele.HandOver, error)) ([]*stele.Namespace, error) {
	return r.writeNamespaces(ctx, op, key, fence, func(_, next *stele.Namespace) error { return r.stepTo(ctx, next, step) })
}

// stepTo lets a namespace take a step.
func (r *Registrar) stepTo(ctx context.Context, next *stele.Namespace, step func(ns *stele.Namespace) (stele.HandOver, error)) error {
	h, err := step(next)
	if err != nil {
		return err
	}
	if h.State != next.HandOver.State || h.Heir != next.HandOver.Heir || h.Address != next.HandOver.Address {
		if h.State != stele.NotHandedOver {
			h.Since, h.By = r.now(), auth.From(ctx).Name
		}
		next.HandOver = h
	}
	return nil
}

// writeNamespaces commits what edit makes of a namespace and of all below it, together.
func (r *Registrar) writeNamespaces(ctx context.Context, op string, key stele.NamespaceKey, fence bool, edit func(before, next *stele.Namespace) error) ([]*stele.Namespace, error) {
	return r.writeNamespacesAnd(ctx, op, key, fence, edit, func(*stele.Commit, *namespaceTree) error { return nil })
}

// writeNamespacesAnd is writeNamespaces with what also adds to the commit: it gets the tree as it will be. It is called again if the commit is
// tried again.
func (r *Registrar) writeNamespacesAnd(ctx context.Context, op string, key stele.NamespaceKey, fence bool, edit func(before, next *stele.Namespace) error, also func(c *stele.Commit, changed *namespaceTree) error) ([]*stele.Namespace, error) {
	if err := administrate(ctx, op, stele.ID{}); err != nil {
		return nil, err
	}
	if key.Prefix == "" {
		return nil, refuse(op, stele.ID{}, stele.Invalid, "hand-over.root", "the root of a scheme is not handed over; give the prefix of a namespace")
	}
	if err := r.lock(ctx); err != nil {
		return nil, err
	}
	defer r.unlock()
	for attempt := 1; ; attempt++ {
		s, err := r.latest(ctx)
		if err != nil {
			return nil, err
		}
		c, changed, list, err := r.editAll(ctx, op, s, key, edit)
		if err != nil || len(c.Namespaces) == 0 {
			return list, err
		}
		if err := also(c, changed); err != nil {
			return nil, err
		}
		c.Cells = append(c.Cells, s.changed())
		epoch := c.Cells[len(c.Cells)-1].After
		if fence {
			cell, err := r.raiseFence(ctx, op, changed.versions)
			if err != nil {
				return nil, err
			}
			c.Cells = append(c.Cells, cell)
		}
		err = r.apply(ctx, op, c)
		if err == nil {
			changed.epoch = epoch
			r.replace(s, changed)
			return list, nil
		}
		r.replace(s, nil)
		if !r.again(ctx, err, attempt) {
			return nil, err
		}
	}
}

// editAll returns what edit makes of a namespace and of all below it: as a commit, as the tree with it, and all of them.
func (r *Registrar) editAll(ctx context.Context, op string, s *namespaceTree, key stele.NamespaceKey, edit func(before, next *stele.Namespace) error) (*stele.Commit, *namespaceTree, []*stele.Namespace, error) {
	c, changed := new(stele.Commit), s
	var list []*stele.Namespace
	if s.Get(key) == nil {
		return nil, nil, nil, refuse(op, stele.ID{}, stele.NotFound, "namespace.missing", "there is no namespace {namespace}; add it first", key)
	}
	for _, at := range s.below(key) {
		before := s.Get(at).Namespace
		next := cloneNamespace(before)
		if err := edit(before, next); err != nil {
			return nil, nil, nil, tell(op, err)
		}
		if sameNamespace(before, next) {
			list = append(list, cloneNamespace(before))
			continue
		}
		r.stampNamespace(ctx, before, next)
		if err := next.Validate(); err != nil {
			return nil, nil, nil, tell(op, err)
		}
		after, err := changed.with(next)
		if err != nil {
			return nil, nil, nil, tell(op, err)
		}
		changed = after
		c.Namespaces, list = append(c.Namespaces, next), append(list, cloneNamespace(next))
	}
	return c, changed, list, nil
}

// below returns the keys of a namespace and of all below it, in order. Any client may ask for it, so that it looks at those alone that begin as
// the namespace does.
func (s *namespaceTree) below(key stele.NamespaceKey) (list []stele.NamespaceKey) {
	all := s.ordered()
	first, _ := slices.BinarySearchFunc(all, key, compareKeys)
	for _, other := range all[first:] {
		if other.Scheme != key.Scheme || !strings.HasPrefix(other.Prefix, key.Prefix) {
			break
		}
		below := s.Get(other).Below()
		if other == key || below.IsValid() && s.schemes.IsWithin(below, key.Prefix) {
			list = append(list, other)
		}
	}
	return list
}

// raiseFence returns the change of a cell by which the store refuses what was judged by namespaces with a lower sum of versions.
func (r *Registrar) raiseFence(ctx context.Context, op string, namespaceVersions uint64) (stele.CellChange, error) {
	before, err := r.store.Cell(ctx, stele.NamespaceFence)
	if err != nil {
		return stele.CellChange{}, tell(op, err)
	}
	return stele.CellChange{Name: stele.NamespaceFence, Before: before, After: binary.BigEndian.AppendUint64(nil, namespaceVersions)}, nil
}

// adopting is the key of a context in which records of a namespace that is for reading only are written: those of a bundle.
type adopting struct{}

// open refuses to write a record in a namespace that was sealed, or adopted for reading only, or to give it a name there. In one that was adopted in silence it refuses new
// names alone.
// Every commit of records is judged by it, whatever it comes from. A redaction follows a legal order, and is written.
func (r *Registrar) open(ctx context.Context, op string, s *namespaceTree, rec *stele.Record) error {
	if !s.handed || op == "redact" {
		return nil
	}
	for _, id := range rec.Names() {
		ns := s.Of(id)
		if ns == nil || !ns.IsSealed() && (!ns.IsRead() && !ns.IsSilent() || ctx.Value(adopting{}) != nil) {
			continue
		}
		quiet := !ns.IsSealed() && ns.IsSilent()
		if quiet && id == rec.ID && rec.Version > 1 {
			continue
		}
		if id != rec.ID && rec.Version > 1 { // an alias that it had before stays
			have, err := r.store.Record(ctx, id)
			if err == nil && have.ID == rec.ID {
				continue
			} else if err != nil && !errors.Is(err, stele.NotFound) {
				return tell(op, err)
			}
		}
		if ns.IsSealed() {
			return sealed(op, id, ns.Namespace)
		}
		if quiet {
			return silent(op, id, ns.Namespace)
		}
		return readOnly(op, id, ns.Namespace)
	}
	return nil
}

func sealed(op string, id stele.ID, ns *stele.Namespace) error {
	return refuse(op, id, stele.Conflict, "record.namespace-sealed", `names in {namespace} were handed over to another registry, {heir}, and nothing changes here; ask there: {address}`, ns.Key(), ns.HandOver.Heir, ns.HandOver.Address)
}

func readOnly(op string, id stele.ID, ns *stele.Namespace) error {
	from := ns.Adoptions[len(ns.Adoptions)-1].From
	return refuse(op, id, stele.Conflict, "record.namespace-read-only", `{namespace} was taken over from {giver} for reading only, and nothing changes here; adopt a bundle of it that was made after it was sealed for this registry`, ns.Key(), from)
}

// fenced reports whether a commit of records was refused since a namespace was sealed meanwhile. The namespaces are read again then.
func (r *Registrar) fenced(ctx context.Context, err error) bool {
	return errors.Is(err, stele.ErrFenced) && r.Reload(ctx) == nil
}

// keepsSeal refuses changes of a namespace that was sealed or is for reading only, except of what is needed as long as this registry
// runs: its title, rights, and where it is published. It also refuses a new namespace below such a one.
func keepsSeal(ctx context.Context, op string, ancestors []*stele.Namespace, before, next *stele.Namespace) error {
	if before == nil {
		before = next
		for _, ns := range ancestors[1:] {
			if ns.IsSealed() {
				return sealed(op, stele.ID{}, ns)
			} else if ns.IsRead() && ctx.Value(adopting{}) == nil {
				return readOnly(op, stele.ID{}, ns)
			}
		}
	}
	if !before.IsSealed() && !before.IsRead() || ctx.Value(adopting{}) != nil {
		return nil
	}
	same := cloneNamespace(next)
	same.Owner, same.Grants, same.Title, same.Publication = before.Owner, before.Grants, before.Title, before.Publication
	if sameNamespace(before, same) {
		return nil
	}
	if before.IsSealed() {
		return sealed(op, stele.ID{}, before)
	}
	return readOnly(op, stele.ID{}, before)
}
