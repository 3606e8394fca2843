package httpd

import (
	"net/http"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/rules"
)

// byRule answers for a name that is not registered, and for which a rule of its namespace
// answers. There is no record to describe: a request for what is known of the name is told
// how it is resolved.
func (h *Handler) byRule(w http.ResponseWriter, r *http.Request, t requestTarget, a *ask, q *resolver.Request, res *resolver.Resolution) {
	note(w, "", res.ID.Scheme())
	switch {
	case a.info || a.noredirect:
		h.explainRule(w, r, t, q, res)
	case res.Kind == resolver.Gone && res.Status == http.StatusNotAcceptable, res.Kind == resolver.Redirect && !rules.Fits(res.Fit, firstType(res)):
		h.noneFits(w, r, res)
	case res.Kind == resolver.Gone:
		h.gone(w, r, res)
	default:
		h.land(w, r, res)
	}
}

// explainRule tells how a name is resolved for which a rule answers.
func (h *Handler) explainRule(w http.ResponseWriter, r *http.Request, t requestTarget, q *resolver.Request, res *resolver.Resolution) {
	traced := *q
	traced.ID, traced.Given, traced.Query, traced.Trace, traced.Brief, traced.Who = res.ID, t.path, "", true, false, auth.From(r.Context())
	told, err := h.o.Resolver.Resolve(r.Context(), traced)
	h.explain(w, r, t, &traced, &told, err)
}

// noneFits answers that a rule has nothing of the types that the client accepts.
func (h *Handler) noneFits(w http.ResponseWriter, r *http.Request, res *resolver.Resolution) {
	p := problem{Status: http.StatusNotAcceptable, Title: http.StatusText(http.StatusNotAcceptable), ID: shownIn(res), Scheme: res.ID.Scheme()}
	p.say(stele.Messagef("request.not-acceptable", "There is nothing of the types that the request accepts."))
	p.Reason = legible(res.Rule.Reason)
	p.Accepted = typesOf(nil, res.Rule.Targets)
	vary(w.Header())
	h.keep(w.Header(), res)
	h.writeProblem(w, r, &p)
}

// predictRule returns an error where the request would get one instead of the answer.
func (h *Handler) predictRule(r *http.Request, res *resolver.Resolution) error {
	switch {
	case res.Kind == resolver.Gone:
		return nil
	case !rules.Fits(res.Fit, firstType(res)):
		return refused(http.StatusNotAcceptable, "request.not-acceptable", "There is nothing of the types that the request accepts.")
	case h.isLoop(r, res):
		return &stele.Error{Op: "resolve", ID: res.ID, Kind: stele.Conflict, Err: resolver.ErrLoop}
	}
	return nil
}
