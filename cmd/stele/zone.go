package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/registry/access"
)

func (p *program) zoneCommand() *cobra.Command {
	return usage.Family(&cobra.Command{
		Use:   "zone",
		Short: "Manage zones: how namespaces are published in the DNS",
		Long: `A namespace is published in a DNS zone. In the zone each name has its own owner name,
with rules (NAPTR records) that lead to the location: clients resolve names with the DNS
alone. The server answers for the zones. BIND, Knot, NSD or PowerDNS can also load a
zone from a file, or transfer it as secondaries.

The names of a scheme begin at a root: urn:paradisec:... at paradisec.urn.arpa. To run
your own root, for tests or inside an organisation, add a root zone.`,
		Example: `  stele zone add urn:paradisec --zone paradisec.example. --layout names --ns ns1.paradisec.example=192.0.2.1 --resolver id.example.org
  stele zone add --root urn.example. --ns ns1.example.net
  stele zone show urn:paradisec:AB1:001:A
  stele zone check
  stele zone export paradisec.example -o paradisec.zone`,
	}, p.zoneAddCommand(), p.zoneLsCommand(), p.zoneShowCommand(), p.zoneExportCommand(), p.zoneCheckCommand(),
		p.zoneSignCommand(), p.zoneKeysCommand(), p.zoneRollCommand(), p.zoneDSCommand(),
		p.zoneRecordCommand(), p.zoneSecondaryCommand(), p.zoneCatalogCommand(), p.zoneRaiseCommand(), p.zoneTSIGCommand(), p.zoneWithdrawCommand())
}

// withZones is reading for verbs that look at zones.
func (p *program) withZones(cmd *cobra.Command, do func(ctx context.Context, l *Registry, zones *publish.Zones) error) error {
	return p.reading(cmd, func(ctx context.Context, l *Registry) error {
		zones := l.Zones()
		defer zones.Close()
		return do(ctx, l, zones)
	})
}

func (p *program) zoneLsCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:   "ls",
		Short: "List zones",
		Long: `Ls lists all zones, in order: the name, what the zone publishes, and its layout. It
marks a zone as shut if the zone is not transferred after a restore.`,
		Example: "  stele zone ls\n  stele zone ls --json",
		Args:    usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withZones(cmd, func(ctx context.Context, _ *Registry, zones *publish.Zones) error {
				list, err := zones.List(ctx)
				if err != nil {
					return err
				}
				for _, z := range list {
					if err := p.printZone(z); err != nil {
						return err
					}
				}
				return nil
			})
		},
	})
}

// zoneDocument is a zone as programs see it.
type zoneDocument struct {
	Zone      string           `json:"zone"`
	Namespace string           `json:"namespace,omitempty"`
	Layout    stele.Layout     `json:"layout"`
	Serial    uint32           `json:"serial"`
	Shut      bool             `json:"shut,omitempty"`
	Records   []recordDocument `json:"records,omitempty"`

	Secondaries []secondaryDocument `json:"secondaries,omitempty"`
}

// recordDocument is a record of the DNS as programs see it.
type recordDocument struct {
	Owner string `json:"owner"`
	Text  string `json:"record"`
}

func newZoneDocument(z publish.Listed, list []publish.Entry) zoneDocument {
	d := zoneDocument{Zone: z.Zone, Namespace: z.Namespace.String(), Layout: z.Layout, Serial: z.Serial, Shut: z.Shut, Records: recordDocuments(list)}
	if z.Layout == publish.LayoutCatalog {
		d.Namespace = ""
	}
	return d
}

func recordDocuments(list []publish.Entry) (docs []recordDocument) {
	for _, e := range list {
		docs = append(docs, recordDocument(e))
	}
	return docs
}

func (p *program) printZone(z publish.Listed) error {
	if p.json {
		return p.printLine(newZoneDocument(z, nil))
	}
	line := fmt.Sprintf("%-30s %-30s %s", z.Zone, namespaceText(z), z.Layout)
	if z.Shut {
		line += "  shut: it is not transferred; 'stele zone check' says what to do"
	}
	_, err := fmt.Fprintln(p.stdout, line)
	return err
}

// namespaceText is the namespace of a zone; a catalog has none.
func namespaceText(z publish.Listed) string {
	if z.Layout == publish.LayoutCatalog {
		return "-"
	}
	return printable(z.Namespace.String())
}

// printLine prints a value in JSON on one line.
func (p *program) printLine(v any) error {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(p.stdout, b.String())
	return err
}

func (p *program) zoneWithdrawCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "withdraw ZONE",
		Short: "Stop publishing a zone",
		Long: `Withdraw ends the publication of a namespace. Name it by its zone or by its prefix.
Nothing is deleted: names and records stay, the namespace gets a new version without its
zone, and its history keeps the earlier ones. Caches and secondaries keep their copies
for a while.`,
		Example: "  stele zone withdraw paradisec.example\n  stele zone withdraw urn:paradisec",
		Args:    usage.OneArgument("the zone"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withZones(cmd, func(ctx context.Context, l *Registry, zones *publish.Zones) error {
				ns, err := l.Unpublish(ctx, zones, args[0])
				if err != nil {
					return err
				}
				return p.printPrefix(p.stdout, ns)
			})
		},
		ValidArgsFunction: p.completeZones,
	}
	return usage.NeverFiles(cmd)
}

// ofZone calls do with the namespace of a zone.
func (p *program) ofZone(cmd *cobra.Command, zone string, do func(ns *stele.Namespace) error) error {
	return p.withZones(cmd, func(ctx context.Context, l *Registry, zones *publish.Zones) error {
		key, err := l.ZoneOwner(ctx, zones, zone)
		if err != nil {
			return err
		}
		ns, err := l.Namespace(ctx, key)
		if err != nil {
			return err
		}
		return do(ns)
	})
}

// completeZones lets shells complete the names of zones.
func (p *program) completeZones(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	if len(args) == 0 {
		// Without a registry that can be asked, nothing is offered.
		_ = p.withZones(cmd, func(ctx context.Context, _ *Registry, zones *publish.Zones) error {
			list, err := zones.List(ctx)
			for _, z := range list {
				names = append(names, z.Zone)
			}
			return err
		})
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (p *program) zoneRaiseCommand() *cobra.Command {
	above := uint32(0)
	cmd := &cobra.Command{
		Use:   "raise ZONE",
		Short: "Raise the serial of a zone",
		Long: `Raise gives a zone a serial above its present one, and above that of --above. All
secondaries then transfer the whole zone.

After a restore without the registry that was replaced, Stele does not know the serials
of the secondaries. Such a zone is shut: it is not transferred, because a secondary with
a higher serial would keep its old copy. Ask each secondary for its SOA record, and
raise the zone above the highest serial: this opens the zone.`,
		Example:           "  stele zone raise paradisec.example --above 2031050201\n  stele zone raise paradisec.example",
		Args:              usage.OneArgument("the zone"),
		ValidArgsFunction: p.completeZones,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withZones(cmd, func(ctx context.Context, l *Registry, _ *publish.Zones) error {
				var floor *uint32
				if cmd.Flags().Changed("above") {
					floor = &above
				}
				z, err := l.RaiseZone(ctx, access.Absolute(args[0]), floor)
				if err != nil {
					return err
				}
				return p.printZoneState(z)
			})
		},
	}
	cmd.Flags().Uint32Var(&above, "above", 0, "highest `serial` that a secondary has")
	_ = cmd.RegisterFlagCompletionFunc("above", cobra.NoFileCompletions)
	return usage.NeverFiles(cmd)
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
