package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/zonekey"
)

// signFlags are the flags of zone sign.
type signFlags struct {
	mode      string
	algorithm string
	split     bool
	refresh   bool
	removed   bool
	force     bool
	ask       parentFlags
}

// signingOff is the mode of an unsigned zone.
const signingOff = "off"

func (p *program) zoneSignCommand() *cobra.Command {
	var f signFlags
	cmd := &cobra.Command{
		Use:   "sign ZONE",
		Short: "Sign a zone",
		Long: `Sign has a zone signed (DNSSEC), which is named by its name or by the prefix of its
namespace. It makes the zone's keys, if it has none, and prints them; then 'stele zone
ds' prints what the domain above needs.

With --mode online the server makes signatures when they are asked for, and nobody can
list the names of the zone. Transfers go out unsigned, and the command warns if the zone has
secondaries. With --mode transfer the zone has
a chain of its names (NSEC3), and goes out to secondaries and into files with all its
signatures; who takes the trouble can list its names.

One key signs everything, unless --split makes two: one for the keys, which the domain
above points at, and one for the zone. --refresh makes all signatures of a zone in the
mode transfer anew, which a server does by itself each week.

With --mode off a zone goes without signatures, in three steps: whoever has its DS records
still would refuse it otherwise. The first takes them back; have them removed at the
parent then. The second, with --ds-removed, says that they are: how long others may keep
them counts from then. The third, with --ds-removed again, ends the signing, and is
refused before that time. If the parent is a zone of this registry the second is not
needed.`,
		Example: `  stele zone sign paradisec.example --mode online
  stele zone sign paradisec.example --mode transfer --algorithm ed25519
  stele zone sign paradisec.example --refresh
  stele zone sign paradisec.example --mode off --ds-removed`,
		Args:              oneArgument("the zone"),
		ValidArgsFunction: p.completeZones,
		RunE: func(cmd *cobra.Command, args []string) error {
			if (f.mode == "") == !f.refresh {
				return misuse(cmd, "flag.sign-mode-missing", "say how, with --mode online or --mode transfer; or give --refresh")
			}
			if f.mode != signingOff && (f.removed || f.force) {
				return misuse(cmd, "flag.without-mode-off", "--ds-removed and --force are about --mode off")
			}
			change := zonekey.Change{Do: "sign", Mode: f.mode, Algorithm: f.algorithm, Split: f.split}
			switch {
			case f.refresh:
				change = zonekey.Change{Do: "refresh"}
			case f.mode == signingOff:
				change = zonekey.Change{Do: "unsign", DSPublished: f.removed, Force: f.force}
			}
			signed := ""
			err := p.withKeys(cmd, args[0], func(ctx context.Context, keys keyKeeper, zone string) error {
				if f.removed && !f.force {
					status, err := keys.status(ctx, 0)
					if err == nil {
						err = f.ask.noOthers(ctx, &zonekey.Status{Zone: status.Zone})
					}
					if err != nil {
						return err
					}
				}
				status, err := keys.change(ctx, change)
				if err != nil {
					return err
				}
				signed = zone
				return p.printKeys(status)
			})
			if err != nil || change.Mode == "" {
				return err
			}
			return p.reading(cmd, func(ctx context.Context, l *Registry) error {
				ns, err := publishedIn(ctx, l, signed)
				if err == nil {
					p.warnOfCopies(ns)
				}
				return err
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.mode, "mode", "", "online (its names can't be listed), transfer (signatures go out to secondaries) or off")
	flags.StringVar(&f.algorithm, "algorithm", "", "of its first keys: ecdsap256sha256 or ed25519 (default ecdsap256sha256)")
	flags.BoolVar(&f.split, "split", false, "make two first keys: one signs the keys, one the zone")
	flags.BoolVar(&f.refresh, "refresh", false, "make all signatures anew, of a zone in the mode transfer")
	flags.BoolVar(&f.removed, "ds-removed", false, "the parent has no DS records of the zone any more")
	f.ask.add(cmd)
	flags.BoolVar(&f.force, "force", false, "end the signing at once, even if resolvers still have DS records of the zone")
	choices(cmd, "mode", stele.SigningOnline, stele.SigningTransfer, signingOff)
	choices(cmd, "algorithm", "ecdsap256sha256", "ed25519")
	return neverFiles(cmd)
}
