package registrar

import (
	"context"
	"errors"
	"slices"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/namespaces"
	"github.com/stele-id/stele/publish/zonemap"
	"github.com/stele-id/stele/registrar/minting"
)

// admitNamespace decides whether a version of a namespace may be written. It
// returns the namespaces as they will be then, and the states of minters to commit
// with it.
func (r *Registrar) admitNamespace(ctx context.Context, op string, s *namespaceTree, before, next *stele.Namespace) (*namespaceTree, []stele.MinterState, error) {
	if err := r.judgeNamespace(op, next); err != nil {
		return nil, nil, err
	}
	changed, err := s.with(next)
	if err != nil {
		return nil, nil, err
	}
	ancestors := changed.Ancestors(changed.Get(next.Key()))
	if err := mayWriteNamespace(ctx, op, ancestors, before, next); err != nil {
		return nil, nil, err
	}
	if op != opAdopt { // what another registry has handed over is taken as it is
		if err := r.judgeLoops(op, changed, next); err != nil {
			return nil, nil, err
		}
	}
	if err := keepsSeal(ctx, op, ancestors, before, next); err != nil {
		return nil, nil, err
	}
	if err := r.keepsSilence(ctx, op, s, ancestors, before, next); err != nil {
		return nil, nil, err
	}
	if err := r.keepsOwner(ctx, op, ancestors, before, next); err != nil {
		return nil, nil, err
	}
	if err := r.hasKey(op, before, next); err != nil {
		return nil, nil, err
	}
	if err := r.minterFits(op, changed, next); err != nil {
		return nil, nil, err
	}
	if err := r.mayPublish(ctx, op, s, before, next); err != nil {
		return nil, nil, err
	}
	if err := r.mayCatalog(ctx, op, s, before, next); err != nil {
		return nil, nil, err
	}
	if err := r.maySend(op, before, next); err != nil {
		return nil, nil, err
	}
	if err := r.keysStay(op, before, next); err != nil {
		return nil, nil, err
	}
	if holder := s.Claimed(next.Key()); holder != nil {
		return nil, nil, refuse(op, stele.ID{}, stele.Conflict,
			"namespace.held-by-minter", "{namespace} belongs to the namespace {holder} by the settings of its minter, and to one only", next.Key(), holder.Key())
	}
	minters, err := r.claim(ctx, op, s, before, next)
	if err != nil {
		return nil, nil, err
	}
	if next.Minter.Kind == stele.MinterNOID {
		state, err := r.minters.State(ctx, next.Key())
		if err != nil {
			return nil, nil, err
		}
		if state.Dates != nil && state.Dates.Issued {
			return nil, nil, refuse(op, stele.ID{}, stele.Conflict,
				"namespace.prefix-used-by-dates", "names under {namespace} were made of dates, and a template could repeat one; use another prefix", next.Key())
		}
	}
	return changed, minters, nil
}

// mayWriteNamespace requires the role owner above a namespace that is new, or whose
// owner or quota changes, and the role owner in it for all other changes. The user who is named as
// the owner hands that over to another one, and every user leaves. The list of ancestors
// begins with the namespace as it will be, which gives no rights yet.
func mayWriteNamespace(ctx context.Context, op string, ancestors []*stele.Namespace, before, next *stele.Namespace) error {
	who := auth.From(ctx)
	above := ancestors[1:]
	// What is in a namespace below one with a quota does not count for that quota, so
	// the caller that adds it must have the right to set the quota.
	bounded := -1
	for i, ns := range above {
		if ns.Quota > 0 && ns.Prefix != "" { // a root's is for names in no namespace
			bounded = i
		}
	}
	rules := auth.MayManage(who, above...)
	hands := before != nil && before.Owner == who.Name && next.Owner != "" && auth.MayManage(who, before)
	switch {
	case auth.MayManage(who, above[bounded+1:]...):
		return nil
	case before == nil && rules:
		return refuse(op, stele.ID{}, stele.Forbidden, "namespace.quota-above-not-held", `"{user}" may not make namespaces here, where the quota of {namespace} would not hold; who may set that quota can`, who.Name, above[bounded].Key())
	case before == nil:
		return forbidSettings(op, who, above[0])
	case before.Quota != next.Quota, before.Owner != next.Owner && !rules && !hands:
		return refuse(op, stele.ID{}, stele.Forbidden, "namespace.owner-or-quota-protected", `"{user}" may not change owner or quota of {namespace}; the owners of what is above it and administrators can`, who.Name, next.Key())
	case rules, auth.MayManage(who, before), leaves(who, before, next):
		return nil
	}
	return forbidSettings(op, who, before)
}

// judgeNamespace tells all that is wrong with a namespace.
func (r *Registrar) judgeNamespace(op string, ns *stele.Namespace) error {
	problems, err := problemsOf(ns.Validate())
	if err != nil {
		return tell(op, err)
	}
	add := func(path string, err error) {
		// What Validate has found is not reported twice.
		if err != nil && !slices.ContainsFunc(problems, func(p stele.Problem) bool { return p.Path == path }) {
			problems = append(problems, stele.Problem{Path: path, Err: stele.Reason(err)})
		}
	}
	if r.schemes.Lookup(ns.Scheme) == nil {
		add("scheme", stele.Messagef("namespace.scheme-unknown", "the scheme is not known here"))
	} else {
		add("prefix", r.judgePrefix(ns))
	}
	if ns.Prefix == "" && ns.Minter.Kind != stele.NoMinter {
		add("minter.kind", stele.Messagef("namespace.root-with-minter", "the root of a scheme has no minter; add a namespace for it"))
	}
	if ns.Prefix == "" && len(ns.Grants) > 0 {
		add("grants", stele.Messagef("namespace.root-with-roles", "the root of a scheme gives no roles; add a namespace, and give them there"))
	}
	if _, err := minting.Granularity(ns); err != nil {
		add("minter.granularity", err)
	}
	if len(problems) == 0 && ns.Passthrough && !namespaces.HasFollowed(r.schemes, ns.Key()) {
		add("passthrough", stele.Messagef("namespace.nothing-follows",
			"nothing can follow the names of {namespace}, so there is nothing to pass on; leave it out", ns.Key()))
	}
	if len(problems) == 0 {
		add(minting.CheckSettings(r.schemes, ns))
		judgeKeys(ns, add)
		r.judgeRules(ns, add)
		zonemap.CheckRecords(&ns.Publication, add)
	}
	if len(problems) > 0 {
		return &stele.Error{Op: op, Kind: stele.Invalid, Err: problems}
	}
	return nil
}

// judgePrefix makes sure that the prefix is one of its scheme, in canonical form.
func (r *Registrar) judgePrefix(ns *stele.Namespace) error {
	if ns.Prefix == "" {
		return nil
	}
	key, _, err := namespaces.ReadPrefix(r.schemes, ns.Prefix)
	switch {
	case err != nil:
		return err
	case key.Scheme != ns.Scheme:
		return refuse("", stele.ID{}, stele.Invalid, "namespace.prefix-of-other-scheme", `"{prefix}" is a prefix of the scheme {scheme}, not {expected}`, ns.Prefix, key.Scheme, ns.Scheme)
	case key.Prefix != ns.Prefix:
		return refuse("", stele.ID{}, stele.Invalid, "namespace.prefix-not-canonical", `"{prefix}" is not in canonical form; write "{canonical}"`, ns.Prefix, key.Prefix)
	}
	return nil
}

// problemsOf returns the problems that a Validate method found, or another error.
func problemsOf(err error) (stele.Problems, error) {
	if err == nil {
		return nil, nil
	}
	problems, ok := errors.AsType[stele.Problems](err)
	if !ok {
		return nil, err
	}
	return slices.Clip(problems), nil
}
