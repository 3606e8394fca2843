package destination

import (
	"slices"
	"strings"

	"github.com/stele-id/stele"
)

// Align makes the targets of a handle's record and its values of type URL agree, so that the web,
// the DNS and clients of the Handle System see the same places. Next is the version that follows
// before, which is nil for a new record. What was changed last counts: a URL that was added to
// the values or taken from them is added to the targets or taken from them, and if the values
// are as before, the other way round. A record that is written with values and without any target
// gets the targets of its values. Values that the public may not read give no targets, nor
// do any if locations (10320/loc) or an alias decide where the handle leads.
//
// It changes nothing of before. It copies the lists that it changes, so that next may share
// them with another record.
func Align(before, next *stele.Record) {
	if len(next.Values) == 0 && (before == nil || len(before.Values) == 0) {
		return
	}
	was := before
	if was == nil {
		was = &stele.Record{}
	}
	old, now := placesOf(was.Values), placesOf(next.Values)
	there := locationsOf(next.Targets)
	switch {
	case !slices.Equal(old, now), len(there) == 0:
		alignTargets(old, now, next)
	case before != nil && len(now) > 0:
		alignValues(locationsOf(was.Targets), there, now, next)
	}
}

// alignTargets makes the targets follow the values.
func alignTargets(old, now []string, next *stele.Record) {
	targets := slices.DeleteFunc(slices.Clone(next.Targets), func(t stele.Target) bool {
		return t.Service == stele.N2L && slices.Contains(old, t.URL) && !slices.Contains(now, t.URL)
	})
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
	if len(targets) == 0 {
		targets = nil
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
