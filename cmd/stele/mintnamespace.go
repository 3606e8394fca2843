package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
)

// namespace returns the namespace to make names in. It is made if it is not there. If
// it is, what the flags say must be what is set, but for the granularity, which may
// change.
func (f *minterFlags) namespace(ctx context.Context, l *ledger, want *stele.Namespace) ([]stele.NamespaceKey, error) {
	key := want.Key()
	have, err := l.Namespace(ctx, key)
	if errors.Is(err, stele.NotFound) {
		if f.looks {
			return []stele.NamespaceKey{key}, want.Validate()
		}
		_, err = l.AddNamespace(ctx, want)
		return []stele.NamespaceKey{key}, err
	}
	if err != nil {
		return nil, err
	}
	if odd := f.differs(&have.Minter, &want.Minter); odd != "" {
		set := "makes no new names"
		if now := mints(&have.Minter); now != "" {
			set = "makes names by " + now
		}
		return nil, &stele.Error{Op: "mint", Kind: stele.Conflict, Err: fmt.Errorf(
			"the namespace %s %s, and --%s says otherwise; leave it out, or change the namespace with 'stele ns set'", key, set, odd)}
	}
	if !f.looks && f.owner.Flags().Changed("granularity") && !sameGranularity(have.Minter.Granularity, want.Minter.Granularity) {
		_, err = l.SetNamespace(ctx, key, 0, func(ns *stele.Namespace) error {
			ns.Minter.Granularity = want.Minter.Granularity
			return nil
		})
	}
	return []stele.NamespaceKey{key}, err
}

// differs returns the flag that says something else than what is set, "" if none.
func (f *minterFlags) differs(have, want *stele.Minter) string {
	if have.Kind != want.Kind {
		return "minter " + string(want.Kind)
	}
	for _, s := range minterSettings {
		if s.flag == "granularity" || !f.owner.Flags().Changed(s.flag) {
			continue
		}
		as := *have
		if s.copy(&as, want); as != *have {
			return s.flag
		}
	}
	return ""
}

// sameGranularity reports whether two texts are spellings of one granularity; none is
// a second. Texts that are none differ.
func sameGranularity(a, b string) bool {
	read := func(text string) (mint.Granularity, error) {
		if text == "" {
			return mint.Second, nil
		}
		return mint.ParseGranularity(text)
	}
	x, errX := read(a)
	y, errY := read(b)
	return errX == nil && errY == nil && x == y
}
