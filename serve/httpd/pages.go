package httpd

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/serve/httpd/describe"
	"github.com/stele-id/stele/web"
	"github.com/stele-id/stele/web/language"
)

// homePage answers with the first page.
func (h *Handler) homePage(w http.ResponseWriter, r *http.Request) {
	v := web.Home{Frame: h.frame(r, "home")}
	v.About = h.o.Pages.Lead(v.Language)
	for _, e := range h.o.Examples {
		name := web.Name{Text: e.ID}
		if id, err := h.o.Schemes.Parse(e.ID); err == nil {
			name.URL = h.page(r, ".info", id)
		}
		v.Examples = append(v.Examples, web.Example{Name: name, Note: e.What})
	}
	var b bytes.Buffer
	if err := h.o.Pages.Home(&b, &v); err != nil {
		h.fail(w, r, err)
		return
	}
	w.Header()["Cache-Control"] = oneMinute
	h.writePage(w, r, v.Language, b.Bytes())
}

// frame returns what all pages have.
func (h *Handler) frame(r *http.Request, section string) web.Frame {
	f := web.Frame{Language: h.o.Pages.Language(r), Here: "/", Section: section}
	if t := r.RequestURI; isReturn(t) && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		f.Here = t
	}
	return f
}

// writePage writes a page. It reports whether it did.
func (h *Handler) writePage(w http.ResponseWriter, r *http.Request, l *language.Language, body []byte) bool {
	spoken(w.Header(), l)
	return h.write(w, r, http.StatusOK, htmlType, body)
}

// problemPage writes the page of a problem: of an identifier that was withdrawn, of
// one that is not known, or of any other.
func (h *Handler) problemPage(w io.Writer, r *http.Request, p *problem) error {
	switch {
	case p.res != nil:
		return h.gonePage(w, r, p)
	case p.missing && p.Asked != "":
		v := web.Missing{Frame: h.frame(r, ""), Looked: p.Asked, Canonical: p.ID, Scheme: p.Scheme, Mistyped: p.mistyped}
		v.Query = p.Asked
		if p.Position != nil {
			v.Reason = v.Language.Text("missing.reason", "position", *p.Position, "reason", p.said)
		}
		for _, l := range p.near {
			v.Nearest = append(v.Nearest, web.Name{Text: l.text, URL: l.url})
		}
		return h.o.Pages.Missing(w, &v)
	}
	v := web.Problem{Frame: h.frame(r, ""), Status: p.Status, Available: p.Accepted}
	if p.Status >= http.StatusInternalServerError {
		v.Request = p.Request
	}
	v.Title, v.Detail = v.Language.Text("status.other"), v.Language.Problem(p.said)
	if key := "status." + strconv.Itoa(p.Status); v.Language.Has(key) {
		v.Title = v.Language.Text(key)
	}
	return h.o.Pages.Problem(w, &v)
}

// gonePage writes the page of a withdrawn identifier.
func (h *Handler) gonePage(w io.Writer, r *http.Request, p *problem) error {
	record := p.res.Record
	subject := h.subject(r, p.res)
	v := web.Gone{Frame: h.frame(r, ""), ID: subject.Shown, Spelling: record.Spelling, Tombstone: h.stone(r, record, p.res.Tombstone),
		Citation: describe.Citation(subject), Info: h.page(r, ".info", record.ID), Formats: h.pageFormats(&subject)}
	if !record.Redacted {
		v.Title, v.Metadata = record.Metadata[stele.What], metadataRows(record)
	}
	return h.o.Pages.Gone(w, &v)
}

// stone is a tombstone as pages show it.
func (h *Handler) stone(r *http.Request, record *stele.Record, t stele.Tombstone) web.Tombstone {
	stone := web.Tombstone{Reason: t.Reason, At: t.At, Redacted: record.Redacted}
	if t.Replacement.IsValid() {
		stone.Replacement = web.Name{Text: h.shown(r, t.Replacement), URL: h.self(r, t.Replacement)}
	}
	return stone
}

// explainPage writes the page about how an identifier is resolved.
func (h *Handler) explainPage(w io.Writer, r *http.Request, x *explanation) error {
	v := web.Explanation{Frame: h.frame(r, ""), Given: x.Asked, ID: x.ID, URL: x.URL, Status: x.Status}
	switch {
	case x.said != nil:
		v.Answer = v.Language.Problem(x.said)
	case x.Answer != "":
		v.Answer = v.Language.Text("answer." + x.Answer)
	}
	for _, s := range x.Steps {
		v.Steps = append(v.Steps, web.Step{Name: s.Name, Result: v.Language.Problem(s.said)})
	}
	if id, err := h.o.Schemes.Parse(x.ID); x.ID != "" && err == nil {
		v.Info = h.page(r, ".info", id)
	}
	return h.o.Pages.Explain(w, &v)
}

// infoPage answers with the page about a record.
func (h *Handler) infoPage(w http.ResponseWriter, r *http.Request, res *resolver.Resolution) {
	h.versionPage(w, r, res, nil)
}

// versionPage is infoPage for an old version of a record; nil: the current one.
func (h *Handler) versionPage(w http.ResponseWriter, r *http.Request, res *resolver.Resolution, old *web.Old) {
	w, done, ok := h.charge(w, r, costInfo)
	if !ok {
		return
	}
	defer done()
	subject := h.subject(r, res)
	v := h.infoView(r, res, &subject)
	v.Old, v.Proof = old, h.proofURL(r, res.Record)
	if old == nil {
		var err error
		if v.Use, err = h.useLine(r, v, res.Record); err != nil { // readers see the name without figures that can't be read
			h.o.Log.ErrorContext(h.named(r).Context(), "the figures of a name could not be read", "name", res.Record.ID, "error", err)
			v.Use = nil
		}
	}
	if _, err := h.history(r, res.Record, func(version, before *stele.Record) {
		v.History = append(v.History, h.change(r, v.Language, version, before))
	}); err != nil {
		h.fail(w, r, err)
		return
	}
	var b bytes.Buffer
	if err := h.o.Pages.Info(&b, v); err != nil {
		h.fail(w, r, err)
		return
	}
	head := w.Header()
	h.about(head, res)
	h.linkTimeGate(head, r, res)
	h.signpostAll(head, subject)
	if h.writePage(w, r, v.Language, b.Bytes()) && res.Kind != resolver.Tombstone {
		h.countDescription(r, res)
	}
}

// infoView is the page about a record, without its history.
func (h *Handler) infoView(r *http.Request, res *resolver.Resolution, subject *describe.Subject) *web.Info {
	record := res.Record
	v := &web.Info{
		Frame: h.frame(r, ""), ID: record.ID.String(), Spelling: record.Spelling, Title: record.Metadata[stele.What], URL: cmp.Or(subject.Cited, subject.Self), Scheme: record.ID.Scheme(),
		State: record.State, Metadata: metadataRows(record), Persistence: record.Persistence,
		Citation: describe.Citation(*subject), Formats: h.pageFormats(subject),
	}
	if told, err := h.o.Resolver.Explain(r.Context(), v.ID); err == nil {
		v.Form, v.Spellings, v.Warnings = told.Form, told.Spellings, told.Warnings
		for i := range v.Spellings { // in the owner's letters too
			if start, ok := strings.CutSuffix(v.Spellings[i].Text, v.ID); ok {
				v.Spellings[i].Text = start + subject.Shown
			}
		}
		for _, p := range told.Parts {
			v.Parts = append(v.Parts, web.Row{Name: p.Name, Value: fmt.Sprint(p.Value), Note: p.Note})
		}
	}
	for _, alias := range record.Aliases {
		v.Aliases = append(v.Aliases, web.Name{Text: alias.String(), URL: h.self(r, alias)})
	}
	if record.State == stele.Withdrawn {
		stone := h.stone(r, record, res.Tombstone)
		v.Tombstone = &stone
	} else {
		for i := range record.Targets {
			t := &record.Targets[i]
			v.Targets = append(v.Targets, web.Target{Service: t.Service, URL: t.URL, Type: t.Type, Language: t.Language})
		}
		addValues(v, record.Values)
	}
	v.Signatures = pageSignatures(record)
	if ns := res.Namespace; ns != nil {
		v.Namespace = web.Name{Text: ns.Key().String()}
		if ns.Title != "" {
			v.Namespace.Text = ns.Title + " (" + v.Namespace.Text + ")"
		}
		if v.Persistence == (stele.Persistence{}) && ns.Persistence != v.Persistence {
			v.Persistence, v.Promised = ns.Persistence, ns.Key().String()
		}
	}
	if subject.Base != "" {
		// The page is complete without a QR code.
		v.QR, _ = web.NewQR(subject.Self)
	}
	return v
}

// change is a line of the history: a version, and the one before it, nil if that is not
// known.
func (h *Handler) change(r *http.Request, l *language.Language, v, before *stele.Record) web.Change {
	c := web.Change{Version: v.Version, At: v.Modified}
	if h.maySee(r, v) {
		c.URL = h.page(r, ".info", v.ID) + "?version=" + strconv.FormatUint(v.Version, 10)
	}
	disavowal := v.Withheld.Disavowal(v.Version)
	switch {
	case disavowal != nil && !v.Redacted:
		c.What = []string{l.Problem(stele.Messagef("change.disavowed", "disavowed: {reason}", disavowal.Reason))}
	case !h.maySee(r, v):
		c.What = []string{l.Text("info.not-shown")}
	case before != nil && h.maySee(r, before):
		c.What = web.Changes(l, before, v)
	case v.Version == 1:
		c.What = web.Changes(l, nil, v)
	}
	return c
}

// metadataRows returns the metadata as a page lists it: the four fields of every
// description, then the others by name.
func metadataRows(record *stele.Record) (rows []web.Row) {
	first := []string{stele.What, stele.Who, stele.When, stele.Where}
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(record.Metadata)), func(key string) bool { return slices.Contains(first, key) })
	for _, key := range append(first, others...) {
		if value, ok := record.Metadata[key]; ok {
			rows = append(rows, web.Row{Name: key, Value: value})
		}
	}
	return rows
}

// pageFormats lists the other forms of what a page says.
func (h *Handler) pageFormats(subject *describe.Subject) (list []web.Format) {
	for _, f := range h.formats {
		list = append(list, web.Format{Name: f.Name, Title: f.Title, Type: f.Type, URL: subject.At(f.Format)})
	}
	return list
}
