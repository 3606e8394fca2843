package zonekey

import (
	"io"
	"slices"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/secret"
)

// ChangeAlgorithm makes keys of another algorithm for all roles. Conflict if a roll is
// under way, if the zone has no keys, or if its algorithm is that one.
//
// The steps are those of RFC 6781, section 4.1.4, which also satisfy validators that want
// signatures of each algorithm that the zone has a key of. First the new keys sign beside
// the old ones. When all caches have their signatures the new keys are published. When all
// resolvers know those, the parent gets their DS records, and then loses those of the old
// keys. When no cache has the latter, which counts from when the owner says that the parent
// has none, the old keys are no longer published; when no cache has them, they stop signing.
func (r *Ring) ChangeAlgorithm(algorithm uint8, now time.Time, random io.Reader) error {
	if r.IsChangingAlgorithm() {
		return r.errChanging()
	}
	roles := r.Roles()
	for _, role := range roles {
		w, err := r.roll(role)
		switch {
		case err != nil:
			return err
		case w.old == nil || w.next != nil || w.retired != nil:
			return keyError(stele.Conflict, "dnssec-key.roll-under-way", "a roll of the {role} of {zone} is under way; go on with 'stele zone roll {zone} {role} --next'", role, r.Zone)
		case w.old.Algorithm == algorithm:
			return keyError(stele.Conflict, "dnssec-key.algorithm-unchanged", "the keys of {zone} are of the algorithm {algorithm} already", r.Zone, AlgorithmName(algorithm))
		}
	}
	if len(roles) == 0 {
		return keyError(stele.Conflict, "dnssec-key.zone-without-keys", "{zone} has no keys; make them with 'stele zone sign'", r.Zone)
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

// IsChangingAlgorithm reports whether a change of algorithm is under way: all keys sign
// then.
func (r *Ring) IsChangingAlgorithm() bool {
	keys := r.Current()
	for _, k := range keys {
		if k.Algorithm != keys[0].Algorithm {
			return true
		}
	}
	return false
}

func (r *Ring) errChanging() error {
	return keyError(stele.Conflict, "dnssec-key.algorithm-change-under-way", "a change of the algorithm of {zone} is under way; go on with 'stele zone roll {zone} --next', for all keys", r.Zone)
}

// sides returns the keys of the old algorithm, and of the new one.
func (r *Ring) sides() (old, fresh []*PrivateKey) {
	keys := r.Current()
	isOld := func(k *PrivateKey) bool {
		// Either the new keys are not active yet, or the old keys no longer are.
		return slices.ContainsFunc(keys, func(other *PrivateKey) bool {
			s := other.State()
			return (s == Prepared || s == Published) == (other.Algorithm != k.Algorithm) && s != Active
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

// algorithmStep returns the next step of a change of algorithm.
func (r *Ring) algorithmStep(t Times) *Step {
	old, fresh := r.sides()
	switch fresh[0].State() {
	case Prepared:
		return &Step{Key: fresh[0].ID, To: Published, From: fresh[0].Prepared.Add(max(t.Zone, t.Keys) + t.Spread)}
	case Published:
		return &Step{Key: fresh[0].ID, To: Active, From: fresh[0].Published.Add(t.Keys + t.Spread), Parent: true}
	}
	if k := old[0]; k.State() == Retired {
		from := k.Retired
		if !k.Withdrawn.IsZero() {
			from = k.Withdrawn.Add(max(t.Parent, t.Keys) + t.Spread)
		}
		return &Step{Key: k.ID, To: Leaving, From: from, Parent: true}
	}
	return &Step{Key: old[0].ID, To: Removed, From: old[0].Leaving.Add(t.Keys + t.Spread)}
}

// changeAlgorithm does a step of a change of algorithm.
func (r *Ring) changeAlgorithm(step *Step, now time.Time) {
	old, fresh := r.sides()
	at := now.UTC().Truncate(time.Second)
	for _, k := range fresh {
		switch step.To {
		case Published:
			k.Published = at
		case Active:
			k.Active = at
		}
	}
	for _, k := range old {
		switch step.To {
		case Active:
			k.Retired = at
		case Leaving:
			k.Leaving = at
		case Removed:
			k.Removed, k.Private = at, secret.Value{}
		}
	}
}

// withdrawOld notes that the parent has no DS records of the keys of the old algorithm, and
// reports whether the ring did not know that. Validators refuse a zone whose parent has such
// a record if the zone has no key of that algorithm (RFC 6840, section 5.11).
func (r *Ring) withdrawOld(now time.Time) (news bool) {
	old, _ := r.sides()
	for _, k := range old {
		if k.Withdrawn.IsZero() {
			k.Withdrawn, news = now.UTC().Truncate(time.Second), true
		}
	}
	return news
}

// unsign notes that the parent should have no DS records of the zone.
func (r *Ring) unsign(now time.Time) error {
	switch {
	case len(r.Current()) == 0:
		return keyError(stele.Conflict, "dnssec-key.zone-not-signed", "{zone} has no keys, so it is not signed", r.Zone)
	case r.Unsigning.IsZero():
		r.Unsigning = now.UTC().Truncate(time.Second)
	}
	return nil
}

// withdraw notes that the parent has no DS records of the zone.
func (r *Ring) withdraw(now time.Time) error {
	if err := r.unsign(now); err != nil {
		return err
	}
	if r.Withdrawn.IsZero() {
		r.Withdrawn = now.UTC().Truncate(time.Second)
	}
	return nil
}

// unsignFrom returns from when no cache has DS records of the zone any more; the zero time
// if that is not known. A parent in the same registry has none as soon as they are not
// wanted.
func (r *Ring) unsignFrom(t Times) time.Time {
	gone := r.Withdrawn
	if t.LocalParent {
		gone = r.Unsigning
	}
	if gone.IsZero() {
		return gone
	}
	return gone.Add(max(t.Parent, t.Keys) + t.Spread)
}

// finishUnsign removes the keys of the zone: if it is signed again it gets new ones.
// Conflict as long as caches may have DS records of the zone, unless force is set.
func (r *Ring) finishUnsign(t Times, now time.Time, force bool) error {
	from := r.unsignFrom(t)
	switch {
	case force:
	case from.IsZero():
		return keyError(stele.Conflict, "dnssec-key.unsign-ds-not-removed", "{zone} can go without signatures some time after its parent has no DS records of it; have them removed there, and then give --ds-removed", r.Zone)
	case now.Before(from):
		return keyError(stele.Conflict, "dnssec-key.unsign-too-early", "{zone} can go without signatures from {time} on: until then others may have its DS records, and refuse it; wait", r.Zone, from.Format(time.RFC3339))
	}
	for _, k := range r.Current() {
		k.Removed, k.Private = now.UTC().Truncate(time.Second), secret.Value{}
	}
	return nil
}
