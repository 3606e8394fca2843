package httpd

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/web"
	"github.com/stele-id/stele/web/figures"
)

// Figures reads how often names are used: a [usage.Book]. The principal is in the context; it is the public for all that this package asks.
type Figures interface {
	// Report returns figures. Unauthenticated or NotFound if the public may see none.
	Report(ctx context.Context, q apijson.UsageQuery) (*apijson.Usage, error)
}

// figuresKept is how long caches keep figures. The server writes new ones every half minute.
var figuresKept = oneMinute

// asPublic returns a context in which the sender of a request is not known: figures are the same for all, so that caches may keep them.
func asPublic(r *http.Request) context.Context { return auth.With(r.Context(), auth.Principal{}) }

// report returns public figures; nil if there are none.
func (h *Handler) report(r *http.Request, q apijson.UsageQuery) (*apijson.Usage, error) {
	if h.o.Figures == nil {
		return nil, nil
	}
	report, err := h.o.Figures.Report(asPublic(r), q)
	switch kind := stele.KindOf(err); {
	case err == nil:
		return report, nil
	case kind == stele.Unauthenticated, kind == stele.Forbidden, kind == stele.NotFound:
		return nil, nil
	}
	return nil, err
}

// useLine returns how often a record is used, for the page about it; nil if that is not public.
func (h *Handler) useLine(r *http.Request, v *web.Info, rec *stele.Record) (*web.UseLine, error) {
	report, err := h.report(r, apijson.UsageQuery{Name: rec.ID.String(), Of: "record"})
	if err != nil || report == nil {
		return nil, err
	}
	line := &web.UseLine{URL: h.page(r, ".usage", rec.ID) + "?of=record"}
	switch {
	case report.Began == "":
		line.Total = v.Language.Text("use.not-begun")
		return line, nil
	case report.Total == apijson.UsageRow{}:
		line.Total = v.Language.Text("use.none-over")
		return line, nil
	}
	line.Total = v.Language.Text("use.total", "count", report.Total.Regular+report.Total.Machine, "months", usedMonths)
	drawn, err := figures.Draw(v.Language, report, h.o.Now())
	if err != nil {
		return nil, err
	}
	line.Chart, err = drawn.Small().HTML()
	return line, err
}

// usedMonths is how many months public figures have if the request does not say: those of a year that are over.
const usedMonths = 12

// usage answers with how often a name, or the names of a namespace, are used, where that is public: /.usage/<name>. If a namespace and a
// record have the same name, it is the namespace, unless the query says of=record. Other tokens than the public's change nothing.
func (h *Handler) usage(w http.ResponseWriter, r *http.Request, t requestTarget) {
	_, text := t.segment()
	if text == "" || h.o.Figures == nil {
		h.nothing(w, r, t)
		return
	}
	w, done, ok := h.charge(w, r, costReverse)
	if !ok {
		return
	}
	defer done()
	q := apijson.UsageQuery{By: "month"}
	q.From, _ = field(t.query, "from")
	q.Until, _ = field(t.query, "until")
	of, _ := field(t.query, "of")
	v := &web.Use{Frame: h.frame(r, "")}
	report, err := h.usedSpace(r, v, q, text, of)
	if err == nil && report == nil && of != "namespace" {
		report, err = h.usedName(r, v, q, text)
	}
	if err == nil && report == nil {
		err = refused(http.StatusNotFound, "usage.nothing-public", "There are no public figures of use at this address.")
	}
	if err == nil {
		err = h.fillUse(r, v, report, &q, t.path)
	}
	var b bytes.Buffer
	if err == nil {
		err = h.o.Pages.Usage(&b, v)
	}
	if err != nil {
		h.fail(w, r, err)
		return
	}
	w.Header()["Cache-Control"] = figuresKept
	h.writePage(w, r, v.Language, b.Bytes())
}

// usedSpace returns the public figures of a namespace; nil if there are none.
func (h *Handler) usedSpace(r *http.Request, v *web.Use, q apijson.UsageQuery, text, of string) (*apijson.Usage, error) {
	prefix, err := url.PathUnescape(text)
	if err != nil || of == "record" || len(prefix) > stele.MaxText {
		return nil, nil
	}
	q.Name, q.Of = prefix, "namespace"
	report, err := h.report(r, q)
	if code, _ := stele.CodeOf(err); err != nil && stele.KindOf(err) == stele.Invalid && !isPeriodFault(code) {
		return nil, nil // it is not a prefix
	}
	if report != nil {
		v.Title, v.ID = report.Title, report.Name
	}
	return report, err
}

// isPeriodFault reports whether a problem is one of the period that was asked for.
func isPeriodFault(code string) bool {
	return code == "usage.day-malformed" || code == "usage.period-reversed"
}

// usedName returns the public figures of a record; nil if there are none.
func (h *Handler) usedName(r *http.Request, v *web.Use, q apijson.UsageQuery, text string) (*apijson.Usage, error) {
	res, err := h.find(r.WithContext(asPublic(r)), text, resolver.Request{})
	if err != nil || res.Record == nil {
		if kind := stele.KindOf(err); err == nil || kind != stele.Internal && kind != stele.Unavailable {
			return nil, nil
		}
		return nil, err
	}
	q.Name, q.Of = res.Record.ID.String(), "record"
	report, err := h.report(r, q)
	if err != nil || report == nil {
		return nil, err
	}
	v.Record, v.Title, v.ID, v.Info = true, res.Record.Metadata[stele.What], h.shown(r, res.Record.ID), h.page(r, ".info", res.Record.ID)
	if ns := res.Namespace; ns != nil && ns.Prefix != "" {
		v.Space = web.Name{Text: ns.Key().String(), URL: h.base(r) + "/.usage/" + escape(ns.Key().String(), false)}
	}
	return report, nil
}

// fillUse puts figures into a page.
func (h *Handler) fillUse(r *http.Request, v *web.Use, report *apijson.Usage, q *apijson.UsageQuery, at string) error {
	v.Damaged = report.Damaged
	if report.Began == "" {
		return nil // the page says so
	}
	var err error
	if v.Began, err = time.Parse(time.RFC3339, report.Began); err != nil {
		return err
	}
	drawn, err := figures.Draw(v.Language, report, h.o.Now())
	if err != nil {
		return err
	}
	if len(drawn.Chart.Columns) > 0 {
		if v.Chart, err = drawn.Chart.HTML(); err != nil {
			return err
		}
	}
	v.Facts, v.Table = figures.Facts(v.Language, report), drawn.Table
	of := "namespace"
	if v.Record {
		of = "record"
	}
	if h.o.API != nil {
		v.Table.CSV = h.base(r) + "/api/v1/statistics?" + url.Values{"prefix": {report.Name}, "of": {of}, "from": {report.From}, "until": {report.Until}, "format": {"csv"}}.Encode()
	}
	path := h.base(r) + "/" + at + "?of=" + of
	now := h.o.Now().UTC()
	v.Periods = append(v.Periods, web.Period{Text: v.Language.Text("use.recent"), URL: path, Current: q.From == "" && q.Until == ""})
	for year := now.Year(); year > now.Year()-3 && year >= v.Began.UTC().Year(); year-- {
		from, until := strconv.Itoa(year)+"-01", strconv.Itoa(year)+"-12"
		v.Periods = append(v.Periods, web.Period{Text: v.Language.Text("use.year", "year", strconv.Itoa(year)), URL: path + "&from=" + from + "&until=" + until, Current: q.From == from && q.Until == until})
	}
	return nil
}
