// Package auth says who somebody is and what they may do, in the same way for
// every protocol.
//
// It decides; it asks no store, keeps nothing and never reads a credential
// itself.
package auth

import (
	"context"
	"slices"
	"strings"

	"github.com/stele-id/stele"
)

// Principal is somebody who is known to the registry. The zero Principal is
// nobody: the public.
type Principal struct {
	Name   string   // by which namespaces and records know it
	Groups []string // whose member it is
	Admin  bool     // may do everything
}

// IsKnown reports whether p is somebody.
func (p Principal) IsKnown() bool { return p.Name != "" }

// Local returns the administrator who works on the data folder directly: who can
// write its files needs no other right.
func Local() Principal { return Principal{Name: "local", Admin: true} }

type key struct{}

// With returns a context in which p acts.
func With(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, key{}, p)
}

// From returns who acts in the context: nobody, if nothing is said there.
func From(ctx context.Context) Principal {
	p, _ := ctx.Value(key{}).(Principal)
	return p
}

// MayWrite reports whether p may write in a namespace. It is given with its
// ancestors, the nearest first: who owns one of them may write below it. A
// scheme's root belongs to nobody, so that an administrator alone writes there,
// whatever owner it names.
func MayWrite(p Principal, chain ...*stele.Namespace) bool {
	if !p.IsKnown() {
		return false
	}
	return p.Admin || slices.ContainsFunc(chain, func(n *stele.Namespace) bool {
		return n.Prefix != "" && n.Owner == p.Name
	})
}

// MayRead reports whether p may see a record, whose namespaces are given as in
// [MayWrite]. Who may write may read. Others see what is not reserved and is open
// to everybody, to their name or to one of their groups.
func MayRead(p Principal, r *stele.Record, chain ...*stele.Namespace) bool {
	switch {
	case MayWrite(p, chain...):
		return true
	case r.State == stele.Reserved:
		return false
	case r.IsPublic():
		return true
	}
	return p.IsKnown() && slices.ContainsFunc(r.Readers, p.is)
}

// is reports whether a record's reader, "user:ann" or "group:staff", is p.
func (p Principal) is(reader string) bool {
	if name, ok := strings.CutPrefix(reader, "user:"); ok {
		return name == p.Name
	}
	name, ok := strings.CutPrefix(reader, "group:")
	return ok && slices.Contains(p.Groups, name)
}
