package api

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// readTarget returns what follows [Root] in the request target, as it was sent, and the
// query. The target is in origin form (/api/v1/records) or in absolute form
// (http://id.example.org/api/v1/records), as proxies send it. Nothing is decoded, no slash
// merged, no dot segment removed: each of these would make another identifier. So
// /api/v1/../v1/records and /api/%761 lead nowhere.
func readTarget(r *http.Request) (path, query string, err error) {
	raw := r.RequestURI
	if raw == "" { // made by hand, in a test or a program
		raw = r.URL.RequestURI()
	}
	if !strings.HasPrefix(raw, "/") {
		_, rest, _ := strings.Cut(raw, "://")
		if i := strings.IndexAny(rest, "/?"); i >= 0 {
			raw = rest[i:]
		}
	}
	if len(raw) > maxTarget {
		return "", "", refusef(http.StatusRequestURITooLong, "request.address-too-long", "the address has more than {limit} bytes; no identifier is so long", maxTarget)
	}
	path, query, _ = strings.Cut(raw, "?")
	rest, ok := strings.CutPrefix(path, Root)
	if !ok || rest != "" && rest[0] != '/' {
		return "", "", errNowhere
	}
	return strings.TrimPrefix(rest, "/"), query, nil
}

// errNowhere says that no operation has this address.
var errNowhere = refusef(http.StatusNotFound, "request.address-unknown", "there is nothing at this address; {root} lists what there is", Root)

// route finds the operation of a path and the request's method. It answers OPTIONS
// itself. The first segment is not decoded; what follows is, once.
func (c *call) route(path string) error {
	root, tail, found := strings.Cut(path, "/")
	p, ok := c.h.places[root]
	methods := p.itself
	if found {
		methods = p.below
	}
	if !ok || len(methods) == 0 || found && tail == "" {
		return errNowhere
	}
	var err error
	if c.tail, err = url.PathUnescape(tail); err != nil {
		return refusef(http.StatusBadRequest, "request.path-escape-wrong", "the path has a % without two hexadecimal digits after it; write %25 for the sign itself")
	}
	method := c.r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if op := methods[method]; op != nil {
		c.op = op
		return nil
	}
	allow := allowed(methods)
	c.w.Header().Set("Allow", allow)
	if method == http.MethodOptions {
		c.replyEmpty(http.StatusNoContent)
		return nil
	}
	return refusef(http.StatusMethodNotAllowed, "request.method-not-allowed", `"{method}" is not done here; use one of {allowed}`, method, allow)
}

// allowed lists the methods that a place has.
func allowed(methods map[string]*operation) string {
	names := slices.Collect(maps.Keys(methods))
	if methods[http.MethodGet] != nil {
		names = append(names, http.MethodHead)
	}
	names = append(names, http.MethodOptions)
	slices.Sort(names)
	return strings.Join(names, ", ")
}
