package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/serve/dnsd"
)

// signFlags are what zone sign is told.
type signFlags struct {
	mode      string
	algorithm string
	split     bool
	refresh   bool
}

func (p *program) zoneSignCommand() *cobra.Command {
	var f signFlags
	cmd := &cobra.Command{
		Use:   "sign ZONE",
		Short: "Sign a zone",
		Long: `Sign has a zone signed (DNSSEC), which is named by its name or by the prefix of its
namespace. It makes the zone's keys, if it has none, and prints them; then 'stele zone
ds' prints what the domain above needs.

With --mode online the server makes signatures when they are asked for, and nobody can
list the names of the zone. Transfers go out unsigned. With --mode transfer the zone has
a chain of its names (NSEC3), and goes out to secondaries and into files with all its
signatures; who takes the trouble can list its names.

One key signs everything, unless --split makes two: one for the keys, which the domain
above points at, and one for the zone. --refresh makes all signatures of a zone in the
mode transfer anew, which a server does by itself each week.`,
		Example: `  stele zone sign paradisec.example --mode online
  stele zone sign paradisec.example --mode transfer --algorithm ed25519
  stele zone sign paradisec.example --refresh`,
		Args:              oneArgument("the zone"),
		ValidArgsFunction: p.completeZones,
		RunE: func(cmd *cobra.Command, args []string) error {
			if (f.mode == "") == !f.refresh {
				return misuse(cmd, "say how, with --mode online or --mode transfer; or give --refresh")
			}
			return p.withKeys(cmd, args[0], func(ctx context.Context, l *ledger, keys *dnsd.Keys, zone string) error {
				status, err := f.sign(ctx, l, keys, zone)
				if err != nil {
					return err
				}
				return p.printKeys(status)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.mode, "mode", "", "online (nobody can list its names) or transfer (signatures go out to secondaries)")
	flags.StringVar(&f.algorithm, "algorithm", "", "of its first keys: ecdsap256sha256 or ed25519 (default ecdsap256sha256)")
	flags.BoolVar(&f.split, "split", false, "make two first keys: one signs the keys, one the zone")
	flags.BoolVar(&f.refresh, "refresh", false, "make all signatures anew, of a zone in the mode transfer")
	choices(cmd, "mode", stele.SigningOnline, stele.SigningTransfer)
	choices(cmd, "algorithm", "ecdsap256sha256", "ed25519")
	return neverFiles(cmd)
}

// sign makes keys first: a zone that is to be signed and has none would be refused by
// those who expect signatures.
func (f *signFlags) sign(ctx context.Context, l *ledger, keys *dnsd.Keys, zone string) (*dnsd.KeyStatus, error) {
	if f.refresh {
		return keys.Refresh(ctx, zone)
	}
	algorithm, err := dnsd.ParseKeyAlgorithm(f.algorithm)
	if err != nil {
		return nil, err
	}
	if f.mode == "" || !stele.Signing(f.mode).IsValid() {
		return nil, refuse("zone sign", stele.Invalid, "%.40q is no mode; there are online and transfer", f.mode)
	}
	status, err := keys.Begin(ctx, zone, algorithm, f.split)
	if err != nil {
		return nil, err
	}
	key, err := l.zoneOwner(ctx, keys.Zones, zone)
	if err != nil {
		return nil, err
	}
	_, err = l.SetNamespace(ctx, key, 0, func(ns *stele.Namespace) error {
		if ns.Publication.Zone == "" {
			return errors.New("it is published in no zone any more")
		}
		ns.Publication.Signing = stele.Signing(f.mode)
		return nil
	})
	return status, err
}
