package auth

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stele-id/stele"
)

// Scope is a kind of work that a token may be used for. A token without scopes may be
// used for all that its user may do.
type Scope string

// The scopes. A scope never gives a right that the user does not have.
const (
	ScopeRead    Scope = "read"    // list and search, and see reserved and restricted records
	ScopeMint    Scope = "mint"    // make new names, and register records under them
	ScopeWrite   Scope = "write"   // read, mint, and register and change records
	ScopeAdmin   Scope = "admin"   // everything that the user may do
	ScopeBackup  Scope = "backup"  // read, and copy and verify the whole registry
	ScopeMetrics Scope = "metrics" // read the server's metrics
)

// Scopes returns all scopes, in the order in which they are shown to people.
func Scopes() []Scope {
	return []Scope{ScopeRead, ScopeMint, ScopeWrite, ScopeAdmin, ScopeBackup, ScopeMetrics}
}

// IsValid reports whether s is a scope.
func (s Scope) IsValid() bool { return slices.Contains(Scopes(), s) }

// Includes reports whether a token with the scope s may be used for what other allows.
// A scope that this program does not know includes nothing.
func (s Scope) Includes(other Scope) bool {
	switch {
	case !s.IsValid() || !other.IsValid():
		return false
	case s == other, s == ScopeAdmin:
		return true
	case s == ScopeWrite:
		return other == ScopeRead || other == ScopeMint
	case s == ScopeBackup:
		return other == ScopeRead
	}
	return false
}

// Limits on what a token is used for.
const (
	MaxTokenNamespaces = 100
	MaxTokenDepth      = 8 // tokens from one that a user has to the last one below it
)

// limits are what remains of a user's rights for a token, with all tokens above it. The
// zero limits limit nothing.
type limits struct {
	scopes []map[Scope]bool // the scopes allowed at each limited level; all of them must allow
	within [][]string       // the namespaces allowed at each limited level; all of them must match
}

// add returns l with the limits of one more token.
func (l limits) add(t *Token) limits {
	if len(t.Scopes) > 0 {
		allowed := make(map[Scope]bool)
		for _, s := range Scopes() {
			allowed[s] = slices.ContainsFunc(t.Scopes, func(has Scope) bool { return has.Includes(s) })
		}
		l.scopes = append(slices.Clip(l.scopes), allowed)
	}
	if len(t.Namespaces) > 0 {
		l.within = append(slices.Clip(l.within), t.Namespaces)
	}
	return l
}

func (l limits) isZero() bool { return len(l.scopes) == 0 && len(l.within) == 0 }

// allow reports whether the scope is one of those that remain.
func (l limits) allow(s Scope) bool {
	for _, level := range l.scopes {
		if !level[s] {
			return false
		}
	}
	return true
}

// contain reports whether a namespace, which is given with its ancestors, is in one of
// the namespaces that remain.
func (l limits) contain(ancestors []*stele.Namespace) bool {
	for _, level := range l.within {
		if !slices.ContainsFunc(ancestors, func(ns *stele.Namespace) bool { return slices.Contains(level, ns.Key().String()) }) {
			return false
		}
	}
	return true
}

// cut returns what remains of a role in a namespace.
func (l limits) cut(role stele.Role, ancestors []*stele.Namespace) stele.Role {
	most := stele.NoRole
	switch {
	case l.isZero():
		return role
	case !l.contain(ancestors):
	case l.allow(ScopeAdmin):
		most = stele.RoleOwner
	case l.allow(ScopeWrite):
		most = stele.RoleEditor
	case l.allow(ScopeRead):
		most = stele.RoleReader
	}
	if most.Includes(role) {
		return role
	}
	return most
}

// Has reports whether p's token may be used for a kind of work. It is true without a token.
// It does not say whether the user has the right to do it.
func (p Principal) Has(s Scope) bool { return p.limits.allow(s) }

// IsLimited reports whether p acts by a token that may not be used for all that its user
// may do.
func (p Principal) IsLimited() bool { return !p.limits.isZero() }

// Scopes returns what the token of p may be used for; nothing if that is all that its
// user may do. A scope that another one includes is left out.
func (p Principal) Scopes() []Scope {
	if len(p.limits.scopes) == 0 {
		return nil
	}
	var list []Scope
	for _, s := range Scopes() {
		larger := func(other Scope) bool { return other != s && other.Includes(s) && p.Has(other) }
		if p.Has(s) && !slices.ContainsFunc(Scopes(), larger) {
			list = append(list, s)
		}
	}
	return list
}

// Namespaces returns the namespaces to which the token of p is limited; nothing if it is not
// limited.
func (p Principal) Namespaces() []string {
	if len(p.limits.within) == 0 {
		return nil
	}
	return slices.Clone(p.limits.within[0]) // of the token itself, or of the nearest one above it
}

// IsWithin reports whether the limits of p's token let it act in a namespace, which is
// given as in [RoleIn].
func (p Principal) IsWithin(ancestors ...*stele.Namespace) bool { return p.limits.contain(ancestors) }

// Administers reports whether p may do what only an administrator may, and its token may
// be used for that kind of work in the whole registry. Admin is the same for ScopeAdmin.
func (p Principal) Administers(s Scope) bool {
	return p.IsKnown() && (p.Admin || p.rules && p.Has(s) && len(p.limits.within) == 0)
}

// Minting returns p as it registers a record under a name that it has just minted: the scope
// mint is enough for that. Callers must have asked [MayMint].
func (p Principal) Minting() Principal {
	if !p.Has(ScopeMint) || p.Has(ScopeWrite) {
		return p
	}
	p.limits.scopes = []map[Scope]bool{{ScopeMint: true, ScopeWrite: true}}
	return p
}

// validateLimits adds what is wrong with the scopes and namespaces of a token.
func (t *Token) validateLimits(add func(path, code, text string, args ...any)) {
	all := make([]string, 0, len(Scopes()))
	for _, s := range Scopes() {
		all = append(all, string(s))
	}
	for i, s := range t.Scopes {
		path := fmt.Sprintf("scopes[%d]", i)
		switch {
		case i == len(all):
			add(path, "token.too-many-scopes", "there are {count} scopes; there are only {most} to choose from", len(t.Scopes), len(all))
			return
		case !s.IsValid():
			add(path, "token.scope-unknown", `"{scope}" is not a scope; choose from {scopes}`, s, strings.Join(all, ", "))
		case slices.Contains(t.Scopes[:i], s):
			add(path, "token.scope-repeated", "{scope} is there twice; leave it out", s)
		case s == ScopeMetrics && len(t.Namespaces) > 0:
			add(path, "token.metrics-with-namespaces", "metrics are those of the whole server; make a token for them without namespaces")
		}
	}
	if len(t.Namespaces) > MaxTokenNamespaces {
		add("namespaces", "list.too-long", "there are {count}; {most} are the most", len(t.Namespaces), MaxTokenNamespaces)
	}
}
