package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"io"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/serve/api"
)

// Keys manages the keys of a registry: of its zones, of secondaries, and those that encrypt
// its secrets. The API uses it.
type Keys struct {
	r   *registry.Registry
	now func() time.Time
}

// NewKeys manages the keys of an open registry.
func NewKeys(r *registry.Registry, now func() time.Time) *Keys { return &Keys{r, now} }

// zones returns the zones that the server answers for, or new ones if it answers for none,
// and what closes them.
func (k *Keys) zones() (zones *publish.Zones, end func()) {
	if zones := Zones(k.r); zones != nil {
		return zones, func() {}
	}
	zones = publish.NewZones(publish.ZonesOptions{Store: k.r.Store, Schemes: k.r.Schemes, Now: k.now, Secrets: k.r.Secrets})
	return zones, zones.Close
}

// keysOf calls do with the keys of a namespace's zone.
func (k *Keys) keysOf(ctx context.Context, key stele.NamespaceKey, do func(m *zonekey.Manager, zone string) (*zonekey.Status, error)) (*zonekey.Status, error) {
	zones, end := k.zones()
	defer end()
	zone, err := zones.Of(ctx, key)
	if err != nil {
		return nil, err
	}
	return do(&zonekey.Manager{Store: k.r.Registrar, Zones: zones, Now: k.now, Random: rand.Reader}, zone)
}

// ZoneKeys returns the keys of a namespace's zone.
func (k *Keys) ZoneKeys(ctx context.Context, key stele.NamespaceKey, parent time.Duration) (*zonekey.Status, error) {
	return k.keysOf(ctx, key, func(m *zonekey.Manager, zone string) (*zonekey.Status, error) { return m.Status(ctx, zone, parent) })
}

// ChangeZoneKeys changes the keys of a namespace's zone.
func (k *Keys) ChangeZoneKeys(ctx context.Context, key stele.NamespaceKey, c zonekey.Change) (*zonekey.Status, error) {
	return k.keysOf(ctx, key, func(m *zonekey.Manager, zone string) (*zonekey.Status, error) { return m.Change(ctx, zone, c) })
}

// WriteZone writes a zone as a file.
func (k *Keys) WriteZone(ctx context.Context, w io.Writer, key stele.NamespaceKey, want api.ZoneFile) error {
	zones, end := k.zones()
	defer end()
	zone, err := zones.Of(ctx, key)
	if err != nil {
		return err
	}
	return WriteZone(ctx, zones, w, zone, want, nil)
}

// WriteZone writes a zone as a master file. It calls told, if not nil, with the number of
// records that it has written.
func WriteZone(ctx context.Context, zones *publish.Zones, w io.Writer, zone string, want api.ZoneFile, told func(n int)) error {
	switch {
	case want.Parent:
		return zones.ExportParent(ctx, w, zone, want.Root)
	case want.Signed:
		return zones.ExportSigned(ctx, w, zone, told)
	}
	return zones.Export(ctx, w, zone, told)
}

// tsig changes the TSIG keys of the registry.
func (k *Keys) tsig() *zonekey.TSIGManager {
	return &zonekey.TSIGManager{Store: k.r.Registrar, Now: k.now, Random: rand.Reader}
}

// TSIGKeys lists the TSIG keys.
func (k *Keys) TSIGKeys(ctx context.Context) ([]zonekey.TSIGKey, error) { return k.tsig().List(ctx) }

// AddTSIGKey makes a TSIG key.
func (k *Keys) AddTSIGKey(ctx context.Context, name, algorithm string) (*zonekey.TSIGKey, error) {
	return k.tsig().Add(ctx, name, cmp.Or(algorithm, zonekey.TSIGSHA256))
}

// RetireTSIGKey ends the use of a TSIG key.
func (k *Keys) RetireTSIGKey(ctx context.Context, name string) (*zonekey.TSIGKey, error) {
	return k.tsig().Retire(ctx, name)
}

// SecretKeys returns which keys encrypt secrets.
func (k *Keys) SecretKeys(ctx context.Context) (*apijson.SecretKeys, error) {
	keys, err := k.r.Registrar.SecretKeys(ctx, zonekey.SealCell)
	out := &apijson.SecretKeys{Keys: []apijson.SecretKey{}}
	for _, one := range keys {
		if one.ID == "" {
			out.Clear = one.Secrets
			continue
		}
		out.Keys = append(out.Keys, apijson.SecretKey(one))
	}
	return out, err
}

// RotateSecrets encrypts all secrets under another key, and makes the store remove what was
// there before.
func (k *Keys) RotateSecrets(ctx context.Context, want apijson.SecretRotation) (*apijson.SecretRotated, error) {
	done, err := k.r.Registrar.RotateSecrets(ctx, want.Key, want.Lost, zonekey.SealCell)
	if err != nil {
		return nil, err
	}
	out := &apijson.SecretRotated{Key: done.Key, Moved: done.Moved + done.Clear, Lost: done.Lost}
	if out.Moved > 0 {
		err = k.r.Compact(ctx)
	}
	return out, err
}
