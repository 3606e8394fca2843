package zonekey

import (
	"context"
	"io"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/secret"
)

// Store is where the keys of zones are written: the registrar. Its obligations are those
// of the registrar's methods.
type Store interface {
	ZoneKeys(ctx context.Context, key stele.NamespaceKey) ([]stele.Cell, error)
	SetZoneKeys(ctx context.Context, key stele.NamespaceKey, change func(cells []stele.Cell) ([]stele.CellChange, error)) error
	SetNamespace(ctx context.Context, key stele.NamespaceKey, ifVersion uint64, change func(*stele.Namespace) error) (*stele.Namespace, error)
	SealSecret(ctx context.Context, place string, v *secret.Value) error
}

// Zones are the zones of a registry, of which a [Manager] has to know how long their
// records stay in caches.
type Zones interface {
	// KeyZone returns a zone by its name, in any case and with or without the dot at its
	// end. parent is the TTL of the DS records at the parent; a day if 0. NotFound if the
	// registry has no such zone.
	KeyZone(ctx context.Context, name string, parent time.Duration) (Zone, error)

	// SignedForTransfer returns the names of the zones that are signed in the mode
	// transfer.
	SignedForTransfer(ctx context.Context) ([]string, error)
}

// Zone is what a [Manager] has to know of a zone.
type Zone struct {
	Name      string // absolute and in lower case
	Namespace stele.NamespaceKey
	Times     Times
}

// Manager changes the keys of zones for their owners and for administrators. What it
// returns has no private parts.
type Manager struct {
	Store  Store
	Zones  Zones
	Now    func() time.Time
	Random io.Reader
}

// Status returns the keys of a zone. parent is the TTL of the DS records at the parent; a
// day if 0.
func (m *Manager) Status(ctx context.Context, zone string, parent time.Duration) (*Status, error) {
	z, err := m.Zones.KeyZone(ctx, zone, parent)
	if err != nil {
		return nil, err
	}
	cells, err := m.Store.ZoneKeys(ctx, z.Namespace)
	if err != nil {
		return nil, err
	}
	r, err := ReadRing(z.Name, cells)
	if err != nil {
		return nil, err
	}
	return r.status(z.Times)
}

// Change does what an owner asks for, and returns how the keys are then. If c says to sign
// the zone or not, the settings of its namespace change too.
func (m *Manager) Change(ctx context.Context, zone string, c Change) (*Status, error) {
	parent := time.Duration(c.ParentTTL) * time.Second
	switch c.Do {
	case "sign":
		return m.sign(ctx, zone, c)
	case "unsign":
		status, done, err := m.Unsign(ctx, zone, parent, c.DSPublished, c.Force)
		if err != nil || !done {
			return status, err
		}
		return status, m.setSigning(ctx, zone, stele.NotSigned)
	case "refresh":
		return m.Refresh(ctx, zone)
	}
	if c.Do == "roll" && c.Algorithm != "" {
		algorithm, err := ParseAlgorithm(c.Algorithm)
		if err != nil {
			return nil, err
		}
		if c.Role != "" {
			return nil, opError("zone roll", stele.Invalid, "dnssec-key.role-unexpected", `all keys of a zone have one algorithm; leave out "{role}"`, string(c.Role))
		}
		return m.ChangeAlgorithm(ctx, zone, algorithm)
	}
	role, err := m.role(ctx, zone, c.Role)
	if err != nil {
		return nil, err
	}
	switch c.Do {
	case "roll":
		return m.Roll(ctx, zone, role)
	case "next":
		return m.Next(ctx, zone, role, parent, c.DSPublished, c.Force)
	}
	return nil, keyError(stele.Invalid, "dnssec-key.action-unknown", `"{action}" can't be done with keys; sign, unsign, refresh, roll and next can`, c.Do)
}

// role returns which key is rolled: the role that is asked for, or the only one there is.
func (m *Manager) role(ctx context.Context, zone string, role Role) (Role, error) {
	if role != "" {
		return role, nil
	}
	status, err := m.Status(ctx, zone, 0)
	if err != nil {
		return "", err
	}
	if len(status.Steps) > 0 && status.Steps[0].Role == "" {
		return "", nil // a change of algorithm, of all keys
	}
	for _, k := range status.Keys {
		if k.Role != CSK && k.State != Removed {
			return "", opError("zone roll", stele.Invalid, "dnssec-key.role-ambiguous", "{zone} has two kinds of keys; say which one, ksk or zsk", status.Zone)
		}
	}
	return CSK, nil
}

// sign makes keys before it changes the settings: validators would refuse a zone that is
// to be signed and has no keys.
func (m *Manager) sign(ctx context.Context, zone string, c Change) (*Status, error) {
	algorithm, err := ParseAlgorithm(c.Algorithm)
	if err != nil {
		return nil, err
	}
	if c.Mode == "" || !stele.Signing(c.Mode).IsValid() {
		return nil, opError("zone sign", stele.Invalid, "dnssec-key.mode-unknown", `"{mode}" is not a mode; there are online and transfer`, c.Mode)
	}
	status, err := m.Begin(ctx, zone, algorithm, c.Split)
	if err != nil {
		return nil, err
	}
	return status, m.setSigning(ctx, zone, stele.Signing(c.Mode))
}

// setSigning changes how a zone is signed, in the settings of its namespace.
func (m *Manager) setSigning(ctx context.Context, zone string, how stele.Signing) error {
	z, err := m.Zones.KeyZone(ctx, zone, 0)
	if err != nil {
		return err
	}
	_, err = m.Store.SetNamespace(ctx, z.Namespace, 0, func(ns *stele.Namespace) error {
		if ns.Publication.Zone == "" {
			return stele.Messagef("dnssec-key.zone-no-longer-published", "it is published in no zone any more")
		}
		ns.Publication.Signing = how
		return nil
	})
	return err
}

// Begin makes the first keys of a zone, if it has none.
func (m *Manager) Begin(ctx context.Context, zone string, algorithm uint8, split bool) (*Status, error) {
	return m.update(ctx, zone, 0, func(r *Ring, _ Times) error {
		return r.Begin(algorithm, split, m.Now(), m.Random)
	})
}

// Roll begins to roll the key of a role; see [Ring.Roll].
func (m *Manager) Roll(ctx context.Context, zone string, role Role) (*Status, error) {
	return m.update(ctx, zone, 0, func(r *Ring, _ Times) error {
		_, err := r.Roll(role, m.Now(), m.Random)
		return err
	})
}

// ChangeAlgorithm begins to replace all keys by keys of another algorithm; see
// [Ring.ChangeAlgorithm].
func (m *Manager) ChangeAlgorithm(ctx context.Context, zone string, algorithm uint8) (*Status, error) {
	return m.update(ctx, zone, 0, func(r *Ring, _ Times) error {
		return r.ChangeAlgorithm(algorithm, m.Now(), m.Random)
	})
}

// Unsign prepares a zone to go without signatures. First the parent should no longer have
// its DS records. atParent says that the parent has none: the first time Unsign notes that.
// When the caller says so again, and no cache has them any more, Unsign removes the keys and
// returns done, and the caller changes the settings of the zone. Conflict if caches may
// still have them, unless force is set.
func (m *Manager) Unsign(ctx context.Context, zone string, parent time.Duration, atParent, force bool) (status *Status, done bool, err error) {
	status, err = m.update(ctx, zone, parent, func(r *Ring, t Times) error {
		done = false
		switch {
		case force:
		case r.Unsigning.IsZero() || !atParent && !t.LocalParent:
			return r.unsign(m.Now())
		case r.Withdrawn.IsZero() && !t.LocalParent:
			return r.withdraw(m.Now())
		}
		done = true
		return r.finishUnsign(t, m.Now(), force)
	})
	return status, done, err
}

// Next does the next step of a roll. parent is the TTL of the DS records at the parent;
// a day if 0. See [Ring.Next] for the rest.
func (m *Manager) Next(ctx context.Context, zone string, role Role, parent time.Duration, atParent, force bool) (*Status, error) {
	return m.update(ctx, zone, parent, func(r *Ring, t Times) error {
		step, err := r.Next(role, t, m.Now(), atParent || t.LocalParent, force)
		if err == nil && t.LocalParent && r.IsChangingAlgorithm() && step.To == Active {
			r.withdrawOld(m.Now()) // the parent has the right ones at once
		}
		return err
	})
}

// Refresh makes the signatures of a zone in the mode transfer anew.
func (m *Manager) Refresh(ctx context.Context, zone string) (*Status, error) {
	return m.update(ctx, zone, 0, func(r *Ring, _ Times) error {
		r.refresh(m.Now())
		return nil
	})
}

// RefreshAll makes the signatures of all zones in the mode transfer anew that are older
// than a week. The server calls it more often than that.
func (m *Manager) RefreshAll(ctx context.Context) error {
	zones, err := m.Zones.SignedForTransfer(ctx)
	if err != nil {
		return err
	}
	for _, zone := range zones {
		_, err := m.update(ctx, zone, 0, func(r *Ring, _ Times) error {
			r.Refresh(m.Now())
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// update changes the keys of a zone, and returns how they are then.
func (m *Manager) update(ctx context.Context, zone string, parent time.Duration, change func(*Ring, Times) error) (*Status, error) {
	z, err := m.Zones.KeyZone(ctx, zone, parent)
	if err != nil {
		return nil, err
	}
	var status *Status
	err = m.Store.SetZoneKeys(ctx, z.Namespace, func(cells []stele.Cell) ([]stele.CellChange, error) {
		r, err := ReadRing(z.Name, cells)
		if err != nil {
			return nil, err
		}
		if err := change(r, z.Times); err != nil {
			return nil, err
		}
		if status, err = r.status(z.Times); err != nil {
			return nil, err
		}
		return r.Changes(func(place string, v *secret.Value) error { return m.Store.SealSecret(ctx, place, v) })
	})
	return status, err
}

// status returns how the keys are.
func (r *Ring) status(t Times) (*Status, error) {
	s := &Status{Zone: r.Zone, Keys: []Key{}, DS: r.DS(uint32(t.Keys / time.Second)), Signed: r.Signed}
	if !r.Unsigning.IsZero() {
		s.Unsigned = r.unsignFrom(t)
	}
	for _, k := range r.Keys {
		s.Keys = append(s.Keys, k.public())
	}
	for i, role := range r.Roles() {
		if r.IsChangingAlgorithm() && i > 0 {
			break // it is the same for all
		}
		step, err := r.Step(role, t)
		if err != nil {
			return nil, err
		}
		if step != nil {
			step.Parent = step.Parent && !t.LocalParent
			s.Steps = append(s.Steps, *step)
		}
	}
	return s, nil
}
