package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/internal/wording"
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

// printLink prints a one-time link, which is shown this once.
func (p *program) printLink(f *linkFlags, credential string, link auth.Link) error {
	address := strings.TrimSuffix(f.base, "/") + desk.Root + "link/" + credential
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
	var namespace, role string
	cmd := &cobra.Command{
		Use:   "invite NAME",
		Short: "Add a user, with a role and a link to begin with",
		Long: `Invite adds a user, gives the user a role in a namespace if you name one, and prints a
link that signs the user in to the desk once: see 'stele user link'. All of it is done,
or nothing. Only an administrator can invite.

'stele user link ls' lists links that were not used yet, and 'stele user link end' ends
one. The user stays then: 'stele user set NAME --disabled' disables the user.`,
		Example: `  stele user invite ann --namespace ark:12345 --role editor --server https://id.example.org
  stele user invite ann --group staff --life 168h --base https://id.example.org`,
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
	return usage.NeverFiles(cmd)
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
