package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/doctor"
	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/registry/access"
)

func (p *program) zoneSecondaryCommand() *cobra.Command {
	return usage.Family(&cobra.Command{
		Use:   "secondary",
		Short: "Secondaries: name servers that have copies of zones",
		Long: `A secondary is a name server that has a copy of a zone and answers from it. It takes
the whole zone once (AXFR), and after that what has changed (IXFR). The server tells
those that it knows of when something has (NOTIFY).

Nobody may take a zone but who is named here, by an address or network, by a key that
they show ('stele zone tsig'), or by both.`,
		Example: `  stele zone secondary add paradisec.example --key secondary1.example.org --notify 192.0.2.53
  stele zone secondary add paradisec.example --network 2001:db8::/48
  stele zone secondary ls paradisec.example
  stele zone secondary rm paradisec.example --network 2001:db8::/48`,
	}, p.zoneSecondaryAddCommand(), p.zoneSecondaryLsCommand(), p.zoneSecondaryRmCommand())
}

// secondaryFlags describe a secondary.
type secondaryFlags struct {
	network, key string
	notify       []string
}

func (f *secondaryFlags) add(p *program, cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.network, "network", "", "`address` or network that it comes from, such as 192.0.2.53 or 2001:db8::/48")
	flags.StringVar(&f.key, "key", "", "`name` of the TSIG key that it shows")
	_ = cmd.RegisterFlagCompletionFunc("key", p.completeTSIG)
	_ = cmd.RegisterFlagCompletionFunc("network", cobra.NoFileCompletions)
}

// secondary returns what the flags say. The registrar reports faults in it.
func (f *secondaryFlags) secondary(cmd *cobra.Command) (stele.Secondary, error) {
	s := stele.Secondary{Network: f.network}
	if f.network == "" && f.key == "" {
		return s, usage.Errorf(cmd, "flag.secondary-missing", "say who, with --network or --key, or with both")
	}
	if network, err := netip.ParsePrefix(f.network); err == nil {
		s.Network = network.Masked().String()
	} else if addr, err := netip.ParseAddr(f.network); err == nil {
		s.Network = addr.String()
	}
	if f.key != "" {
		s.Key = access.Absolute(f.key)
	}
	for _, text := range f.notify {
		if addr, err := netip.ParseAddr(text); err == nil {
			text = net.JoinHostPort(addr.String(), "53")
		} else if at, err := netip.ParseAddrPort(text); err == nil {
			text = at.String()
		}
		s.Notify = append(s.Notify, text)
	}
	return s, nil
}

func (p *program) zoneSecondaryAddCommand() *cobra.Command {
	var f secondaryFlags
	cmd := &cobra.Command{
		Use:   "add ZONE",
		Short: "Let a name server have a zone",
		Long: `Add lets a name server, or a network of them, have a zone, which is named by its name or
by the prefix of its namespace. With a network and a key it must come from the one and
show the other. The addresses of --notify are told of changes, with the key's
signature if there is a key. If there is such a secondary already, its addresses are
set anew.`,
		Example: `  stele zone secondary add paradisec.example --key secondary1.example.org --notify 192.0.2.53
  stele zone secondary add paradisec.example --network 192.0.2.0/24 --key secondary1.example.org --notify 192.0.2.53 --notify 192.0.2.54:5353`,
		Args:              usage.OneArgument("the zone"),
		ValidArgsFunction: p.completeZones,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := f.secondary(cmd)
			if err != nil {
				return err
			}
			return p.setSecondaries(cmd, args[0], func(list []stele.Secondary) ([]stele.Secondary, error) {
				if i := slices.IndexFunc(list, isSameSecondary(s)); i >= 0 {
					list[i] = s
					return list, nil
				}
				return append(list, s), nil
			})
		},
	}
	f.add(p, cmd)
	cmd.Flags().StringArrayVar(&f.notify, "notify", nil, "`address`, perhaps with a port, that is told of changes; may be repeated")
	_ = cmd.RegisterFlagCompletionFunc("notify", cobra.NoFileCompletions)
	return usage.NeverFiles(cmd)
}

// isSameSecondary reports whether another one has the same network and key.
func isSameSecondary(s stele.Secondary) func(stele.Secondary) bool {
	return func(o stele.Secondary) bool { return o.Network == s.Network && o.Key == s.Key }
}

func (p *program) zoneSecondaryRmCommand() *cobra.Command {
	var f secondaryFlags
	cmd := &cobra.Command{
		Use:   "rm ZONE",
		Short: "No longer let a name server have a zone",
		Long: `Rm takes a secondary away, which is named by its network and its key as it was added.
The copy that it has it keeps, and answers from it for up to two weeks.`,
		Example:           "  stele zone secondary rm paradisec.example --key secondary1.example.org",
		Args:              usage.OneArgument("the zone"),
		ValidArgsFunction: p.completeZones,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := f.secondary(cmd)
			if err != nil {
				return err
			}
			return p.setSecondaries(cmd, args[0], func(list []stele.Secondary) ([]stele.Secondary, error) {
				i := slices.IndexFunc(list, isSameSecondary(s))
				if i < 0 {
					return nil, refuse("zone secondary", stele.NotFound, "zone.secondary-not-found", "there is no such secondary; 'stele zone secondary ls {zone}' lists them", args[0])
				}
				return slices.Delete(list, i, i+1), nil
			})
		},
	}
	f.add(p, cmd)
	return usage.NeverFiles(cmd)
}

// setSecondaries changes the secondaries of a zone, and prints the result.
func (p *program) setSecondaries(cmd *cobra.Command, zone string, change func([]stele.Secondary) ([]stele.Secondary, error)) error {
	return p.withZones(cmd, func(ctx context.Context, l *Registry, zones *publish.Zones) error {
		ns, err := l.SetZone(ctx, zones, "zone secondary", zone, func(p *stele.Publication) (err error) {
			p.Secondaries, err = change(slices.Clone(p.Secondaries))
			return err
		})
		if err != nil {
			return err
		}
		p.warnOfCopies(ns)
		return p.printSecondaries(ns)
	})
}

// warnOfCopies warns of secondaries that get a signed zone without signatures.
func (p *program) warnOfCopies(ns *stele.Namespace) {
	if ns.Publication.HasUnsignedCopies() {
		fmt.Fprintf(p.stderr, "stele: %s is signed in the mode online, and its secondaries get it without signatures: validating resolvers refuse what they answer; %s\n", ns.Publication.Zone, doctor.UnsignedCopiesAdvice(ns.Publication.Zone))
	}
}

func (p *program) zoneSecondaryLsCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:               "ls ZONE",
		Short:             "List the secondaries of a zone",
		Long:              "Ls lists who may have a zone: the network that they come from, the key that they show, and the addresses that are told of changes; - stands for none.",
		Example:           "  stele zone secondary ls paradisec.example\n  stele zone secondary ls urn:paradisec --json",
		Args:              usage.OneArgument("the zone"),
		ValidArgsFunction: p.completeZones,
		RunE:              func(cmd *cobra.Command, args []string) error { return p.ofZone(cmd, args[0], p.printSecondaries) },
	})
}

// secondaryDocument is a secondary as programs see it.
type secondaryDocument struct {
	Network string   `json:"network,omitempty"`
	Key     string   `json:"key,omitempty"`
	Notify  []string `json:"notify,omitempty"`
}

func secondaryDocuments(list []stele.Secondary) (docs []secondaryDocument) {
	for _, s := range list {
		docs = append(docs, secondaryDocument(s))
	}
	return docs
}

func (p *program) printSecondaries(ns *stele.Namespace) error {
	for _, s := range ns.Publication.Secondaries {
		var err error
		if p.json {
			err = p.printLine(secondaryDocument(s))
		} else {
			_, err = fmt.Fprintln(p.stdout, secondaryText(s))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// secondaryText is a secondary in one line.
func secondaryText(s stele.Secondary) string {
	fields := []string{s.Network, s.Key, strings.Join(s.Notify, " ")}
	for i := range fields {
		if fields[i] == "" {
			fields[i] = "-"
		}
	}
	return fmt.Sprintf("%-20s %-30s %s", fields[0], printable(fields[1]), fields[2])
}
