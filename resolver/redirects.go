package resolver

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/rules"
)

// maxRedirects is how many names of this resolver a redirect may lead through.
const maxRedirects = 8

// ErrLoop says that a name leads to itself by way of its target, or through more
// names than can be meant. It stands in an error of Kind Conflict.
var ErrLoop = stele.Messagef("resolve.indirections-too-many", "the name leads back to itself, or through too many others; its owner must change its target")

// follow follows a redirect to a name of this same resolver: PURL's chains, and
// whatever else points here. It spares the client the requests, and finds loops. Where
// the next name has no answer of its own the redirect stays: the answer there tells the
// client more.
func (w *walk) follow(ctx context.Context, res Resolution) (Resolution, error) {
	var seen []stele.ID
	for at := w.q.ID; ; {
		next, query, ok := w.inside(&res)
		if !ok {
			return res, nil
		}
		seen = append(seen, at)
		if slices.Contains(seen, next) || len(seen) == maxRedirects {
			return Resolution{}, &stele.Error{Op: "resolve", ID: w.q.ID, Kind: stele.Conflict, Err: ErrLoop}
		}
		step := walk{Resolver: w.Resolver, q: w.q}
		step.q.ID, step.q.Given, step.q.Query = next, "", query
		if w.q.Trace {
			w.step("name", "trace.target-name", "{name}, to which the target leads", next)
		}
		found, err := step.answer(ctx)
		w.trace = append(w.trace, step.trace...)
		switch {
		case isNotFound(err), err == nil && found.Kind == Description:
			return res, nil
		case err != nil:
			return Resolution{}, stele.Messagef("resolve.indirection-failed", "{id} leads to another name: {cause}", w.q.ID, err)
		}
		if res.Rule != nil && found.Record != nil && len(found.Targets) > 0 && !rules.Fits(found.Fit, found.Targets[0].Type) {
			return res, nil // the record's own URL describes it in what the client accepts
		}
		res = redirected(res, found)
		at = next
	}
}

// inside returns the name of this resolver that a redirect leads to, and the query
// that goes with it.
func (w *walk) inside(res *Resolution) (id stele.ID, query string, ok bool) {
	if res.Kind != Redirect || len(w.hosts) == 0 {
		return stele.ID{}, "", false
	}
	host, rest := splitURL(res.URL)
	if !w.hosts[host] || strings.HasPrefix(rest, "/.") { // our own pages begin so
		return stele.ID{}, "", false
	}
	rest, _, _ = strings.Cut(rest, "#")
	path, query, _ := strings.Cut(rest, "?")
	id, err := w.schemes.Parse(res.URL)
	if err != nil { // not a link as it is; a bare handle may be the path
		id, err = w.schemes.Parse(unescape(strings.TrimPrefix(path, "/")))
	}
	return id, query, err == nil
}

// splitURL returns host and port of a URL, in lower case, and what follows them.
func splitURL(text string) (host, rest string) {
	_, rest, _ = strings.Cut(text, "://")
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	host = rest[:end]
	return strings.ToLower(host[strings.LastIndexByte(host, '@')+1:]), rest[end:]
}

// redirected is the answer of a name whose target is another one: the location is the
// other's, and the description stays. A withdrawal is that of the other. The redirect
// is permanent only if both are, and is valid for no longer than either.
func redirected(res, next Resolution) Resolution {
	next.Private = next.Private || res.Private
	switch next.Kind {
	case Tombstone, Gone:
		if next.Rule != nil && res.Record != nil { // a rule has no record that could be described
			res.Kind, res.Status, res.URL, res.Targets = Gone, next.Status, "", nil
			res.Private, res.TTL = next.Private, min(next.TTL, res.TTL)
			return res
		}
		next.TTL = min(next.TTL, res.TTL)
		return next
	}
	res.Private = next.Private
	res.URL, res.Targets, res.Fit = next.URL, next.Targets, next.Fit
	res.TTL = min(res.TTL, next.TTL)
	if isPermanent(res.Status) && !isPermanent(next.Status) {
		res.Status = next.Status
	}
	return res
}

func isPermanent(status int) bool {
	return status == http.StatusMovedPermanently || status == http.StatusPermanentRedirect
}
