// Package zonekey keeps the keys of zones: the DNSSEC keys that sign a zone, how they are
// rolled (RFC 6781, RFC 7583), and the TSIG keys that name servers share (RFC 8945). The
// command, the API and its client use the same types. A [Ring] changes in memory; a
// [Manager] reads and writes it through a [Store], which is the registrar. The package
// signs no records and opens no sockets.
package zonekey

import (
	"slices"
	"time"

	"github.com/stele-id/stele"
)

// Status is the keys of a zone, and the steps that they wait for. It has no private parts.
type Status struct {
	Zone  string     `json:"zone" example:"paradisec.example."`
	Keys  []Key      `json:"keys"`
	Steps []Step     `json:"next,omitempty" doc:"The next steps of rolls that are under way."`
	DS    []DSRecord `json:"ds,omitempty" doc:"The records that the zone above should have."`

	// Unsigned is from when a zone that is about to go without signatures may; the zero
	// time if it is to be signed, or if its owner has not said yet that the parent has no DS
	// records of it.
	Unsigned time.Time `json:"unsigned,omitzero" doc:"From when a zone that is about to go without signatures may. It is known once the zone above is said to have no DS records."`

	Signed time.Time `json:"-"` // from when the signatures of a zone in the mode transfer are valid
}

// IsUnsigning reports whether the zone is about to go without signatures: it has keys, and
// the parent should have no DS record of them.
func (s *Status) IsUnsigning() bool {
	return len(s.DS) == 0 && slices.ContainsFunc(s.Keys, func(k Key) bool { return k.State != Removed })
}

// Key is the public part of a key of a zone.
type Key struct {
	Tag       string    `json:"tag" example:"31589"`
	Role      Role      `json:"role" enum:"csk,ksk,zsk" doc:"What it signs: everything, the keys, or the zone."`
	Algorithm string    `json:"algorithm" example:"ecdsap256sha256"`
	Public    string    `json:"public" doc:"As in the DNSKEY record."`
	State     State     `json:"state" enum:"prepared,published,active,retired,leaving,removed"`
	Prepared  time.Time `json:"prepared,omitzero" doc:"Since when it signs without being in the zone, if the algorithm changes."`
	Published time.Time `json:"published,omitzero"`
	Active    time.Time `json:"active,omitzero"`
	Retired   time.Time `json:"retired,omitzero"`
	Leaving   time.Time `json:"leaving,omitzero" doc:"Since when it signs without being in the zone any more."`
	Removed   time.Time `json:"removed,omitzero"`
}

// Since returns when the key came into its state.
func (k *Key) Since() time.Time {
	return map[State]time.Time{
		Prepared: k.Prepared, Published: k.Published, Active: k.Active,
		Retired: k.Retired, Leaving: k.Leaving, Removed: k.Removed,
	}[k.State]
}

// Step is the next step of a roll.
type Step struct {
	Role   Role      `json:"role,omitempty" doc:"Without it all keys change their algorithm."`
	Key    string    `json:"tag" doc:"Of the key that it is about."`
	To     State     `json:"state" doc:"That the key comes into."`
	From   time.Time `json:"from" doc:"When it may be done."`
	Parent bool      `json:"parent,omitempty" doc:"The zone above must have the new key's DS record by then; none of the old keys, if the state is leaving."`
}

// String says what the step is.
func (s *Step) String() string { return s.Message().Error() }

// Message says what the step is, for readers of any language.
func (s *Step) Message() *stele.Message {
	switch {
	case s.Role != "" && s.To == Active:
		return stele.Messagef("dnssec-key.step-active", "the new {role} {key} becomes active", s.Role, s.Key)
	case s.Role != "":
		return stele.Messagef("dnssec-key.step-removed", "the old {role} {key} is removed", s.Role, s.Key)
	case s.To == Published:
		return stele.Messagef("dnssec-key.step-algorithm-published", "the keys of the new algorithm, which sign already, are published")
	case s.To == Active:
		return stele.Messagef("dnssec-key.step-algorithm-active", "the keys of the new algorithm become active")
	case s.To == Leaving:
		return stele.Messagef("dnssec-key.step-algorithm-leaving", "the keys of the old algorithm, which go on signing, are published no more")
	}
	return stele.Messagef("dnssec-key.step-algorithm-removed", "the keys of the old algorithm are removed")
}

// DSRecord is a DS record as a master file has it.
type DSRecord struct {
	Owner  string `json:"owner"`
	Record string `json:"record" doc:"TTL, class, type and data."`
}

// Change is what [Manager.Change] does with the keys of a zone.
type Change struct {
	Do          string `json:"do" enum:"sign,unsign,refresh,roll,next" doc:"Sign the zone, and make its first keys if it has none; have it go without signatures; make all signatures of a zone in the mode transfer anew; begin to put a new key in the place of one; do the next step of that."`
	Mode        string `json:"mode,omitempty" enum:"online,transfer" doc:"How it is signed; for sign."`
	Algorithm   string `json:"algorithm,omitempty" maxLength:"40" doc:"Of the first keys, for sign; that all keys change to, for roll." example:"ed25519"`
	Split       bool   `json:"split,omitempty" doc:"Make two first keys, one for the keys and one for the zone; for sign."`
	Role        Role   `json:"role,omitempty" enum:"csk,ksk,zsk" doc:"Which key, for roll and next; without it the only kind there is."`
	DSPublished bool   `json:"dsPublished,omitempty" doc:"The zone above has the DS record of the new key, for next; none of the old keys, for next if the state is leaving; none at all, for unsign. What is gone there is noted first, and done when it is said again after the time that others keep it."`
	Force       bool   `json:"force,omitempty" doc:"Do it at once, even if resolvers still have the old keys; for next and unsign."`
	ParentTTL   uint32 `json:"parentTTL,omitempty" doc:"For how many seconds others keep what the zone above says; a day if 0."`
}
