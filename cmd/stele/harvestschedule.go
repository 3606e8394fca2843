package main

import (
	"context"
	crand "crypto/rand"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/harvest"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/registry/access"
	"github.com/stele-id/stele/server"
)

func (p *program) harvestAddCommand() *cobra.Command {
	var f harvestFlags
	var every time.Duration
	var user string
	cmd := &cobra.Command{
		Use:   "add NAME URL --into PREFIX",
		Short: "Let servers harvest a repository from time to time",
		Long: `Add keeps a harvest in the registry, under a NAME of your choice. A server of the registry does it
at once, and then every time that --every has passed, as 'stele harvest oai' does. Of several
servers one does it. The servers ask public addresses only, and those of the setting harvest-allow.

A harvest that fails is tried again after 5 minutes, then after 10, and so on up to a day. One
that would withdraw too many names waits: look at it with 'stele harvest ls', and do it with
'stele harvest run NAME --yes'.

A harvest has the rights of an administrator, or those of --user, who must own the namespace.
They are looked up each time: if the user is disabled or is not an owner any more, the harvest
waits until a person runs it with 'stele harvest run NAME'. With --server a harvest has your own
rights.`,
		Example: `  stele harvest add theses https://example.org/oai --into urn:nbn:de:example --format epicur
  stele harvest add data https://example.org/oai --into 10.1234 --set data --every 1h
  stele harvest add maps https://example.org/oai --into ark:12345 --user ana`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.read(cmd, args[1]); err != nil {
				return err
			}
			add := func(ctx context.Context, l *Registry) error {
				key, err := l.ParsePrefix(f.into)
				if err != nil {
					return err
				}
				if err := l.AddHarvest(ctx, registrar.ScheduledHarvest{Name: args[0], URL: args[1], Scheme: key.Scheme, Prefix: key.Prefix, Format: f.format, Set: f.source.Set, Every: every, Limit: f.o.Limit, By: user}); err != nil {
					return err
				}
				return p.say("%s\n", args[0])
			}
			if user == "" {
				return p.reading(cmd, add)
			}
			if far, err := p.isRemote(cmd); err != nil {
				return err
			} else if far {
				return usage.Errorf(cmd, "flag.harvest-user-remote", "at a server a harvest has your rights; leave --user out, or add it with --data or --store")
			}
			return p.inRegistry(cmd, func(ctx context.Context, r *registry.Registry) error {
				key, err := r.Registrar.ParsePrefix(f.into)
				if err != nil {
					return err
				}
				if err := mayHarvest(ctx, r, user, key); err != nil {
					return err
				}
				return add(ctx, access.NewLocal(r, p.now, ""))
			})
		},
	}
	flags := cmd.Flags()
	f.addSource(p, cmd)
	flags.DurationVar(&every, "every", 24*time.Hour, "`time` after which the harvest is repeated, from 1m")
	flags.StringVar(&user, "user", "", "`user` whose rights the harvest has (default: those of an administrator)")
	_ = cmd.RegisterFlagCompletionFunc("user", func(cmd *cobra.Command, _ []string, text string) ([]string, cobra.ShellCompDirective) {
		return p.completeUsers(cmd, nil, text)
	})
	_ = cmd.RegisterFlagCompletionFunc("every", cobra.FixedCompletions([]string{"1h", "24h", "168h"}, cobra.ShellCompDirectiveNoFileComp))
	return usage.NeverFiles(cmd)
}

func (p *program) harvestListCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:     "ls",
		Short:   "List the harvests that servers do",
		Long:    "List prints the harvests that are kept in the registry, when each was done last, and what became of it.",
		Example: "  stele harvest ls\n  stele harvest ls --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.reading(cmd, func(ctx context.Context, l *Registry) error {
				list, err := l.Harvests(ctx)
				if err != nil {
					return err
				}
				for _, h := range list {
					if p.json {
						if err := p.printObject(h); err != nil {
							return err
						}
						continue
					}
					fmt.Fprintf(p.stdout, "%s  %s  %s  %s  %s\n", printable(h.Name), printable(h.URL), printable(h.Prefix), h.Every, printable(harvestState(&h)))
				}
				return nil
			})
		},
	})
}

// harvestState says how far a scheduled harvest is.
func harvestState(h *registrar.ScheduledHarvest) string {
	ended := h.Ended.UTC().Format(time.RFC3339)
	switch {
	case h.Asked:
		return "is done soon"
	case h.Waits == registrar.HarvestWaitsDeleted:
		return fmt.Sprintf("waits for 'stele harvest run %s --yes': %s", h.Name, h.Said)
	case h.Waits != "":
		return fmt.Sprintf("waits for 'stele harvest run %s': %s", h.Name, h.Said)
	case h.Server != "":
		return "under way"
	case h.Ended.IsZero():
		return "was not done yet"
	case h.Failures > 0:
		return fmt.Sprintf("%s failed: %s; next %s", ended, h.Said, h.Next.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("%s %s; next %s", ended, h.Said, h.Next.UTC().Format(time.RFC3339))
}

// mayHarvest makes sure that a user who is named owns the namespace.
func mayHarvest(ctx context.Context, r *registry.Registry, user string, key stele.NamespaceKey) error {
	if user == "" {
		return nil
	}
	who, err := r.Directory.Principal(ctx, user)
	if err != nil {
		return refuse("schedule harvest", stele.Invalid, "harvest.user-unknown", `there is not a user "{user}", or the user is disabled; 'stele user ls' lists them`, user)
	}
	role, err := r.Registrar.RoleIn(auth.With(ctx, who), key)
	if err == nil && !role.Includes(stele.RoleOwner) {
		err = refuse("schedule harvest", stele.Forbidden, "harvest.not-owner", `"{user}" is not an owner of {namespace}, and may not schedule harvests there; ask one of its owners`, user, key)
	}
	return err
}

func (p *program) harvestStopCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:     "stop NAME",
		Short:   "End a harvest that servers do",
		Long:    "Stop removes a harvest from the registry. Names that it brought stay. If it is added again it asks for what changed since.",
		Example: "  stele harvest stop theses",
		Args:    usage.OneArgument("the name of the harvest"),

		ValidArgsFunction: p.completeHarvests,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.reading(cmd, func(ctx context.Context, l *Registry) error {
				if err := l.StopHarvest(ctx, args[0]); err != nil {
					return err
				}
				return p.say("%s\n", args[0])
			})
		},
	})
}

// completeHarvests lets shells complete the name of a scheduled harvest.
func (p *program) completeHarvests(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	// A shell can't show an error while it completes.
	_ = p.reading(cmd, func(ctx context.Context, l *Registry) error {
		list, err := l.Harvests(ctx)
		for _, h := range list {
			names = append(names, h.Name)
		}
		return err
	})
	return names, cobra.ShellCompDirectiveNoFileComp
}

// harvestLease is how long servers leave a harvest alone after a command that did it was killed.
const harvestLease = time.Minute

func (p *program) harvestRunCommand() *cobra.Command {
	var f harvestFlags
	cmd := &cobra.Command{
		Use:   "run NAME",
		Short: "Do a harvest now that servers do",
		Long: `Run does a harvest now, in this process, whether or not it is due. A harvest that waits for a person
goes on after that. With --yes it withdraws all names that are deleted in the repository. With --server
one of the servers does it within a minute; 'stele harvest ls' says what became of it.`,
		Example: "  stele harvest run theses\n  stele harvest run theses --yes",
		Args:    usage.OneArgument("the name of the harvest"),

		ValidArgsFunction: p.completeHarvests,
		RunE: func(cmd *cobra.Command, args []string) error {
			if far, err := p.isRemote(cmd); err != nil {
				return err
			} else if far {
				return p.reading(cmd, func(ctx context.Context, l *Registry) error {
					if err := l.AskHarvest(ctx, args[0], f.o.Yes); err != nil {
						return err
					}
					return p.say("%s is done soon\n", args[0])
				})
			}
			client, err := p.harvestClient(cmd, &f)
			if err != nil {
				return err
			}
			return p.inRegistry(cmd, func(ctx context.Context, r *registry.Registry) error {
				schemes, err := p.schemes(cmd)
				if err != nil {
					return err
				}
				runner := server.HarvestRunner(r, schemes, func() *harvest.Client { return client }, p.now, p.logger(), "command "+crand.Text(), harvestLease)
				runner.Rejected = func(item *harvest.Item, err error) {
					fmt.Fprintf(p.stderr, "rejected: %s: %s\n", printable(item.Identifier), printable(stele.Reason(err).Error()))
				}
				said, err := runner.RunNow(ctx, args[0], f.o.Yes)
				if err != nil {
					return err
				}
				return p.say("%s\n", printable(said))
			})
		},
	}
	cmd.Flags().BoolVar(&f.o.Yes, "yes", false, "withdraw all names that are deleted in the repository, however many they are")
	f.addAsking(cmd)
	return usage.NeverFiles(cmd)
}
