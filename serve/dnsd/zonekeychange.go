package dnsd

import (
	"io"
	"slices"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/secret"
)

// changeSteps say what the steps of a change of algorithm are.
var changeSteps = map[KeyState]string{
	KeyPublished: "the keys of the new algorithm, which sign already, are published",
	KeyActive:    "the keys of the new algorithm become active",
	KeyLeaving:   "the keys of the old algorithm, which go on signing, are published no more",
	KeyRemoved:   "the keys of the old algorithm are removed",
}

// ChangeAlgorithm makes keys of another algorithm for all roles. Conflict if a roll is
// under way, if the zone has no keys, or if its algorithm is that one.
//
// It goes the way of RFC 6781, section 4.1.4, which those can follow too who want
// signatures of each algorithm that a key is there for. First the new keys sign, beside
// the old ones, and when everybody has their signatures the keys are published. When
// everybody knows those the parent points at them, and then no more at the old ones. When
// nobody knows that it did, which counts from when somebody says that it does not, the old
// keys are published no more, and when nobody knows them they sign no more.
func (r *KeyRing) ChangeAlgorithm(algorithm uint8, now time.Time, random io.Reader) error {
	if r.isChanging() {
		return r.changing()
	}
	roles := r.Roles()
	for _, role := range roles {
		w, err := r.roll(role)
		switch {
		case err != nil:
			return err
		case w.old == nil || w.next != nil || w.retired != nil:
			return keyError(stele.Conflict, "a roll of the %s of %s is under way; go on with 'stele zone roll %s %s --next'", role, r.Zone, r.Zone, role)
		case w.old.Algorithm == algorithm:
			return keyError(stele.Conflict, "the keys of %s are of the algorithm %s already", r.Zone, KeyAlgorithmName(algorithm))
		}
	}
	if len(roles) == 0 {
		return keyError(stele.Conflict, "%s has no keys; make them with 'stele zone sign'", r.Zone)
	}
	for _, role := range roles {
		k, err := r.add(role, algorithm, now, random)
		if err != nil {
			return err
		}
		k.Prepared, k.Published = k.Published, time.Time{}
	}
	return nil
}

// isChanging reports whether a change of algorithm is under way.
func (r *KeyRing) isChanging() bool {
	keys := r.inZone()
	for _, k := range keys {
		if k.Algorithm != keys[0].Algorithm {
			return true
		}
	}
	return false
}

func (r *KeyRing) changing() error {
	return keyError(stele.Conflict, "a change of the algorithm of %s is under way; go on with 'stele zone roll %s --next', for all keys", r.Zone, r.Zone)
}

// sides returns the keys of the old algorithm, and of the new one.
func (r *KeyRing) sides() (old, fresh []*ZoneKey) {
	keys := r.inZone()
	isOld := func(k *ZoneKey) bool {
		// Either the new ones are not active yet, or the old ones no more.
		return slices.ContainsFunc(keys, func(other *ZoneKey) bool {
			s := other.State()
			return (s == KeyPrepared || s == KeyPublished) == (other.Algorithm != k.Algorithm) && s != KeyActive
		})
	}
	for _, k := range keys {
		if isOld(k) {
			old = append(old, k)
		} else {
			fresh = append(fresh, k)
		}
	}
	return old, fresh
}

// changeStep returns the next step of a change of algorithm.
func (r *KeyRing) changeStep(t KeyTimes) *RollStep {
	old, fresh := r.sides()
	switch fresh[0].State() {
	case KeyPrepared:
		return &RollStep{Key: fresh[0].ID, To: KeyPublished, From: fresh[0].Prepared.Add(max(t.Zone, t.Keys) + t.Spread)}
	case KeyPublished:
		return &RollStep{Key: fresh[0].ID, To: KeyActive, From: fresh[0].Published.Add(t.Keys + t.Spread), Parent: true}
	}
	if k := old[0]; k.State() == KeyRetired {
		from := k.Retired
		if !k.Withdrawn.IsZero() {
			from = k.Withdrawn.Add(max(t.Parent, t.Keys) + t.Spread)
		}
		return &RollStep{Key: k.ID, To: KeyLeaving, From: from, Parent: true}
	}
	return &RollStep{Key: old[0].ID, To: KeyRemoved, From: old[0].Leaving.Add(t.Keys + t.Spread)}
}

// change does a step of a change of algorithm.
func (r *KeyRing) change(step *RollStep, now time.Time) {
	old, fresh := r.sides()
	at := now.UTC().Truncate(time.Second)
	for _, k := range fresh {
		switch step.To {
		case KeyPublished:
			k.Published = at
		case KeyActive:
			k.Active = at
		}
	}
	for _, k := range old {
		switch step.To {
		case KeyActive:
			k.Retired = at
		case KeyLeaving:
			k.Leaving = at
		case KeyRemoved:
			k.Removed, k.Private = at, secret.Value{}
		}
	}
}

// withdrawOld notes that the parent has no DS records of the keys of the old algorithm, and
// reports whether it was not known. With such a record and no key of its algorithm the zone
// would be refused (RFC 6840, section 5.11).
func (r *KeyRing) withdrawOld(now time.Time) (news bool) {
	old, _ := r.sides()
	for _, k := range old {
		if k.Withdrawn.IsZero() {
			k.Withdrawn, news = now.UTC().Truncate(time.Second), true
		}
	}
	return news
}

// unsign takes the DS records of the zone back.
func (r *KeyRing) unsign(now time.Time) error {
	switch {
	case len(r.inZone()) == 0:
		return keyError(stele.Conflict, "%s has no keys, so it is not signed", r.Zone)
	case r.Unsigning.IsZero():
		r.Unsigning = now.UTC().Truncate(time.Second)
	}
	return nil
}

// withdraw notes that the parent has no DS records of the zone.
func (r *KeyRing) withdraw(now time.Time) error {
	if err := r.unsign(now); err != nil {
		return err
	}
	if r.Withdrawn.IsZero() {
		r.Withdrawn = now.UTC().Truncate(time.Second)
	}
	return nil
}

// unsignFrom returns when nobody has DS records of the zone any more; the zero time if
// that is not known. A parent of ours has none from the beginning.
func (r *KeyRing) unsignFrom(t *zoneTimes) time.Time {
	gone := r.Withdrawn
	if t.parentIsOurs {
		gone = r.Unsigning
	}
	if gone.IsZero() {
		return gone
	}
	return gone.Add(max(t.Parent, t.Keys) + t.Spread)
}

// mayUnsign returns an error as long as somebody may have DS records of the zone. Its keys
// are of no use then: signed again it gets new ones.
func (r *KeyRing) mayUnsign(t *zoneTimes, now time.Time, force bool) error {
	from := r.unsignFrom(t)
	switch {
	case force:
	case from.IsZero():
		return keyError(stele.Conflict, "%s can go without signatures some time after its parent has no DS records of it; have them removed there, and then give --ds-removed", r.Zone)
	case now.Before(from):
		return keyError(stele.Conflict, "%s can go without signatures from %s on: until then others may have its DS records, and refuse it; wait", r.Zone, from.Format(time.RFC3339))
	}
	for _, k := range r.inZone() {
		k.Removed, k.Private = now.UTC().Truncate(time.Second), secret.Value{}
	}
	return nil
}
