package main

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/remote"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/serve/api"
	"github.com/stele-id/stele/serve/dnsd"
)

// keyKeeper looks after the keys of one zone, in a folder or behind a server.
type keyKeeper interface {
	// status returns the keys. Parent is for how long others keep what the zone above
	// says; a day if 0.
	status(ctx context.Context, parent time.Duration) (*dnsd.KeyStatus, error)

	// change does something with them.
	change(ctx context.Context, c remote.ZoneKeysChange) (*dnsd.KeyStatus, error)
}

// nearKeys are the keys of a zone of a registry that is at hand.
type nearKeys struct {
	dnsd.Keys
	key  stele.NamespaceKey
	zone string
	set  func(ctx context.Context, key stele.NamespaceKey, ifVersion uint64, change func(*stele.Namespace) error) (*stele.Namespace, error)
}

func (k *nearKeys) status(ctx context.Context, parent time.Duration) (*dnsd.KeyStatus, error) {
	return k.Status(ctx, k.zone, parent)
}

func (k *nearKeys) change(ctx context.Context, c remote.ZoneKeysChange) (*dnsd.KeyStatus, error) {
	parent := time.Duration(c.ParentTTL) * time.Second
	switch c.Do {
	case "sign":
		return k.sign(ctx, c)
	case "unsign":
		return k.unsign(ctx, c, parent)
	case "refresh":
		return k.Refresh(ctx, k.zone)
	}
	if c.Do == "roll" && c.Algorithm != "" {
		return k.changeAlgorithm(ctx, c)
	}
	role, err := k.role(ctx, c.Role)
	if err != nil {
		return nil, err
	}
	switch c.Do {
	case "roll":
		return k.Roll(ctx, k.zone, role)
	case "next":
		return k.Next(ctx, k.zone, role, parent, c.DSPublished, c.Force)
	}
	return nil, refuse("zone keys", stele.Invalid, "%.40q can't be done with keys; sign, unsign, refresh, roll and next can", c.Do)
}

// role returns which key is rolled.
func (k *nearKeys) role(ctx context.Context, role string) (dnsd.KeyRole, error) {
	if role != "" {
		return dnsd.KeyRole(role), nil
	}
	status, err := k.Status(ctx, k.zone, 0)
	if err != nil {
		return "", err
	}
	if len(status.Steps) > 0 && status.Steps[0].Role == "" {
		return "", nil // a change of algorithm, of all keys
	}
	for i := range status.Keys {
		if one := &status.Keys[i]; one.Role != dnsd.RoleCSK && one.State() != dnsd.KeyRemoved {
			return "", refuse("zone roll", stele.Invalid, "%s has two kinds of keys; say which one, ksk or zsk", k.zone)
		}
	}
	return dnsd.RoleCSK, nil
}

// sign makes keys first: a zone that is to be signed and has none would be refused by
// those who expect signatures.
func (k *nearKeys) sign(ctx context.Context, c remote.ZoneKeysChange) (*dnsd.KeyStatus, error) {
	algorithm, err := dnsd.ParseKeyAlgorithm(c.Algorithm)
	if err != nil {
		return nil, err
	}
	if c.Mode == "" || !stele.Signing(c.Mode).IsValid() {
		return nil, refuse("zone sign", stele.Invalid, "%.40q is no mode; there are online and transfer", c.Mode)
	}
	status, err := k.Begin(ctx, k.zone, algorithm, c.Split)
	if err != nil {
		return nil, err
	}
	return status, k.setSigning(ctx, stele.Signing(c.Mode))
}

func (k *nearKeys) setSigning(ctx context.Context, how stele.Signing) error {
	_, err := k.set(ctx, k.key, 0, func(ns *stele.Namespace) error {
		if ns.Publication.Zone == "" {
			return errors.New("it is published in no zone any more")
		}
		ns.Publication.Signing = how
		return nil
	})
	return err
}

// unsign takes back the DS records of the zone, and when nobody has them any more its
// signatures.
func (k *nearKeys) unsign(ctx context.Context, c remote.ZoneKeysChange, parent time.Duration) (*dnsd.KeyStatus, error) {
	status, done, err := k.Unsign(ctx, k.zone, parent, c.DSPublished, c.Force)
	if err != nil || !done {
		return status, err
	}
	return status, k.setSigning(ctx, stele.NotSigned)
}

func (k *nearKeys) changeAlgorithm(ctx context.Context, c remote.ZoneKeysChange) (*dnsd.KeyStatus, error) {
	algorithm, err := dnsd.ParseKeyAlgorithm(c.Algorithm)
	if err != nil {
		return nil, err
	}
	if c.Role != "" {
		return nil, refuse("zone roll", stele.Invalid, "all keys of a zone have one algorithm; leave out %.20q", c.Role)
	}
	return k.ChangeAlgorithm(ctx, k.zone, algorithm)
}

// farKeys are the keys of a zone of a server's registry.
type farKeys struct {
	r   *remote.Registry
	key stele.NamespaceKey
}

func (k *farKeys) status(ctx context.Context, parent time.Duration) (*dnsd.KeyStatus, error) {
	return keyStatus(k.r.ZoneKeys(ctx, k.key, parent))
}

func (k *farKeys) change(ctx context.Context, c remote.ZoneKeysChange) (*dnsd.KeyStatus, error) {
	return keyStatus(k.r.ChangeZoneKeys(ctx, k.key, c))
}

// keyStatus is what a server says of keys.
func keyStatus(far *remote.ZoneKeys, err error) (*dnsd.KeyStatus, error) {
	if err != nil {
		return nil, err
	}
	s := &dnsd.KeyStatus{Zone: far.Zone, Unsigned: far.Unsigned}
	for _, k := range far.Keys {
		algorithm, err := dnsd.ParseKeyAlgorithm(k.Algorithm)
		if err != nil {
			return nil, err
		}
		s.Keys = append(s.Keys, dnsd.ZoneKey{ID: k.Tag, Role: dnsd.KeyRole(k.Role), Algorithm: algorithm, Public: k.Public,
			Prepared: k.Prepared, Published: k.Published, Active: k.Active, Retired: k.Retired, Leaving: k.Leaving, Removed: k.Removed})
	}
	for _, n := range far.Next {
		s.Steps = append(s.Steps, dnsd.RollStep{Role: dnsd.KeyRole(n.Role), Key: n.Tag, To: dnsd.KeyState(n.State), From: n.From, Parent: n.Parent})
	}
	for _, e := range far.DS {
		s.DS = append(s.DS, dnsd.Entry{Owner: e.Owner, Text: e.Record})
	}
	return s, nil
}

// keyDesk is the keys of a server's registry, for those who ask over HTTP. Zones are those
// that it answers for, or nil if it answers for none.
type keyDesk struct {
	r   *registry.Registry
	now func() time.Time
}

// keysOf returns the keys of a namespace's zone.
func (d *keyDesk) keysOf(ctx context.Context, key stele.NamespaceKey, do func(*nearKeys) (*dnsd.KeyStatus, error)) (*api.ZoneKeys, error) {
	zones := zonesOf(d.r)
	if zones == nil {
		zones = dnsd.NewZones(dnsd.ZonesOptions{Store: d.r.Store, Schemes: d.r.Schemes, Now: d.now, Secrets: d.r.Secrets})
		defer zones.Close()
	}
	zone, err := zoneOf(ctx, zones, key)
	if err != nil {
		return nil, err
	}
	status, err := do(&nearKeys{dnsd.Keys{Store: d.r.Registrar, Zones: zones, Now: d.now, Random: rand.Reader}, key, zone, d.r.Registrar.SetNamespace})
	if err != nil {
		return nil, err
	}
	return shownKeys(status), nil
}

// shownKeys is keys as the API shows them.
func shownKeys(s *dnsd.KeyStatus) *api.ZoneKeys {
	doc := newKeysDocument(s)
	out := &api.ZoneKeys{Zone: doc.Zone, Keys: []api.ZoneKey{}, Unsigned: doc.Unsigned}
	for _, k := range doc.Keys {
		out.Keys = append(out.Keys, api.ZoneKey{Tag: k.Tag, Role: string(k.Role), Algorithm: k.Algorithm, Public: k.Public, State: string(k.State),
			Prepared: k.Prepared, Published: k.Published, Active: k.Active, Retired: k.Retired, Leaving: k.Leaving, Removed: k.Removed})
	}
	for _, n := range doc.Steps {
		out.Next = append(out.Next, api.ZoneStep{Role: string(n.Role), Tag: n.Tag, State: string(n.State), From: n.From, Parent: n.Parent})
	}
	for _, e := range doc.DS {
		out.DS = append(out.DS, api.ZoneRecord{Owner: e.Owner, Record: e.Text})
	}
	return out
}

// ZoneKeys shows keys.
func (d *keyDesk) ZoneKeys(ctx context.Context, key stele.NamespaceKey, parent time.Duration) (*api.ZoneKeys, error) {
	return d.keysOf(ctx, key, func(k *nearKeys) (*dnsd.KeyStatus, error) { return k.status(ctx, parent) })
}

// ChangeZoneKeys changes keys.
func (d *keyDesk) ChangeZoneKeys(ctx context.Context, key stele.NamespaceKey, c api.ZoneKeysChange) (*api.ZoneKeys, error) {
	return d.keysOf(ctx, key, func(k *nearKeys) (*dnsd.KeyStatus, error) { return k.change(ctx, remote.ZoneKeysChange(c)) })
}

// WriteZone writes a zone as a file.
func (d *keyDesk) WriteZone(ctx context.Context, w io.Writer, key stele.NamespaceKey, want api.ZoneFile) error {
	zones := zonesOf(d.r)
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

// secondaryKeys are the keys of secondaries.
func (d *keyDesk) secondaryKeys() *dnsd.TSIGKeys {
	return &dnsd.TSIGKeys{Store: d.r.Registrar, Now: d.now, Random: rand.Reader}
}

// TSIGKeys lists keys of secondaries.
func (d *keyDesk) TSIGKeys(ctx context.Context) (list []api.TSIGKey, err error) {
	keys, err := d.secondaryKeys().List(ctx)
	for _, k := range keys {
		list = append(list, api.TSIGKey(k))
	}
	return list, err
}

// AddTSIGKey makes a key of secondaries.
func (d *keyDesk) AddTSIGKey(ctx context.Context, name, algorithm string) (*api.TSIGKey, error) {
	if algorithm == "" {
		algorithm = dnsd.TSIGSHA256
	}
	k, err := d.secondaryKeys().Add(ctx, name, algorithm)
	return (*api.TSIGKey)(k), err
}

// RetireTSIGKey ends the use of a key of secondaries.
func (d *keyDesk) RetireTSIGKey(ctx context.Context, name string) (*api.TSIGKey, error) {
	k, err := d.secondaryKeys().Retire(ctx, name)
	return (*api.TSIGKey)(k), err
}
