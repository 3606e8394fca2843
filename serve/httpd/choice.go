package httpd

import (
	"net/http"
	"slices"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/rules"
	"github.com/stele-id/stele/serve/httpd/describe"
)

// way is a way to answer for a record. Of two that the client likes as much the server takes
// the lower one: what the owner registered comes before what we make of it.
type way uint8

const (
	noWay    way = iota
	byTarget     // redirect to the target that the resolver chose
	byCopy       // redirect to a description that the owner registered
	byFormat     // describe the record in a format of ours
	byPage       // describe it on a page
)

// offer is a way and how much the client likes it.
type offer struct {
	way    way
	q      int
	named  bool // by more than */*
	format describe.Format
}

// better reports whether the client prefers o.
func (o offer) better(than offer) bool {
	switch {
	case o.q != than.q:
		return o.q > than.q
	case o.named != than.named:
		return o.named
	}
	return o.way < than.way
}

// choose answers for an active record: with what the client likes best of its
// targets, and of the descriptions that there are.
func (h *Handler) choose(w http.ResponseWriter, r *http.Request, t requestTarget, q *resolver.Request, res *resolver.Resolution) {
	if q.Service == stele.N2S && isSigned(res) {
		h.linkTimeGate(w.Header(), r, res)
		h.signatures(w, r, res)
		return
	}
	best, err := h.decide(r, t.query, q, res)
	if err != nil {
		h.linkTimeGate(w.Header(), r, res)
		h.fail(w, r, err)
		return
	}
	h.take(w, r, q, res, best)
}

// take answers in the way that was chosen.
func (h *Handler) take(w http.ResponseWriter, r *http.Request, q *resolver.Request, res *resolver.Resolution, best offer) {
	switch best.way {
	case byTarget:
		h.land(w, r, res)
	case byCopy:
		h.copyOf(w, r, q, res)
	case byFormat:
		if q.Service == stele.N2P && best.format.Type == jsonType {
			h.linkTimeGate(w.Header(), r, res)
			h.promise(w, r, res)
			return
		}
		h.describe(w, r, res, best.format)
	case byPage:
		h.infoPage(w, r, res)
	default:
		h.nothingFits(w, r, res)
	}
}

// decide returns the way to answer for an active record. If a handle has no target and its
// values lead somewhere, decide makes res a redirect to there.
func (h *Handler) decide(r *http.Request, query string, q *resolver.Request, res *resolver.Resolution) (offer, error) {
	if res.Kind == resolver.Description && q.Service != stele.N2C && q.Service != stele.N2P {
		parameters, _ := readParameters(query) // a redirect does without what is broken
		if err := h.redirectByValues(r, res, parameters); err != nil {
			return offer{}, err
		}
	}
	if res.Kind == resolver.Redirect && (len(q.Accept) == 0 || wantsPage(q.Accept) && mayFit(res.Fit)) {
		return offer{way: byTarget}, nil
	}
	return h.best(q, res), nil
}

// mayFit reports whether a target is what is asked for, as far as is known.
func mayFit(f resolver.Fit) bool { return f == resolver.Asked || f == resolver.Unstated }

// best returns the way that the client likes best; noWay if it takes none.
func (h *Handler) best(q *resolver.Request, res *resolver.Resolution) (best offer) {
	consider := func(o offer, media string) {
		var fit resolver.Fit
		fit, o.q, o.named = resolver.Match(media, q.Accept)
		if fit == resolver.Asked && o.q > 0 && (best.way == noWay || o.better(best)) {
			best = o
		}
	}
	if res.Kind == resolver.Redirect {
		consider(offer{way: byTarget}, firstType(res))
	}
	if q.Service != stele.N2P {
		for i := range res.Record.Targets {
			if c := &res.Record.Targets[i]; c.Service == stele.N2C && c.Type != "" && q.Service != stele.N2C {
				consider(offer{way: byCopy}, c.Type)
			}
		}
	}
	for _, f := range h.formatsFor(q.Service) {
		if f.Name == "citation" && h.considerStyles(q.Accept, consider) {
			continue
		}
		for _, media := range f.types {
			consider(offer{way: byFormat, format: f.Format}, media)
		}
	}
	consider(offer{way: byPage}, "text/html")
	if best.way == noWay && res.Kind == resolver.Redirect && isNearly(res) {
		best.way = byTarget
	}
	return best
}

// considerStyles considers citations in the styles that a client names. It returns false if
// the client names no type of citations: then the usual style is as good as any. A client
// that names only unknown styles gets no citation.
func (h *Handler) considerStyles(liked []resolver.Preference, consider func(o offer, media string)) (named bool) {
	for _, p := range liked {
		if f, ok := describe.Find(p.Range); !ok || f.Name != "citation" {
			continue
		}
		named = true
		if styled, ok := describe.Styled(p.Range); ok {
			consider(offer{way: byFormat, format: styled}, p.Range)
		}
	}
	return named
}

// firstType returns the media type of the target that the resolver chose; "" if it
// is not known.
func firstType(res *resolver.Resolution) string {
	if len(res.Targets) == 0 {
		return ""
	}
	return res.Targets[0].Type
}

// isNearly reports whether a target that is not quite what was asked for is better
// than nothing.
func isNearly(res *resolver.Resolution) bool {
	return res.Fit != resolver.Asked && rules.Fits(res.Fit, firstType(res))
}

// typesOf adds the media types of targets to a list, each once.
func typesOf(list []string, targets []stele.Target) []string {
	for i := range targets {
		if t := &targets[i]; t.Type != "" && (t.Service == stele.N2L || t.Service == stele.N2C) && !slices.Contains(list, t.Type) {
			list = append(list, t.Type)
		}
	}
	return list
}

// formatsFor returns the formats that we have, the best for the service first: ANVL for
// promises, since its erc-support is made for them.
func (h *Handler) formatsFor(s stele.Service) []format {
	if s == stele.N2P {
		return h.promises
	}
	return h.formats
}

// format is a format and all media types that ask for it.
type format struct {
	describe.Format
	types []string
}

// allFormats returns the formats that we have, and the same with the best one for promises
// first.
func allFormats() (formats, promises []format) {
	for _, f := range describe.Formats() {
		own := format{f, f.Types()}
		formats = append(formats, own)
		if f.Type == "text/plain" {
			promises = append([]format{own}, promises...)
		} else {
			promises = append(promises, own)
		}
	}
	return formats, promises
}

// copyOf redirects to the description of the type asked for that the owner
// registered.
func (h *Handler) copyOf(w http.ResponseWriter, r *http.Request, q *resolver.Request, res *resolver.Resolution) {
	switch other, err := h.findCopy(r, q, res); {
	case err != nil:
		h.fail(w, r, err)
	case other.Kind != resolver.Redirect:
		h.describe(w, r, res, h.formats[0].Format)
	default:
		h.land(w, r, &other)
	}
}

// findCopy returns the answer that leads to that description.
func (h *Handler) findCopy(r *http.Request, q *resolver.Request, res *resolver.Resolution) (resolver.Resolution, error) {
	own := *q
	own.ID, own.Service, own.Trace = res.ID, stele.N2C, false
	other, err := h.o.Resolver.Resolve(r.Context(), own)
	if other.Status == http.StatusMovedPermanently || other.Status == http.StatusPermanentRedirect {
		other.Status = http.StatusSeeOther // the description is there, not the thing
	}
	return other, err
}

// describeAs describes the record in the format of a media type.
func (h *Handler) describeAs(w http.ResponseWriter, r *http.Request, res *resolver.Resolution, media string) {
	f, ok := describe.Find(media)
	if !ok {
		f = h.formats[0].Format
	}
	h.describe(w, r, res, f)
}

// show shows the record itself, in the form that the client likes.
func (h *Handler) show(w http.ResponseWriter, r *http.Request, liked []resolver.Preference, res *resolver.Resolution) {
	switch {
	case len(liked) == 0:
		h.describeAs(w, r, res, "application/json")
		return
	case wantsPage(liked):
		forScripts(w.Header())
		h.infoPage(w, r, res)
		return
	}
	itself := *res
	itself.Kind = resolver.Description
	q := &resolver.Request{Accept: liked, Service: stele.N2C}
	h.take(w, r, q, res, h.best(q, &itself))
}

// nothingFits answers that the client accepts none of the available forms, and lists them.
func (h *Handler) nothingFits(w http.ResponseWriter, r *http.Request, res *resolver.Resolution) {
	p := problem{Status: http.StatusNotAcceptable, Title: http.StatusText(http.StatusNotAcceptable), ID: shownIn(res), Scheme: res.ID.Scheme()}
	p.say(stele.Messagef("request.not-acceptable", "There is nothing of the types that the request accepts."))
	h.linkTimeGate(w.Header(), r, res)
	p.Accepted = typesOf(p.Accepted, res.Record.Targets)
	for _, f := range h.formats {
		if f.Name == "citation" {
			for _, style := range describe.Styles() {
				p.Accepted = append(p.Accepted, f.Type+"; style="+string(style))
			}
		} else if !slices.Contains(p.Accepted, f.Type) {
			p.Accepted = append(p.Accepted, f.Type)
		}
	}
	if !slices.Contains(p.Accepted, "text/html") {
		p.Accepted = append(p.Accepted, "text/html")
	}
	h.writeProblem(w, r, &p)
}
