package deskpage

import (
	"bytes"
	"html"
	"html/template"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/web"
)

// rowsWriter writes the rows of a list of records. A template took ten times as long for them, and
// a list is the page that curators open most. All that comes from a record goes through text.
type rowsWriter struct {
	*bytes.Buffer
	*rowWords
	now time.Time

	// Records that were imported together have the same time.
	second int64
	shown  string // the time of that second; "" if there is none yet
}

// rowWords has what rows have in common in a language: text that is ready to be written.
type rowWords struct {
	*agos
	name, leadsTo, state, changed string                 // beginnings of cells
	states                        map[stele.State]string // badges
	restricted                    string
}

func newRowWords(past *agos) *rowWords {
	word := func(key string) string { return html.EscapeString(past.language.Text(key)) }
	// A cell has the title of its column for narrow screens.
	cell := func(column, class string) string {
		return `<td role="cell" data-label="` + word(column) + `"` + class + `>`
	}
	states := make(map[stele.State]string)
	for _, s := range []stele.State{stele.Active, stele.Reserved, stele.Withdrawn} {
		states[s] = `<span class="badge ` + string(s) + `">` + word("state."+string(s)) + `</span>`
	}
	return &rowWords{agos: past, states: states, name: cell("column.name", ""), leadsTo: cell("column.leads-to", ` class="address"`), state: cell("column.state", ""), changed: cell("column.changed", ""),
		restricted: ` <span class="badge">` + word("state.restricted") + `</span>`}
}

// WriteRows writes the rows of a list where the template is. It writes them to the page itself, and
// returns nothing to print: they are most of the page, and would be copied twice. It returns them only to a
// template that [Pages.Write] does not execute.
func (f *Frame) WriteRows(list []Row) template.HTML {
	w := &rowsWriter{Buffer: f.page, rowWords: f.words, now: f.Now}
	if f.page == nil {
		w.Buffer = new(bytes.Buffer)
	}
	w.Grow(800 * len(list))
	for i := range list {
		w.row(&list[i])
	}
	if f.page == nil {
		return template.HTML(w.String())
	}
	return ""
}

// text writes a text that is not markup.
func (w *rowsWriter) text(s string) {
	for i := range len(s) {
		switch s[i] {
		case '&', '<', '>', '"', '\'':
			w.WriteString(html.EscapeString(s))
			return
		}
	}
	w.WriteString(s)
}

func (w *rowsWriter) row(r *Row) {
	w.WriteString("\n<tr role=\"row\">")
	w.WriteString(w.name)
	w.WriteString(`<a class="strong" href="`)
	w.text(web.SafeURL(r.URL))
	w.WriteString(`"><bdi>`)
	w.text(web.ShowHeading(r.Title, r.ID))
	w.WriteString(`</bdi></a>`)
	if r.Title != "" {
		w.WriteString(`<br/><code class="id"><bdi>`)
		w.text(web.ShowName(r.ID))
		w.WriteString(`</bdi></code>`)
	}
	w.WriteString("</td>\n")

	w.WriteString(w.leadsTo)
	w.WriteString(`<bdi>`)
	w.text(web.ShowName(r.Target))
	w.WriteString("</bdi></td>\n")

	w.WriteString(w.state)
	w.WriteString(w.states[r.State])
	if r.Restricted {
		w.WriteString(w.restricted)
	}
	w.WriteString("</td>\n")

	w.WriteString(w.changed)
	w.time(r.Modified)
	if r.By != "" {
		w.WriteString(` <span class="note"><bdi>`)
		w.text(web.ShowName(r.By))
		w.WriteString(`</bdi></span>`)
	}
	for i, what := range r.What {
		if i == 0 {
			w.WriteString(`<br/><span class="note">`)
		} else {
			w.WriteString("; ")
		}
		w.text(web.ShowProse(what))
		if i == len(r.What)-1 {
			w.WriteString(`</span>`)
		}
	}
	w.WriteString("</td></tr>")
}

// time writes when a record was changed.
func (w *rowsWriter) time(t time.Time) {
	if second := t.Unix(); w.shown == "" || second != w.second {
		w.shown = `<time datetime="` + t.UTC().Format(time.RFC3339) + `" title="` + html.EscapeString(w.language.Moment(t)) + `">`
		w.second = second
	}
	w.WriteString(w.shown)
	w.text(w.ago(w.now, t))
	w.WriteString(`</time>`)
}
