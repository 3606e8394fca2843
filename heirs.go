package stele

import (
	"slices"
	"strings"
)

// Heir is a registry that may take over a namespace, and all below it, when its own registry falls silent. It may do so if it has asked that registry
// on so many different days, one after the other, and got no checkpoint of its log. See docs/decisions/0077.
type Heir struct {
	Registry string // by the origin of its log: heir.example.org/.log
	Address  string // of its resolver: a URL that a name is appended to
	Days     int    // of silence
}

// Limits on heirs.
const (
	MaxHeirs    = 8
	MinHeirDays = 30
	MaxHeirDays = 36_500
)

// HeirsOf returns the heirs of the first of a namespace and its ancestors, the nearest first, that names some: a namespace that names none has those of
// the namespace above it.
func HeirsOf(ancestors ...*Namespace) []Heir {
	for _, ns := range ancestors {
		if len(ns.Heirs) > 0 {
			return ns.Heirs
		}
	}
	return nil
}

func (n *Namespace) checkHeirs(f *Report) {
	if !fits(f, "heirs", len(n.Heirs), MaxHeirs) {
		return
	}
	for i := range n.Heirs {
		h, path := &n.Heirs[i], ItemPath("heirs", i)
		CheckRegistryName(f, path+".registry", h.Registry)
		checkResolver(f, path+".address", h.Address)
		if h.Days < MinHeirDays || h.Days > MaxHeirDays {
			f.Addf(path+".days", "heir.days-out-of-range", "an heir waits for {least} to {most} days of silence, and not for {days}", MinHeirDays, MaxHeirDays, h.Days)
		}
	}
	twice(f, "heirs", ".registry", n.Heirs, func(h Heir) string { return h.Registry })
}

// checkResolver judges the address of another registry's resolver.
func checkResolver(f *Report, path, address string) {
	if reason := delegateReason((&HandOver{Address: address}).Template()); reason != nil {
		f.Add(path, reason)
	} else if strings.ContainsAny(address, "?#{}") {
		f.Addf(path, "hand-over.address-has-query", "the name is appended to the address; give one without a question mark, a number sign or braces, such as https://names.example.org/")
	}
}

// SameHeirs reports whether two versions of a namespace name the same heirs in the same order.
func (n *Namespace) SameHeirs(other *Namespace) bool { return slices.Equal(n.Heirs, other.Heirs) }
