package destination

import (
	"cmp"
	"slices"
	"strings"

	"github.com/stele-id/stele"
)

// Values returns what a handle's record is to clients of the Handle System: its own values and, where
// none of them says where the thing is, the given targets as values of type URL, the best first, on
// the lowest indexes that are free. The order and the indexes stay the same until the record changes.
func Values(record *stele.Record, targets []stele.Target) []stele.HandleValue {
	if slices.ContainsFunc(record.Values, IsPlace) {
		return record.Values
	}
	targets = slices.DeleteFunc(slices.Clone(targets), func(t stele.Target) bool {
		return t.Status == 404 || t.Status == 410 || t.URL == "" // it says that nothing is there
	})
	slices.SortFunc(targets, func(a, b stele.Target) int {
		return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.Preference, b.Preference), strings.Compare(a.URL, b.URL))
	})
	taken := make(map[uint32]bool, len(record.Values))
	for i := range record.Values {
		taken[record.Values[i].Index] = true
	}
	values := make([]stele.HandleValue, 0, len(targets)+len(record.Values))
	index := uint32(0)
	for _, t := range targets {
		for index++; taken[index]; index++ {
		}
		values = append(values, stele.HandleValue{
			Index:       index,
			Type:        TypeURL,
			Data:        []byte(t.URL),
			TTL:         cmp.Or(t.TTL, stele.DefaultHandleTTL),
			Timestamp:   Stamp(record),
			Permissions: stele.DefaultPermissions,
		})
	}
	return append(values, record.Values...)
}

// RuleValues returns what a name that a rule of a namespace answers for is to clients of the Handle
// System: values of type URL, made of the targets that the rule has for it.
func RuleValues(ns *stele.Namespace, targets []stele.Target) []stele.HandleValue {
	return Values(&stele.Record{Created: ns.Created, Modified: ns.Modified}, targets)
}

// IsPlace reports whether a value says where the thing is.
func IsPlace(v stele.HandleValue) bool {
	return HasType(v.Type, TypeURL) || HasType(v.Type, TypeAlias) || HasType(v.Type, TypeLoc)
}
