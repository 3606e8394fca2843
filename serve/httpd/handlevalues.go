package httpd

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/destination"
	"github.com/stele-id/stele/resolver"
)

// typeLinks is the type of a handle value with links to things about the thing.
const typeLinks = "10320/links"

// handleValues returns what a handle's record is to clients of the Handle System:
// its own values and, where none of them says where the thing is, its locations as
// values of type URL, the best first, on the lowest indexes that are free. The
// order and the indexes stay the same until the record changes.
func handleValues(res *resolver.Resolution) []stele.HandleValue {
	record := res.Record
	if slices.ContainsFunc(record.Values, isPlace) {
		return record.Values
	}
	targets := slices.DeleteFunc(slices.Clone(res.Targets), func(t stele.Target) bool {
		return t.Status == http.StatusNotFound || t.Status == http.StatusGone
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
			Type:        destination.TypeURL,
			Data:        []byte(t.URL),
			TTL:         cmp.Or(t.TTL, stele.DefaultHandleTTL),
			Timestamp:   unix(record),
			Permissions: stele.DefaultPermissions,
		})
	}
	return append(values, record.Values...)
}

// isPlace reports whether a value says where the thing is.
func isPlace(v stele.HandleValue) bool {
	return destination.HasType(v.Type, destination.TypeURL) || destination.HasType(v.Type, destination.TypeAlias) || destination.HasType(v.Type, destination.TypeLoc)
}

// unix returns when the record was changed last, as handle values have it.
func unix(record *stele.Record) uint32 {
	if seconds := record.Modified.Unix(); seconds > 0 && seconds < 1<<32 {
		return uint32(seconds)
	}
	return 0
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
