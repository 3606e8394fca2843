package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/stele-id/stele/client/remote"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/registry/access"
	"github.com/stele-id/stele/server"
)

// withKeys calls do with the keys of the zone that is named, by its name or the prefix of
// its namespace, and with the zone's name.
func (p *program) withKeys(cmd *cobra.Command, text string, do func(ctx context.Context, keys keyKeeper, zone string) error) error {
	far, err := p.isRemote(cmd)
	if err != nil {
		return err
	}
	if far {
		return p.atServer(cmd, func(ctx context.Context, l *Registry) error {
			return p.withKeysOf(ctx, l, text, do)
		})
	}
	if err := p.hasFolder(); err != nil {
		return err
	}
	return p.inRegistry(cmd, func(ctx context.Context, r *registry.Registry) error {
		return p.withKeysOf(ctx, access.NewLocal(r, p.now, p.data), text, do)
	})
}

func (p *program) withKeysOf(ctx context.Context, l *Registry, text string, do func(ctx context.Context, keys keyKeeper, zone string) error) error {
	zones := zonesOf(l, p.now)
	defer zones.Close()
	key, err := zoneOwner(ctx, l, zones, text)
	if err != nil {
		return err
	}
	zone, err := server.ZoneOf(ctx, zones, key)
	if err != nil {
		return err
	}
	switch k := l.Backend.(type) {
	case *access.Remote:
		return do(ctx, &remoteKeys{k.Registry, key}, zone)
	case *access.Local:
		return do(ctx, &localKeys{zonekey.Manager{Store: k.Registrar, Zones: zones, Now: p.now, Random: rand.Reader}, zone}, zone)
	}
	return refuse("zone keys", stele.Internal, "zone.keys-unreachable", "the keys of {zone} can't be found", zone)
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
		Args:              oneArgument("the zone"),
		ValidArgsFunction: p.completeZones,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withKeys(cmd, args[0], func(ctx context.Context, keys keyKeeper, _ string) error {
				status, err := keys.status(ctx, 0)
				if err != nil {
					return err
				}
				return p.printKeys(status)
			})
		},
	}
	return neverFiles(cmd)
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
		Args:              oneArgument("the zone"),
		ValidArgsFunction: p.completeZones,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withKeys(cmd, args[0], func(ctx context.Context, keys keyKeeper, zone string) error {
				status, err := keys.status(ctx, 0)
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
	return neverFiles(cmd)
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

// keyKeeper reads and changes the keys of one zone, in a folder or at a server.
type keyKeeper interface {
	// status returns the keys. parent is the TTL of the DS records at the parent; a day if
	// 0.
	status(ctx context.Context, parent time.Duration) (*zonekey.Status, error)

	// change changes the keys.
	change(ctx context.Context, c zonekey.Change) (*zonekey.Status, error)
}

// localKeys are the keys of a zone of a registry that this process has open.
type localKeys struct {
	zonekey.Manager
	zone string
}

func (k *localKeys) status(ctx context.Context, parent time.Duration) (*zonekey.Status, error) {
	return k.Status(ctx, k.zone, parent)
}

func (k *localKeys) change(ctx context.Context, c zonekey.Change) (*zonekey.Status, error) {
	return k.Change(ctx, k.zone, c)
}

// remoteKeys are the keys of a zone of a server's registry.
type remoteKeys struct {
	r   *remote.Registry
	key stele.NamespaceKey
}

func (k *remoteKeys) status(ctx context.Context, parent time.Duration) (*zonekey.Status, error) {
	return k.r.ZoneKeys(ctx, k.key, parent)
}

func (k *remoteKeys) change(ctx context.Context, c zonekey.Change) (*zonekey.Status, error) {
	return k.r.ChangeZoneKeys(ctx, k.key, c)
}
