package main

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/zonekey"
)

// rollFlags are the flags of zone roll.
type rollFlags struct {
	next     bool
	atParent bool
	removed  bool
	force    bool
	parent   time.Duration
	ask      parentFlags

	algorithm string
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
records. What is said of the parent is checked: this program asks the parent's name
servers, which it finds by the machine's own name servers, or by those of --dns.

With --algorithm all keys change to another algorithm. That takes two steps more: the
new keys sign for a while before they are published, and the old ones go on signing for
a while when they are published no more, for those who want signatures of every
algorithm that there is a key of (RFC 6781, section 4.1.4). Before that the parent must
have no DS records of the old keys any more: say so with --ds-removed when it is so, and
again when the step can be done. How long others keep them counts from the first time.

--force does a step at once. Those who know the old keys may refuse the zone then, for
as long as they keep them: it is for a key that has become known to others.`,
		Example: `  stele zone roll paradisec.example
  stele zone roll paradisec.example --next --ds-published
  stele zone roll paradisec.example zsk --next
  stele zone roll paradisec.example --algorithm ed25519
  stele zone roll paradisec.example --next --ds-removed`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 2 {
				return misuse(cmd, "argument.zone-key-incomplete", "give the zone and the kind of key")
			}
			return oneArgument("the zone")(cmd, args[:min(len(args), 1)])
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !f.next && (f.atParent || f.removed || f.force || cmd.Flags().Changed("parent-ttl")) {
				return misuse(cmd, "flag.without-next", "these flags are about --next")
			}
			if f.next && f.algorithm != "" {
				return misuse(cmd, "flag.algorithm-with-next", "--algorithm begins a change, and --next goes on with it; give one of them")
			}
			change := zonekey.Change{Do: "roll", Algorithm: f.algorithm}
			if f.next {
				change = zonekey.Change{Do: "next", DSPublished: f.atParent || f.removed, Force: f.force, ParentTTL: uint32(f.parent / time.Second)}
			}
			if len(args) == 2 {
				change.Role = zonekey.Role(args[1])
			}
			return p.withKeys(cmd, args[0], func(ctx context.Context, keys keyKeeper, _ string) error {
				if err := f.check(ctx, keys, p.now()); err != nil {
					return err
				}
				status, err := keys.change(ctx, change)
				if err != nil {
					return err
				}
				return p.printKeys(status)
			})
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return []string{string(zonekey.CSK), string(zonekey.KSK), string(zonekey.ZSK)}, cobra.ShellCompDirectiveNoFileComp
			}
			return p.completeZones(cmd, args, text)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.next, "next", false, "do the next step of the roll that is under way")
	flags.BoolVar(&f.atParent, "ds-published", false, "the parent has the DS record of the new key")
	flags.BoolVar(&f.removed, "ds-removed", false, "the parent has no DS records of the keys of the old algorithm any more")
	flags.DurationVar(&f.parent, "parent-ttl", 24*time.Hour, "`time` for which others keep the parent's DS records")
	f.ask.add(cmd)
	flags.BoolVar(&f.force, "force", false, "do the step at once, even if resolvers still have the old keys")
	flags.StringVar(&f.algorithm, "algorithm", "", "change all keys to it: ecdsap256sha256 or ed25519")
	choices(cmd, "algorithm", "ecdsap256sha256", "ed25519")
	return neverFiles(cmd)
}

// check makes sure that what is said of the parent is what the next step asks for: a user
// who says that the parent has the new records does not say that it has no old ones.
func (f *rollFlags) check(ctx context.Context, keys keyKeeper, now time.Time) error {
	if !f.atParent && !f.removed {
		return nil
	}
	status, err := keys.status(ctx, f.parent)
	if err != nil {
		return err
	}
	leave := slices.ContainsFunc(status.Steps, func(s zonekey.Step) bool { return s.To == zonekey.Leaving })
	switch {
	case leave && f.atParent:
		return refuse("zone roll", stele.Conflict, "zone.roll-awaits-ds-removal", "the next step is about the DS records of the old keys; when the parent of {zone} has none of them any more, give --ds-removed instead of --ds-published", status.Zone)
	case !leave && f.removed:
		return refuse("zone roll", stele.Conflict, "zone.roll-has-no-leaving-keys", "no keys of {zone} are about to leave; --ds-removed is for that step of a change of algorithm, and 'stele zone keys {zone}' says what comes next", status.Zone)
	}
	i := slices.IndexFunc(status.Steps, func(s zonekey.Step) bool { return s.Parent && !now.Before(s.From) })
	if i < 0 || f.force {
		return nil // it is refused anyway, or no server should be asked
	}
	if leave {
		return f.ask.noOthers(ctx, status)
	}
	return f.ask.has(ctx, status, status.Steps[i].Key)
}
