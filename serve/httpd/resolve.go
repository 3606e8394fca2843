package httpd

import (
	"errors"
	"net/http"
	"slices"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/resolver"
)

// find resolves a text as it stands in a URL's path, raw. What it can be read as is tried in
// turn, as long as the registry has no record; what a rule of a namespace answers, or what is
// delegated to another resolver, counts only if nothing else is found. A text that is not an identifier, or that leads nowhere, is
// NotFound; the error says why.
func (h *Handler) find(r *http.Request, text string, q resolver.Request) (resolver.Resolution, error) {
	var passed resolver.Resolution // by a rule, or to another resolver
	var unknown error
	x := h.reading(r, text)
	for id, ok := x.next(); ok; id, ok = x.next() {
		q.ID = id
		res, err := h.o.Resolver.Resolve(r.Context(), q)
		switch {
		case err == nil && res.Kind != resolver.Delegation && res.Rule == nil:
			return res, nil
		case err == nil:
			if passed.Kind == 0 || passed.Rule == nil && res.Rule != nil {
				passed = res
			}
		case isUnknown(err):
			if unknown == nil {
				unknown, passed.Trace = err, slices.Concat(passed.Trace, res.Trace)
			}
		default:
			return res, err
		}
	}
	switch {
	case passed.Kind != 0:
		return passed, nil
	case unknown == nil:
		unknown = x.why()
	}
	if errors.Is(unknown, stele.NotFound) {
		return passed, unknown
	}
	return passed, &stele.Error{Op: "resolve", Kind: stele.NotFound, Err: unknown}
}

// isUnknown reports whether an error says that a name leads nowhere. Nor does a name with a
// suffix that can't be passed on.
func isUnknown(err error) bool {
	kind := stele.KindOf(err)
	return kind == stele.NotFound || kind == stele.Invalid
}

// identifier answers for a path that is an identifier.
func (h *Handler) identifier(w http.ResponseWriter, r *http.Request, t requestTarget) {
	a, err := readAsk(t)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	q := resolver.Request{Query: a.query, Component: a.component, Service: a.service, Who: auth.From(r.Context()), Trace: a.explain}
	if a.explain {
		q.Given = t.path
	}
	q.Accept = h.accepts.of(r.Header, "Accept")
	if a.media != "" {
		if q.Accept, err = resolver.ParseAccept(a.media); err != nil {
			h.fail(w, r, refused(http.StatusBadRequest, "request.component-type", "Behind ?+t= stands a media type, such as text/csv."))
			return
		}
	}
	q.Languages = h.languages.of(r.Header, "Accept-Language")
	q.Brief = mayBeBrief(r, t, &q)
	res, err := h.find(r, t.path, q)
	if !isFast(&a, &q, &res, err) && decline(r) {
		return
	}
	if err == nil && res.Rule != nil && !a.explain {
		h.byRule(w, r, t, &a, &q, &res)
		return
	}
	if res.Brief && res.Kind == resolver.Redirect && (len(q.Accept) == 0 || mayFit(res.Fit)) {
		note(w, "", res.ID.Scheme())
		w.Header()["Vary"] = timeGateVaries
		h.land(w, r, &res)
		return
	}
	if res.Brief { // the answer needs the whole record
		q.Brief = false
		res, err = h.find(r, t.path, q)
	}
	h.answer(w, r, t, &a, &q, res, err)
}

// answer answers with the result of the resolver, or with its error.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, t requestTarget, a *ask, q *resolver.Request, res resolver.Resolution, err error) {
	switch {
	case a.explain:
		h.explain(w, r, t, q, &res, err)
	case err != nil:
		h.unknown(w, r, t, err)
	default:
		note(w, "", res.ID.Scheme())
		h.found(w, r, t, a, q, &res)
	}
}

// isFast reports whether an answer is a redirect for which nothing else needs to be read: only such a one is made on the fast path.
func isFast(a *ask, q *resolver.Request, res *resolver.Resolution, err error) bool {
	return err == nil && res.Kind == resolver.Redirect && !a.isOwn() && (len(q.Accept) == 0 || wantsPage(q.Accept) && mayFit(res.Fit))
}

// mayBeBrief reports whether a request is likely to be answered by a redirect, as most
// are: it comes from a browser, or from a program that takes anything, and asks for
// nothing but where the name leads.
func mayBeBrief(r *http.Request, t requestTarget, q *resolver.Request) bool {
	_, dated := r.Header["Accept-Datetime"]
	return !t.asked && !dated && (len(q.Accept) == 0 || wantsPage(q.Accept))
}

// found answers with the result of the resolver.
func (h *Handler) found(w http.ResponseWriter, r *http.Request, t requestTarget, a *ask, q *resolver.Request, res *resolver.Resolution) {
	if res.Record != nil {
		// The URL of a record is its TimeGate, whatever is answered there.
		w.Header()["Vary"] = timeGateVaries
		if res.Kind != resolver.Redirect { // its links are made with the others
			h.linkTimeGate(w.Header(), r, res)
		}
		if _, ok := r.Header["Accept-Datetime"]; ok {
			h.timegate(w, r, res)
			return
		}
	}
	switch res.Kind {
	case resolver.Delegation:
		h.passOn(w, r, t, a, q, res)
	case resolver.Tombstone:
		if a.info {
			h.inflect(w, r, res)
			return
		}
		h.tombstone(w, r, q.Accept, res)
	case resolver.Gone:
		h.gone(w, r, res)
	default:
		if t.query != "" && !a.info && res.ID.Scheme() == handleScheme && h.handleProxy(w, r, res.ID, t) {
			return
		}
		switch {
		case a.info:
			h.inflect(w, r, res)
		case a.noredirect:
			h.show(w, r, q.Accept, res)
		default:
			h.choose(w, r, t, q, res)
		}
	}
}

// land redirects to the target that was chosen.
func (h *Handler) land(w http.ResponseWriter, r *http.Request, res *resolver.Resolution) {
	if h.isLoop(r, res) {
		h.linkTimeGate(w.Header(), r, res)
		h.fail(w, r, &stele.Error{Op: "resolve", ID: res.ID, Kind: stele.Conflict, Err: resolver.ErrLoop})
		return
	}
	head := w.Header()
	vary(head)
	h.keep(head, res)
	if h.countsAll(res) {
		head["Cache-Control"] = countedAlways
	}
	if res.Record != nil {
		h.signpost(head, r, res)
	}
	if h.redirect(w, r, res.URL, res.Status) {
		h.countRedirect(r, res)
	}
}

// maxOwn is how many redirects in a row may lead to names of this very server. Those
// to hosts that the resolver knows as its own it has followed already.
const maxOwn = 8

// isLoop reports whether a redirect would lead back to where it came from, at once
// or by way of other names that this server has under the host of the request.
func (h *Handler) isLoop(r *http.Request, res *resolver.Resolution) bool {
	ids := h.ownNames(r, res.URL)
	if slices.ContainsFunc(ids, func(id stele.ID) bool {
		return id == res.ID || res.Record != nil && (id == res.Record.ID || slices.Contains(res.Record.Aliases, id)) && res.Matched == res.ID.String()
	}) {
		return true
	}
	for seen := []stele.ID{res.ID}; len(ids) > 0; {
		next, err := h.o.Resolver.Resolve(r.Context(), resolver.Request{ID: ids[0], Who: auth.From(r.Context())})
		if err != nil || next.Kind != resolver.Redirect {
			return errors.Is(err, resolver.ErrLoop)
		}
		if seen = append(seen, ids[0]); len(seen) > maxOwn {
			return true
		}
		ids = h.ownNames(r, next.URL)
		if slices.ContainsFunc(ids, func(id stele.ID) bool { return slices.Contains(seen, id) }) {
			return true
		}
	}
	return false
}

// passOn redirects to the resolver that answers for a namespace. It gets the whole
// query, whatever it says to us.
func (h *Handler) passOn(w http.ResponseWriter, r *http.Request, t requestTarget, a *ask, q *resolver.Request, res *resolver.Resolution) {
	if a.isOwn() || a.query != t.query {
		whole := *q
		whole.ID, whole.Query, whole.Component = res.ID, t.query, false
		if other, err := h.o.Resolver.Resolve(r.Context(), whole); err == nil && other.Kind == resolver.Delegation {
			*res = other
		}
	}
	if h.isOwn(r, hostOf(res.URL)) {
		h.fail(w, r, &stele.Error{Op: "resolve", ID: res.ID, Kind: stele.Conflict, Err: resolver.ErrLoop})
		return
	}
	head := w.Header()
	vary(head)
	h.keep(head, res)
	h.redirect(w, r, res.URL, res.Status)
}

// unknown answers for a name that leads nowhere: it redirects to the scheme's global
// resolver, if there is one and no namespace here has the name.
func (h *Handler) unknown(w http.ResponseWriter, r *http.Request, t requestTarget, err error) {
	if errors.Is(err, stele.NotFound) && len(h.o.Global) > 0 {
		x := h.reading(r, t.path)
		for id, ok := x.next(); ok; id, ok = x.next() {
			note(w, "", id.Scheme())
			location := h.global(r, id, t)
			if location == "" {
				continue
			}
			// A scheme's root has no owner: a name that is below it alone is unknown here.
			if ns, fault := h.o.Resolver.Namespace(r.Context(), id); fault != nil || ns != nil && ns.Prefix != "" {
				continue
			}
			vary(w.Header())
			w.Header()["Cache-Control"] = oneHour
			h.redirect(w, r, location, http.StatusFound)
			return
		}
	}
	if len(t.path) > stele.MaxText {
		h.fail(w, r, refused(http.StatusRequestURITooLong, "request.identifier-too-long", "Identifiers have at most {most} bytes, and this has {size}.", stele.MaxText, len(t.path)))
		return
	}
	if errors.Is(err, stele.NotFound) {
		h.countFailure(r, t.path)
	}
	h.failAbout(w, r, t.path, err)
}
