package access

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// TokenUser returns the user whose tokens a command lists: the first that is named, or else the
// caller. An administrator who names no user lists the tokens of all users, "".
func (l *Registry) TokenUser(ctx context.Context, named ...string) (string, error) {
	if len(named) > 0 {
		_, err := l.User(ctx, named[0])
		return named[0], err
	}
	me, err := l.Me(ctx)
	if err != nil || me.Admin {
		return "", err
	}
	return me.Name, nil
}

// ShutTokens returns the IDs of the tokens that a restore has shut.
func (l *Registry) ShutTokens(ctx context.Context) (ids []string, err error) {
	for t, err := range l.Tokens(ctx, "") {
		if err != nil {
			return nil, err
		}
		if t.Shut {
			ids = append(ids, t.ID)
		}
	}
	return ids, nil
}

// UserDetails is what the registry knows of a user beside the user itself.
type UserDetails struct {
	Roles []string // each with the prefix of its namespace, as in "editor in ark:12345/x5"

	TokensInUse, TokensEnded int
}

// DescribeUser returns the roles and the tokens of a user, as far as the caller may know
// them. It does not list namespaces that inherit a role from one above them.
func (l *Registry) DescribeUser(ctx context.Context, u *auth.User, now time.Time) (d UserDetails, err error) {
	for ns, err := range l.Namespaces(ctx) {
		if err != nil {
			return d, err
		}
		for _, role := range rolesOf(u, ns) {
			d.Roles = append(d.Roles, role+" in "+ns.Key().String())
		}
	}
	for t, err := range l.Tokens(ctx, u.Name) {
		switch {
		case err != nil:
			return d, err
		case t.Ended(now):
			d.TokensEnded++
		default:
			d.TokensInUse++
		}
	}
	return d, nil
}

// rolesOf returns the roles that a namespace gives to a user, and how.
func rolesOf(u *auth.User, ns *stele.Namespace) (roles []string) {
	if ns.Prefix == "" {
		return nil
	}
	if ns.Owner == u.Name {
		roles = append(roles, string(stele.RoleOwner))
	}
	for _, g := range ns.Grants {
		kind, name, _ := strings.Cut(g.To, ":")
		switch {
		case kind == "user" && name == u.Name:
			roles = append(roles, string(g.Role))
		case kind == "group" && slices.Contains(u.Groups, name):
			roles = append(roles, fmt.Sprintf("%s, as a member of %s,", g.Role, name))
		}
	}
	return roles
}
