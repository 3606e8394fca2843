package dnsd

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/secret"
)

// KeyTimes are how long others may know what has changed since, by which steps of a
// roll have to wait for each other (RFC 7583).
type KeyTimes struct {
	Keys   time.Duration // TTL of the DNSKEY records
	Zone   time.Duration // the longest TTL of the zone
	Parent time.Duration // TTL of the DS records at the parent
	Spread time.Duration // until all servers of the zone have a change
}

// Roll publishes a new key of a role, of the algorithm of the old one. Conflict if a
// roll of that role is under way, or if the zone has no such keys.
//
// All roles roll in three steps. The new key is published, beside the old one; keys
// that sign keys both do it from then on. When everybody knows it, it becomes active,
// and the old one is retired: with keys that sign the zone the new signatures are of
// the new key (pre-publication, RFC 6781, section 4.1.1.1). When nobody has anything
// of the old one any more it is removed. What the parent points at may be either of
// them or both, from the first step on to the last.
func (r *KeyRing) Roll(role KeyRole, now time.Time, random io.Reader) (*ZoneKey, error) {
	if r.isChanging() {
		return nil, r.changing()
	}
	roll, err := r.roll(role)
	if err != nil {
		return nil, err
	}
	if roll.old == nil {
		return nil, keyError(stele.Conflict, "%s has no active %s; make its keys with 'stele zone sign'", r.Zone, role)
	}
	if roll.next != nil || roll.retired != nil {
		return nil, keyError(stele.Conflict, "a roll of the %s of %s is under way; go on with 'stele zone roll %s %s --next'", role, r.Zone, r.Zone, role)
	}
	return r.add(role, roll.old.Algorithm, now, random)
}

// roll is the keys of one role.
type roll struct {
	old     *ZoneKey // active
	next    *ZoneKey // published
	retired *ZoneKey
}

// roll returns the keys of a role.
func (r *KeyRing) roll(role KeyRole) (w roll, err error) {
	if !role.IsValid() {
		return w, keyError(stele.Invalid, "%.20q is no kind of key; there are csk, ksk and zsk", string(role))
	}
	keys := r.inZone()
	if !slices.ContainsFunc(keys, func(k *ZoneKey) bool { return k.Role == role }) && len(keys) > 0 {
		return w, keyError(stele.Conflict, "%s has no %s; it has %s", r.Zone, role, rolesOf(keys))
	}
	for _, k := range keys {
		if k.Role != role {
			continue
		}
		switch k.State() {
		case KeyActive:
			w.old = k
		case KeyPublished:
			w.next = k
		case KeyRetired:
			w.retired = k
		}
	}
	return w, nil
}

func rolesOf(keys []*ZoneKey) string {
	if keys[0].Role == RoleCSK {
		return "one key for everything, csk"
	}
	return "two kinds, ksk and zsk"
}

// Roles returns the roles that the zone's keys have.
func (r *KeyRing) Roles() []KeyRole {
	var list []KeyRole
	for _, k := range r.inZone() {
		if !slices.Contains(list, k.Role) {
			list = append(list, k.Role)
		}
	}
	return list
}

// RollStep is the next step of a roll.
type RollStep struct {
	Role   KeyRole
	Key    string // the ID of the key that it is about
	To     KeyState
	From   time.Time // when it may be done
	Parent bool      // the parent must have the DS record of the new key by then; none of the old ones, if they are to leave
}

// String says what the step is.
func (s *RollStep) String() string {
	if s.Role == "" {
		return changeSteps[s.To]
	}
	if s.To == KeyActive {
		return fmt.Sprintf("the new %s %s becomes active", s.Role, s.Key)
	}
	return fmt.Sprintf("the old %s %s is removed", s.Role, s.Key)
}

// Step returns the next step of a roll; nil if none is under way.
func (r *KeyRing) Step(role KeyRole, t KeyTimes) (*RollStep, error) {
	if r.isChanging() {
		return r.changeStep(t), nil
	}
	w, err := r.roll(role)
	if err != nil {
		return nil, err
	}
	switch {
	case w.next != nil:
		return &RollStep{role, w.next.ID, KeyActive, w.next.Published.Add(t.Keys + t.Spread), role.signsKeys()}, nil
	case w.retired != nil:
		wait := time.Duration(0)
		if role.signsZone() {
			wait = t.Zone
		}
		if role.signsKeys() {
			wait = max(wait, t.Parent, t.Keys)
		}
		return &RollStep{role, w.retired.ID, KeyRemoved, w.retired.Retired.Add(wait + t.Spread), false}, nil
	}
	return nil, nil
}

// Next does the next step of a roll. Conflict if none is under way, or if others may
// still know what was before, unless force is set. atParent says that the parent has
// the DS record of the new key, or none of those that are to leave: when that is said
// first it is noted, and the step can be done some time after that.
func (r *KeyRing) Next(role KeyRole, t KeyTimes, now time.Time, atParent, force bool) (*RollStep, error) {
	if r.isChanging() && role != "" {
		return nil, r.changing()
	}
	step, err := r.Step(role, t)
	if err != nil {
		return nil, err
	}
	switch {
	case step == nil:
		return nil, keyError(stele.Conflict, "no roll of the %s of %s is under way; begin one with 'stele zone roll %s %s'", role, r.Zone, r.Zone, role)
	case now.Before(step.From) && !force:
		return nil, keyError(stele.Conflict, "%s from %s on: until then others may not know of the last step; wait", step, step.From.Format(time.RFC3339))
	case step.Parent && !atParent && !force && step.To == KeyLeaving:
		return nil, keyError(stele.Conflict, "%s some time after the parent has no DS records of them; have those removed there ('stele zone ds %s' prints the ones that stay), and then give --ds-removed", step, r.Zone)
	case step.Parent && !atParent && !force:
		return nil, keyError(stele.Conflict, "%s when its DS record is at the parent; put it there ('stele zone ds %s' prints it), and then give --ds-published", step, r.Zone)
	}
	if step.To == KeyLeaving && !force && r.withdrawOld(now) {
		return r.changeStep(t), nil
	}
	if step.Role == "" {
		r.change(step, now)
		return step, nil
	}
	w, err := r.roll(role)
	if err != nil {
		return nil, err
	}
	at := now.UTC().Truncate(time.Second)
	if step.To == KeyRemoved {
		w.retired.Removed, w.retired.Private = at, secret.Value{}
		return step, nil
	}
	w.next.Active = at
	if w.old != nil {
		w.old.Retired = at
	}
	return step, nil
}
