package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/internal/wording"
	"github.com/stele-id/stele/mail"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/serve/desk"
)

// linkFlags say how long a one-time link lasts, and to which server it leads.
type linkFlags struct {
	life time.Duration
	base string
}

func (f *linkFlags) add(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&f.life, "life", 0, "how long the link is valid, from 15m to 168h (default 24h)")
	cmd.Flags().StringVar(&f.base, "base", "http://localhost:8080", "public `address` of the server, for a link made on a data folder")
}

// settle takes the address of the server that is asked, unless another one is given.
func (f *linkFlags) settle(p *program, cmd *cobra.Command) error {
	remote, err := p.isRemote(cmd)
	if remote && !cmd.Flags().Changed("base") {
		f.base = p.remote.server
	}
	return err
}

// address returns the address of a one-time link.
func (f *linkFlags) address(credential string) string {
	return strings.TrimSuffix(f.base, "/") + desk.Root + "link/" + credential
}

// printLink prints a one-time link, which is shown this once.
func (p *program) printLink(f *linkFlags, credential string, link auth.Link) error {
	address := f.address(credential)
	if p.json {
		return p.printObject(struct {
			URL     string    `json:"url"`
			ID      string    `json:"id"`
			User    string    `json:"user"`
			Expires time.Time `json:"expires"`
		}{address, link.ID, link.User, link.Expires})
	}
	if _, err := fmt.Fprintln(p.stdout, address); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.stderr, "The link signs %s in once, and expires %s. Keep it as you keep a password.\n", link.User, wording.Moment(link.Expires))
	return err
}

func (p *program) userInviteCommand() *cobra.Command {
	var u userFlags
	var f linkFlags
	var namespace, role, address, file string
	cmd := &cobra.Command{
		Use:   "invite NAME",
		Short: "Add a user, with a role and a link to begin with",
		Long: `Invite adds a user, gives the user a role in a namespace if you name one, and prints a
link that signs the user in to the desk once: see 'stele user link'. All of it is done,
or nothing. Only an administrator can invite.

With --mail invite sends the link to an address, by the mail server of the settings (see
--config), and prints that the mail server has accepted it. This program sends the mail, also
with --server. If the mail server refuses it, the user is there, and invite prints the link.

'stele user link ls' lists links that were not used yet, and 'stele user link end' ends
one. The user stays then: 'stele user set NAME --disabled' disables the user.`,
		Example: `  stele user invite ann --namespace ark:12345 --role editor --server https://id.example.org
  stele user invite ann --group staff --life 168h --base https://id.example.org
  stele user invite ann --mail ann@example.org --config /etc/stele/stele.toml`,
		Args: usage.OneArgument("the name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (namespace == "") != (role == "") {
				return usage.Errorf(cmd, "flag.invite-role-incomplete", "--namespace and --role belong together; give both, or none")
			}
			if role != "" && !stele.Role(role).IsValid() {
				return usage.Errorf(cmd, "role.unknown", `"{role}" is not a role; there are reader, editor and owner`, role)
			}
			if err := f.settle(p, cmd); err != nil {
				return err
			}
			var letter *invitationLetter
			if address != "" {
				var err error
				if letter, err = p.invitationLetter(cmd, &f, address, file); err != nil {
					return err
				}
			} else if cmd.Flags().Changed("config") {
				return usage.Errorf(cmd, "flag.invite-config-unused", "--config has the settings of mail; give --mail too")
			}
			return p.reading(cmd, func(ctx context.Context, l *Registry) (err error) {
				in := registrar.Invitation{User: auth.User{Name: args[0]}, Role: stele.Role(role), Life: f.life}
				if in.Life == 0 {
					in.Life = auth.LinkLife
				}
				u.apply(&in.User)
				if namespace != "" {
					if in.Namespace, err = l.ParsePrefix(namespace); err != nil {
						return err
					}
				}
				made, err := l.Invite(ctx, in)
				if err != nil {
					return err
				}
				if letter != nil {
					return p.mailInvitation(ctx, letter, &f, made.Credential, made.Link)
				}
				return p.printLink(&f, made.Credential, made.Link)
			})
		},
	}
	u.cmd = cmd
	flags := cmd.Flags()
	flags.StringSliceVar(&u.groups, "group", nil, "`groups` of the user")
	flags.BoolVar(&u.admin, "admin", false, "make the user an administrator, who may do everything")
	flags.StringVar(&namespace, "namespace", "", "`prefix` of the namespace where the user gets a role")
	flags.StringVar(&role, "role", "", "role in the namespace: reader, editor or owner")
	usage.Choices(cmd, "role", stele.RoleReader, stele.RoleEditor, stele.RoleOwner)
	f.add(cmd)
	flags.StringVar(&address, "mail", "", "`address` to which the link is sent")
	flags.StringVar(&file, "config", os.Getenv(configVariable), "configuration `file` with the settings of mail (environment: STELE_CONFIG)")
	_ = cmd.RegisterFlagCompletionFunc("mail", cobra.NoFileCompletions)
	_ = cmd.RegisterFlagCompletionFunc("config", cobra.FixedCompletions([]string{"toml"}, cobra.ShellCompDirectiveFilterFileExt))
	return usage.NeverFiles(cmd)
}

// invitationLetter is what sends an invitation, and to which address.
type invitationLetter struct {
	*postman
	to string
}

// invitationLetter reads the settings of mail before a user is invited. The link leads to the public address that they have, unless
// another one is given.
func (p *program) invitationLetter(cmd *cobra.Command, f *linkFlags, address, file string) (*invitationLetter, error) {
	const op = "invite user"
	to, err := auth.ParseAddress(address)
	if err != nil {
		return nil, refuse(op, stele.Invalid, "", "{cause}", err)
	}
	m, err := p.postman(op, file)
	if err != nil {
		return nil, err
	}
	if far, err := p.isRemote(cmd); err != nil {
		return nil, err
	} else if !far && !cmd.Flags().Changed("base") {
		f.base = m.base
	}
	return &invitationLetter{m, to}, nil
}

// mailInvitation sends an invitation. If that fails the link is printed, since the user is there.
func (p *program) mailInvitation(ctx context.Context, m *invitationLetter, f *linkFlags, credential string, link auth.Link) error {
	l, err := m.writer.Invitation(m.languages.Languages()[0], m.to, mail.OneTimeLink{User: link.User, By: link.By, URL: f.address(credential), Expires: link.Expires})
	if err == nil {
		err = m.send(ctx, l, p.now())
	}
	if err != nil {
		return errors.Join(p.printLink(f, credential, link), refuse("invite user", stele.KindOf(err), "invite.mail-failed", "{user} is added, and the mail to {address} was not sent: {cause}; give the link to the user yourself", link.User, m.to, stele.Reason(err)))
	}
	if p.json {
		return p.printObject(map[string]any{"user": link.User, "id": link.ID, "expires": link.Expires, "to": m.to, "message": l.ID})
	}
	return p.say("%s has accepted the mail to %s\n", printable(m.settings.Server), printable(m.to))
}

func (p *program) userLinkCommand() *cobra.Command {
	var f linkFlags
	cmd := &cobra.Command{
		Use:   "link NAME",
		Short: "Make a link that signs a user in once",
		Long: `Link prints a link that the user opens in a browser to sign in to the desk. The link
works once, and expires after a day unless --life gives another time, from 15 minutes to
7 days. Give it to the user by a channel that only they can read: it is shown this once,
and the registry keeps only its hash.

A link is for the first visit and for a user who has lost another way to sign in. Only an
administrator can make one.

With --server the address of the server is in the link. On a data folder, --base gives the
public address of the server.`,
		Example: `  stele user link ann --server https://id.example.org
  stele user link ann --life 1h --base https://id.example.org
  stele user link ls
  stele user link end 4k2m9x0q7rbc`,
		Args:              usage.OneArgument("the user"),
		ValidArgsFunction: p.completeUsers,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.settle(p, cmd); err != nil {
				return err
			}
			return p.reading(cmd, func(ctx context.Context, l *Registry) error {
				credential, link, err := l.CreateLink(ctx, args[0], f.life)
				if err != nil {
					return err
				}
				return p.printLink(&f, credential, link)
			})
		},
	}
	f.add(cmd)
	cmd.AddCommand(p.userLinkLsCommand(), p.userLinkEndCommand())
	return usage.NeverFiles(cmd)
}

func (p *program) userLinkLsCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:   "ls [NAME]",
		Short: "List one-time links that were not used",
		Long: `Ls lists the one-time links of a user, or of all users, that were not used and have not
expired: the ID, the user, when it expires, and who made it. Only an administrator can
list them.`,
		Example:           "  stele user link ls\n  stele user link ls ann --json",
		Args:              usage.AtMostOne("the user"),
		ValidArgsFunction: p.completeUsers,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.reading(cmd, func(ctx context.Context, l *Registry) error {
				user := ""
				if len(args) == 1 {
					if _, err := l.User(ctx, args[0]); err != nil {
						return err
					}
					user = args[0]
				}
				return printEach(p, l.Links(ctx, user), func(link auth.Link) string {
					return fmt.Sprintf("%s  %s  expires %s, made by %s", link.ID, link.User, wording.Moment(link.Expires), link.By)
				}, func(link auth.Link) any { return link })
			})
		},
	})
}

func (p *program) userLinkEndCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:   "end ID",
		Short: "End a one-time link that was not used",
		Long: `End ends a one-time link, such as one that went to a wrong person, by its ID: see 'stele
user link ls'. A link that does not exist has ended already.`,
		Example: "  stele user link end 4k2m9x0q7rbc",
		Args:    usage.OneArgument("the ID of the link"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.reading(cmd, func(ctx context.Context, l *Registry) error { return l.EndLink(ctx, args[0]) })
		},
	})
}
