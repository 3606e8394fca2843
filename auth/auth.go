// Package auth says who somebody is and what they may do, in the same way for
// every protocol: a credential leads to a principal, and a principal has a role in
// a namespace.
//
// It decides, and reads users and tokens for that. It never writes either: package
// registrar does. All that it writes is when a token was used last. It keeps no
// secret, and no secret is in its errors.
package auth

import (
	"context"
	"slices"
	"strings"
	"time"
)

// Principal is somebody who is known to the registry. The zero Principal is
// nobody: the public.
type Principal struct {
	Name   string   // by which namespaces and records know it
	Groups []string // whose member it is
	Admin  bool     // may do everything

	// Token is the ID of the token by which it acts, and Expires when that ends, with
	// those above it; zero: never. Token is "" if it acts without one.
	Token   string
	Expires time.Time

	limits limits // of the token
	rules  bool   // the user is an administrator; what the token may be used for is another question
}

// IsKnown reports whether p is somebody.
func (p Principal) IsKnown() bool { return p.Name != "" }

// localName is the name of [Local]. No user has it.
const localName = "local"

// Local returns the administrator who works on the data folder directly: who can
// write its files needs no other right.
func Local() Principal { return Principal{Name: localName, Admin: true} }

// is reports whether somebody in a grant or among a record's readers, "user:ann" or
// "group:staff", is p.
func (p Principal) is(somebody string) bool {
	if name, ok := strings.CutPrefix(somebody, "user:"); ok {
		return name == p.Name
	}
	name, ok := strings.CutPrefix(somebody, "group:")
	return ok && slices.Contains(p.Groups, name)
}

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
