package apijson

import (
	"time"

	"github.com/stele-id/stele"
)

// NamespaceHandOver says how far a namespace is handed over, or from which registry it was taken over.
type NamespaceHandOver struct {
	Registry string            `json:"registry,omitempty" maxLength:"300" doc:"The registry that says so, by the origin of its log; missing if the log has no name yet." example:"names.example.org/.log"`
	Scheme   string            `json:"scheme" example:"ark"`
	Prefix   string            `json:"prefix,omitempty" maxLength:"4096" doc:"What the names of the namespace begin with." example:"ark:12345"`
	State    string            `json:"state,omitempty" enum:"offered,sealed,forwarded" doc:"Offered: the heir is named. Sealed: no names are minted or registered, and no record changes. Forwarded: requests are redirected to the heir. Missing: it is not handed over."`
	Heir     string            `json:"heir,omitempty" maxLength:"300" doc:"The registry that takes over, by the origin of its log."`
	Address  string            `json:"address,omitempty" maxLength:"2000" doc:"Where its resolver is: a URL that a name is appended to."`
	Since    *time.Time        `json:"since,omitempty" doc:"When the state was reached."`
	By       string            `json:"by,omitempty" maxLength:"255" doc:"Which principal did it; for administrators only."`
	Heirs    []NamespaceHeir   `json:"heirs,omitempty" doc:"The registries that may take it over, with all below it, when this one falls silent."`
	Adoption *HandOverAdoption `json:"adoption,omitempty" doc:"From which registry it was taken over last; missing if it never was."`
}

// NamespaceHeir is a registry that may take a namespace over.
type NamespaceHeir struct {
	Registry string `json:"registry" maxLength:"300" doc:"The registry, by the origin of its log." example:"heir.example.org/.log"`
	Address  string `json:"address" maxLength:"2000" doc:"Where its resolver is: a URL that a name is appended to." example:"https://heir.example.org/"`
	Days     int    `json:"days" doc:"For how many days of silence it waits."`
}

// HandOverAdoption says that a namespace was taken over.
type HandOverAdoption struct {
	From       string    `json:"from" maxLength:"300" doc:"The registry that gave it, by the origin of its log."`
	To         string    `json:"to,omitempty" maxLength:"300" doc:"The registry that it was given to; missing if the giver had named none."`
	Bundle     string    `json:"bundle" doc:"SHA-256 of the manifest of the bundle, in hexadecimal digits."`
	Change     uint64    `json:"change,omitempty" doc:"Number of the last change that the bundle has."`
	Generation string    `json:"generation,omitempty" maxLength:"32" doc:"The generation of the registry that gave it, in which changes are counted; missing if it was taken over before generations were kept."`
	Until      time.Time `json:"until,omitzero" doc:"When that was made."`
	At         time.Time `json:"at,omitzero" doc:"When the bundle was adopted."`
	By         string    `json:"by,omitempty" maxLength:"255" doc:"Which principal did it; for administrators only."`
	Reading    bool      `json:"reading,omitempty" doc:"Names are resolved here, and neither minted nor registered."`
	Silent     bool      `json:"silent,omitempty" doc:"The registry that gave it fell silent, and had agreed to that. Records are changed here; names are not made until an administrator says that it has ended."`
	Ended      time.Time `json:"ended,omitzero" doc:"When an administrator said so."`
}

// HandOverPage is a part of a list of hand-overs.
type HandOverPage struct {
	Items []NamespaceHandOver `json:"items"`
	Next  string              `json:"next,omitempty" doc:"The cursor of the next page; without it this is the last."`
}

// HandOverStep asks for a step of a hand-over.
type HandOverStep struct {
	Do      string `json:"do" enum:"offer,seal,forward,cancel,ended" doc:"offer: name the heir. seal: end minting and all changes. forward: redirect requests to the heir. cancel: end the hand-over. ended: of a namespace that was taken over since its registry fell silent: that registry has ended, and names are made here."`
	Heir    string `json:"heir,omitempty" maxLength:"300" doc:"For offer: the registry that takes over, by the origin of its log." example:"heir.example.org/.log"`
	Address string `json:"address,omitempty" maxLength:"2000" doc:"For offer: where its resolver is, a URL that a name is appended to." example:"https://heir.example.org/"`
	IKnow   bool   `json:"iKnow,omitempty" doc:"For forward: the heir is not asked whether it answers. For cancel: the heir has not adopted what is sealed, and will not. For ended: the other registry has ended, and makes no names."`
}

// HandOverResult is what a step of a hand-over made of the namespaces.
type HandOverResult struct {
	Namespaces []NamespaceHandOver `json:"namespaces" doc:"The namespace and all below it that are handed over, or were with this step, in order."`
}

// HeirCheck is what the heir of a namespace answers.
type HeirCheck struct {
	Heir       string              `json:"heir" doc:"The registry that takes over, as it was named."`
	Address    string              `json:"address" doc:"Where it was asked."`
	Ready      bool                `json:"ready" doc:"The heir has adopted all for writing, and answers for the names: requests can be forwarded."`
	Reason     string              `json:"reason,omitempty" doc:"What is missing, and what to do; empty if it is ready."`
	Coded                          // of the reason
	Namespaces []NamespaceHandOver `json:"namespaces,omitempty" doc:"What the heir says of the namespaces."`
	Asked      int                 `json:"asked,omitempty" doc:"How many names it was asked for, as a sample."`
	Answered   int                 `json:"answered,omitempty" doc:"For how many of them it answered."`
}

// SealPlan is a line of what a seal would do. One that has only read says that records are still counted.
type SealPlan struct {
	Done       bool            `json:"done,omitempty" doc:"This is the last line, with the plan."`
	Read       int             `json:"read,omitempty" doc:"How many records were read so far."`
	Heir       string          `json:"heir,omitempty" doc:"For which registry it would be sealed."`
	Address    string          `json:"address,omitempty" doc:"Where its resolver is."`
	Registry   string          `json:"registry,omitempty" doc:"The name of this registry; missing if its log has none yet, which a bundle needs."`
	Namespaces []SealNamespace `json:"namespaces,omitempty" doc:"What would be sealed."`
	Records    uint64          `json:"records,omitempty" doc:"How many records that is."`
	Reserved   uint64          `json:"reserved,omitempty" doc:"How many of them are reserved."`
	Inward     *SealCrossing   `json:"inward,omitempty" doc:"Aliases in the namespaces, of records elsewhere whose namespaces are not handed over to the same heir. The heir would not know them: a seal is refused as long as there are any."`
	Outward    *SealCrossing   `json:"outward,omitempty" doc:"Aliases elsewhere, of records in the namespaces."`
}

// SealNamespace is a namespace that would be sealed.
type SealNamespace struct {
	Scheme  string `json:"scheme"`
	Prefix  string `json:"prefix,omitempty"`
	State   string `json:"state,omitempty" doc:"How far it is handed over now."`
	Records uint64 `json:"records" doc:"How many records it has."`
	Minter  string `json:"minter,omitempty" doc:"How it makes names, which ends; missing if it makes none."`
	Given   uint64 `json:"given,omitempty" doc:"How many names of the template are given."`
	Total   uint64 `json:"total,omitempty" doc:"How many the template has."`
}

// SealCrossing are aliases that cross the border of what is handed over.
type SealCrossing struct {
	Count uint64      `json:"count"`
	Some  []SealAlias `json:"some" doc:"The first of them."`
}

// SealAlias is an alias and the identifier of its record.
type SealAlias struct {
	Alias string `json:"alias"`
	ID    string `json:"id"`
}

// HandOverOf returns how far a namespace is handed over, as a registry of this name says it.
func HandOverOf(ns *stele.Namespace, registry string) NamespaceHandOver {
	h := &ns.HandOver
	d := NamespaceHandOver{Registry: registry, Scheme: ns.Scheme, Prefix: ns.Prefix, State: string(h.State), Heir: h.Heir, Address: h.Address, By: h.By}
	if !h.Since.IsZero() {
		since := h.Since.UTC()
		d.Since = &since
	}
	for _, heir := range ns.Heirs {
		d.Heirs = append(d.Heirs, NamespaceHeir(heir))
	}
	if n := len(ns.Adoptions); n > 0 {
		a := ns.Adoptions[n-1]
		d.Adoption = &HandOverAdoption{From: a.From, To: a.To, Bundle: a.Bundle, Generation: a.Generation, Change: a.Change, Until: a.Until.UTC(), At: a.At.UTC(), By: a.By, Reading: a.Reading, Silent: a.Silent}
		if !a.Ended.IsZero() {
			d.Adoption.Ended = a.Ended.UTC()
		}
	}
	return d
}

// Key returns the key of the namespace.
func (d *NamespaceHandOver) Key() stele.NamespaceKey {
	return stele.NamespaceKey{Scheme: d.Scheme, Prefix: d.Prefix}
}

// Namespace returns the namespace, of which it knows the hand-over, the heirs and the last adoption alone.
func (d *NamespaceHandOver) Namespace() *stele.Namespace {
	ns := &stele.Namespace{Scheme: d.Scheme, Prefix: d.Prefix, HandOver: stele.HandOver{State: stele.HandOverState(d.State), Heir: d.Heir, Address: d.Address, By: d.By}}
	if d.Since != nil {
		ns.HandOver.Since = *d.Since
	}
	for _, heir := range d.Heirs {
		ns.Heirs = append(ns.Heirs, stele.Heir(heir))
	}
	if a := d.Adoption; a != nil {
		ns.Adoptions = []stele.Adoption{{From: a.From, To: a.To, Bundle: a.Bundle, Generation: a.Generation, Change: a.Change, Until: a.Until, At: a.At, By: a.By, Reading: a.Reading, Silent: a.Silent, Ended: a.Ended}}
	}
	return ns
}
