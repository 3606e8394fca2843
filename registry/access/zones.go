package access

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/remote"
	"github.com/stele-id/stele/outbound"
	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/registry"
)

// Zones returns the zones of the registry as it is. The caller closes them.
func (l *Registry) Zones() *publish.Zones {
	o := publish.ZonesOptions{Store: l.Source(), Schemes: l.Schemes, Now: l.Now, Keyless: true}
	if f, near := l.Backend.(*Local); near {
		o.Keyless, o.Secrets = false, f.Registry.Secrets
	}
	return publish.NewZones(o)
}

// Absolute returns the canonical form of a domain name: in lower case, with a dot at the end.
func Absolute(name string) string { return strings.TrimSuffix(strings.ToLower(name), ".") + "." }

// ZoneOwner returns the namespace that a zone, or a prefix, names. Conflict if the zone is a catalog.
func (l *Registry) ZoneOwner(ctx context.Context, zones *publish.Zones, text string) (stele.NamespaceKey, error) {
	list, err := zones.List(ctx)
	if err != nil {
		return stele.NamespaceKey{}, err
	}
	for _, z := range list {
		if z.Zone == Absolute(text) && z.Layout == publish.LayoutCatalog {
			return stele.NamespaceKey{}, stele.Errorf("find zone", stele.ID{}, stele.Conflict, "zone.is-catalog", "{zone} is a catalog, which is made of the zones that it lists, with their secondaries; change those, or see 'stele zone catalog --help'", z.Zone)
		}
		if z.Zone == Absolute(text) {
			return z.Namespace, nil
		}
	}
	key, err := l.ParsePrefix(text)
	if err != nil {
		return key, noZone(text)
	}
	return key, nil
}

func noZone(text string) error {
	return stele.Errorf("find zone", stele.ID{}, stele.NotFound, "zone.unknown", `there is no zone "{zone}" here; 'stele zone ls' lists them`, text)
}

// PublishedIn returns the namespace that is published in a zone.
func (l *Registry) PublishedIn(ctx context.Context, zone string) (*stele.Namespace, error) {
	for ns, err := range l.Namespaces(ctx) {
		if err != nil {
			return nil, err
		}
		if ns.Publication.Zone == Absolute(zone) {
			return ns, nil
		}
	}
	return nil, noZone(zone)
}

// SetZone changes how the namespace of a zone is published. Op is what is tried, for errors.
func (l *Registry) SetZone(ctx context.Context, zones *publish.Zones, op, zone string, change func(p *stele.Publication) error) (*stele.Namespace, error) {
	key, err := l.ZoneOwner(ctx, zones, zone)
	if err != nil {
		return nil, err
	}
	return l.SetNamespace(ctx, key, 0, func(ns *stele.Namespace) error {
		if ns.Publication.Zone == "" {
			return stele.Errorf(op, stele.ID{}, stele.Conflict, "zone.none-of-namespace", "{namespace} is published in no zone; 'stele zone add' does that", key)
		}
		return change(&ns.Publication)
	})
}

// Unpublish takes the namespace of a zone out of the DNS.
func (l *Registry) Unpublish(ctx context.Context, zones *publish.Zones, zone string) (*stele.Namespace, error) {
	key, err := l.ZoneOwner(ctx, zones, zone)
	if err != nil {
		return nil, err
	}
	return l.SetNamespace(ctx, key, 0, func(ns *stele.Namespace) error {
		if ns.Publication.IsZero() {
			return stele.Errorf("withdraw", stele.ID{}, stele.Conflict, "zone.prefix-not-published", "{namespace} is not published", key)
		}
		ns.Publication = stele.Publication{}
		return nil
	})
}

// CompareZone asks the secondaries of a zone which serial they have: at the addresses that
// may allows, or by the server.
func (l *Registry) CompareZone(ctx context.Context, z publish.Listed, may func() (outbound.Rule, error)) (remote.CheckedZone, error) {
	if far, ok := l.Backend.(*Remote); ok {
		return far.CheckSecondaries(ctx, z.Zone)
	}
	rule, err := may()
	if err != nil {
		return remote.CheckedZone{}, err
	}
	answers, err := registry.AskZoneSecondaries(ctx, rule, l.Source(), z.Zone)
	return remote.CheckedZone{Zone: z.Zone, Serial: z.Serial, Shut: z.Shut, Secondaries: answers}, err
}

// ZoneKeys reads and changes the keys of one zone.
type ZoneKeys interface {
	// Status returns the keys. Parent is the TTL of the DS records at the parent; a day if
	// 0.
	Status(ctx context.Context, parent time.Duration) (*zonekey.Status, error)

	// Change changes the keys.
	Change(ctx context.Context, c zonekey.Change) (*zonekey.Status, error)
}

// ZoneKeys returns the keys of the zone that a text names, by its name or by the prefix of its
// namespace, and the zone's name. The zones must stay open while the keys are used.
func (l *Registry) ZoneKeys(ctx context.Context, zones *publish.Zones, text string) (keys ZoneKeys, zone string, err error) {
	key, err := l.ZoneOwner(ctx, zones, text)
	if err != nil {
		return nil, "", err
	}
	if zone, err = zones.Of(ctx, key); err != nil {
		return nil, "", err
	}
	switch k := l.Backend.(type) {
	case *Remote:
		return &remoteZoneKeys{k.Registry, key}, zone, nil
	case *Local:
		return &localZoneKeys{zonekey.Manager{Store: k.Registrar, Zones: zones, Now: l.Now, Random: rand.Reader}, zone}, zone, nil
	}
	return nil, "", stele.Errorf("zone keys", stele.ID{}, stele.Internal, "zone.keys-unreachable", "the keys of {zone} can't be found", zone)
}

// localZoneKeys are the keys of a zone of a registry that this process has open.
type localZoneKeys struct {
	zonekey.Manager
	zone string
}

func (k *localZoneKeys) Status(ctx context.Context, parent time.Duration) (*zonekey.Status, error) {
	return k.Manager.Status(ctx, k.zone, parent)
}

func (k *localZoneKeys) Change(ctx context.Context, c zonekey.Change) (*zonekey.Status, error) {
	return k.Manager.Change(ctx, k.zone, c)
}

// remoteZoneKeys are the keys of a zone of a server's registry.
type remoteZoneKeys struct {
	r   *remote.Registry
	key stele.NamespaceKey
}

func (k *remoteZoneKeys) Status(ctx context.Context, parent time.Duration) (*zonekey.Status, error) {
	return k.r.ZoneKeys(ctx, k.key, parent)
}

func (k *remoteZoneKeys) Change(ctx context.Context, c zonekey.Change) (*zonekey.Status, error) {
	return k.r.ChangeZoneKeys(ctx, k.key, c)
}

// SecondaryKeys reads and changes the TSIG keys of secondaries.
type SecondaryKeys interface {
	// List returns all keys, without their secrets.
	List(ctx context.Context) ([]zonekey.TSIGKey, error)

	// Add makes a key, and returns it with its secret.
	Add(ctx context.Context, name, algorithm string) (*zonekey.TSIGKey, error)

	// Retire ends the use of a key.
	Retire(ctx context.Context, name string) (*zonekey.TSIGKey, error)
}

// SecondaryKeys returns the TSIG keys of secondaries.
func (l *Registry) SecondaryKeys() SecondaryKeys {
	if far, ok := l.Backend.(*Remote); ok {
		return remoteSecondaryKeys{far.Registry}
	}
	return &zonekey.TSIGManager{Store: l.Backend.(*Local).Registrar, Now: l.Now, Random: rand.Reader}
}

// remoteSecondaryKeys are the TSIG keys of a server's registry.
type remoteSecondaryKeys struct{ r *remote.Registry }

func (t remoteSecondaryKeys) List(ctx context.Context) (list []zonekey.TSIGKey, err error) {
	for k, err := range t.r.SecondaryKeys(ctx) {
		if err != nil {
			return nil, err
		}
		list = append(list, k)
	}
	return list, nil
}

func (t remoteSecondaryKeys) Add(ctx context.Context, name, algorithm string) (*zonekey.TSIGKey, error) {
	return t.r.AddSecondaryKey(ctx, name, algorithm)
}

func (t remoteSecondaryKeys) Retire(ctx context.Context, name string) (*zonekey.TSIGKey, error) {
	return t.r.RetireSecondaryKey(ctx, name)
}
