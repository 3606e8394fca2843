package destination

import (
	"slices"
	"strings"

	"github.com/stele-id/stele"
)

// Align makes the targets of a handle's record and its values of type URL agree, so that the web, the DNS and clients of the Handle
// System see the same places, whatever part of the program writes the record. Next is the version that follows before, which is nil for a new record.
// URLs of values become targets. If the values are as before and the targets are not, values follow the targets: one that replaces
// another replaces it in its value too, and one that was taken away is taken from the values. If only the values were changed, and some
// still lead somewhere, targets follow them; see [Follow]. In all other cases it takes no target away: only the writer knows whether it is
// meant to stay. Values that the public may not read give no targets, nor do
// any if locations (10320/loc) or an alias decide where the handle leads.
//
// It changes nothing of before. It copies the lists that it changes, so that next may share them with another record.
func Align(before, next *stele.Record) {
	if len(next.Values) == 0 {
		return
	}
	was := before
	if was == nil {
		was = &stele.Record{}
	}
	old, now := placesOf(was.Values), placesOf(next.Values)
	there := locationsOf(next.Targets)
	switch {
	case before == nil || len(now) == 0 || len(there) == 0:
		addTargets(now, next)
	case slices.Equal(old, now):
		alignValues(locationsOf(was.Targets), there, now, next)
	case slices.Equal(was.Targets, next.Targets): // only the values were changed
		Follow(was.Values, next.Values, next)
	default:
		addTargets(now, next)
	}
}

// Follow makes the targets of a record follow a change of its values, from before to after, that a client of the Handle System makes: a
// value that leads elsewhere changes its target, which keeps its rank and all else, a value that goes takes its target with it, and a
// new one adds one. Targets that no value leads to stay.
func Follow(before, after []stele.HandleValue, next *stele.Record) {
	old, now := placesOf(before), placesOf(after)
	if slices.Equal(old, now) {
		return
	}
	moved := make(map[string]string)
	for i := range before {
		from, ok := place(&before[i])
		if !ok || !slices.Contains(old, from) || slices.Contains(now, from) {
			continue
		}
		at := slices.IndexFunc(after, func(v stele.HandleValue) bool { return v.Index == before[i].Index })
		if at < 0 {
			continue
		}
		if to, ok := place(&after[at]); ok && slices.Contains(now, to) && !slices.Contains(old, to) {
			moved[from] = to
		}
	}
	var targets []stele.Target
	for _, t := range next.Targets {
		if t.Service == stele.N2L && slices.Contains(old, t.URL) && !slices.Contains(now, t.URL) {
			to, ok := moved[t.URL]
			if !ok {
				continue
			}
			t.URL = to
		}
		targets = append(targets, t)
	}
	next.Targets = targets
	addTargets(now, next)
}

// addTargets adds targets for places that have none.
func addTargets(now []string, next *stele.Record) {
	targets := slices.Clone(next.Targets)
	have := locationsOf(targets)
	order := uint16(firstOrder)
	for _, t := range targets {
		if t.Service == stele.N2L && t.Order >= order {
			order = min(t.Order, ^uint16(0)-1) + 1
		}
	}
	for i, url := range now {
		if slices.Contains(have, url) || slices.Contains(now[:i], url) || len(targets) >= stele.MaxTargets {
			continue
		}
		// A Handle client follows the first value, so the places are in an order.
		targets = append(targets, stele.Target{Service: stele.N2L, URL: url, Order: order, Preference: firstPreference, TTL: ttlOf(next.Values, url)})
		order = min(order, ^uint16(0)-1) + 1
	}
	next.Targets = targets
}

// The rank of the first target that a value gives.
const (
	firstOrder      = 100
	firstPreference = 10
)

// alignValues makes the values follow the targets: where one place replaces another, the value
// keeps its index, its permissions and its TTL.
func alignValues(old, now, places []string, next *stele.Record) {
	var gone, come []string
	for _, url := range places {
		if slices.Contains(old, url) && !slices.Contains(now, url) {
			gone = append(gone, url)
		}
	}
	for _, url := range now {
		if !slices.Contains(old, url) && !slices.Contains(places, url) {
			come = append(come, url)
		}
	}
	if len(gone) == 0 && len(come) == 0 {
		return
	}
	var values []stele.HandleValue
	for _, v := range next.Values {
		at := -1
		if url, ok := place(&v); ok {
			at = slices.Index(gone, url)
		}
		switch {
		case at < 0:
			values = append(values, v)
		case at < len(come):
			v.Data, v.Timestamp = []byte(come[at]), Stamp(next)
			values = append(values, v)
		}
	}
	index := uint32(0)
	for _, url := range come[min(len(gone), len(come)):] {
		if len(values) >= stele.MaxValues {
			break
		}
		for index++; slices.ContainsFunc(values, func(v stele.HandleValue) bool { return v.Index == index }); index++ {
		}
		values = append(values, stele.HandleValue{Index: index, Type: TypeURL, Data: []byte(url), TTL: stele.DefaultHandleTTL, Timestamp: Stamp(next), Permissions: stele.DefaultPermissions})
	}
	next.Values = values
}

// placesOf returns the URLs to which values of type URL lead, in their order; none if other values
// decide where the handle leads.
func placesOf(values []stele.HandleValue) (urls []string) {
	for i := range values {
		v := &values[i]
		if v.Permissions&stele.PublicRead != 0 && (HasType(v.Type, TypeAlias) || HasType(v.Type, TypeLoc)) {
			return nil
		}
		if url, ok := place(v); ok {
			urls = append(urls, url)
		}
	}
	return urls
}

// place returns the URL to which one value leads the public.
func place(v *stele.HandleValue) (url string, ok bool) {
	if v.Permissions&stele.PublicRead == 0 || !strings.EqualFold(v.Type, TypeURL) {
		return "", false
	}
	url, ok = Safe(strings.TrimSpace(string(v.Data)))
	return url, ok && stele.CheckURL(url) == nil
}

func ttlOf(values []stele.HandleValue, url string) uint32 {
	for i := range values {
		if at, ok := place(&values[i]); ok && at == url && !values[i].TTLAbsolute {
			return min(values[i].TTL, stele.MaxTTL)
		}
	}
	return 0
}

// Stamp returns when a version of a record was made, as handle values have it.
func Stamp(r *stele.Record) uint32 {
	if seconds := r.Modified.Unix(); seconds > 0 && seconds < 1<<32 {
		return uint32(seconds)
	}
	return 0
}

// locationsOf returns the URLs of targets for the thing itself.
func locationsOf(targets []stele.Target) (urls []string) {
	for i := range targets {
		if targets[i].Service == stele.N2L {
			urls = append(urls, targets[i].URL)
		}
	}
	return urls
}
