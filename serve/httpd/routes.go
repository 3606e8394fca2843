package httpd

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/stele-id/stele/serve/httpd/ezid"
	"github.com/stele-id/stele/serve/httpd/handle"
	"github.com/stele-id/stele/web"
)

// route is what a first segment of a path leads to.
type route struct {
	kind      string // for observations
	serve     func(w http.ResponseWriter, r *http.Request, t requestTarget)
	writes    bool // it takes other methods than GET and HEAD, and says itself which
	anonymous bool // it answers all clients alike, or authenticates them itself
	cost      float64
}

// routes returns the first segments that are not identifiers. No PURL can begin
// with one of them (scheme/purl has the same list, and a test compares the two).
func (h *Handler) routes() map[string]route {
	assets := strings.Trim(web.AssetPath, "/")
	return map[string]route{
		assets:        {kind: "asset", serve: h.asset, anonymous: true},
		"":            {kind: "home", serve: h.home},
		".about":      {kind: "about", serve: h.aboutSite},
		".docs":       {kind: "docs", serve: h.docs, anonymous: true},
		".language":   {kind: "other", serve: h.chooseLanguage, anonymous: true},
		".urn":        {kind: "other", serve: h.protocol},
		".desk":       {kind: "desk", serve: h.desk, writes: true, anonymous: true},
		".ezid":       {kind: "ezid", serve: h.ezid, writes: true, anonymous: true},
		".oai":        {kind: "oai", serve: h.harvest, writes: true, anonymous: true},
		".log":        {kind: "log", serve: h.log, anonymous: true},
		".info":       {kind: "info", serve: h.info, cost: costInfo},
		".usage":      {kind: "usage", serve: h.usage, cost: costReverse},
		".timemap":    {kind: "timemap", serve: h.timemap, cost: costDescription},
		".memento":    {kind: "memento", serve: h.memento, cost: costMemento},
		".well-known": {kind: "other", serve: h.wellKnown, anonymous: true},
		"api":         {kind: "api", serve: h.api, writes: true, anonymous: true},
		"authority":   {kind: "lsid", serve: h.lifeScience, writes: true, anonymous: true},
		"uri-res":     {kind: "thttp", serve: h.thttp},
		"dns-query":   {kind: "dns", serve: h.dns, writes: true, anonymous: true},
		"healthz":     {kind: "health", serve: h.health, anonymous: true},
		"readyz":      {kind: "health", serve: h.ready, anonymous: true},
		"robots.txt":  {kind: "other", serve: h.robots, anonymous: true},
		"favicon.ico": {kind: "asset", serve: h.favicon, anonymous: true},
	}
}

// isDotted reports whether a first segment begins with a dot. The server reserves all of
// these, also those that it does not use yet, so no such segment is a name.
func isDotted(segment string) bool {
	return strings.HasPrefix(segment, ".") || len(segment) >= 3 && strings.EqualFold(segment[:3], "%2e")
}

// Segments returns the first segments of paths that the server uses itself, so
// that no name can begin with them.
func Segments() []string {
	var h Handler
	var all []string
	for segment := range h.routes() {
		if segment != "" {
			all = append(all, segment)
		}
	}
	slices.Sort(all)
	return all
}

// api answers the interfaces for programs.
func (h *Handler) api(w http.ResponseWriter, r *http.Request, t requestTarget) {
	_, rest := t.segment()
	switch which, _, _ := strings.Cut(rest, "/"); {
	case which == "handles":
		note(w, "handles", "")
		if w, r, ok := h.identifyReader(w, r); ok && h.await(w, r) {
			h.handles(w, r, t)
		}
		return
	case h.o.Frozen != nil && handle.Serves(which):
		q, broken := readParameters(t.query)
		h.administerHandle(w, r, rest, q, broken)
		return
	case h.o.Handles != nil && handle.Serves(which):
		note(w, "handles", "")
		if h.await(w, r) {
			q, broken := readParameters(t.query)
			h.o.Handles.Serve(w, r, handle.Request{Path: rest, Query: q, Broken: broken})
		}
		return
	case which == "v1" && h.o.API != nil:
		h.o.API.ServeHTTP(w, r)
		return
	}
	if h.mayAsk(w, r) {
		h.fail(w, r, refused(http.StatusNotFound, "handle.endpoint-unknown", "Unknown HTTP API endpoint {method} /{path}", r.Method, legible(brief(t.path))))
	}
}

// desk answers curators.
func (h *Handler) desk(w http.ResponseWriter, r *http.Request, t requestTarget) {
	switch {
	case h.o.Frozen != nil:
		w.Header()["Connection"] = closing // the server does not read the body
		h.fail(w, r, h.o.Frozen)
	case h.o.Desk != nil:
		h.o.Desk.ServeHTTP(w, r)
	case h.mayAsk(w, r):
		h.nothing(w, r, t)
	}
}

// ezid answers clients of EZID.
func (h *Handler) ezid(w http.ResponseWriter, r *http.Request, t requestTarget) {
	_, rest := t.segment()
	switch {
	case h.o.EZID != nil:
		if h.await(w, r) {
			h.o.EZID.Serve(w, r, ezid.Request{Path: rest, Query: t.query})
		}
	case h.mayAsk(w, r):
		h.nothing(w, r, t)
	}
}

// dns answers DNS over HTTPS.
func (h *Handler) dns(w http.ResponseWriter, r *http.Request, t requestTarget) {
	_, rest := t.segment()
	switch {
	case h.o.DNS != nil && rest == "":
		h.o.DNS.ServeHTTP(w, r)
	case h.mayAsk(w, r):
		h.nothing(w, r, t)
	}
}

// nothing answers that there is nothing, where no identifier can be.
func (h *Handler) nothing(w http.ResponseWriter, r *http.Request, _ requestTarget) {
	h.fail(w, r, refused(http.StatusNotFound, "resolver.address-unknown", "There is nothing at this address."))
}

// home answers with the page from which to begin. What follows an empty first segment is not
// an identifier, but it may be one after a slash too many.
func (h *Handler) home(w http.ResponseWriter, r *http.Request, t requestTarget) {
	if t.path != "" {
		note(w, "identifier", "")
		h.identifier(w, r, t)
		return
	}
	h.homePage(w, r)
}

// health answers that the process runs.
func (h *Handler) health(w http.ResponseWriter, r *http.Request, _ requestTarget) {
	w.Header()["Cache-Control"] = notKept
	h.write(w, r, http.StatusOK, textType, []byte("ok\n"))
}

// ready answers whether the server can do all that it should. Why not is for the log, and not
// for the public; it is logged once, since a client may ask often.
func (h *Handler) ready(w http.ResponseWriter, r *http.Request, t requestTarget) {
	if h.o.Ready != nil {
		if err := h.o.Ready(r.Context()); err != nil {
			if !h.unready.Swap(true) {
				h.o.Log.WarnContext(r.Context(), "the server is not ready", "error", err.Error())
			}
			w.Header()["Cache-Control"] = notKept
			h.write(w, r, http.StatusServiceUnavailable, textType, []byte("not ready\n"))
			return
		}
		h.unready.Store(false)
	}
	h.health(w, r, t)
}

// robots tells crawlers to read identifiers, and not the many forms of the same records.
func (h *Handler) robots(w http.ResponseWriter, r *http.Request, _ requestTarget) {
	w.Header()["Cache-Control"] = oneDay
	h.write(w, r, http.StatusOK, textType, []byte("User-agent: *\nDisallow: /.ezid/\nDisallow: /.log/\nDisallow: /.memento/\nDisallow: /.oai\nDisallow: /.timemap/\nDisallow: /.usage/\nDisallow: /api/\nDisallow: /authority/\nDisallow: /uri-res/\n"))
}

// asset answers with a file of the pages.
func (h *Handler) asset(w http.ResponseWriter, r *http.Request, t requestTarget) {
	_, name := t.segment()
	a, ok := h.o.Pages.Asset(name)
	if !ok {
		h.nothing(w, r, t)
		return
	}
	head := w.Header()
	head.Set("Cache-Control", "max-age=31536000, immutable") // another content has another name
	if a.MediaType == "image/svg+xml" {                      // it may be the operator's, and be opened by itself
		head.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox")
	}
	content := a.Content
	if a.Gzipped != nil {
		if head.Add("Vary", "Accept-Encoding"); acceptsGzip(r.Header) {
			head.Set("Content-Encoding", "gzip")
			content = a.Gzipped
		}
	}
	h.write(w, r, http.StatusOK, a.MediaType, content)
}

// acceptsGzip reports whether the client of a request accepts content that is compressed by gzip (RFC 9110, section 12.5.3).
func acceptsGzip(head http.Header) bool {
	accepted := false
	for part := range strings.SplitSeq(strings.Join(head["Accept-Encoding"], ","), ",") {
		coding, weight, _ := strings.Cut(part, ";")
		name, value, _ := strings.Cut(weight, "=")
		q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		may := weight == "" || strings.EqualFold(strings.TrimSpace(name), "q") && err == nil && q > 0
		switch coding = strings.TrimSpace(coding); {
		case strings.EqualFold(coding, "gzip"), strings.EqualFold(coding, "x-gzip"):
			return may // which precedes *
		case coding == "*":
			accepted = may
		}
	}
	return accepted
}

// favicon answers programs that ask for an icon before they have seen a page: pages name the
// icon.
func (h *Handler) favicon(w http.ResponseWriter, r *http.Request, t requestTarget) {
	w.Header()["Cache-Control"] = oneDay
	h.nothing(w, r, t)
}

// field returns the value of a field of a query, and whether it is there.
func field(query, name string) (string, bool) {
	for part := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(part, "=")
		if key == name {
			value, err := url.QueryUnescape(value)
			return value, err == nil
		}
	}
	return "", false
}
