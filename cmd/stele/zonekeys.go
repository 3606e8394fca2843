package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/serve/dnsd"
)

// withKeys calls do with the keys of zones and the name of the zone that is meant, by
// its name or the prefix of its namespace.
func (p *program) withKeys(cmd *cobra.Command, text string, do func(ctx context.Context, l *ledger, keys *dnsd.Keys, zone string) error) error {
	far, err := p.isRemote(cmd)
	if err != nil {
		return err
	}
	if far {
		return refuse("zone keys", stele.Forbidden, "keys of zones do not leave the registry; run this where its folder is, with --data")
	}
	if err := p.hasFolder(); err != nil {
		return err
	}
	return p.inRegistry(cmd, func(ctx context.Context, r *registry) error {
		l := &ledger{keeper: &folder{r.registrar, r}, schemes: r.schemes, place: p.data, chunk: chunkRows}
		zones := l.zones(p.now)
		defer zones.Close()
		zone, err := l.zoneName(ctx, zones, text)
		if err != nil {
			return err
		}
		return do(ctx, l, &dnsd.Keys{Store: r.registrar, Zones: zones, Now: p.now, Random: rand.Reader}, zone)
	})
}

// zoneName returns the name of the zone that a name or a prefix stands for.
func (l *ledger) zoneName(ctx context.Context, zones *dnsd.Zones, text string) (string, error) {
	key, err := l.zoneOwner(ctx, zones, text)
	if err != nil {
		return "", err
	}
	list, err := zones.List(ctx)
	if err != nil {
		return "", err
	}
	for _, z := range list {
		if z.Namespace == key {
			return z.Zone, nil
		}
	}
	return "", refuse("find zone", stele.NotFound, "%s is published in no zone; 'stele zone ls' lists them", key)
}

func (p *program) zoneKeysCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys ZONE",
		Short: "Show the keys of a signed zone",
		Long: `Keys prints the keys of a zone, which is named by its name or by the prefix of its
namespace: the key tag, what the key signs, its algorithm, and the state that it is in
since when. A csk signs everything; a ksk signs the keys, and a zsk the zone.

	published   it is in the zone, so that everybody learns it
	active      it signs
	retired     it signs no more, and is in the zone for those who have its signatures
	removed     it is gone, and its private part is erased

If a roll is under way it says what comes next, and from when.`,
		Example:           "  stele zone keys paradisec.example\n  stele zone keys urn:paradisec --json",
		Args:              oneArgument("the zone"),
		ValidArgsFunction: p.completeZones,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withKeys(cmd, args[0], func(ctx context.Context, _ *ledger, keys *dnsd.Keys, zone string) error {
				status, err := keys.Status(ctx, zone, 0)
				if err != nil {
					return err
				}
				return p.printKeys(status)
			})
		},
	}
	return neverFiles(cmd)
}

// keyDocument is a key of a zone as programs see it.
type keyDocument struct {
	Tag       string        `json:"tag"`
	Role      dnsd.KeyRole  `json:"role"`
	Algorithm string        `json:"algorithm"`
	Public    string        `json:"public"`
	State     dnsd.KeyState `json:"state"`
	Published time.Time     `json:"published"`
	Active    time.Time     `json:"active,omitzero"`
	Retired   time.Time     `json:"retired,omitzero"`
	Removed   time.Time     `json:"removed,omitzero"`
}

// stepDocument is a step of a roll as programs see it.
type stepDocument struct {
	Role   dnsd.KeyRole  `json:"role"`
	Tag    string        `json:"tag"`
	State  dnsd.KeyState `json:"state"`
	From   time.Time     `json:"from"`
	Parent bool          `json:"parent,omitempty"` // the parent must have its DS record then
}

// keysDocument is the keys of a zone as programs see them.
type keysDocument struct {
	Zone  string           `json:"zone"`
	Keys  []keyDocument    `json:"keys"`
	Steps []stepDocument   `json:"next,omitempty"`
	DS    []recordDocument `json:"ds,omitempty"`
}

func newKeysDocument(s *dnsd.KeyStatus) keysDocument {
	d := keysDocument{Zone: s.Zone, Keys: []keyDocument{}, DS: recordDocuments(s.DS)}
	for i := range s.Keys {
		k := &s.Keys[i]
		d.Keys = append(d.Keys, keyDocument{k.ID, k.Role, dnsd.KeyAlgorithmName(k.Algorithm), k.Public, k.State(), k.Published, k.Active, k.Retired, k.Removed})
	}
	for _, step := range s.Steps {
		d.Steps = append(d.Steps, stepDocument{step.Role, step.Key, step.To, step.From, step.Parent})
	}
	return d
}

// printKeys prints the keys of a zone, and on stderr what comes next.
func (p *program) printKeys(s *dnsd.KeyStatus) error {
	if p.json {
		return p.printLine(newKeysDocument(s))
	}
	out := bufio.NewWriter(p.stdout)
	for i := range s.Keys {
		k := &s.Keys[i]
		fmt.Fprintf(out, "%s %s %-16s %-10s %s\n", k.ID, k.Role, dnsd.KeyAlgorithmName(k.Algorithm), k.State(), since(k).Format(time.RFC3339))
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
		fmt.Fprintf(p.stderr, "stele: next, %s: %s%s; say so with 'stele zone roll %s %s --next'\n", when, step, more, s.Zone, step.Role)
	}
	return nil
}

// since is when a key came into its state.
func since(k *dnsd.ZoneKey) time.Time {
	switch k.State() {
	case dnsd.KeyRemoved:
		return k.Removed
	case dnsd.KeyRetired:
		return k.Retired
	case dnsd.KeyActive:
		return k.Active
	}
	return k.Published
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
			return p.withKeys(cmd, args[0], func(ctx context.Context, _ *ledger, keys *dnsd.Keys, zone string) error {
				status, err := keys.Status(ctx, zone, 0)
				if err != nil {
					return err
				}
				if len(status.DS) == 0 {
					return refuse("zone ds", stele.NotFound, "%s has no keys; 'stele zone sign %s' makes them", zone, zone)
				}
				return p.printDS(status.DS)
			})
		},
	}
	return neverFiles(cmd)
}

func (p *program) printDS(list []dnsd.Entry) error {
	var b strings.Builder
	for _, e := range list {
		if p.json {
			if err := p.printLine(recordDocument(e)); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(&b, "%s %s\n", e.Owner, e.Text)
	}
	_, err := p.stdout.Write([]byte(b.String()))
	return err
}
