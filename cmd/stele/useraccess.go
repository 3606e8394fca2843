package main

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/internal/wording"
)

// printEach prints the items of a list, one per line: for people, or as JSON.
func printEach[T any](p *program, list iter.Seq2[T, error], line func(T) string, object func(T) any) error {
	for item, err := range list {
		switch {
		case err != nil:
		case p.json:
			err = p.printObject(object(item))
		default:
			err = p.say("%s\n", printable(line(item)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// used says when something was used last.
func used(at time.Time) string {
	if at.IsZero() {
		return "never used"
	}
	return "used " + wording.Moment(at)
}

func (p *program) userAccountCommand() *cobra.Command {
	return usage.Family(&cobra.Command{
		Use:   "account",
		Short: "List and unlink accounts that sign users in",
		Long: `A user may sign in to the desk by an account at an OpenID provider, or by a proxy that
the server trusts. Accounts are linked at the first visit, or at the desk.`,
		Example: "  stele user account ls ann\n  stele user account rm ann mF3dK0sQ",
	}, usage.NeverFiles(&cobra.Command{
		Use:   "ls NAME",
		Short: "List the accounts of a user",
		Long: `Ls lists the accounts that sign a user in: the ID, the provider, the account there, and
when it was used. Users see their own, administrators those of all users.`,
		Example:           "  stele user account ls ann\n  stele user account ls ann --json",
		Args:              usage.OneArgument("the user"),
		ValidArgsFunction: p.completeUsers,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.onUser(cmd, args[0], func(ctx context.Context, l *Registry) error {
				return printEach(p, l.Identities(ctx, args[0]), func(i auth.Identity) string {
					return fmt.Sprintf("%s  %s  %s  %s", i.ID(), i.Issuer, cmp.Or(i.Label, i.Subject), used(i.Used))
				}, func(i auth.Identity) any {
					return struct {
						ID string `json:"id"`
						auth.Identity
					}{i.ID(), i}
				})
			})
		},
	}), usage.NeverFiles(&cobra.Command{
		Use:   "rm NAME ID",
		Short: "Unlink an account from a user",
		Long: `Rm unlinks an account from its user: it signs the user in no more, and the user loses the
groups that it gave. Sessions go on. Put -- before an ID that begins with a hyphen.`,
		Example: "  stele user account rm ann mF3dK0sQ",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage.Errorf(cmd, "argument.account-incomplete", "give the user and the ID of the account; see 'stele user account ls'")
			}
			return nil
		},
		ValidArgsFunction: p.completeUsers,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.reading(cmd, func(ctx context.Context, l *Registry) error { return l.EndIdentity(ctx, args[0], args[1]) })
		},
	}))
}

// onUser calls do with the registry, if there is such a user.
func (p *program) onUser(cmd *cobra.Command, name string, do func(ctx context.Context, l *Registry) error) error {
	return p.reading(cmd, func(ctx context.Context, l *Registry) error {
		if _, err := l.User(ctx, name); err != nil {
			return err
		}
		return do(ctx, l)
	})
}

func (p *program) userPasskeyCommand() *cobra.Command {
	return usage.Family(&cobra.Command{
		Use:   "passkey",
		Short: "List, rename and remove passkeys of users",
		Long: `Users make passkeys at the desk, in a browser, and sign in with them. Users change their
own, and administrators those of all users. Put -- before an ID that begins with a
hyphen.`,
		Example: "  stele user passkey ls ann\n  stele user passkey rename mF3dK0sQ 'Old telephone'\n  stele user passkey rm mF3dK0sQ",
	}, usage.NeverFiles(&cobra.Command{
		Use:   "ls NAME",
		Short: "List the passkeys of a user",
		Long: `Ls lists the passkeys of a user: the ID, the name, the host that it is for, and when it
was used.`,
		Example:           "  stele user passkey ls ann\n  stele user passkey ls ann --json",
		Args:              usage.OneArgument("the user"),
		ValidArgsFunction: p.completeUsers,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.onUser(cmd, args[0], func(ctx context.Context, l *Registry) error {
				return printEach(p, l.Passkeys(ctx, args[0]), func(k auth.Passkey) string {
					text := fmt.Sprintf("%s  %s  %s  %s", k.ID, k.Name, k.Site, used(k.Used))
					if !k.Copied.IsZero() {
						text += "; it may have been copied"
					}
					return text
				}, func(k auth.Passkey) any {
					return struct {
						ID      string    `json:"id"`
						User    string    `json:"user"`
						Name    string    `json:"name"`
						Site    string    `json:"site"`
						Created time.Time `json:"created"`
						Used    time.Time `json:"used,omitzero"`
						Copied  time.Time `json:"copied,omitzero"`
					}{k.ID, k.User, k.Name, k.Site, k.Created, k.Used, k.Copied}
				})
			})
		},
	}), usage.NeverFiles(&cobra.Command{
		Use:     "rename ID NAME",
		Short:   "Give a passkey another name",
		Long:    "Rename gives a passkey another name, by which its owner knows it.",
		Example: "  stele user passkey rename mF3dK0sQ 'Old telephone'",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage.Errorf(cmd, "argument.passkey-incomplete", "give the ID of the passkey and its new name; see 'stele user passkey ls'")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.reading(cmd, func(ctx context.Context, l *Registry) error { return l.RenamePasskey(ctx, args[0], args[1]) })
		},
	}), usage.NeverFiles(&cobra.Command{
		Use:   "rm ID",
		Short: "Remove a passkey",
		Long: `Rm removes a passkey, such as that of a telephone that was lost. It signs its user in no
more; 'stele user link' makes a link for a user who has no other way to sign in.`,
		Example: "  stele user passkey rm mF3dK0sQ",
		Args:    usage.OneArgument("the ID of the passkey"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.reading(cmd, func(ctx context.Context, l *Registry) error { return l.RemovePasskey(ctx, args[0]) })
		},
	}))
}
