package httpd

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/internal/destination"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/serve/httpd/describe"
)

// maxHistory is how many versions a page about a record lists, the newest.
const maxHistory = 50

// info answers with what is known of an identifier: /.info/<id>, a page for people
// and JSON with the same for programs, and ?format=bibtex and the like for each
// format that there is. /.info?id=<id>, which the form of the home page asks for,
// leads there.
func (h *Handler) info(w http.ResponseWriter, r *http.Request, t requestTarget) {
	_, text := t.segment()
	if text == "" {
		h.infoForm(w, r, t)
		return
	}
	res, err := h.find(r, text, resolver.Request{Who: auth.From(r.Context())})
	if err != nil {
		h.failAbout(w, r, text, err)
		return
	}
	note(w, "", res.ID.Scheme())
	if res.Kind == resolver.Delegation {
		h.delegated(w, r, &res)
		return
	}
	if res.Rule != nil {
		h.explainRule(w, r, requestTarget{path: text}, &resolver.Request{}, &res)
		return
	}
	res.Kind = resolver.Description // the description is there, also of a withdrawn record
	liked := h.accepts.of(r.Header, "Accept")
	switch name, asked := field(t.query, "format"); {
	case asked:
		f, ok := describe.Named(name)
		if !ok {
			h.fail(w, r, refused(http.StatusBadRequest, "request.format-unknown", "There is no such format; take one of those that the page lists."))
			return
		}
		if style, styled := field(t.query, "style"); styled {
			if f, ok = f.In(style); !ok {
				h.fail(w, r, refused(http.StatusBadRequest, "request.citation-style-unknown", "There is no such style of citations; take apa, ieee, datacite, bibtex or ris, with format=citation."))
				return
			}
		}
		h.describe(w, r, &res, f)
	case wantsPage(liked):
		if number, asked := field(t.query, "version"); asked && res.Record != nil {
			h.infoVersion(w, r, &res, number)
			return
		}
		h.infoPage(w, r, &res)
	case len(liked) == 0 || wantsJSON(liked):
		h.infoJSON(w, r, &res)
	default:
		h.show(w, r, liked, &res)
	}
}

// wantsJSON reports whether JSON as such is liked most.
func wantsJSON(liked []resolver.Preference) bool {
	best, asked := 0, 0
	for _, p := range liked {
		best = max(best, p.Q)
		if p.Range == "application/json" {
			asked = max(asked, p.Q)
		}
	}
	return asked > 0 && asked == best
}

// infoForm redirects from a name that a person typed to the page about it.
func (h *Handler) infoForm(w http.ResponseWriter, r *http.Request, t requestTarget) {
	typed, _ := field(t.query, "id")
	typed = strings.TrimSpace(typed) // people copy more than they want
	if typed == "" || len(typed) > stele.MaxText {
		send(w, r, h.base(r)+"/", http.StatusSeeOther)
		return
	}
	// An invalid name is passed on as the person typed it, so that the answer can say what is
	// wrong with it; an identifier is passed on in its right spelling.
	path := escape(typed, false)
	if id, err := h.o.Schemes.Parse(typed); err == nil {
		path = h.path(r, id)
	}
	w.Header()["Cache-Control"] = notKept
	send(w, r, h.base(r)+"/.info/"+path, http.StatusSeeOther)
}

// delegated answers for a name that another resolver answers for.
func (h *Handler) delegated(w http.ResponseWriter, r *http.Request, res *resolver.Resolution) {
	head := w.Header()
	vary(head)
	h.keep(head, res)
	h.redirect(w, r, res.URL, http.StatusSeeOther)
}

// past is a version of a record as the public sees it in a list.
type past struct {
	Version   uint64      `json:"version"`
	At        time.Time   `json:"at"`
	State     stele.State `json:"state"`
	URL       string      `json:"url,omitempty"`     // of its first target
	Memento   string      `json:"memento,omitempty"` // where it can be seen
	Withheld  bool        `json:"withheld,omitempty"`
	Disavowed string      `json:"disavowed,omitempty"` // why it is not to be used
}

// history calls f with the newest versions of a record, the newest first, without those that
// the public may not know of. Before is the version before each, nil if there is none or the
// list ends there. No more than two versions are in memory: fifty large ones are more than
// one request may take of it. More says that there are older ones.
func (h *Handler) history(r *http.Request, record *stele.Record, f func(v, before *stele.Record)) (more bool, err error) {
	var last *stele.Record
	count := 0
	defer func() { h.spend(r, float64(count)*costVersion) }()
	for v, err := range h.o.Registry.History(r.Context(), record.ID) {
		if errors.Is(err, stele.NotFound) {
			break // the client may resolve the name, and not see its history
		}
		if err != nil {
			return false, err
		}
		if v.State == stele.Reserved && !h.maySee(r, v) {
			continue
		}
		if last != nil {
			f(last, v)
		}
		if last = v; count == maxHistory {
			return true, nil
		}
		count++
	}
	if last != nil {
		f(last, nil)
	}
	return false, nil
}

// pastOf describes a version as far as the client may know it.
func (h *Handler) pastOf(r *http.Request, v *stele.Record) past {
	p := past{Version: v.Version, At: v.Modified.UTC(), State: v.State, Withheld: !h.maySee(r, v)}
	if d := v.Withheld.Disavowal(v.Version); d != nil && !v.Redacted {
		p.Disavowed = d.Reason
	}
	if !p.Withheld {
		p.Memento = h.mementoURL(r, v.ID, v, v.Modified)
		if v.State == stele.Active {
			p.URL = landing(v)
		}
	}
	return p
}

// landing returns the URL of the first target that is the thing itself, if it is safe to
// redirect to.
func landing(v *stele.Record) string {
	for i := range v.Targets {
		if t := &v.Targets[i]; t.Service == stele.N2L {
			if safe, ok := destination.Safe(t.URL); ok {
				return safe
			}
		}
	}
	return ""
}

// infoJSON answers with what the page says.
func (h *Handler) infoJSON(w http.ResponseWriter, r *http.Request, res *resolver.Resolution) {
	subject := h.subject(r, res)
	all := struct {
		Asked    string            `json:"asked"`
		Matched  string            `json:"matched"`
		URL      string            `json:"url"`
		Record   json.RawMessage   `json:"record"`
		Citation string            `json:"citation,omitempty"`
		Formats  map[string]string `json:"formats"`
		History  []past            `json:"history"`
		More     bool              `json:"more,omitempty"`
	}{Asked: res.ID.String(), Matched: res.Matched, URL: subject.Self, Citation: describe.Citation(subject), Formats: map[string]string{}}
	f, _ := describe.Named("json")
	var err error
	if all.Record, err = f.Append(nil, subject); err == nil {
		all.More, err = h.history(r, res.Record, func(v, _ *stele.Record) { all.History = append(all.History, h.pastOf(r, v)) })
	}
	if err != nil {
		h.fail(w, r, err)
		return
	}
	for _, f := range h.formats {
		all.Formats[f.Name] = subject.At(f.Format)
	}
	body, err := json.Marshal(&all)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	head := w.Header()
	forScripts(head)
	h.about(head, res)
	h.signpostAll(head, subject)
	if h.write(w, r, http.StatusOK, "application/json", append(body, '\n')) {
		h.countDescription(r, res)
	}
}
