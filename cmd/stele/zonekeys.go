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
		Short: "Show the keys of a signed zone",
		Long: `Keys prints the keys of a zone, which is named by its name or by the prefix of its
namespace: the key tag, what the key signs, its algorithm, and the state that it is in
since when. A csk signs everything; a ksk signs the keys, and a zsk the zone.

	prepared    of another algorithm: it signs, and is not in the zone yet
	published   it is in the zone, so that everybody learns it
	active      it signs
	retired     it signs no more, and is in the zone for those who have its signatures
	leaving     of another algorithm: it signs, and is in the zone no more
	removed     it is gone, and its private part is erased

If a roll is under way it says what comes next, and from when.`,
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
		Short: "Print the DS records that the parent of a zone needs",
		Long: `Ds prints the records by which the zone above vouches for the keys of a zone: give one
of them, or all, to whoever runs the domain above. Each key comes with a digest in
SHA-256 and one in SHA-384; one is enough. While a key is rolled, both keys' records
should stand there.

A parent that reads CDS or CDNSKEY records (RFC 7344) finds the same in the zone. If
the zone above is one of this registry, it has them already.`,
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
	flags.StringVar(&f.mode, "mode", "", "online (its names can't be listed), transfer (signatures go out to secondaries) or off")
	flags.StringVar(&f.algorithm, "algorithm", "", "of its first keys: ecdsap256sha256 or ed25519 (default ecdsap256sha256)")
	flags.BoolVar(&f.split, "split", false, "make two first keys: one signs the keys, one the zone")
	flags.BoolVar(&f.refresh, "refresh", false, "make all signatures anew, of a zone in the mode transfer")
	flags.BoolVar(&f.removed, "ds-removed", false, "the parent has no DS records of the zone any more")
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
	flags.BoolVar(&f.next, "next", false, "do the next step of the roll that is under way")
	flags.BoolVar(&f.atParent, "ds-published", false, "the parent has the DS record of the new key")
	flags.BoolVar(&f.removed, "ds-removed", false, "the parent has no DS records of the keys of the old algorithm any more")
	flags.DurationVar(&f.parent, "parent-ttl", 24*time.Hour, "`time` for which others keep the parent's DS records")
	f.ask.add(cmd)
	flags.BoolVar(&f.force, "force", false, "do the step at once, even if resolvers still have the old keys")
	flags.StringVar(&f.algorithm, "algorithm", "", "change all keys to it: ecdsap256sha256 or ed25519")
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
	flags.StringArrayVar(&f.dns, "dns", nil, "`address` of a name server that answers about the whole DNS; if it has a port, the parent's servers are asked at that port (default: the system's)")
	flags.BoolVar(&f.unchecked, "unchecked", false, "believe what is said of the parent, and do not ask its name servers")
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
