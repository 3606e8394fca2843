package httpd

import (
	"net/http"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/internal/destination"
	"github.com/stele-id/stele/resolver"
)

// tombstone answers for a record that was withdrawn: 410, with why, when and what replaces
// it. A client that asks for a description gets it, for the thing can still be cited.
func (h *Handler) tombstone(w http.ResponseWriter, r *http.Request, liked []resolver.Preference, res *resolver.Resolution) {
	if len(liked) > 0 && !wantsPage(liked) {
		itself := *res
		itself.Kind = resolver.Description
		best := h.best(&resolver.Request{Accept: liked}, &itself)
		if best.way == byFormat && best.named && best.format.Type != "application/json" && best.format.Type != "text/plain" {
			h.describe(w, r, res, best.format)
			return
		}
	}
	p := problem{Status: http.StatusGone, Title: http.StatusText(http.StatusGone), ID: shownIn(res), Scheme: res.ID.Scheme()}
	p.say(stele.Messagef("identifier.withdrawn", "What this identifier named was withdrawn."))
	p.Reason = legible(res.Tombstone.Reason)
	if !res.Tombstone.At.IsZero() {
		p.Withdrawn = res.Tombstone.At.UTC().Format(time.RFC3339)
	}
	if id := res.Tombstone.Replacement; id.IsValid() {
		p.Replacement = h.shown(r, id)
		p.ReplacementURL = h.self(r, id)
	}
	p.res = res
	h.about(w.Header(), res)
	h.writeProblem(w, r, &p)
}

// gone answers for a target that its owner has marked as missing: 404, for now, or 410.
func (h *Handler) gone(w http.ResponseWriter, r *http.Request, res *resolver.Resolution) {
	p := problem{Status: res.Status, Title: http.StatusText(res.Status), ID: shownIn(res), Scheme: res.ID.Scheme()}
	p.say(stele.Messagef("identifier.target-missing", "The owner of this identifier says that what it names can't be had at present."))
	if res.Status == http.StatusGone {
		p.say(stele.Messagef("identifier.target-gone", "The owner of this identifier says that what it named is gone."))
	}
	if res.Rule != nil && res.Rule.Reason != "" {
		p.Reason = legible(res.Rule.Reason)
		p.say(stele.Messagef("identifier.rule-says-gone", "The owner of this namespace says that what such names stand for can't be had: {reason}", p.Reason))
	}
	h.about(w.Header(), res)
	h.writeProblem(w, r, &p)
}

// shownIn returns the identifier of an answer as people see it: in the owner's spelling where
// it is the record's own.
func shownIn(res *resolver.Resolution) string {
	if res.Record != nil && res.Record.ID == res.ID {
		return destination.Shown(res.Record)
	}
	return res.ID.String()
}

// shown returns another identifier as people see it: in its canonical form if the client may
// not see its record, or the record can't be read now.
func (h *Handler) shown(r *http.Request, id stele.ID) string {
	if id.Scheme() != handleScheme {
		return id.String()
	}
	res, err := h.o.Resolver.Resolve(r.Context(), resolver.Request{ID: id, Who: auth.From(r.Context())})
	if err != nil || res.Record == nil || res.Record.ID != id {
		return id.String()
	}
	return destination.Shown(res.Record)
}
