package registrar

import (
	"context"
	"slices"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/mint"
	"github.com/stele-id/stele/namespaces"
)

// madeOfDates is what a [namespaces.DateNamer] tells.
type madeOfDates struct {
	prefixes []string
	at       func(d mint.Date) ([]stele.ID, error)
}

// dateNames returns how the namespace's names are made of dates, nil if they are
// not.
func dateNames(schemes *stele.Schemes, ns *stele.Namespace) (*madeOfDates, error) {
	prefixes, at, err := namespaces.DateNames(schemes, ns)
	if err != nil || at == nil {
		return nil, err
	}
	return &madeOfDates{prefixes, at}, nil
}

// keys returns the prefixes as keys.
func (m *madeOfDates) keys(ns *stele.Namespace) (keys []stele.NamespaceKey) {
	if m == nil {
		return nil
	}
	for _, prefix := range m.prefixes {
		keys = append(keys, stele.NamespaceKey{Scheme: ns.Scheme, Prefix: prefix})
	}
	return keys
}

// claim makes sure that the prefixes of the minter's names belong to the namespace
// alone, and returns the states of minters that say so: with them, two processes
// can't both claim one.
func (r *Registrar) claim(ctx context.Context, op string, s *spaces, before, next *stele.Namespace) ([]stele.MinterState, error) {
	made, err := dateNames(r.schemes, next)
	if err != nil {
		return nil, err
	}
	var minters []stele.MinterState
	keys := made.keys(next)
	for _, key := range keys {
		if err := r.mayClaim(ctx, op, s, next, key); err != nil {
			return nil, err
		}
		m, err := r.hold(ctx, op, key, next)
		if err != nil {
			return nil, err
		}
		minters = append(minters, m...)
	}
	if before == nil {
		return minters, nil
	}
	// A stored namespace whose settings this program can't read held nothing.
	made, _ = dateNames(r.schemes, before)
	for _, key := range made.keys(before) {
		if slices.Contains(keys, key) {
			continue
		}
		m, err := r.release(ctx, key, before)
		if err != nil {
			return nil, err
		}
		minters = append(minters, m...)
	}
	return minters, nil
}

// mayClaim makes sure that a prefix is nobody else's, and that whoever acts has the
// role owner there, as for a namespace. Below the namespace itself they may.
func (r *Registrar) mayClaim(ctx context.Context, op string, s *spaces, ns *stele.Namespace, key stele.NamespaceKey) error {
	if other := s.At(key); other != nil && other.Key() != ns.Key() {
		return refuse(op, stele.ID{}, stele.Conflict,
			"%s belongs to the namespace %s, and to one only; use another host, address or port", key, other.Key())
	}
	_, below, err := namespaces.ReadPrefix(r.schemes, key.Prefix)
	if err != nil {
		return err
	}
	chain := s.chainOf(below)
	if r.isWithin(key.Prefix, ns.Prefix) {
		return nil
	}
	if who := auth.From(ctx); !auth.MayManage(who, chain...) {
		return forbidSettings(op, who, chain[0])
	}
	return nil
}

// hold returns the state that gives the prefix to the namespace; none if it has
// it.
func (r *Registrar) hold(ctx context.Context, op string, key stele.NamespaceKey, ns *stele.Namespace) ([]stele.MinterState, error) {
	data, state, err := r.minterState(ctx, key)
	if err != nil {
		return nil, err
	}
	if state.noid.used() {
		return nil, refuse(op, stele.ID{}, stele.Conflict,
			"names under %s were made by a template, and another kind of minter could repeat one; use another prefix", key)
	}
	held := dateState{}
	if state.date != nil {
		held = *state.date
	}
	switch held.holder {
	case ns.Prefix:
		return nil, nil
	case "":
		held.holder = ns.Prefix
		return []stele.MinterState{{Name: stateName(key), Before: data, After: held.bytes()}}, nil
	}
	return nil, refuse(op, stele.ID{}, stele.Conflict, "%s belongs to the namespace %s, and to one only", key, held.holder)
}

// release returns the state that takes the prefix from the namespace; none if it
// does not have it.
func (r *Registrar) release(ctx context.Context, key stele.NamespaceKey, ns *stele.Namespace) ([]stele.MinterState, error) {
	data, state, err := r.minterState(ctx, key)
	if err != nil || state.date == nil || state.date.holder != ns.Prefix {
		return nil, err
	}
	freed := *state.date
	freed.holder = ""
	return []stele.MinterState{{Name: stateName(key), Before: data, After: freed.bytes()}}, nil
}

// minterState reads what the store has for a prefix.
func (r *Registrar) minterState(ctx context.Context, key stele.NamespaceKey) ([]byte, minterState, error) {
	data, err := r.store.MinterState(ctx, stateName(key))
	if err != nil {
		return nil, minterState{}, tell("read minter", err)
	}
	state, err := readState(stateName(key), data)
	return data, state, err
}
