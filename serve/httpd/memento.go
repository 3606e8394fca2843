package httpd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/resolver"
)

// Memento (RFC 7089): the URL of an identifier is also the TimeGate of where the
// identifier led in the past. A version of its record is a memento, and the time
// of the version its date, to the second: of versions in one second the last one
// counts.

// digits is how a date stands in the URL of a memento.
const digits = "20060102150405"

// maxMementos is how many versions are looked at, the newest.
const maxMementos = 1000

// timegate answers a request for a name as it was at a date.
func (h *Handler) timegate(w http.ResponseWriter, r *http.Request, res *resolver.Resolution) {
	at, err := http.ParseTime(r.Header.Get("Accept-Datetime"))
	if err != nil {
		h.fail(w, r, &refusal{http.StatusBadRequest, "Accept-Datetime has no date such as Thu, 31 May 2007 20:35:00 GMT."})
		return
	}
	versions, err := h.versions(r, res)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	if len(versions) == 0 {
		h.fail(w, r, &refusal{http.StatusNotFound, "There is nothing to show of this name's past."})
		return
	}
	best := len(versions) - 1 // the first, for dates before it (section 4.5.3)
	for i := range versions {
		if !versions[i].Modified.Truncate(time.Second).After(at) {
			best = i
			break
		}
	}
	head := w.Header()
	head["Vary"], head["Cache-Control"] = varies, askAgain
	h.linkMementos(head, r, res, versions, best)
	send(w, r, h.mementoURL(r, res.ID, versions[best].Modified), http.StatusFound)
}

// versions returns when a record was changed: of the versions that whoever asks may
// see, the newest first, one a second. What they said is left out, since a thousand
// large versions are more than one request may take of the memory.
func (h *Handler) versions(r *http.Request, res *resolver.Resolution) (list []*stele.Record, err error) {
	looked := 0
	for v, err := range h.o.Registry.History(r.Context(), res.Record.ID) {
		if err != nil {
			return nil, err
		}
		if n := len(list); h.maySee(r, v) && (n == 0 || !sameSecond(list[n-1].Modified, v.Modified)) {
			list = append(list, &stele.Record{Version: v.Version, Modified: v.Modified})
		}
		if looked++; looked == maxMementos {
			break
		}
	}
	return list, nil
}

func sameSecond(a, b time.Time) bool { return a.Unix() == b.Unix() }

// mementoURL returns the URL of a memento.
func (h *Handler) mementoURL(r *http.Request, id stele.ID, at time.Time) string {
	return h.base(r) + "/.memento/" + at.UTC().Format(digits) + "/" + h.path(r, id)
}

// memento answers with where an identifier led at a date: /.memento/<date>/<id>.
func (h *Handler) memento(w http.ResponseWriter, r *http.Request, t target) {
	_, rest := t.segment()
	date, text, _ := strings.Cut(rest, "/")
	at, err := time.Parse(digits, date)
	if err != nil {
		h.fail(w, r, &refusal{http.StatusBadRequest, "Behind /.memento/ stand a date of 14 digits, such as 20260131120000, and an identifier."})
		return
	}
	q := resolver.Request{Query: t.query, Who: auth.From(r.Context()), Accept: h.accepts.of(r.Header, "Accept"), Languages: h.languages.of(r.Header, "Accept-Language")}
	res, versions, ok := h.past(w, r, text, q)
	if !ok {
		return
	}
	n := slices.IndexFunc(versions, func(v *stele.Record) bool { return v.Modified.Unix() <= at.Unix() })
	if n < 0 {
		h.fail(w, r, &refusal{http.StatusNotFound, "The name was not registered yet at that date, or what it was then is not public."})
		return
	}
	h.writeMemento(w, r, &q, &res, versions, n, at)
}

// writeMemento answers from the version with the given number, whose date is the
// one asked for or before it.
func (h *Handler) writeMemento(w http.ResponseWriter, r *http.Request, q *resolver.Request, res *resolver.Resolution, versions []*stele.Record, n int, at time.Time) {
	head := w.Header()
	if changed := versions[n].Modified; !sameSecond(changed, at) {
		head["Vary"], head["Cache-Control"] = varies, askAgain
		send(w, r, h.mementoURL(r, res.ID, changed), http.StatusFound)
		return
	}
	v, err := h.o.Registry.At(r.Context(), res.Record.ID, versions[n].Modified)
	if err == nil && !h.maySee(r, v) { // since a moment ago
		err = &refusal{http.StatusNotFound, "What the name was then is not public."}
	}
	if err != nil {
		h.fail(w, r, err)
		return
	}
	q.ID = res.ID
	then, err := h.o.Resolver.ResolveVersion(r.Context(), v, res.Matched, *q)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	then.Private = then.Private || res.Private
	head.Set("Memento-Datetime", httpDate(v.Modified))
	switch then.Kind {
	case resolver.Tombstone:
		h.linkMementos(head, r, res, versions, n)
		h.tombstone(w, r, q.Accept, &then)
	case resolver.Gone:
		h.linkMementos(head, r, res, versions, n)
		h.gone(w, r, &then)
	default:
		// What a handle's alias stood for then is not known here: it is not followed.
		if err := h.leadByValues(r, &then, url.Values{"ignore_aliases": {""}}); err != nil {
			h.fail(w, r, err)
			return
		}
		h.writeThen(w, r, q, &then, func() { h.linkMementos(head, r, res, versions, n) })
	}
}

// writeThen answers from an old version of an active record: where it led, or what
// it was. The links of a memento take the place of others.
func (h *Handler) writeThen(w http.ResponseWriter, r *http.Request, q *resolver.Request, then *resolver.Resolution, links func()) {
	head := w.Header()
	head["Vary"] = varies
	h.keep(head, then)
	best := offer{way: byTarget}
	if then.Kind != resolver.Redirect || len(q.Accept) > 0 && !wantsPage(q.Accept) {
		best = h.best(q, then)
	}
	switch best.way {
	case byTarget:
		links()
		h.redirect(w, r, then.URL, then.Status)
	case noWay:
		h.nothingFits(w, r, then)
	default:
		f := best.format
		if best.way != byFormat {
			f = h.formats[0].Format
		}
		body, err := f.Append(nil, h.subject(r, then))
		if err != nil {
			h.fail(w, r, err)
			return
		}
		links()
		forScripts(head)
		h.writeTagged(w, r, f.Served, body)
	}
}

// linkMementos adds the links between original, TimeGate, TimeMap and mementos
// (RFC 7089, section 2.2).
func (h *Handler) linkMementos(head http.Header, r *http.Request, res *resolver.Resolution, versions []*stele.Record, n int) {
	base, path := h.base(r), h.path(r, res.ID)
	b := appendLink(nil, base, "/", path, "", `>; rel="original timegate"`)
	b = appendLink(b, base, "/.timemap/", path, "", `>; rel="timemap"; type="application/link-format"`)
	last := len(versions) - 1
	for i, v := range versions {
		if len(base)+len(path) > maxLinked {
			break
		}
		if i == 0 || i == last || i >= n-1 && i <= n+1 {
			b = fmt.Appendf(b, `, <%s>; rel="%s"; datetime="%s"`, h.mementoURL(r, res.ID, v.Modified), mementoRel(i, last, n), httpDate(v.Modified))
		}
	}
	head["Link"] = []string{string(b)}
}

// mementoRel returns the relation of the version with number i, of which the newest
// has number 0; n is the one that the links are of, or -1.
func mementoRel(i, last, n int) string {
	var rel []string
	if i == last {
		rel = append(rel, "first")
	}
	if i == 0 {
		rel = append(rel, "last")
	}
	switch {
	case n >= 0 && i == n+1:
		rel = append(rel, "prev")
	case n >= 0 && i == n-1:
		rel = append(rel, "next")
	}
	return strings.Join(append(rel, "memento"), " ")
}

// past finds a text and the versions of its record, or answers that there are none.
func (h *Handler) past(w http.ResponseWriter, r *http.Request, text string, q resolver.Request) (res resolver.Resolution, versions []*stele.Record, ok bool) {
	res, err := h.find(r, text, q)
	if err == nil && res.Record == nil {
		err = &stele.Error{Op: "resolve", ID: res.ID, Kind: stele.NotFound, Err: reason("another resolver answers for this name; ask there")}
	}
	if err != nil {
		h.failAbout(w, r, text, err)
		return res, nil, false
	}
	note(w, "", res.ID.Scheme())
	if versions, err = h.versions(r, &res); err != nil {
		h.fail(w, r, err)
	}
	return res, versions, err == nil
}

// timemap lists what is known of an identifier's past: /.timemap/<id>.
func (h *Handler) timemap(w http.ResponseWriter, r *http.Request, t target) {
	_, text := t.segment()
	res, versions, ok := h.past(w, r, text, resolver.Request{Who: auth.From(r.Context())})
	if !ok {
		return
	}
	head := w.Header()
	forScripts(head)
	h.about(head, &res)
	if _, q, named := resolver.Match("application/json", h.accepts.of(r.Header, "Accept")); named && q > 0 {
		h.writeTagged(w, r, "application/json", h.timemapJSON(r, &res, versions))
		return
	}
	h.writeTagged(w, r, "application/link-format", h.timemapLinks(r, &res, versions))
}

// timemapLinks writes a TimeMap as RFC 7089, section 5, has it.
func (h *Handler) timemapLinks(r *http.Request, res *resolver.Resolution, versions []*stele.Record) []byte {
	var b bytes.Buffer
	last := len(versions) - 1
	fmt.Fprintf(&b, "<%s>; rel=\"original timegate\",\n<%s>; rel=\"self\"; type=\"application/link-format\"", h.self(r, res.ID), h.page(r, ".timemap", res.ID))
	if last >= 0 {
		fmt.Fprintf(&b, `; from="%s"; until="%s"`, httpDate(versions[last].Modified), httpDate(versions[0].Modified))
	}
	for i, v := range slices.Backward(versions) {
		fmt.Fprintf(&b, ",\n<%s>; rel=\"%s\"; datetime=\"%s\"", h.mementoURL(r, res.ID, v.Modified), mementoRel(i, last, -1), httpDate(v.Modified))
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// timemapJSON writes a TimeMap as the Time Travel service of the Los Alamos
// National Laboratory does, whose form is the one in use.
func (h *Handler) timemapJSON(r *http.Request, res *resolver.Resolution, versions []*stele.Record) []byte {
	type memento struct {
		Datetime string `json:"datetime"`
		URI      string `json:"uri"`
	}
	var all struct {
		Original string `json:"original_uri"`
		TimeGate string `json:"timegate_uri"`
		TimeMap  struct {
			Links string `json:"link_format"`
		} `json:"timemap_uri"`
		Mementos struct {
			List []memento `json:"list"`
		} `json:"mementos"`
	}
	all.Original = h.self(r, res.ID)
	all.TimeGate, all.TimeMap.Links = all.Original, h.page(r, ".timemap", res.ID)
	all.Mementos.List = []memento{}
	for _, v := range slices.Backward(versions) {
		all.Mementos.List = append(all.Mementos.List, memento{v.Modified.UTC().Format(time.RFC3339), h.mementoURL(r, res.ID, v.Modified)})
	}
	text, _ := json.Marshal(all) // of texts alone
	return append(text, '\n')
}
