package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"io"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/remote"
	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/serve/api"
	"github.com/stele-id/stele/serve/dnsd"
	"github.com/stele-id/stele/server"
)

// keyKeeper reads and changes the keys of one zone, in a folder or at a server.
type keyKeeper interface {
	// status returns the keys. parent is the TTL of the DS records at the parent; a day if
	// 0.
	status(ctx context.Context, parent time.Duration) (*zonekey.Status, error)

	// change does something with them.
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

// keyDesk is the keys of a server's registry, for those who ask over HTTP. Zones are those
// that it answers for, or nil if it answers for none.
type keyDesk struct {
	r   *registry.Registry
	now func() time.Time
}

// keysOf calls do with the keys of a namespace's zone.
func (d *keyDesk) keysOf(ctx context.Context, key stele.NamespaceKey, do func(*localKeys) (*zonekey.Status, error)) (*zonekey.Status, error) {
	zones := server.Zones(d.r)
	if zones == nil {
		zones = dnsd.NewZones(dnsd.ZonesOptions{Store: d.r.Store, Schemes: d.r.Schemes, Now: d.now, Secrets: d.r.Secrets})
		defer zones.Close()
	}
	zone, err := zoneOf(ctx, zones, key)
	if err != nil {
		return nil, err
	}
	return do(&localKeys{zonekey.Manager{Store: d.r.Registrar, Zones: zones, Now: d.now, Random: rand.Reader}, zone})
}

// ZoneKeys returns the keys of a namespace's zone.
func (d *keyDesk) ZoneKeys(ctx context.Context, key stele.NamespaceKey, parent time.Duration) (*zonekey.Status, error) {
	return d.keysOf(ctx, key, func(k *localKeys) (*zonekey.Status, error) { return k.status(ctx, parent) })
}

// ChangeZoneKeys changes the keys of a namespace's zone.
func (d *keyDesk) ChangeZoneKeys(ctx context.Context, key stele.NamespaceKey, c zonekey.Change) (*zonekey.Status, error) {
	return d.keysOf(ctx, key, func(k *localKeys) (*zonekey.Status, error) { return k.change(ctx, c) })
}

// WriteZone writes a zone as a file.
func (d *keyDesk) WriteZone(ctx context.Context, w io.Writer, key stele.NamespaceKey, want api.ZoneFile) error {
	zones := server.Zones(d.r)
	if zones == nil {
		zones = dnsd.NewZones(dnsd.ZonesOptions{Store: d.r.Store, Schemes: d.r.Schemes, Now: d.now, Secrets: d.r.Secrets})
		defer zones.Close()
	}
	zone, err := zoneOf(ctx, zones, key)
	if err != nil {
		return err
	}
	return writeZone(ctx, zones, w, zone, remote.ZoneFile(want), nil)
}

// writeZone writes a zone as a file.
func writeZone(ctx context.Context, zones *dnsd.Zones, w io.Writer, zone string, want remote.ZoneFile, told func(n int)) error {
	switch {
	case want.Parent:
		return zones.ExportParent(ctx, w, zone, want.Root)
	case want.Signed:
		return zones.ExportSigned(ctx, w, zone, told)
	}
	return zones.Export(ctx, w, zone, told)
}

// tsig changes the TSIG keys of the registry.
func (d *keyDesk) tsig() *zonekey.TSIGManager {
	return &zonekey.TSIGManager{Store: d.r.Registrar, Now: d.now, Random: rand.Reader}
}

// TSIGKeys lists the TSIG keys.
func (d *keyDesk) TSIGKeys(ctx context.Context) ([]zonekey.TSIGKey, error) { return d.tsig().List(ctx) }

// AddTSIGKey makes a TSIG key.
func (d *keyDesk) AddTSIGKey(ctx context.Context, name, algorithm string) (*zonekey.TSIGKey, error) {
	return d.tsig().Add(ctx, name, cmp.Or(algorithm, zonekey.TSIGSHA256))
}

// RetireTSIGKey ends the use of a TSIG key.
func (d *keyDesk) RetireTSIGKey(ctx context.Context, name string) (*zonekey.TSIGKey, error) {
	return d.tsig().Retire(ctx, name)
}
