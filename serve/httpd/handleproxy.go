package httpd

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/handles"
	"github.com/stele-id/stele/internal/destination"
	"github.com/stele-id/stele/resolver"
)

// maxAliases is how many handles may be aliases of one another.
const maxAliases = 8

// proxyParameters are those that a handle proxy understands. A query that has none
// of them is not for the proxy.
var proxyParameters = [...]string{"noredirect", "type", "index", "auth", "ignore_aliases", "urlappend", "locatt"}

// handleProxy answers a request for a handle as the Handle System's proxy does. It
// returns false if the query has nothing that is for the proxy, or the handle no
// values: then the request is answered like that for any other name.
func (h *Handler) handleProxy(w http.ResponseWriter, r *http.Request, id stele.ID, t requestTarget) bool {
	q := readProxyQuery(t.query)
	if !slices.ContainsFunc(proxyParameters[:], q.Has) {
		return false
	}
	request := resolver.Request{ID: id, Accept: h.accepts.of(r.Header, "Accept"), Languages: h.languages.of(r.Header, "Accept-Language"), Who: auth.From(r.Context())}
	res, err := h.o.Resolver.Resolve(r.Context(), request)
	if err != nil || res.Record == nil || res.Kind == resolver.Tombstone || res.Kind == resolver.Gone {
		return false
	}
	h.linkTimeGate(w.Header(), r, &res)
	wanted, _ := readSelection(q) // the proxy ignores indexes that are not numbers
	end, values, err := h.followAliases(r.Context(), res, wanted, q.Has("ignore_aliases"))
	if err != nil {
		h.fail(w, r, err)
		return true
	}
	switch {
	case end.Kind == resolver.Delegation:
		h.passOn(w, r, t, &ask{}, &request, &end)
	case end.Rule != nil:
		h.byRule(w, r, t, &ask{}, &request, &end)
	case end.Kind == resolver.Gone:
		h.gone(w, r, &end)
	case isOnlyAuth(q):
		h.choose(w, r, requestTarget{}, &request, &end)
	default:
		h.about(w.Header(), &end)
		location, status, ok := h.handleLocation(&end, values, wanted, q)
		if !ok || q.Has("noredirect") {
			h.showValues(w, r, &end, values)
			return true
		}
		if end.URL, err = resolver.Append(location, q.Get("urlappend")); err != nil {
			h.fail(w, r, &stele.Error{Op: "resolve", ID: id, Kind: stele.Invalid, Err: err})
			return true
		}
		end.Status = status
		h.land(w, r, &end)
	}
	return true
}

// isOnlyAuth reports whether a query asks only for an authoritative answer; all answers here
// are.
func isOnlyAuth(q url.Values) bool {
	return !slices.ContainsFunc(proxyParameters[:], func(name string) bool { return name != "auth" && q.Has(name) })
}

// handleLocation chooses where a handle leads: to the best of the record's targets,
// unless the request asks for something in the values.
func (h *Handler) handleLocation(res *resolver.Resolution, values []stele.HandleValue, wanted handles.Selection, q url.Values) (location string, status int, ok bool) {
	if wanted.IsAll() && res.Kind == resolver.Redirect && !(q.Has("locatt") && slices.ContainsFunc(values, isLocations)) {
		return res.URL, res.Status, true
	}
	return placeOf(bareHandle(res.ID), values, q["locatt"], h.random)
}

// redirectByValues makes the answer for a record without targets a redirect to where the values
// of the handle lead, as a request with the query has it. It leaves the answer as it is if
// they lead nowhere. The errors are of aliases: the handle that they stand for is not there,
// or they lead in a circle.
func (h *Handler) redirectByValues(r *http.Request, res *resolver.Resolution, q url.Values) error {
	if res.Kind != resolver.Description || len(res.Record.Values) == 0 {
		return nil
	}
	end, values, err := h.followAliases(r.Context(), *res, handles.Selection{}, q.Has("ignore_aliases"))
	if err != nil {
		return err
	}
	location, status, ok := end.URL, end.Status, end.Kind == resolver.Redirect || end.Kind == resolver.Delegation
	if end.Kind == resolver.Description {
		location, status, ok = h.handleLocation(&end, values, handles.Selection{}, q)
	}
	if ok {
		res.Kind, res.URL, res.Status, res.TTL, res.Fit = resolver.Redirect, location, status, end.TTL, resolver.Unstated
		if res.Targets = end.Targets; len(res.Targets) == 0 {
			res.Targets = []stele.Target{{Service: stele.N2L, URL: location, Status: status, TTL: end.TTL}}
		}
		if end.Record != nil {
			res.Record = readBy(res.Record, end.Record.Readers)
		}
	}
	return nil
}

// readBy returns the record, as one that only these readers may see if there are any. So
// caches do not keep an answer that a client got only because it may see a record on the way.
func readBy(record *stele.Record, readers []string) *stele.Record {
	if len(readers) == 0 || !record.IsPublic() {
		return record
	}
	own := *record
	own.Readers = readers
	return &own
}

// followAliases goes on from a handle that is an alias, by a value of type HS_ALIAS, to the
// one that it stands for. It returns where the way ends, and the wanted values there that the
// public may read. The answer is good for as long as all values on the way are.
func (h *Handler) followAliases(ctx context.Context, res resolver.Resolution, wanted handles.Selection, ignore bool) (resolver.Resolution, []stele.HandleValue, error) {
	seen, ttl := []stele.ID{res.ID}, uint32(stele.MaxTTL)
	var readers []string
	for {
		if res.Record == nil { // another resolver knows
			res.TTL = min(res.TTL, ttl)
			return res, nil, nil
		}
		if res.Record = readBy(res.Record, readers); !res.Record.IsPublic() {
			readers = res.Record.Readers
		}
		values := wanted.Of(openValues(handleValues(&res)))
		ttl = h.valuesTTL(&res, values, ttl)
		next, ok := h.aliasOf(values)
		if ignore || !ok {
			res.TTL = ttl
			return res, values, nil
		}
		if slices.Contains(seen, next) || len(seen) > maxAliases {
			return res, nil, &stele.Error{Op: "resolve", ID: seen[0], Kind: stele.Conflict, Err: resolver.ErrLoop}
		}
		seen = append(seen, next)
		var err error
		if res, err = h.o.Resolver.Resolve(ctx, resolver.Request{ID: next, Who: auth.From(ctx)}); err != nil {
			return res, nil, err
		}
		if res.Kind == resolver.Tombstone {
			return res, nil, &stele.Error{Op: "resolve", ID: next, Kind: stele.Gone, Err: stele.Messagef("handle.withdrawn", "{epitaph}", epitaph(&res.Tombstone, res.Tombstone.Replacement.String()))}
		}
	}
}

// aliasOf returns the handle that the values are an alias of. A value that does not name a
// handle makes no alias; the server shows the values instead.
func (h *Handler) aliasOf(values []stele.HandleValue) (stele.ID, bool) {
	at := slices.IndexFunc(values, func(v stele.HandleValue) bool { return destination.HasType(v.Type, destination.TypeAlias) })
	if at < 0 {
		return stele.ID{}, false
	}
	id, err := h.parseHandle(strings.TrimSpace(string(values[at].Data)))
	return id, err == nil
}

// valuesTTL returns for how many seconds an answer made of a record's values is good: no
// longer than ttl, nor than any of the values that say where it leads. Where its targets say
// so, their time counts.
func (h *Handler) valuesTTL(res *resolver.Resolution, values []stele.HandleValue, ttl uint32) uint32 {
	if res.Kind == resolver.Redirect || !slices.ContainsFunc(values, destination.IsPlace) {
		return min(ttl, res.TTL)
	}
	now := h.o.Now().Unix()
	for _, v := range values {
		left := int64(v.TTL)
		if v.TTLAbsolute {
			left -= now
		}
		if destination.IsPlace(v) {
			ttl = uint32(min(max(left, 0), int64(ttl)))
		}
	}
	return ttl
}

func isLocations(v stele.HandleValue) bool { return destination.HasType(v.Type, destination.TypeLoc) }

// placeOf chooses where values lead: by the locations of those of type 10320/loc,
// to which values of type URL are spares; otherwise to the first of type URL, or
// else of a type below it.
func placeOf(handle string, values []stele.HandleValue, locatt []string, random func(n int) int) (location string, status int, ok bool) {
	all := destination.Gather(handle, values)
	if one, ok := all.Choose(locatt, random); ok {
		href, safe := one.Href(handle)
		return href, all.RedirectStatus(one), safe
	}
	urls := destination.URLs(values)
	if len(urls) == 0 {
		return "", 0, false
	}
	return urls[0], http.StatusFound, true
}

// readProxyQuery reads a query as the proxy does: parameters end with & or ;, and a
// plus sign is one.
func readProxyQuery(query string) url.Values {
	q := url.Values{}
	for part := range strings.FieldsFuncSeq(query, func(c rune) bool { return c == '&' || c == ';' }) {
		name, value, _ := strings.Cut(part, "=")
		name, err := url.PathUnescape(name)
		value, valueErr := url.PathUnescape(value)
		if err == nil && valueErr == nil {
			q.Add(name, value)
		}
	}
	return q
}
