package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// userCard draws the card of a user for a person.
func (l *ledger) userCard(ctx context.Context, u *auth.User, now time.Time) (string, error) {
	var b strings.Builder
	fmt.Fprintln(&b, printable(u.Name))
	rows(&b, "groups", strings.Join(u.Groups, "  "))
	if u.Admin {
		rows(&b, "administrator", "may do everything")
	}
	if u.Disabled {
		rows(&b, "disabled", "may do no more than the public")
	}
	if err := l.writeRoles(ctx, &b, u); err != nil {
		return "", err
	}
	inUse, ended := 0, 0
	for t, err := range l.Tokens(ctx, u.Name) {
		switch {
		case err != nil:
			return "", err
		case t.Ended(now):
			ended++
		default:
			inUse++
		}
	}
	tokens := fmt.Sprintf("%d in use", inUse)
	if ended > 0 {
		tokens += fmt.Sprintf(", %d of no use any more", ended)
	}
	rows(&b, "tokens", tokens)
	rows(&b, "created", moment(u.Created))
	rows(&b, "changed", moment(u.Modified)+", by "+u.By)
	return b.String(), nil
}

// writeRoles tells which roles namespaces give to a user, as far as whoever asks may
// know. What they say of others below is not told again.
func (l *ledger) writeRoles(ctx context.Context, b *strings.Builder, u *auth.User) error {
	given := 0
	for ns, err := range l.Namespaces(ctx) {
		if err != nil {
			return err
		}
		for _, role := range rolesOf(u, ns) {
			rows(b, first(given, "roles"), role+" in "+ns.Key().String())
			given++
		}
	}
	return nil
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
