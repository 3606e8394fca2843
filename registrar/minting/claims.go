package minting

import (
	"context"
	"slices"

	"github.com/stele-id/stele"
)

// State reads the state of the minter of a prefix.
func (ms *Minters) State(ctx context.Context, key stele.NamespaceKey) (State, error) {
	_, state, err := readMinter(ctx, "read minter", ms.store, key)
	return state, err
}

// Claim returns the states that give the prefixes of next, the new version of a namespace,
// to it, and that take from it the prefixes that only before had; before is nil for a new
// namespace. The caller commits them with the namespace, so that two processes do not
// both claim one prefix. Conflict if a prefix belongs to another namespace, or if a template
// made names there.
func (ms *Minters) Claim(ctx context.Context, op string, before, next *stele.Namespace) ([]stele.MinterState, error) {
	keys, err := DatePrefixes(ms.schemes, next)
	if err != nil {
		return nil, err
	}
	var states []stele.MinterState
	for _, key := range keys {
		s, err := ms.hold(ctx, op, key, next)
		if err != nil {
			return nil, err
		}
		states = append(states, s...)
	}
	if before == nil {
		return states, nil
	}
	// A stored namespace whose settings this program can't read held nothing.
	earlier, _ := DatePrefixes(ms.schemes, before)
	for _, key := range earlier {
		if slices.Contains(keys, key) {
			continue
		}
		s, err := ms.release(ctx, key, before)
		if err != nil {
			return nil, err
		}
		states = append(states, s...)
	}
	return states, nil
}

// hold returns the state that gives the prefix to the namespace; none if it has
// it.
func (ms *Minters) hold(ctx context.Context, op string, key stele.NamespaceKey, ns *stele.Namespace) ([]stele.MinterState, error) {
	data, state, err := readMinter(ctx, "read minter", ms.store, key)
	if err != nil {
		return nil, err
	}
	if state.Templates.used() {
		return nil, stele.Errorf(op, stele.ID{}, stele.Conflict,
			"mint.prefix-used-by-template", "names under {prefix} were made by a template, and another kind of minter could repeat one; use another prefix", key)
	}
	held := DateState{}
	if state.Dates != nil {
		held = *state.Dates
	}
	switch held.Holder {
	case ns.Prefix:
		return nil, nil
	case "":
		held.Holder = ns.Prefix
		return []stele.MinterState{{Name: StateName(key), Before: data, After: held.Bytes()}}, nil
	}
	return nil, stele.Errorf(op, stele.ID{}, stele.Conflict, "mint.prefix-held-by-namespace", "{prefix} belongs to the namespace {namespace}, and to one only", key, held.Holder)
}

// release returns the state that takes the prefix from the namespace; none if it
// does not have it.
func (ms *Minters) release(ctx context.Context, key stele.NamespaceKey, ns *stele.Namespace) ([]stele.MinterState, error) {
	data, state, err := readMinter(ctx, "read minter", ms.store, key)
	if err != nil || state.Dates == nil || state.Dates.Holder != ns.Prefix {
		return nil, err
	}
	freed := *state.Dates
	freed.Holder = ""
	return []stele.MinterState{{Name: StateName(key), Before: data, After: freed.Bytes()}}, nil
}
