package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/serve/dnsd"
)

// rollFlags are what zone roll is told.
type rollFlags struct {
	next     bool
	atParent bool
	force    bool
	parent   time.Duration
}

func (p *program) zoneRollCommand() *cobra.Command {
	var f rollFlags
	cmd := &cobra.Command{
		Use:   "roll ZONE [csk|ksk|zsk]",
		Short: "Put a new key in the place of one of a zone's",
		Long: `Roll puts a new key in the place of another one, in steps that all who validate can
follow. The first makes the new key and publishes it beside the old one. With --next
the new key becomes active, and the old one is retired; with --next again the old one
is removed. Which key is rolled need not be said if the zone has one kind only.

Each step waits until nobody can have in a cache what was before the last one: it is
refused before that time, which 'stele zone keys' tells. For a csk or ksk the parent of
the zone must have the new key's DS record before it becomes active ('stele zone ds'
prints it); say that it has with --ds-published. It is not asked for where the parent
is a zone of this registry. --parent-ttl is how long others keep the parent's DS
records.

--force does a step at once. Those who know the old keys may refuse the zone then, for
as long as they keep them: it is for a key that has become known to others.`,
		Example: `  stele zone roll paradisec.example
  stele zone roll paradisec.example --next --ds-published
  stele zone roll paradisec.example zsk --next`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 2 {
				return misuse(cmd, "give the zone and the kind of key")
			}
			return oneArgument("the zone")(cmd, args[:min(len(args), 1)])
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !f.next && (f.atParent || f.force || cmd.Flags().Changed("parent-ttl")) {
				return misuse(cmd, "these flags are about --next")
			}
			return p.withKeys(cmd, args[0], func(ctx context.Context, _ *ledger, keys *dnsd.Keys, zone string) error {
				role, err := rollRole(ctx, keys, zone, args[1:])
				if err != nil {
					return err
				}
				status, err := f.roll(ctx, keys, zone, role)
				if err != nil {
					return err
				}
				return p.printKeys(status)
			})
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return []string{string(dnsd.RoleCSK), string(dnsd.RoleKSK), string(dnsd.RoleZSK)}, cobra.ShellCompDirectiveNoFileComp
			}
			return p.completeZones(cmd, args, text)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.next, "next", false, "do the next step of the roll that is under way")
	flags.BoolVar(&f.atParent, "ds-published", false, "the parent has the DS record of the new key")
	flags.DurationVar(&f.parent, "parent-ttl", 24*time.Hour, "`time` for which others keep the parent's DS records")
	flags.BoolVar(&f.force, "force", false, "do the step at once, whoever knows the old keys")
	return neverFiles(cmd)
}

// rollRole returns which key is rolled.
func rollRole(ctx context.Context, keys *dnsd.Keys, zone string, args []string) (dnsd.KeyRole, error) {
	if len(args) == 1 {
		return dnsd.KeyRole(args[0]), nil
	}
	status, err := keys.Status(ctx, zone, 0)
	if err != nil {
		return "", err
	}
	for i := range status.Keys {
		if k := &status.Keys[i]; k.Role != dnsd.RoleCSK && k.State() != dnsd.KeyRemoved {
			return "", refuse("zone roll", stele.Invalid, "%s has two kinds of keys; say which one, ksk or zsk", zone)
		}
	}
	return dnsd.RoleCSK, nil
}

func (f *rollFlags) roll(ctx context.Context, keys *dnsd.Keys, zone string, role dnsd.KeyRole) (*dnsd.KeyStatus, error) {
	if f.next {
		return keys.Next(ctx, zone, role, f.parent, f.atParent, f.force)
	}
	return keys.Roll(ctx, zone, role)
}
