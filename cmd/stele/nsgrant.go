package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/cmd/stele/usage"
)

func (p *program) nsGrantCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:   "grant PREFIX WHO ROLE",
		Short: "Grant a user or group a role in a namespace",
		Long: `Grant gives WHO, user:NAME or group:NAME, a role in a namespace and in all namespaces
below it. It replaces the role that they had there.

  reader   lists and searches, and sees reserved and restricted records
  editor   also makes names, and registers and changes records
  owner    also changes the namespace, grants roles, and makes namespaces below it

Only administrators have rights in the root of a scheme, such as ark: .`,
		Example: `  stele ns grant ark:12345/x5 user:ann editor
  stele ns grant ark:12345 group:staff reader`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 3 {
				return usage.Errorf(cmd, "argument.grant-incomplete", "give a prefix, who it is for, and a role, as in: ark:12345/x5 user:ann editor")
			}
			if !stele.Role(args[2]).IsValid() {
				return usage.Errorf(cmd, "role.unknown", `"{role}" is not a role; there are reader, editor and owner`, args[2])
			}
			return checkWho(cmd, args[1])
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			switch len(args) {
			case 1:
				return []string{"user:", "group:"}, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
			case 2:
				return []string{string(stele.RoleReader), string(stele.RoleEditor), string(stele.RoleOwner)}, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			to, role := args[1], stele.Role(args[2])
			return p.changeGrants(cmd, args[0], func(ns *stele.Namespace) error {
				i := slices.IndexFunc(ns.Grants, func(g stele.Grant) bool { return g.To == to })
				if i < 0 {
					ns.Grants = append(ns.Grants, stele.Grant{To: to, Role: role})
				} else {
					ns.Grants[i].Role = role
				}
				return nil
			}, func(ctx context.Context, l *Registry, ns *stele.Namespace) error {
				p.noteUnknown(ctx, l, to)
				return p.say("%s is %s in %s\n", to, role, ns.Key())
			})
		},
	})
}

func (p *program) nsUngrantCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:   "ungrant PREFIX WHO",
		Short: "Remove the role of a user or group in a namespace",
		Long: `Ungrant removes the role that WHO, user:NAME or group:NAME, has in a namespace. A role
in a namespace above it stays. It exits with 3 if they have no role there.`,
		Example: "  stele ns ungrant ark:12345/x5 user:ann",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage.Errorf(cmd, "argument.revoke-incomplete", "give a prefix and whose role it is, as in: ark:12345/x5 user:ann")
			}
			return checkWho(cmd, args[1])
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			who := args[1]
			return p.changeGrants(cmd, args[0], func(ns *stele.Namespace) error {
				had := len(ns.Grants)
				ns.Grants = slices.DeleteFunc(ns.Grants, func(g stele.Grant) bool { return g.To == who })
				switch {
				case len(ns.Grants) < had:
					return nil
				case who == "user:"+ns.Owner:
					return refuse("ungrant", stele.Conflict, "grant.is-named-owner", "{principal} is named as the owner of {namespace}; name another with 'stele ns set --owner'", who, ns.Key())
				}
				return refuse("ungrant", stele.NotFound, "grant.not-found", "{principal} was given no role in {namespace}; it may have one above it, or as a member of a group", who, ns.Key())
			}, func(_ context.Context, _ *Registry, ns *stele.Namespace) error {
				return p.say("%s has no role of its own in %s any more\n", who, ns.Key())
			})
		},
	})
}

// checkWho makes sure that a text names a user or a group.
func checkWho(cmd *cobra.Command, who string) error {
	kind, name, ok := strings.Cut(who, ":")
	switch {
	case !ok && auth.IsName(who):
		return usage.Errorf(cmd, "argument.user-or-group-unclear", "is {name} a user or a group? Write user:{name} or group:{name}", who)
	case kind != "user" && kind != "group" || !auth.IsName(name):
		return usage.Errorf(cmd, "argument.principal-malformed", `"{principal}" is not a user or group; write user: or group: and a name of a-z, 0-9, and . _ @ -`, who)
	}
	return nil
}

// changeGrants changes the users' roles in a namespace. For a program the namespace
// is printed, and for a person what tell says.
func (p *program) changeGrants(cmd *cobra.Command, prefix string, change func(*stele.Namespace) error, tell func(context.Context, *Registry, *stele.Namespace) error) error {
	return p.onPrefix(cmd, prefix, func(ctx context.Context, l *Registry, key stele.NamespaceKey) error {
		ns, err := l.SetNamespace(ctx, key, 0, change)
		if err != nil {
			return err
		}
		if p.json {
			return p.printPrefix(p.stdout, ns)
		}
		return tell(ctx, l, ns)
	})
}

// noteUnknown tells an administrator that a user does not exist yet: it may be misspelt.
func (p *program) noteUnknown(ctx context.Context, l *Registry, who string) {
	name, isUser := strings.CutPrefix(who, "user:")
	if me, err := l.Me(ctx); !isUser || err != nil || !me.Admin {
		return
	}
	if _, err := l.User(ctx, name); errors.Is(err, stele.NotFound) {
		fmt.Fprintf(p.stderr, "there is no user %s yet; add it with 'stele user add %s'\n", name, name)
	}
}
