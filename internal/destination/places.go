package destination

import (
	"slices"
	"strings"

	"github.com/stele-id/stele"
)

// URLs returns the addresses in the values of type URL, then in those of the types below it. It leaves out those that
// are not safe to redirect to.
func URLs(values []stele.HandleValue) (urls []string) {
	for _, below := range [...]bool{false, true} {
		for i := range values {
			v := &values[i]
			if HasType(v.Type, TypeURL) && strings.EqualFold(v.Type, TypeURL) != below {
				if location, ok := Safe(strings.TrimSpace(string(v.Data))); ok {
					urls = append(urls, location)
				}
			}
		}
	}
	return urls
}

// Gather returns the locations of all values of type 10320/loc that are fit for a redirect, with those of type URL as spares. It
// has none if no value of that type leads anywhere.
func Gather(handle string, values []stele.HandleValue) *Locations {
	var all Locations
	for i := range values {
		if !HasType(values[i].Type, TypeLoc) {
			continue
		}
		if l, err := ParseLocations(values[i].Data); err == nil {
			all.Merge(l, handle)
		}
		if len(all.List) >= MaxLocations {
			break
		}
	}
	if len(all.List) > 0 {
		for _, u := range URLs(values) {
			all.List = append(all.List, Spare(u))
		}
	}
	return &all
}

// Places returns the places that the values of a handle lead to. The first is where a redirect leads: chosen by the
// locations of type 10320/loc, or else the first of type URL. Random draws by weight; nil takes the first.
func Places(handle string, values []stele.HandleValue, random func(n int) int) (list []string) {
	if random == nil {
		random = func(int) int { return 0 }
	}
	all := Gather(handle, values)
	if one, ok := all.Choose(nil, random); ok {
		if href, safe := one.Href(handle); safe {
			list = append(list, href)
		}
	}
	add := func(href string) {
		if !slices.Contains(list, href) {
			list = append(list, href)
		}
	}
	for i := range all.List {
		if href, safe := all.List[i].Href(handle); safe {
			add(href)
		}
	}
	for _, u := range URLs(values) {
		add(u)
	}
	return list
}
