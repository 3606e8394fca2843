package naptr

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/stele-id/stele"
)

// apart returns targets, which are in their order, with preferences that tell the kinds
// of things of one service apart. A set of DNS records has no order, and a client takes
// any of those with equal order and preference (RFC 3403, section 4.1). The record's
// list has an order, and the web follows it: only mirrors, of one type and language,
// are equal there. So a target that is not a mirror of one before it gets a preference
// above theirs. Within an order preferences say nothing but which is first.
func apart(targets []stele.Target) []stele.Target {
	if len(targets) < 2 {
		return targets
	}
	list := targets
	copied := false
	for i := range targets {
		t := &targets[i]
		preference := int(t.Preference)
		for k := range i {
			if before := &targets[k]; before.Service != t.Service || before.Order != t.Order {
				continue
			} else if before.Preference == t.Preference && mirrors(before, t) {
				preference = int(list[k].Preference)
				break
			}
			preference = max(preference, int(list[k].Preference)+1)
		}
		if preference == int(t.Preference) {
			continue
		}
		if preference > math.MaxUint16 {
			return targets // no number is left
		}
		if !copied {
			list, copied = slices.Clone(targets), true
		}
		list[i].Preference = uint16(preference)
	}
	return list
}

// mirrors reports whether two targets of a service say that they are the same thing.
func mirrors(a, b *stele.Target) bool {
	return a.Type == b.Type && strings.EqualFold(a.Language, b.Language)
}

// inOrder returns targets by order and preference. Most are sorted already.
func inOrder(targets []stele.Target) []stele.Target {
	byOrder := func(a, b stele.Target) int {
		return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.Preference, b.Preference))
	}
	if !slices.IsSortedFunc(targets, byOrder) {
		targets = slices.Clone(targets)
		slices.SortStableFunc(targets, byOrder)
	}
	return targets
}
