package main

import (
	"context"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/cmd/stele/card"
	"github.com/stele-id/stele/cmd/stele/usage"
)

func (p *program) userCommand() *cobra.Command {
	return usage.Family(&cobra.Command{
		Use:   "user",
		Short: "Manage users",
		Long: `A user is a person or a program that the registry knows by a name. Namespaces say what a
user may do: see 'stele ns grant'. A user authenticates with a token: see 'stele token
create'. An administrator may do everything.

Commands on the data folder, without --server, don't need a user: the history names
local as the author of such changes.

A name has 1 to 64 of the characters a-z, 0-9, and . _ @ -, and begins with a letter or
a digit.`,
		Example: `  stele user add ann --group staff
  stele user invite bea --namespace ark:12345 --role editor
  stele user set ann --admin
  stele user set ann --disabled
  stele user show ann`,
	}, p.userAddCommand(), p.userSetCommand(), p.userLsCommand(), p.userShowCommand(), p.userInviteCommand(), p.userLinkCommand(), p.userAccountCommand(), p.userPasskeyCommand(), p.userPasswordCommand())
}

// userFlags are what add and set have in common.
type userFlags struct {
	cmd      *cobra.Command
	groups   []string
	admin    bool
	disabled bool
}

func (f *userFlags) add(cmd *cobra.Command) {
	f.cmd = cmd
	flags := cmd.Flags()
	flags.StringSliceVar(&f.groups, "group", nil, "`groups` of the user")
	flags.BoolVar(&f.admin, "admin", false, "make the user an administrator, who may do everything")
	flags.BoolVar(&f.disabled, "disabled", false, "disable the user: the server refuses their tokens until --disabled=false")
}

// apply sets what the flags say.
func (f *userFlags) apply(u *auth.User) {
	flags := f.cmd.Flags()
	if flags.Changed("group") {
		u.Groups = slices.DeleteFunc(slices.Clone(f.groups), func(g string) bool { return g == "" })
	}
	if flags.Changed("admin") {
		u.Admin = f.admin
	}
	if flags.Changed("disabled") {
		u.Disabled = f.disabled
	}
}

func (p *program) userAddCommand() *cobra.Command {
	var f userFlags
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Add a user",
		Long: `Add adds a user, and prints the name. A user without a role in a namespace has the same
rights as the public.`,
		Example: `  stele user add ann --group staff,press
  stele user add harvester
  stele user add root --admin`,
		Args: usage.OneArgument("the name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.creating(cmd, func(ctx context.Context, l *Registry) error {
				u := auth.User{Name: args[0]}
				f.apply(&u)
				u, err := l.AddUser(ctx, u)
				if err != nil {
					return err
				}
				return p.printUser(&u)
			})
		},
	}
	f.add(cmd)
	return usage.NeverFiles(cmd)
}

func (p *program) userSetCommand() *cobra.Command {
	var f userFlags
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Change a user",
		Long: `Set changes the settings that flags name, and leaves the others. --group replaces all
groups of the user; --group '' removes the user from all groups. A change applies to all
tokens of the user immediately.

A user is never removed, because the history names them: --disabled disables the user,
and --disabled=false enables the user again. The last administrator can't be disabled,
and stays an administrator.`,
		Example: `  stele user set ann --group staff,press
  stele user set ann --admin
  stele user set ann --admin=false
  stele user set ann --disabled`,
		Args:              usage.OneArgument("the name"),
		ValidArgsFunction: p.completeUsers,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !usage.Given(cmd) {
				return usage.Errorf(cmd, "flag.user-change-missing", "there is nothing to change; say what, such as --group staff")
			}
			return p.reading(cmd, func(ctx context.Context, l *Registry) error {
				u, err := l.SetUser(ctx, args[0], func(u *auth.User) error {
					f.apply(u)
					return nil
				})
				if err != nil {
					return err
				}
				return p.printUser(&u)
			})
		},
	}
	f.add(cmd)
	return usage.NeverFiles(cmd)
}

func (p *program) userLsCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:     "ls",
		Short:   "List users",
		Long:    "Ls lists the names of all users, in order, one per line; with --json, their details.",
		Example: "  stele user ls\n  stele user ls --json",
		Args:    usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.reading(cmd, func(ctx context.Context, l *Registry) error {
				for u, err := range l.Users(ctx) {
					if err != nil {
						return err
					}
					if err := p.printUser(&u); err != nil {
						return err
					}
				}
				return nil
			})
		},
	})
}

func (p *program) userShowCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:   "show NAME",
		Short: "Show a user",
		Long: `Show prints the groups of a user, whether the user is an administrator, the number of
tokens, and the roles in namespaces. A role also applies to all namespaces below. It
exits with 3 if the user does not exist.`,
		Example:           "  stele user show ann\n  stele user show --json ann",
		Args:              usage.OneArgument("the name"),
		ValidArgsFunction: p.completeUsers,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.reading(cmd, func(ctx context.Context, l *Registry) error {
				u, err := l.User(ctx, args[0])
				if err != nil {
					return err
				}
				if p.json {
					return p.printUser(&u)
				}
				details, err := l.DescribeUser(ctx, &u, p.now())
				if err != nil {
					return err
				}
				_, err = io.WriteString(p.stdout, card.User(&u, details))
				return err
			})
		},
	})
}

// printUser prints a user: for a person the name, for a program all that is kept.
func (p *program) printUser(u *auth.User) error {
	if p.json {
		return p.printObject(u)
	}
	return p.say("%s\n", printable(u.Name))
}

// completeUsers lets shells complete the name of a user.
func (p *program) completeUsers(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	// A shell can't show an error while it completes.
	_ = p.reading(cmd, func(ctx context.Context, l *Registry) error {
		for u, err := range l.Users(ctx) {
			if err != nil {
				return err
			}
			names = append(names, u.Name)
		}
		return nil
	})
	return names, cobra.ShellCompDirectiveNoFileComp
}
