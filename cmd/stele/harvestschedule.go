package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/harvest"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/registry/access"
)

func (p *program) harvestAddCommand() *cobra.Command {
	var f harvestFlags
	var every time.Duration
	cmd := onFolder(&cobra.Command{
		Use:   "add NAME URL --into PREFIX",
		Short: "Let servers harvest a repository from time to time",
		Long: `Add keeps a harvest in the registry, under a NAME of your choice. A server of the registry does it
at once, and then every time that --every has passed, as 'stele harvest oai' does. Of several
servers one does it. A harvest that fails is tried again within an hour. One that would withdraw
too many names waits: look at it with 'stele harvest ls', and do it with 'stele harvest run
NAME --yes'.`,
		Example: `  stele harvest add theses https://example.org/oai --into urn:nbn:de:example --format epicur
  stele harvest add data https://example.org/oai --into 10.1234 --set data --every 1h`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.read(cmd, args[1]); err != nil {
				return err
			}
			return p.inRegistry(cmd, func(ctx context.Context, r *registry.Registry) error {
				key, err := r.Registrar.ParsePrefix(f.into)
				if err != nil {
					return err
				}
				err = r.Registrar.ChangeHarvest(ctx, args[0], func(before *registrar.ScheduledHarvest) (*registrar.ScheduledHarvest, error) {
					if before != nil {
						return nil, refuse("schedule harvest", stele.Conflict, "harvest.name-taken", `there is a harvest "{name}" already; stop it first, or choose another name`, args[0])
					}
					return &registrar.ScheduledHarvest{URL: args[1], Scheme: key.Scheme, Prefix: key.Prefix, Format: f.format, Set: f.source.Set, Every: every, Limit: f.o.Limit}, nil
				})
				if err != nil {
					return err
				}
				return p.say("%s\n", args[0])
			})
		},
	})
	flags := cmd.Flags()
	f.addSource(cmd)
	flags.DurationVar(&every, "every", 24*time.Hour, "`time` after which the harvest is repeated, from 1m")
	return cmd
}

func (p *program) harvestListCommand() *cobra.Command {
	return onFolder(&cobra.Command{
		Use:     "ls",
		Short:   "List the harvests that servers do",
		Long:    "List prints the harvests that are kept in the registry, when each was done last, and what became of it.",
		Example: "  stele harvest ls\n  stele harvest ls --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.inRegistry(cmd, func(ctx context.Context, r *registry.Registry) error {
				list, err := r.Registrar.Harvests(ctx)
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
					fmt.Fprintf(p.stdout, "%s\t%s\t%s\t%s\t%s\n", printable(h.Name), printable(h.URL), printable(h.Into().String()), h.Every, printable(harvestState(&h)))
				}
				return nil
			})
		},
	})
}

// harvestState says how far a scheduled harvest is.
func harvestState(h *registrar.ScheduledHarvest) string {
	switch {
	case h.Stopped:
		return "waits for 'stele harvest run " + h.Name + " --yes': " + h.Said
	case h.Server != "":
		return "under way"
	case h.Ended.IsZero():
		return "was not done yet"
	case h.Failed:
		return h.Ended.UTC().Format(time.RFC3339) + " failed: " + h.Said
	}
	return h.Ended.UTC().Format(time.RFC3339) + " " + h.Said
}

func (p *program) harvestStopCommand() *cobra.Command {
	return onFolder(&cobra.Command{
		Use:     "stop NAME",
		Short:   "End a harvest that servers do",
		Long:    "Stop removes a harvest from the registry. Names that it brought stay. If it is added again it asks for what changed since.",
		Example: "  stele harvest stop theses",
		Args:    usage.OneArgument("the name of the harvest"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.inRegistry(cmd, func(ctx context.Context, r *registry.Registry) error {
				return r.Registrar.ChangeHarvest(ctx, args[0], func(before *registrar.ScheduledHarvest) (*registrar.ScheduledHarvest, error) {
					if before == nil {
						return nil, noHarvest(args[0])
					}
					return nil, nil
				})
			})
		},
	})
}

func noHarvest(name string) error {
	return refuse("schedule harvest", stele.NotFound, "harvest.missing", `there is no harvest "{name}"; 'stele harvest ls' lists them`, name)
}

func (p *program) harvestRunCommand() *cobra.Command {
	var f harvestFlags
	cmd := onFolder(&cobra.Command{
		Use:     "run NAME",
		Short:   "Do a harvest now that servers do",
		Long:    "Run does a harvest now, in this process. With --yes it withdraws all names that are deleted in the repository.",
		Example: "  stele harvest run theses\n  stele harvest run theses --yes",
		Args:    usage.OneArgument("the name of the harvest"),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := p.harvestClient(cmd, &f)
			if err != nil {
				return err
			}
			return p.inRegistry(cmd, func(ctx context.Context, r *registry.Registry) error {
				var h *registrar.ScheduledHarvest
				list, err := r.Registrar.Harvests(ctx)
				for i := range list {
					if list[i].Name == args[0] {
						h = &list[i]
					}
				}
				if err != nil || h == nil {
					return cmpErr(err, noHarvest(args[0]))
				}
				o := f.o
				o.Client, o.Limit = client, h.Limit
				o.Source = harvest.Source{URL: h.URL, Format: harvest.Format(h.Format), Set: h.Set}
				if err := p.harvest(ctx, access.NewLocal(r, p.now, p.place().String()), o, h.Into().String()); err != nil {
					return err
				}
				return r.Registrar.ChangeHarvest(ctx, args[0], func(now *registrar.ScheduledHarvest) (*registrar.ScheduledHarvest, error) {
					if now == nil {
						return nil, nil
					}
					next := *now
					next.Stopped, next.Failed, next.Ended, next.Next, next.Said = false, false, p.now(), p.now().Add(now.Every), "done by hand"
					return &next, nil
				})
			})
		},
	})
	cmd.Flags().BoolVar(&f.o.Yes, "yes", false, "withdraw all names that are deleted in the repository, however many they are")
	f.addAsking(cmd)
	return cmd
}

func cmpErr(first, second error) error {
	if first != nil {
		return first
	}
	return second
}
