package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/serve/dnsd"
)

func (p *program) zoneRaiseCommand() *cobra.Command {
	above := uint32(0)
	cmd := &cobra.Command{
		Use:   "raise ZONE",
		Short: "Give a zone a higher serial",
		Long: `Raise gives a zone a serial above its present one, and above the one of --above. All
secondaries take the whole zone next.

After a restore without the registry that was replaced, Stele does not know which serial the
secondaries have. Such a zone is shut: it is not transferred, since a secondary with a
higher serial would keep what it has. Ask each secondary for its SOA record, and raise
the zone above the highest serial: that opens it.`,
		Example:           "  stele zone raise paradisec.example --above 2031050201\n  stele zone raise paradisec.example",
		Args:              oneArgument("the zone"),
		ValidArgsFunction: p.completeZones,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withZones(cmd, func(ctx context.Context, l *ledger, _ *dnsd.Zones) error {
				var floor *uint32
				if cmd.Flags().Changed("above") {
					floor = &above
				}
				z, err := l.RaiseZone(ctx, absolute(args[0]), floor)
				if err != nil {
					return err
				}
				return p.printZoneState(z)
			})
		},
	}
	cmd.Flags().Uint32Var(&above, "above", 0, "highest `serial` that a secondary has")
	_ = cmd.RegisterFlagCompletionFunc("above", cobra.NoFileCompletions)
	return neverFiles(cmd)
}

// zoneStateDocument is the serial of a zone as programs see it.
type zoneStateDocument struct {
	Zone   string `json:"zone"`
	Serial uint32 `json:"serial"`
	Shut   bool   `json:"shut,omitempty"`
}

func (p *program) printZoneState(z stele.ZoneState) error {
	if p.json {
		return p.printLine(zoneStateDocument{z.Zone, z.Serial(), z.Shut})
	}
	_, err := fmt.Fprintf(p.stdout, "%s %d\n", printable(z.Zone), z.Serial())
	return err
}
