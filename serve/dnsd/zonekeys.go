package dnsd

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/secret"
)

// KeyStore is where the keys of zones are written: the registrar. Its obligations are
// those of the registrar's methods.
type KeyStore interface {
	ZoneKeys(ctx context.Context, key stele.NamespaceKey) ([]stele.Cell, error)
	SetZoneKeys(ctx context.Context, key stele.NamespaceKey, change func(cells []stele.Cell) ([]stele.CellChange, error)) error
	SealSecret(ctx context.Context, place string, v *secret.Value) error
}

// Keys look after the keys of zones, for people and programs who may. What they return
// has no private parts.
type Keys struct {
	Store  KeyStore
	Zones  *Zones
	Now    func() time.Time
	Random io.Reader
}

// KeyStatus is the keys of a zone and what is to be done about them.
type KeyStatus struct {
	Zone   string
	Keys   []ZoneKey
	Steps  []RollStep // of rolls that are under way
	DS     []Entry    // that the parent should have
	Signed time.Time  // from when the signatures of a zone in the mode transfer are

	// Unsigned is from when a zone that is about to go without signatures may; the zero
	// time if it is to be signed, or if nobody has said yet that the parent has no DS
	// records of it.
	Unsigned time.Time
}

// IsUnsigning reports whether the zone is about to go without signatures: it has keys, and
// the parent should point at none.
func (s *KeyStatus) IsUnsigning() bool {
	return len(s.DS) == 0 && slices.ContainsFunc(s.Keys, func(k ZoneKey) bool { return k.State() != KeyRemoved })
}

// Begin makes the first keys of a zone, if it has none.
func (k *Keys) Begin(ctx context.Context, zone string, algorithm uint8, split bool) (*KeyStatus, error) {
	return k.change(ctx, zone, 0, func(r *KeyRing, _ *zoneTimes) error {
		return r.Begin(algorithm, split, k.Now(), k.Random)
	})
}

// Roll begins to roll the key of a role.
func (k *Keys) Roll(ctx context.Context, zone string, role KeyRole) (*KeyStatus, error) {
	return k.change(ctx, zone, 0, func(r *KeyRing, _ *zoneTimes) error {
		_, err := r.Roll(role, k.Now(), k.Random)
		return err
	})
}

// ChangeAlgorithm begins to put keys of another algorithm in the place of all keys.
func (k *Keys) ChangeAlgorithm(ctx context.Context, zone string, algorithm uint8) (*KeyStatus, error) {
	return k.change(ctx, zone, 0, func(r *KeyRing, _ *zoneTimes) error {
		return r.ChangeAlgorithm(algorithm, k.Now(), k.Random)
	})
}

// Unsign has a zone go without signatures. First it takes the DS records back. atParent says
// that the parent has none: when that is said first it is noted. When it is said again, and
// nobody has them any more, Unsign returns done: whoever calls it says so in the settings
// of the zone then. Conflict if others may still have them, unless force is set.
func (k *Keys) Unsign(ctx context.Context, zone string, parent time.Duration, atParent, force bool) (status *KeyStatus, done bool, err error) {
	status, err = k.change(ctx, zone, parent, func(r *KeyRing, t *zoneTimes) error {
		done = false
		switch {
		case force:
		case r.Unsigning.IsZero() || !atParent && !t.parentIsOurs:
			return r.unsign(k.Now())
		case r.Withdrawn.IsZero() && !t.parentIsOurs:
			return r.withdraw(k.Now())
		}
		done = true
		return r.mayUnsign(t, k.Now(), force)
	})
	return status, done, err
}

// Next does the next step of a roll. parent is the TTL of the DS records at the parent;
// a day if 0. See [KeyRing.Next] for the rest.
func (k *Keys) Next(ctx context.Context, zone string, role KeyRole, parent time.Duration, atParent, force bool) (*KeyStatus, error) {
	return k.change(ctx, zone, parent, func(r *KeyRing, t *zoneTimes) error {
		step, err := r.Next(role, t.KeyTimes, k.Now(), atParent || t.parentIsOurs, force)
		if err == nil && t.parentIsOurs && r.isChanging() && step.To == KeyActive {
			r.withdrawOld(k.Now()) // a parent of ours has the right ones at once
		}
		return err
	})
}

// Refresh makes the signatures of a zone in the mode transfer anew.
func (k *Keys) Refresh(ctx context.Context, zone string) (*KeyStatus, error) {
	return k.change(ctx, zone, 0, func(r *KeyRing, _ *zoneTimes) error {
		r.refresh(k.Now())
		return nil
	})
}

// RefreshAll makes the signatures of all zones in the mode transfer anew whose time has
// come. It is to be called more often than once a week.
func (k *Keys) RefreshAll(ctx context.Context) error {
	set, err := k.Zones.current(ctx)
	if err != nil {
		return err
	}
	for _, name := range set.order {
		if s := set.zones[name].seals; s == nil || s.mode != signTransfer {
			continue
		}
		_, err := k.change(ctx, name, 0, func(r *KeyRing, _ *zoneTimes) error {
			r.Refresh(k.Now())
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Status returns the keys of a zone, to those who may change them.
func (k *Keys) Status(ctx context.Context, zone string, parent time.Duration) (*KeyStatus, error) {
	one, err := k.Zones.zoneNamed(ctx, zone)
	if err != nil {
		return nil, err
	}
	cells, err := k.Store.ZoneKeys(ctx, one.ns.Key())
	if err != nil {
		return nil, err
	}
	r, err := ReadKeyRing(one.name, cells)
	if err != nil {
		return nil, err
	}
	return r.status(one.keyTimes(parent))
}

// change changes the keys of a zone, and returns how they are then.
func (k *Keys) change(ctx context.Context, zone string, parent time.Duration, change func(*KeyRing, *zoneTimes) error) (*KeyStatus, error) {
	one, err := k.Zones.zoneNamed(ctx, zone)
	if err != nil {
		return nil, err
	}
	times := one.keyTimes(parent)
	var status *KeyStatus
	err = k.Store.SetZoneKeys(ctx, one.ns.Key(), func(cells []stele.Cell) ([]stele.CellChange, error) {
		r, err := ReadKeyRing(one.name, cells)
		if err != nil {
			return nil, err
		}
		if err := change(r, times); err != nil {
			return nil, err
		}
		if status, err = r.status(times); err != nil {
			return nil, err
		}
		return r.Changes(func(place string, v *secret.Value) error { return k.Store.SealSecret(ctx, place, v) })
	})
	return status, err
}

// status tells how the keys are.
func (r *KeyRing) status(t *zoneTimes) (*KeyStatus, error) {
	s := &KeyStatus{Zone: r.Zone, DS: r.DS(uint32(t.Keys/time.Second), true), Signed: r.Signed}
	if !r.Unsigning.IsZero() {
		s.Unsigned = r.unsignFrom(t)
	}
	for _, k := range r.Keys {
		public := *k
		public.Private = secret.Value{}
		s.Keys = append(s.Keys, public)
	}
	for i, role := range r.Roles() {
		if r.isChanging() && i > 0 {
			break // it is the same for all
		}
		step, err := r.Step(role, t.KeyTimes)
		if err != nil {
			return nil, err
		}
		if step != nil {
			step.Parent = step.Parent && !t.parentIsOurs
			s.Steps = append(s.Steps, *step)
		}
	}
	return s, nil
}

// zoneTimes are the times of a zone's keys.
type zoneTimes struct {
	KeyTimes
	parentIsOurs bool // so its DS records are there as soon as they are wanted
}

// How long a change takes until all servers of a zone have it: those that share the
// registry, and secondaries, which ask so often if nobody tells them.
const (
	spreadShared     = 5 * time.Minute
	spreadSecondary  = (soaRefresh + soaRetry) * time.Second
	defaultParentTTL = 24 * time.Hour
)

// keyTimes returns the times of the zone's keys. parent is the TTL of the DS records at
// the parent, if that is not ours.
func (z *zone) keyTimes(parent time.Duration) *zoneTimes {
	ttl := time.Duration(z.zones.ttl) * time.Second
	t := &zoneTimes{KeyTimes: KeyTimes{Keys: ttl, Zone: ttl, Parent: parent, Spread: spreadShared}}
	for _, ns := range z.set.byKey {
		t.Zone = max(t.Zone, time.Duration(ns.TTL)*time.Second)
	}
	if t.Parent == 0 {
		t.Parent = defaultParentTTL
	}
	if z.set.outer(z) != nil {
		t.Parent, t.parentIsOurs = ttl, true
	}
	if z.zones.signing(z.ns) == signTransfer {
		t.Spread = spreadSecondary
	}
	return t
}
