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
		Short: "Manage secondaries: name servers with copies of zones",
		Long: `A secondary is a name server that has a copy of a zone and answers from it. It transfers
the whole zone once (AXFR), and after that the changes (IXFR). The server notifies its
secondaries of changes (NOTIFY).

Only the secondaries that are named here may transfer a zone. They are named by an
address or network, by a TSIG key ('stele zone tsig'), or by both.`,
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
	flags.StringVar(&f.network, "network", "", "`address` or network of the secondary, such as 192.0.2.53 or 2001:db8::/48")
	flags.StringVar(&f.key, "key", "", "`name` of the TSIG key of the secondary")
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
		Short: "Allow a name server to transfer a zone",
		Long: `Add allows a name server, or a network of them, to transfer a zone, which you name by
its name or by the prefix of its namespace. With a network and a key the secondary must
come from the network and use the key. The server notifies the addresses of --notify of
changes, signed with the key if there is one. If the secondary exists, add replaces its
addresses.`,
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
	cmd.Flags().StringArrayVar(&f.notify, "notify", nil, "`address`, optionally with a port, to notify of changes; may be repeated")
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
		Short: "Stop allowing a name server to transfer a zone",
		Long: `Rm removes a secondary, which you name by its network and its key as it was added. The
secondary keeps its copy of the zone, and answers from it for up to two weeks.`,
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
		Use:   "ls ZONE",
		Short: "List the secondaries of a zone",
		Long: `Ls lists the secondaries that may transfer a zone: the network, the TSIG key, and the
addresses that are notified of changes; - means none.`,
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
