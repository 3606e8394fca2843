// Package auth authenticates callers and says what they may do, in the same way for every
// protocol: a credential leads to a principal, and a principal has a role in a namespace.
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

	"github.com/stele-id/stele"
)

// Principal is a user that the registry knows. The zero Principal is the public.
type Principal struct {
	Name   string   // by which namespaces and records know it
	Groups []string // that it is a member of
	Admin  bool     // may do everything

	// Token is the ID of the token by which it acts, and Expires when that ends, with
	// those above it; zero: never. Token is "" if it acts without one.
	Token   string
	Expires time.Time

	// Session is the ID of the session by which it acts, "" if it acts without one, and Proved
	// when the user proved last who they are; see [Principal.NeedProof].
	Session string
	Proved  time.Time

	limits limits // of the token
	rules  bool   // the user is an administrator; what the token may be used for is another question

	// Of a handle identity: the record that it administers now, and the user whose credential it
	// is, "" if it stands alone.
	administers stele.ID
	user        string
}

// IsKnown reports whether p is a user, and not the public.
func (p Principal) IsKnown() bool { return p.Name != "" }

// localName is the name of [Local]. No user has it.
const localName = "local"

// Local returns the administrator that works on the data folder directly: a process that can
// write its files needs no other right.
func Local() Principal { return Principal{Name: localName, Admin: true} }

// is reports whether p is the user or the member of the group that a grant or a record's
// readers name, as "user:ann" or "group:staff".
func (p Principal) is(grantee string) bool {
	if name, ok := strings.CutPrefix(grantee, "user:"); ok {
		return p.isUser(name)
	}
	name, ok := strings.CutPrefix(grantee, "group:")
	return ok && slices.Contains(p.Groups, name)
}

// isUser reports whether p is the user with this name, or acts for them.
func (p Principal) isUser(name string) bool { return name == p.Name || p.user != "" && name == p.user }

type key struct{}

// With returns a context in which p acts.
func With(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, key{}, p)
}

// From returns the principal that acts in the context: the public, if it has none.
func From(ctx context.Context) Principal {
	p, _ := ctx.Value(key{}).(Principal)
	return p
}
