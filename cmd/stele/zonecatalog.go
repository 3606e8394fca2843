package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/registry/access"
)

func (p *program) zoneCatalogCommand() *cobra.Command {
	return usage.Family(&cobra.Command{
		Use:   "catalog",
		Short: "Manage catalog zones: lists of zones for secondaries",
		Long: `A catalog is a zone that lists other zones (RFC 9432). A secondary that is configured
with the catalog transfers every zone that the catalog lists, and drops a zone that is
not listed any more, without a change of its configuration. BIND, Knot, NSD and PowerDNS
support catalogs.

A secondary may transfer the catalog if it may transfer one of its zones, and gets
notifications (NOTIFY) in the same way ('stele zone secondary'). Administrators decide
which zones are listed. The name of a catalog need not exist in the DNS. It must not be
in a zone of this registry, or above one.`,
		Example: `  stele zone catalog add catalog.example.net paradisec.example
  stele zone catalog ls
  stele zone catalog rm paradisec.example`,
	}, p.zoneCatalogAddCommand(), p.zoneCatalogLsCommand(), p.zoneCatalogRmCommand())
}

func (p *program) zoneCatalogAddCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:   "add CATALOG ZONE...",
		Short: "Add zones to a catalog",
		Long: `Add adds zones to a catalog. A catalog exists as long as it lists a zone. Add removes a
zone from the catalog that it was in before.`,
		Example: "  stele zone catalog add catalog.example.net paradisec.example names.example.org",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usage.Errorf(cmd, "argument.catalog-incomplete", "give the name of the catalog, and the zones that it lists")
			}
			return nil
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			return p.completeZones(cmd, nil, begun)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.setCatalog(cmd, access.Absolute(args[0]), args[1:])
		},
	})
}

func (p *program) zoneCatalogRmCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:   "rm ZONE...",
		Short: "Remove zones from their catalog",
		Long: `Rm removes zones from their catalog. Secondaries that have a zone by the catalog then
drop it. A catalog ends with its last zone; its secondaries then keep what they have.`,
		Example: "  stele zone catalog rm paradisec.example",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage.Errorf(cmd, "argument.zone-missing", "the zone is missing")
			}
			return nil
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			return p.completeZones(cmd, nil, begun)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return p.setCatalog(cmd, "", args) },
	})
}

// setCatalog lists zones in a catalog, or in none, and prints the catalogs.
func (p *program) setCatalog(cmd *cobra.Command, catalog string, names []string) error {
	return p.withZones(cmd, func(ctx context.Context, l *Registry, zones *publish.Zones) error {
		for _, name := range names {
			ns, err := l.SetZone(ctx, zones, "zone catalog", name, func(p *stele.Publication) error {
				if catalog == "" && p.Catalog == "" {
					return refuse("zone catalog", stele.NotFound, "zone.not-in-catalog", "{zone} is listed in no catalog", p.Zone)
				}
				p.Catalog = catalog
				return nil
			})
			if err != nil {
				return err
			}
			if catalog != "" && len(ns.Publication.Secondaries) == 0 {
				fmt.Fprintf(p.stderr, "stele: %s has no secondaries, so no name server that reads the catalog can take it; 'stele zone secondary add' lets one\n", ns.Publication.Zone)
			}
		}
		return p.printCatalogs(ctx, l, catalog)
	})
}

func (p *program) zoneCatalogLsCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:     "ls [CATALOG]",
		Short:   "List catalogs and their zones",
		Long:    "Ls lists the zones of a catalog, or of all catalogs: the catalog, and the zone.",
		Example: "  stele zone catalog ls\n  stele zone catalog ls catalog.example.net --json",
		Args:    usage.AtMostOne("the catalog"),
		RunE: func(cmd *cobra.Command, args []string) error {
			only := ""
			if len(args) > 0 {
				only = access.Absolute(args[0])
			}
			return p.withZones(cmd, func(ctx context.Context, l *Registry, _ *publish.Zones) error {
				return p.printCatalogs(ctx, l, only)
			})
		},
	})
}

// catalogDocument is a zone in a catalog as programs see it.
type catalogDocument struct {
	Catalog string `json:"catalog"`
	Zone    string `json:"zone"`
}

// printCatalogs prints the zones of a catalog, or of all.
func (p *program) printCatalogs(ctx context.Context, l *Registry, only string) error {
	var list []catalogDocument
	for ns, err := range l.Namespaces(ctx) {
		if err != nil {
			return err
		}
		if c := ns.Publication.Catalog; c != "" && (only == "" || c == only) {
			list = append(list, catalogDocument{c, ns.Publication.Zone})
		}
	}
	slices.SortFunc(list, func(a, b catalogDocument) int {
		return slices.Compare([]string{a.Catalog, a.Zone}, []string{b.Catalog, b.Zone})
	})
	for _, d := range list {
		var err error
		if p.json {
			err = p.printLine(d)
		} else {
			_, err = fmt.Fprintf(p.stdout, "%-30s %s\n", d.Catalog, d.Zone)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
