package zonekey

import (
	"io"
	"slices"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/secret"
)

// Times are for how long caches and secondaries may have what has changed since, so that
// each step of a roll has to wait (RFC 7583).
type Times struct {
	Keys   time.Duration // TTL of the DNSKEY records
	Zone   time.Duration // the longest TTL of the zone
	Parent time.Duration // TTL of the DS records at the parent
	Spread time.Duration // until all servers of the zone have a change

	// LocalParent says that the parent zone is published from the same registry, so that
	// its DS records follow the keys at once.
	LocalParent bool
}

// Roll publishes a new key of a role, of the algorithm of the old one. Conflict if a
// roll of that role is under way, or if the zone has no such keys.
//
// All roles roll in three steps. First the new key is published beside the old one; if
// they sign keys, both do so from then on. When all resolvers know the new key it becomes
// active, and the old one is retired: if they sign the zone, new signatures are of the new
// key (pre-publication, RFC 6781, section 4.1.1.1). When no cache has anything of the old
// key any more it is removed. From the first step to the last the parent may have DS
// records of either key, or of both.
func (r *Ring) Roll(role Role, now time.Time, random io.Reader) (*PrivateKey, error) {
	if r.IsChangingAlgorithm() {
		return nil, r.errChanging()
	}
	roll, err := r.roll(role)
	if err != nil {
		return nil, err
	}
	if roll.old == nil {
		return nil, keyError(stele.Conflict, "dnssec-key.active-missing", "{zone} has no active {role}; make its keys with 'stele zone sign'", r.Zone, role)
	}
	if roll.next != nil || roll.retired != nil {
		return nil, keyError(stele.Conflict, "dnssec-key.roll-under-way", "a roll of the {role} of {zone} is under way; go on with 'stele zone roll {zone} {role} --next'", role, r.Zone)
	}
	return r.add(role, roll.old.Algorithm, now, random)
}

// roll is the keys of one role.
type roll struct {
	old     *PrivateKey // active
	next    *PrivateKey // published
	retired *PrivateKey
}

// roll returns the keys of a role.
func (r *Ring) roll(role Role) (w roll, err error) {
	if !role.IsValid() {
		return w, keyError(stele.Invalid, "dnssec-key.role-unknown", `"{role}" is not a kind of key; there are csk, ksk and zsk`, string(role))
	}
	keys := r.Current()
	if !slices.ContainsFunc(keys, func(k *PrivateKey) bool { return k.Role == role }) && len(keys) > 0 {
		return w, keyError(stele.Conflict, "dnssec-key.role-missing", "{zone} has no {role}; it has {roles}", r.Zone, role, rolesOf(keys))
	}
	for _, k := range keys {
		if k.Role != role {
			continue
		}
		switch k.State() {
		case Active:
			w.old = k
		case Published:
			w.next = k
		case Retired:
			w.retired = k
		}
	}
	return w, nil
}

func rolesOf(keys []*PrivateKey) string {
	if keys[0].Role == CSK {
		return "one key for everything, csk"
	}
	return "two kinds, ksk and zsk"
}

// Roles returns the roles that the zone's keys have.
func (r *Ring) Roles() []Role {
	var list []Role
	for _, k := range r.Current() {
		if !slices.Contains(list, k.Role) {
			list = append(list, k.Role)
		}
	}
	return list
}

// Step returns the next step of a roll; nil if none is under way.
func (r *Ring) Step(role Role, t Times) (*Step, error) {
	if r.IsChangingAlgorithm() {
		return r.algorithmStep(t), nil
	}
	w, err := r.roll(role)
	if err != nil {
		return nil, err
	}
	switch {
	case w.next != nil:
		return &Step{Role: role, Key: w.next.ID, To: Active, From: w.next.Published.Add(t.Keys + t.Spread), Parent: role.SignsKeys()}, nil
	case w.retired != nil:
		wait := time.Duration(0)
		if role.SignsZone() {
			wait = t.Zone
		}
		if role.SignsKeys() {
			wait = max(wait, t.Parent, t.Keys)
		}
		return &Step{Role: role, Key: w.retired.ID, To: Removed, From: w.retired.Retired.Add(wait + t.Spread)}, nil
	}
	return nil, nil
}

// Next does the next step of a roll. Conflict if none is under way, or if caches may still
// have what was before, unless force is set. atParent says that the parent has the DS
// record of the new key, or none of the keys that are to leave: the first time Next notes
// that, and the step can be done some time later.
func (r *Ring) Next(role Role, t Times, now time.Time, atParent, force bool) (*Step, error) {
	if r.IsChangingAlgorithm() && role != "" {
		return nil, r.errChanging()
	}
	step, err := r.Step(role, t)
	if err != nil {
		return nil, err
	}
	switch {
	case step == nil:
		return nil, keyError(stele.Conflict, "dnssec-key.roll-not-under-way", "no roll of the {role} of {zone} is under way; begin one with 'stele zone roll {zone} {role}'", role, r.Zone)
	case now.Before(step.From) && !force:
		return nil, keyError(stele.Conflict, "dnssec-key.roll-too-early", "{step} from {time} on: until then others may not know of the last step; wait", step.Message(), step.From.Format(time.RFC3339))
	case step.Parent && !atParent && !force && step.To == Leaving:
		return nil, keyError(stele.Conflict, "dnssec-key.roll-ds-not-removed", "{step} some time after the parent has no DS records of them; have those removed there ('stele zone ds {zone}' prints the ones that stay), and then give --ds-removed", step.Message(), r.Zone)
	case step.Parent && !atParent && !force:
		return nil, keyError(stele.Conflict, "dnssec-key.roll-ds-not-published", "{step} when its DS record is at the parent; put it there ('stele zone ds {zone}' prints it), and then give --ds-published", step.Message(), r.Zone)
	}
	if step.To == Leaving && !force && r.withdrawOld(now) {
		return r.algorithmStep(t), nil
	}
	if step.Role == "" {
		r.changeAlgorithm(step, now)
		return step, nil
	}
	w, err := r.roll(role)
	if err != nil {
		return nil, err
	}
	at := now.UTC().Truncate(time.Second)
	if step.To == Removed {
		w.retired.Removed, w.retired.Private = at, secret.Value{}
		return step, nil
	}
	w.next.Active = at
	if w.old != nil {
		w.old.Retired = at
	}
	return step, nil
}
