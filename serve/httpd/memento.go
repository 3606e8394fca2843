package httpd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
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

// maxMementos is how many versions are looked at for a page of a TimeMap.
const maxMementos = 1000

// maxProbed is how many versions next to one are looked at to find one that the client
// may see: links between mementos are a convenience, and cost no more than that.
const maxProbed = 32

// timegate answers a request for a name as it was at a date.
func (h *Handler) timegate(w http.ResponseWriter, r *http.Request, res *resolver.Resolution) {
	w, done, ok := h.charge(w, r, costMemento)
	if !ok {
		return
	}
	defer done()
	h.linkTimeGate(w.Header(), r, res)
	at, ok := parseDatetime(r.Header["Accept-Datetime"])
	if !ok {
		h.fail(w, r, refused(http.StatusBadRequest, "request.accept-datetime", "Accept-Datetime has no date such as Thu, 31 May 2007 20:35:00 GMT."))
		return
	}
	best, err := h.versionAt(r, res, at)
	if err == nil && best == nil {
		best, err = h.firstVersion(r, res) // for dates before it (section 4.5.3)
	}
	var near neighbours
	if err == nil && best != nil {
		near, err = h.neighbours(r, res, best)
	}
	if err != nil {
		h.fail(w, r, err)
		return
	}
	if best == nil {
		h.fail(w, r, refused(http.StatusNotFound, "memento.nothing", "There is nothing to show of this name's past."))
		return
	}
	head := w.Header()
	head["Cache-Control"] = askAgain
	h.linkMementos(head, r, res, near)
	send(w, r, h.mementoURL(r, res.ID, res.Record, best.Modified), http.StatusFound)
}

// parseDatetime reads the values of Accept-Datetime: one date in the form of RFC 7089,
// section 2.1.1, and not in the other forms of HTTP. It does not check the day of the week.
func parseDatetime(values []string) (time.Time, bool) {
	if len(values) != 1 || len(values[0]) != len(http.TimeFormat) {
		return time.Time{}, false
	}
	at, err := time.Parse(http.TimeFormat, values[0])
	// The parser takes names in any case, which are exact here.
	return at, err == nil && at.Format(http.TimeFormat)[3:] == values[0][3:] && strings.Contains("Mon Tue Wed Thu Fri Sat Sun", values[0][:3])
}

// versionAt returns the version that was current at the end of a second, of those that the
// client may know of; nil if there is none among the next ones.
func (h *Handler) versionAt(r *http.Request, res *resolver.Resolution, at time.Time) (*stele.Record, error) {
	v, err := h.o.Registry.At(r.Context(), res.Record.ID, at.Truncate(time.Second).Add(time.Second-1))
	if errors.Is(err, stele.NotFound) {
		return nil, nil
	}
	if err != nil || h.mayKnow(r, v) {
		return v, err
	}
	return h.versionBefore(r, res, v, func(v *stele.Record) bool { return h.mayKnow(r, v) })
}

// versionBefore returns the newest version before one that fits, of the next ones; nil if
// there is none.
func (h *Handler) versionBefore(r *http.Request, res *resolver.Resolution, than *stele.Record, fits func(*stele.Record) bool) (*stele.Record, error) {
	looked := 0
	for v, err := range h.o.Registry.HistoryBefore(r.Context(), res.Record.ID, than.Version) {
		if err != nil {
			return nil, err
		}
		if fits(v) {
			return v, nil
		}
		if looked++; looked == maxProbed {
			break
		}
	}
	return nil, nil
}

// versionAfter looks for the next version after one that the client may see, and returns the
// last version of the second in which it was made; nil if there is none among the next ones.
func (h *Handler) versionAfter(r *http.Request, res *resolver.Resolution, number uint64, than time.Time) (*stele.Record, error) {
	for n := number + 1; n <= min(res.Record.Version, number+maxProbed); n++ {
		v, err := h.o.Registry.Version(r.Context(), res.Record.ID, n)
		if err != nil {
			return nil, err
		}
		if sameSecond(v.Modified, than) || !h.maySee(r, v) {
			continue
		}
		last, err := h.versionAt(r, res, v.Modified)
		if err != nil || last == nil || !h.maySee(r, last) {
			return v, err
		}
		return last, nil
	}
	return nil, nil
}

// firstVersion returns the first version that the client may see, of the first ones.
func (h *Handler) firstVersion(r *http.Request, res *resolver.Resolution) (*stele.Record, error) {
	return h.versionAfter(r, res, 0, time.Time{})
}

// neighbours are the versions that the links of a memento lead to; any may be nil.
type neighbours struct{ first, last, prev, next, own *stele.Record }

// neighbours finds those of a version. They may be the version itself.
func (h *Handler) neighbours(r *http.Request, res *resolver.Resolution, v *stele.Record) (n neighbours, err error) {
	n.own = v
	sees := func(v *stele.Record) bool { return h.maySee(r, v) }
	if n.first, err = h.firstVersion(r, res); err != nil {
		return n, err
	}
	newest := &stele.Record{Version: math.MaxUint64}
	if n.last, err = h.versionBefore(r, res, newest, sees); err != nil {
		return n, err
	}
	n.prev, err = h.versionBefore(r, res, v, func(p *stele.Record) bool { return sees(p) && !sameSecond(p.Modified, v.Modified) })
	if err != nil {
		return n, err
	}
	n.next, err = h.versionAfter(r, res, v.Version, v.Modified)
	return n, err
}

// versions returns when a record was changed: the versions before the given one that the
// client may see, the newest first, one a second. Their contents are left out, since a
// thousand large versions are more than one request may take of the memory. More is where the
// next page begins, and nil at the end: a page ends where a second does, so that no two pages
// have the same memento.
func (h *Handler) versions(r *http.Request, res *resolver.Resolution, before uint64) (list []*stele.Record, more *stele.Record, err error) {
	looked := 0
	defer func() { h.spend(r, float64(looked)*costVersion) }()
	var last *stele.Record
	for v, err := range h.o.Registry.HistoryBefore(r.Context(), res.Record.ID, before) {
		if err != nil {
			return nil, nil, err
		}
		own := &stele.Record{Version: v.Version, Modified: v.Modified}
		if looked >= maxMementos && !sameSecond(last.Modified, v.Modified) || looked == 2*maxMementos {
			return list, own, nil
		}
		if n := len(list); h.maySee(r, v) && (n == 0 || !sameSecond(list[n-1].Modified, v.Modified)) {
			list = append(list, own)
		}
		looked++
		last = own
	}
	return list, nil, nil
}

func sameSecond(a, b time.Time) bool { return a.Unix() == b.Unix() }

// mementoURL returns the URL of a memento.
func (h *Handler) mementoURL(r *http.Request, id stele.ID, record *stele.Record, at time.Time) string {
	return h.base(r) + "/.memento/" + at.UTC().Format(digits) + "/" + h.shownPath(r, id, record)
}

// memento answers with where an identifier led at a date: /.memento/<date>/<id>.
func (h *Handler) memento(w http.ResponseWriter, r *http.Request, t requestTarget) {
	_, rest := t.segment()
	date, text, _ := strings.Cut(rest, "/")
	at, err := time.Parse(digits, date)
	if err != nil {
		h.fail(w, r, refused(http.StatusBadRequest, "memento.address", "Behind /.memento/ stand a date of 14 digits, such as 20260131120000, and an identifier."))
		return
	}
	q := resolver.Request{Query: t.query, Who: auth.From(r.Context()), Accept: h.accepts.of(r.Header, "Accept"), Languages: h.languages.of(r.Header, "Accept-Language")}
	res, ok := h.past(w, r, text, q)
	if !ok {
		return
	}
	v, err := h.versionAt(r, &res, at)
	if err == nil && v == nil {
		err = refused(http.StatusNotFound, "memento.too-early", "The name was not registered yet at that date, or what it was then is not public.")
	}
	if err != nil {
		h.fail(w, r, err)
		return
	}
	h.writeMemento(w, r, &q, &res, v, at)
}

// writeMemento answers from the version that was current at a date.
func (h *Handler) writeMemento(w http.ResponseWriter, r *http.Request, q *resolver.Request, res *resolver.Resolution, v *stele.Record, at time.Time) {
	head := w.Header()
	if !sameSecond(v.Modified, at) { // an intermediate resource (RFC 7089, section 4.5.7)
		vary(head)
		head["Cache-Control"] = askAgain
		h.linkMementos(head, r, res, neighbours{})
		send(w, r, h.mementoURL(r, res.ID, res.Record, v.Modified), http.StatusFound)
		return
	}
	near, err := h.neighbours(r, res, v)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	if d := v.Withheld.Disavowal(v.Version); d != nil {
		near.own = nil
		head.Set("Memento-Datetime", httpDate(v.Modified))
		h.linkMementos(head, r, res, near)
		h.fail(w, r, disavowed(d))
		return
	}
	h.linkMementos(head, r, res, near)
	h.linkProof(head, r, v)
	q.ID = res.ID
	then, err := h.o.Resolver.ResolveVersion(r.Context(), v, res.Matched, *q)
	if err == nil && then.Kind != resolver.Tombstone && then.Kind != resolver.Gone {
		// The handle that an alias stood for then is not known here: the alias is not
		// followed.
		err = h.redirectByValues(r, &then, url.Values{"ignore_aliases": {""}})
	}
	if err != nil {
		h.fail(w, r, err)
		return
	}
	then.Private = then.Private || res.Private
	head.Set("Memento-Datetime", httpDate(v.Modified))
	switch then.Kind {
	case resolver.Tombstone:
		h.tombstone(w, r, q.Accept, &then)
	case resolver.Gone:
		h.gone(w, r, &then)
	default:
		h.writeThen(w, r, q, &then)
	}
}

// writeThen answers from an old version of an active record: where it led, or what
// it was.
func (h *Handler) writeThen(w http.ResponseWriter, r *http.Request, q *resolver.Request, then *resolver.Resolution) {
	head := w.Header()
	vary(head)
	h.keep(head, then)
	best := offer{way: byTarget}
	if then.Kind != resolver.Redirect || len(q.Accept) > 0 && !wantsPage(q.Accept) {
		best = h.best(q, then)
	}
	switch best.way {
	case byTarget:
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
		forScripts(head)
		h.write(w, r, http.StatusOK, f.Served, body)
	}
}

// linkMementos adds the links between original, TimeGate, TimeMap and mementos
// (RFC 7089, section 2.2).
func (h *Handler) linkMementos(head http.Header, r *http.Request, res *resolver.Resolution, near neighbours) {
	base, path := h.base(r), h.shownPath(r, res.ID, res.Record)
	b := appendTimeLinks(nil, base, path)
	seen := make(map[int64]bool)
	for _, v := range []*stele.Record{near.last, near.next, near.own, near.prev, near.first} {
		if v == nil || seen[v.Modified.Unix()] || len(base)+len(path) > maxLinked {
			continue
		}
		seen[v.Modified.Unix()] = true
		b = fmt.Appendf(b, `, <%s>; rel="%s"; datetime="%s"`, h.mementoURL(r, res.ID, res.Record, v.Modified), near.rel(v), httpDate(v.Modified))
	}
	head["Link"] = []string{string(b)}
}

// rel returns the relation of a version.
func (n *neighbours) rel(v *stele.Record) string {
	var rel []string
	for _, of := range []struct {
		name string
		v    *stele.Record
	}{{"first", n.first}, {"last", n.last}, {"prev", n.prev}, {"next", n.next}} {
		if of.v != nil && sameSecond(of.v.Modified, v.Modified) {
			rel = append(rel, of.name)
		}
	}
	return strings.Join(append(rel, "memento"), " ")
}

// past finds a text and its record, or answers that there is no record.
func (h *Handler) past(w http.ResponseWriter, r *http.Request, text string, q resolver.Request) (res resolver.Resolution, ok bool) {
	res, err := h.find(r, text, q)
	switch {
	case err == nil && res.Rule != nil:
		err = &stele.Error{Op: "resolve", ID: res.ID, Kind: stele.NotFound, Err: stele.Messagef("memento.by-rule", "a rule of its namespace answers for this name, which is not registered and has no past")}
	case err == nil && res.Record == nil:
		err = &stele.Error{Op: "resolve", ID: res.ID, Kind: stele.NotFound, Err: stele.Messagef("memento.delegated", "another resolver answers for this name; ask there")}
	}
	if err != nil {
		h.failAbout(w, r, text, err)
		return res, false
	}
	note(w, "", res.ID.Scheme())
	return res, true
}

// timemap lists what is known of an identifier's past: /.timemap/<id>. A long past has
// several pages, the newest first; each links to the next, /.timemap/<id>?before=<version>,
// and to the first, so that all are found from any (RFC 7089, section 5.1.1).
func (h *Handler) timemap(w http.ResponseWriter, r *http.Request, t requestTarget) {
	_, text := t.segment()
	before := uint64(math.MaxUint64)
	if number, asked := field(t.query, "before"); asked {
		var err error
		if before, err = strconv.ParseUint(number, 10, 64); err != nil {
			h.fail(w, r, refused(http.StatusBadRequest, "request.parameter-before", "The parameter before has no number of a version."))
			return
		}
	}
	res, ok := h.past(w, r, text, resolver.Request{Who: auth.From(r.Context())})
	if !ok {
		return
	}
	versions, more, err := h.versions(r, &res, before)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	whole := h.base(r) + "/.timemap/" + h.shownPath(r, res.ID, res.Record)
	p := timemapPage{self: whole, versions: versions, isFirst: before == math.MaxUint64, isLast: more == nil}
	if more != nil {
		p.next, p.until = fmt.Sprintf("%s?before=%d", whole, more.Version+1), more.Modified
		if p.first, err = h.firstVersion(r, &res); err != nil {
			h.fail(w, r, err)
			return
		}
	}
	if !p.isFirst {
		p.self, p.whole = fmt.Sprintf("%s?before=%d", whole, before), whole
	}
	head := w.Header()
	forScripts(head)
	h.about(head, &res)
	if _, q, named := resolver.Match("application/json", h.accepts.of(r.Header, "Accept")); named && q > 0 {
		h.write(w, r, http.StatusOK, "application/json", h.timemapJSON(r, &res, &p))
		return
	}
	h.write(w, r, http.StatusOK, "application/link-format", h.timemapLinks(r, &res, &p))
}

// timemapPage is a part of a TimeMap.
type timemapPage struct {
	self, next      string
	whole           string          // the page with the newest mementos, from which all others are reached; "" on itself
	isFirst, isLast bool            // it has the newest version, the oldest
	versions        []*stele.Record // the newest first
	until           time.Time       // no memento of the next pages is newer
	first           *stele.Record   // the oldest version, if there are next pages; may be nil
}

// rel returns the relation of the version at a place.
func (p *timemapPage) rel(i int) string {
	rel := ""
	if p.isLast && i == len(p.versions)-1 {
		rel = "first "
	}
	if p.isFirst && i == 0 {
		rel += "last "
	}
	return rel + "memento"
}

// timemapLinks writes a TimeMap as RFC 7089, section 5, has it.
func (h *Handler) timemapLinks(r *http.Request, res *resolver.Resolution, p *timemapPage) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "<%s>; rel=\"original timegate\",\n<%s>; rel=\"self\"; type=\"application/link-format\"", h.base(r)+"/"+h.shownPath(r, res.ID, res.Record), p.self)
	if n := len(p.versions); n > 0 {
		fmt.Fprintf(&b, `; from="%s"; until="%s"`, httpDate(p.versions[n-1].Modified), httpDate(p.versions[0].Modified))
	}
	if p.whole != "" {
		fmt.Fprintf(&b, ",\n<%s>; rel=\"timemap\"; type=\"application/link-format\"", p.whole)
	}
	if p.next != "" {
		fmt.Fprintf(&b, ",\n<%s>; rel=\"timemap\"; type=\"application/link-format\"", p.next)
		if p.first != nil {
			fmt.Fprintf(&b, `; from="%s"`, httpDate(p.first.Modified))
		}
		fmt.Fprintf(&b, `; until="%s"`, httpDate(p.until))
	}
	for i, v := range slices.Backward(p.versions) {
		fmt.Fprintf(&b, ",\n<%s>; rel=\"%s\"; datetime=\"%s\"", h.mementoURL(r, res.ID, res.Record, v.Modified), p.rel(i), httpDate(v.Modified))
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// timemapJSON writes a TimeMap as the Time Travel service of the Los Alamos National
// Laboratory does: that form is the one in use.
func (h *Handler) timemapJSON(r *http.Request, res *resolver.Resolution, p *timemapPage) []byte {
	type memento struct {
		Datetime string `json:"datetime"`
		URI      string `json:"uri"`
	}
	var all struct {
		Original string `json:"original_uri"`
		TimeGate string `json:"timegate_uri"`
		TimeMap  struct {
			Links string `json:"link_format"`
			Next  string `json:"next,omitempty"` // the page with older mementos
		} `json:"timemap_uri"`
		Mementos struct {
			List []memento `json:"list"`
		} `json:"mementos"`
	}
	all.Original = h.base(r) + "/" + h.shownPath(r, res.ID, res.Record)
	all.TimeGate, all.TimeMap.Links, all.TimeMap.Next = all.Original, p.self, p.next
	all.Mementos.List = []memento{}
	for _, v := range slices.Backward(p.versions) {
		all.Mementos.List = append(all.Mementos.List, memento{v.Modified.UTC().Format(time.RFC3339), h.mementoURL(r, res.ID, res.Record, v.Modified)})
	}
	text, _ := json.Marshal(all) // of texts alone
	return append(text, '\n')
}
