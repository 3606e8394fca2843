package httpd

import (
	"cmp"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/destination"
	"github.com/stele-id/stele/resolver"
)

// typeLinks is the type of a handle value with links to things about the thing.
const typeLinks = "10320/links"

// handleValues returns what a handle's record is to clients of the Handle System.
func handleValues(res *resolver.Resolution) []stele.HandleValue {
	return destination.Values(res.Record, res.Targets)
}

// isOpen reports whether the public may read a value. This server shows no other values.
func isOpen(v stele.HandleValue) bool { return v.Permissions&stele.PublicRead != 0 }

// selection says which values are wanted: those of one of the types and those with
// one of the indexes; all, if it has neither.
type selection struct {
	types   []string
	indexes []uint32
}

func (s *selection) isAll() bool { return len(s.types) == 0 && len(s.indexes) == 0 }

// of returns the values that are wanted.
func (s *selection) of(values []stele.HandleValue) (some []stele.HandleValue) {
	for _, v := range values {
		if s.isAll() || slices.Contains(s.indexes, v.Index) || slices.ContainsFunc(s.types, func(t string) bool { return wantsType(t, v.Type) }) {
			some = append(some, v)
		}
	}
	return some
}

// wantsType reports whether a request for values of type want is one for values of
// this type. "URL." asks for URL and all types below it.
func wantsType(want, kind string) bool {
	if family, ok := strings.CutSuffix(want, "."); ok && family != "" {
		return destination.HasType(kind, family)
	}
	return strings.EqualFold(want, kind)
}

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
