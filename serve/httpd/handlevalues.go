package httpd

import (
	"cmp"
	"slices"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/destination"
	"github.com/stele-id/stele/resolver"
)

// typeLinks is the type of a handle value with links to things about the thing.
const typeLinks = "10320/links"

// handleValues returns what a handle's record is to clients of the Handle System. For a name for
// which a rule answers, they are the URLs that the rule makes.
func handleValues(res *resolver.Resolution) []stele.HandleValue {
	if res.Rule != nil {
		return destination.RuleValues(res.Namespace, res.Targets)
	}
	return destination.Values(res.Record, res.Targets)
}

// isOpen reports whether the public may read a value. This server shows no other values.
func isOpen(v stele.HandleValue) bool { return v.Permissions&stele.PublicRead != 0 }

// byIndex returns the values in the order of their indexes, in which the REST interface and
// the pages show them. A redirect follows the order of the record instead.
func byIndex(values []stele.HandleValue) []stele.HandleValue {
	return slices.SortedStableFunc(slices.Values(values), func(a, b stele.HandleValue) int { return cmp.Compare(a.Index, b.Index) })
}

// openValues returns the values that the public may read.
func openValues(values []stele.HandleValue) (open []stele.HandleValue) {
	for _, v := range values {
		if isOpen(v) {
			open = append(open, v)
		}
	}
	return open
}
