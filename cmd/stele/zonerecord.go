package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/publish/zonemap"
)

func (p *program) zoneRecordCommand() *cobra.Command {
	return usage.Family(&cobra.Command{
		Use:   "record",
		Short: "Manage the owner's own records in a zone",
		Long: `A zone has the records that Stele makes from the registry. In addition its owner can add
records: for mail, certificates, web servers and so on. They have the types A, AAAA,
CAA, CNAME, MX, SRV or TXT, are at the zone's name or below it, and are at most 500.
Stele serves, signs, transfers and exports them with the zone, and the history of the
namespace has each change.

Registered names take precedence: where an identifier is published, Stele does not serve
TXT and CNAME records of the owner, and 'stele zone check' reports them.`,
		Example: `  stele zone record add paradisec.example @ 3600 MX '10 mx.example.org.'
  stele zone record add paradisec.example @ 3600 TXT 'v=spf1 mx -all'
  stele zone record add paradisec.example www 300 A 192.0.2.80
  stele zone record ls paradisec.example
  stele zone record rm paradisec.example www A`,
	}, p.zoneRecordAddCommand(), p.zoneRecordLsCommand(), p.zoneRecordRmCommand())
}

func (p *program) zoneRecordAddCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:   "add ZONE NAME TTL TYPE DATA",
		Short: "Add a record to a zone",
		Long: `Add adds a record to a zone, which you name by its name or by the prefix of its
namespace. NAME is relative to the zone: @ is the zone's own name, www is www below it,
and a name that ends in a dot is absolute. TTL is in seconds, and applies to all records
of that name and type. DATA is as in a master file; domain names in it end in a dot. A
TXT record whose data has no quotation marks is one string. Adding an existing record
sets its TTL.

Add refuses a record that is not allowed at its name: a CNAME record beside others or at
the zone's name, any record at the owner name of an identifier or in a zone inside this
one, and records that the settings of the zone make.`,
		Example: `  stele zone record add paradisec.example @ 3600 MX '10 mx.example.org.'
  stele zone record add paradisec.example @ 3600 CAA '0 issue "ca.example.net"'
  stele zone record add paradisec.example www 300 CNAME web.example.org.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 5 {
				return usage.Errorf(cmd, "argument.zone-record-add-incomplete", "give the zone, the name, the TTL, the type and the data")
			}
			return nil
		},
		ValidArgsFunction: p.completeRecords,
		RunE: func(cmd *cobra.Command, args []string) error {
			ttl, err := strconv.ParseUint(args[2], 10, 32)
			if err != nil {
				return usage.Errorf(cmd, "argument.not-a-ttl", `"{text}" is not a TTL; give seconds, such as 3600`, args[2])
			}
			return p.setRecords(cmd, args[0], func(ctx context.Context, zones *publish.Zones, zone string, list []stele.ZoneRecord) ([]stele.ZoneRecord, error) {
				r, ok := zonemap.NewRecord(zone, args[1], uint32(ttl), args[3], strings.Join(args[4:], " "))
				if ok { // the registrar reports faults in it otherwise
					if err := zones.MayAdd(ctx, zone, r); err != nil {
						return nil, err
					}
				}
				return zonemap.AddRecord(list, r), nil
			})
		},
	})
}

func (p *program) zoneRecordRmCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:   "rm ZONE NAME TYPE [DATA]",
		Short: "Remove records from a zone",
		Long: `Rm removes records of the owner from a zone: the one with DATA, or without DATA all of
the name and type. They stay in the history of the namespace.`,
		Example: "  stele zone record rm paradisec.example www A\n  stele zone record rm paradisec.example @ MX '10 mx.example.org.'",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 3 {
				return usage.Errorf(cmd, "argument.zone-record-remove-incomplete", "give the zone, the name and the type, and perhaps the data")
			}
			return nil
		},
		ValidArgsFunction: p.completeRecords,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.setRecords(cmd, args[0], func(_ context.Context, _ *publish.Zones, zone string, list []stele.ZoneRecord) ([]stele.ZoneRecord, error) {
				r, _ := zonemap.NewRecord(zone, args[1], 1, args[2], strings.Join(args[3:], " "))
				kept := zonemap.RemoveRecords(list, r, len(args) == 3)
				if len(kept) == len(list) {
					return nil, refuse("zone record", stele.NotFound, "zone-record.not-found", "the owner has no such {type} record at {name}; 'stele zone record ls {zone}' lists them", r.Type, r.Name, zone)
				}
				return kept, nil
			})
		},
	})
}

// setRecords changes the owner's records in a zone, and prints how they are then.
func (p *program) setRecords(cmd *cobra.Command, zone string, change func(context.Context, *publish.Zones, string, []stele.ZoneRecord) ([]stele.ZoneRecord, error)) error {
	return p.withZones(cmd, func(ctx context.Context, l *Registry, zones *publish.Zones) error {
		ns, err := l.SetZone(ctx, zones, "zone record", zone, func(p *stele.Publication) (err error) {
			p.Records, err = change(ctx, zones, p.Zone, slices.Clone(p.Records))
			return err
		})
		if err != nil {
			return err
		}
		return p.printRecords(ns)
	})
}

func (p *program) zoneRecordLsCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:   "ls ZONE",
		Short: "List the owner's records in a zone",
		Long: `Ls lists the records of the owner in a zone, in master file format. 'stele zone show'
shows the records that Stele makes.`,
		Example:           "  stele zone record ls paradisec.example\n  stele zone record ls urn:paradisec --json",
		Args:              usage.OneArgument("the zone"),
		ValidArgsFunction: p.completeZones,
		RunE:              func(cmd *cobra.Command, args []string) error { return p.ofZone(cmd, args[0], p.printRecords) },
	})
}

// zoneRecordDocument is a record of the owner as programs see it.
type zoneRecordDocument struct {
	Name string           `json:"name"`
	TTL  uint32           `json:"ttl"`
	Type stele.RecordType `json:"type"`
	Data string           `json:"data"`
}

func (p *program) printRecords(ns *stele.Namespace) error {
	for _, r := range ns.Publication.Records {
		var err error
		if p.json {
			err = p.printLine(zoneRecordDocument(r))
		} else {
			_, err = fmt.Fprintf(p.stdout, "%s %d IN %s %s\n", r.Name, r.TTL, r.Type, printable(r.Data))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// completeRecords lets shells complete zones and types.
func (p *program) completeRecords(cmd *cobra.Command, args []string, begun string) (names []string, _ cobra.ShellCompDirective) {
	kind := 3
	if cmd.Name() == "rm" {
		kind = 2
	}
	switch len(args) {
	case 0:
		return p.completeZones(cmd, args, begun)
	case kind:
		for _, t := range stele.RecordTypes() {
			names = append(names, string(t))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
