package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele/cmd/stele/usage"
)

func (p *program) userPasswordCommand() *cobra.Command {
	return usage.Family(&cobra.Command{
		Use:   "password",
		Short: "Remove passwords of users",
		Long: `A server with the setting passwords lets users sign in to the desk by a password and a
code of an authenticator app. Users set both at the desk themselves; an administrator can
remove them.`,
		Example: "  stele user password rm ann",
	}, p.userPasswordRmCommand())
}

func (p *program) userPasswordRmCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:   "rm NAME",
		Short: "Remove a user's password",
		Long: `Rm removes the password of a user with its authenticator app, such as when the user has
lost the app or another person knows the password. Sessions that began with the password
end. The user signs in by a passkey or by 'stele user link', and can set another password
then. It exits with 3 if the user has no password.`,
		Example:           "  stele user password rm ann\n  stele user password rm ann --server https://id.example.org",
		Args:              usage.OneArgument("the user"),
		ValidArgsFunction: p.completeUsers,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.reading(cmd, func(ctx context.Context, l *Registry) error {
				if err := l.RemovePassword(ctx, args[0]); err != nil {
					return err
				}
				u, err := l.User(ctx, args[0])
				if err != nil {
					return err
				}
				return p.printUser(&u)
			})
		},
	})
}
