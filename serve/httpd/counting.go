package httpd

import (
	"net/http"
	"net/netip"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/resolver"
)

// Counter counts how names are used. Its methods are called within requests, so they must neither wait nor keep
// anything of the client.
type Counter interface {
	// Redirected counts a redirect to the target of the record with this identifier.
	Redirected(id stele.ID, from netip.Addr, agent, referrer string)
	// RedirectedByRule counts a redirect of a name that is not registered to the target of a rule.
	RedirectedByRule(id stele.ID, from netip.Addr, agent, referrer string)
	// Described counts a page or metadata about a record.
	Described(id stele.ID, from netip.Addr, agent string)
	// Failed counts a name that leads nowhere.
	Failed(id stele.ID, from netip.Addr, agent string)
}

// counts reports whether the answer to a request is one that a reader gets. Users with a token work on the
// registry, and HEAD delivers nothing.
func (h *Handler) counts(r *http.Request) bool {
	return h.o.Counter != nil && r.Method == http.MethodGet && !auth.From(r.Context()).IsKnown()
}

// countsAll reports whether a redirect belongs to a namespace all of whose redirects are counted: those of its public records, and
// those by its rules.
func (h *Handler) countsAll(res *resolver.Resolution) bool {
	switch {
	case h.o.CountsAll == nil || res.Private:
		return false
	case res.Rule != nil:
		return h.o.CountsAll(res.ID)
	}
	return res.Record != nil && res.Record.IsPublic() && h.o.CountsAll(res.Record.ID)
}

// countRedirect counts a redirect to the target of a record or rule.
func (h *Handler) countRedirect(r *http.Request, res *resolver.Resolution) {
	if !h.counts(r) || res.Record == nil && res.Rule == nil {
		return
	}
	referrer := header(r, "Referer")
	if referrer != "" && h.isOwn(r, hostOf(referrer)) {
		if isOfDesk(referrer) {
			return
		}
		referrer = ""
	}
	if res.Rule != nil {
		h.o.Counter.RedirectedByRule(res.ID, ClientAddr(r), header(r, "User-Agent"), referrer)
		return
	}
	h.o.Counter.Redirected(res.Record.ID, ClientAddr(r), header(r, "User-Agent"), referrer)
}

// countDescription counts what was delivered about a record.
func (h *Handler) countDescription(r *http.Request, res *resolver.Resolution) {
	if h.counts(r) && res.Record != nil && !h.isFromDesk(r) {
		h.o.Counter.Described(res.Record.ID, ClientAddr(r), header(r, "User-Agent"))
	}
}

// countFailure counts a name that leads nowhere, as it is read first.
func (h *Handler) countFailure(r *http.Request, text string) {
	if !h.counts(r) || h.isFromDesk(r) {
		return
	}
	x := h.reading(r, text)
	if id, ok := x.next(); ok {
		h.o.Counter.Failed(id, ClientAddr(r), header(r, "User-Agent"))
	}
}

// isFromDesk reports whether a page of the desk led to a request. Its users are signed in, but the browser sends their session
// to the desk only.
func (h *Handler) isFromDesk(r *http.Request) bool {
	referrer := header(r, "Referer")
	return referrer != "" && isOfDesk(referrer) && h.isOwn(r, hostOf(referrer))
}

// isOfDesk reports whether a URL has the path of a page of the desk.
func isOfDesk(address string) bool {
	_, rest, _ := strings.Cut(address, "://")
	_, path, _ := strings.Cut(rest, "/")
	return strings.HasPrefix(path, ".desk/")
}

// header returns the first value of a header, whose name is in the form of [http.CanonicalHeaderKey].
func header(r *http.Request, name string) string {
	if values := r.Header[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}
