package main

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/stele-id/stele/client"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/publish"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/registry/access"
)

// withKeys calls do with the keys of the zone that is named, by its name or the prefix of
// its namespace, and with the zone's name.
func (p *program) withKeys(cmd *cobra.Command, text string, do func(ctx context.Context, keys access.ZoneKeys, zone string) error) error {
	return p.withZones(cmd, func(ctx context.Context, l *Registry, zones *publish.Zones) error {
		keys, zone, err := l.ZoneKeys(ctx, zones, text)
		if err != nil {
			return err
		}
		return do(ctx, keys, zone)
	})
}

func (p *program) zoneKeysCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys ZONE",
		Short: "List the keys of a signed zone",
		Long: `Keys prints the keys of a zone, which you name by its name or by the prefix of its
namespace: the key tag, the role, the algorithm, the state, and the time since which the
key is in that state. A csk signs everything; a ksk signs the keys, and a zsk the zone.

	prepared    of another algorithm: it signs, and is not in the zone yet
	published   it is in the zone, so that resolvers learn it
	active      it signs
	retired     it does not sign any more, and stays in the zone for cached signatures
	leaving     of another algorithm: it signs, and is not in the zone any more
	removed     it is gone, and its private key is erased

During a rollover keys also prints the next step, and when it can be done.`,
		Example:           "  stele zone keys paradisec.example\n  stele zone keys urn:paradisec --json",
		Args:              usage.OneArgument("the zone"),
		ValidArgsFunction: p.completeZones,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withKeys(cmd, args[0], func(ctx context.Context, keys access.ZoneKeys, _ string) error {
				status, err := keys.Status(ctx, 0)
				if err != nil {
					return err
				}
				return p.printKeys(status)
			})
		},
	}
	return usage.NeverFiles(cmd)
}

// printKeys prints the keys of a zone, and on stderr what comes next.
func (p *program) printKeys(s *zonekey.Status) error {
	if p.json {
		return p.printLine(s)
	}
	out := bufio.NewWriter(p.stdout)
	for i := range s.Keys {
		k := &s.Keys[i]
		fmt.Fprintf(out, "%s %s %-16s %-10s %s\n", k.Tag, k.Role, k.Algorithm, k.State, k.Since().Format(time.RFC3339))
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if len(s.Keys) == 0 {
		fmt.Fprintf(p.stderr, "stele: %s has no keys; 'stele zone sign %s' makes them\n", s.Zone, s.Zone)
	}
	for i := range s.Steps {
		step := &s.Steps[i]
		when := "from " + step.From.Format(time.RFC3339) + " on"
		if !p.now().Before(step.From) {
			when = "now"
		}
		more := ""
		if step.Parent {
			more = ", once its DS record is at the parent (--ds-published)"
		}
		if step.Parent && step.To == zonekey.Leaving {
			more = ", some time after the parent has no DS records of them any more (--ds-removed)"
		}
		fmt.Fprintf(p.stderr, "stele: next, %s: %s%s; say so with 'stele zone roll %s --next'\n", when, step, more, strings.TrimSpace(s.Zone+" "+string(step.Role)))
	}
	switch {
	case !s.IsUnsigning():
	case s.Unsigned.IsZero():
		fmt.Fprintf(p.stderr, "stele: have the DS records of %s removed at its parent, and when they are say so with 'stele zone sign %s --mode off --ds-removed'\n", s.Zone, s.Zone)
	default:
		fmt.Fprintf(p.stderr, "stele: from %s on %s can go without signatures: say so with 'stele zone sign %s --mode off --ds-removed'\n",
			s.Unsigned.Format(time.RFC3339), s.Zone, s.Zone)
	}
	return nil
}

func (p *program) zoneDSCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ds ZONE",
		Short: "Print the DS records for the parent of a zone",
		Long: `Ds prints the DS records with which the parent zone authenticates the keys of a zone.
Give one of them, or all, to the administrator of the parent zone. For each key ds
prints a SHA-256 and a SHA-384 digest; one is enough. During a rollover the parent
should have the records of both keys.

A parent that processes CDS or CDNSKEY records (RFC 7344) finds the same data in the
zone. If the parent is a zone of this registry, it has the records already.`,
		Example:           "  stele zone ds paradisec.example",
		Args:              usage.OneArgument("the zone"),
		ValidArgsFunction: p.completeZones,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withKeys(cmd, args[0], func(ctx context.Context, keys access.ZoneKeys, zone string) error {
				status, err := keys.Status(ctx, 0)
				if err != nil {
					return err
				}
				if len(status.DS) == 0 {
					return refuse("zone ds", stele.NotFound, "zone.keys-missing", "{zone} has no keys; 'stele zone sign {zone}' makes them", zone)
				}
				return p.printDS(status.DS)
			})
		},
	}
	return usage.NeverFiles(cmd)
}

func (p *program) printDS(list []zonekey.DSRecord) error {
	var b strings.Builder
	for _, e := range list {
		if p.json {
			if err := p.printLine(e); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(&b, "%s %s\n", e.Owner, e.Record)
	}
	_, err := p.stdout.Write([]byte(b.String()))
	return err
}

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
		Short: "Sign a zone (DNSSEC)",
		Long: `Sign turns on DNSSEC for a zone, which you name by its name or by the prefix of its
namespace. It makes the keys of the zone, if it has none, and prints them. 'stele zone
ds' then prints the records for the parent zone.

With --mode online the server signs answers on request, and clients can't enumerate the
names of the zone. Zone transfers are unsigned, and the command warns if the zone has
secondaries. With --mode transfer the zone has an NSEC3 chain, and transfers and files
have all signatures; with some effort, clients can enumerate the names.

One key signs everything, unless --split makes two: one for the keys, to which the
parent's DS record points, and one for the zone. --refresh makes all signatures of a
zone in the mode transfer again; a server does this every week.

--mode off turns signing off, in three steps, because resolvers that still have the DS
records would reject the unsigned zone. The first step asks the parent to remove them,
with CDS and CDNSKEY records (RFC 8078); then have them removed at the parent. The
second step, with --ds-removed, confirms that they are removed: their TTL counts from
then. The third step, with --ds-removed again, ends the signing, and is refused before
the TTL has passed. If the parent is a zone of this registry, the second step is not
needed.`,
		Example: `  stele zone sign paradisec.example --mode online
  stele zone sign paradisec.example --mode transfer --algorithm ed25519
  stele zone sign paradisec.example --refresh
  stele zone sign paradisec.example --mode off --ds-removed`,
		Args:              usage.OneArgument("the zone"),
		ValidArgsFunction: p.completeZones,
		RunE: func(cmd *cobra.Command, args []string) error {
			if (f.mode == "") == !f.refresh {
				return usage.Errorf(cmd, "flag.sign-mode-missing", "say how, with --mode online or --mode transfer; or give --refresh")
			}
			if f.mode != signingOff && (f.removed || f.force) {
				return usage.Errorf(cmd, "flag.without-mode-off", "--ds-removed and --force are about --mode off")
			}
			change := zonekey.Change{Do: "sign", Mode: f.mode, Algorithm: f.algorithm, Split: f.split}
			switch {
			case f.refresh:
				change = zonekey.Change{Do: "refresh"}
			case f.mode == signingOff:
				change = zonekey.Change{Do: "unsign", DSPublished: f.removed, Force: f.force}
			}
			signed := ""
			err := p.withKeys(cmd, args[0], func(ctx context.Context, keys access.ZoneKeys, zone string) error {
				if f.removed && !f.force {
					status, err := keys.Status(ctx, 0)
					if err == nil {
						err = f.ask.parent().HasNoOthers(ctx, &zonekey.Status{Zone: status.Zone})
					}
					if err != nil {
						return err
					}
				}
				status, err := keys.Change(ctx, change)
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
				ns, err := l.PublishedIn(ctx, signed)
				if err == nil {
					p.warnOfCopies(ns)
				}
				return err
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.mode, "mode", "", "signing mode: online (names can't be enumerated), transfer (secondaries get signatures) or off")
	flags.StringVar(&f.algorithm, "algorithm", "", "algorithm of the first keys: ecdsap256sha256 or ed25519 (default ecdsap256sha256)")
	flags.BoolVar(&f.split, "split", false, "make two keys: one signs the keys, one the zone")
	flags.BoolVar(&f.refresh, "refresh", false, "make all signatures again, for a zone in the mode transfer")
	flags.BoolVar(&f.removed, "ds-removed", false, "confirm that the parent has no DS records of the zone any more")
	f.ask.add(cmd)
	flags.BoolVar(&f.force, "force", false, "end the signing at once, even if resolvers still have DS records of the zone")
	usage.Choices(cmd, "mode", stele.SigningOnline, stele.SigningTransfer, signingOff)
	usage.Choices(cmd, "algorithm", "ecdsap256sha256", "ed25519")
	return usage.NeverFiles(cmd)
}

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
		Short: "Replace a key of a zone (key rollover)",
		Long: `Roll replaces a key with a new one, in steps that validating resolvers can follow. The
first step makes the new key and publishes it beside the old one. With --next the new
key becomes active, and the old one is retired; with --next again the old one is
removed. If the zone has one kind of key only, you need not say which.

A step is refused until caches can't have the data from before the previous step any
more; 'stele zone keys' prints that time. For a csk or ksk the parent zone must have the
DS record of the new key ('stele zone ds' prints it) before the key becomes active;
confirm this with --ds-published. If the parent is a zone of this registry, this is not
needed. --parent-ttl is the TTL of the parent's DS records. The command checks what you
confirm: it queries the parent's name servers, which it finds with the name servers of
the system, or with those of --dns.

With --algorithm all keys change to another algorithm. This takes two more steps: the
new keys sign for a while before they are published, and the old keys continue to sign
for a while after they are removed from the zone, for resolvers that require signatures
of every algorithm that has a key (RFC 6781, section 4.1.4). Before that the parent must
have no DS records of the old keys any more: confirm this with --ds-removed when it is
so, and again when the step can be done. The TTL of the records counts from the first
confirmation.

--force does a step immediately. Resolvers that have the old keys in their caches may
then reject the zone until these expire. Use it if a private key is compromised.`,
		Example: `  stele zone roll paradisec.example
  stele zone roll paradisec.example --next --ds-published
  stele zone roll paradisec.example zsk --next
  stele zone roll paradisec.example --algorithm ed25519
  stele zone roll paradisec.example --next --ds-removed`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 2 {
				return usage.Errorf(cmd, "argument.zone-key-incomplete", "give the zone and the kind of key")
			}
			return usage.OneArgument("the zone")(cmd, args[:min(len(args), 1)])
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !f.next && (f.atParent || f.removed || f.force || cmd.Flags().Changed("parent-ttl")) {
				return usage.Errorf(cmd, "flag.without-next", "these flags are about --next")
			}
			if f.next && f.algorithm != "" {
				return usage.Errorf(cmd, "flag.algorithm-with-next", "--algorithm begins a change, and --next goes on with it; give one of them")
			}
			change := zonekey.Change{Do: "roll", Algorithm: f.algorithm}
			if f.next {
				change = zonekey.Change{Do: "next", DSPublished: f.atParent || f.removed, Force: f.force, ParentTTL: uint32(f.parent / time.Second)}
			}
			if len(args) == 2 {
				change.Role = zonekey.Role(args[1])
			}
			return p.withKeys(cmd, args[0], func(ctx context.Context, keys access.ZoneKeys, _ string) error {
				if said := (zonekey.Said{Published: f.atParent, Removed: f.removed}); said != (zonekey.Said{}) {
					status, err := keys.Status(ctx, f.parent)
					if err != nil {
						return err
					}
					asked := f.ask.parent()
					if f.force {
						asked = nil // no server should be asked
					}
					if err := asked.CheckNext(ctx, status, said, p.now()); err != nil {
						return err
					}
				}
				status, err := keys.Change(ctx, change)
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
	flags.BoolVar(&f.next, "next", false, "do the next step of the current rollover")
	flags.BoolVar(&f.atParent, "ds-published", false, "confirm that the parent has the DS record of the new key")
	flags.BoolVar(&f.removed, "ds-removed", false, "confirm that the parent has no DS records of the old algorithm's keys any more")
	flags.DurationVar(&f.parent, "parent-ttl", 24*time.Hour, "TTL of the parent's DS records, as a `duration`")
	f.ask.add(cmd)
	flags.BoolVar(&f.force, "force", false, "do the step at once, even if resolvers still have the old keys")
	flags.StringVar(&f.algorithm, "algorithm", "", "change all keys to this algorithm: ecdsap256sha256 or ed25519")
	usage.Choices(cmd, "algorithm", "ecdsap256sha256", "ed25519")
	return usage.NeverFiles(cmd)
}

// parentFlags say how the zone above a zone is asked for its DS records.
type parentFlags struct {
	dns       []string
	unchecked bool
}

func (f *parentFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.dns, "dns", nil, "`address` of a recursive name server; if it has a port, the command queries the parent's servers at that port, too (default: the system's)")
	flags.BoolVar(&f.unchecked, "unchecked", false, "do not query the parent's name servers to check what you confirm")
	_ = cmd.RegisterFlagCompletionFunc("dns", cobra.NoFileCompletions)
}

// parent returns what checks what is said of a zone's parent; nil if it is believed.
func (f *parentFlags) parent() *zonekey.Parent {
	if f.unchecked {
		return nil
	}
	return &zonekey.Parent{Find: func(ctx context.Context, zone string) (string, []string, error) {
		ask, err := client.NewDelegations(f.dns...)
		if err != nil {
			return "", nil, err
		}
		return ask.DS(ctx, zone)
	}}
}
