package deskpage

import (
	"html"
	"html/template"
	"strings"
	"time"

	"github.com/stele-id/stele/web"
)

// rowsWriter writes the rows of a list of records. A template took ten times as long for them, and
// a list is the page that curators open most. All that comes from a record goes through text.
type rowsWriter struct {
	strings.Builder
	*agos
	now time.Time
}

// listRows returns the rows of a list.
func listRows(past *agos, now time.Time, list []Row) template.HTML {
	w := &rowsWriter{agos: past, now: now}
	w.Grow(800 * len(list))
	for i := range list {
		w.row(&list[i])
	}
	return template.HTML(w.String())
}

// text writes a text that is no markup.
func (w *rowsWriter) text(s string) { w.WriteString(html.EscapeString(s)) }

// word writes a text of the language.
func (w *rowsWriter) word(key string) { w.text(w.language.Text(key)) }

// cell begins a cell, which has the title of its column for narrow screens.
func (w *rowsWriter) cell(column, class string) {
	w.WriteString(`<td role="cell" data-label="`)
	w.word(column)
	w.WriteString(`"` + class + `>`)
}

func (w *rowsWriter) row(r *Row) {
	w.WriteString("\n" + `<tr role="row">`)
	w.cell("column.name", "")
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

	w.cell("column.leads-to", ` class="address"`)
	w.WriteString(`<bdi>`)
	w.text(web.ShowName(r.Target))
	w.WriteString("</bdi></td>\n")

	w.cell("column.state", "")
	w.WriteString(`<span class="badge `)
	w.text(string(r.State))
	w.WriteString(`">`)
	w.word("state." + string(r.State))
	w.WriteString(`</span>`)
	if r.Restricted {
		w.WriteString(` <span class="badge">`)
		w.word("state.restricted")
		w.WriteString(`</span>`)
	}
	w.WriteString("</td>\n")

	w.cell("column.changed", "")
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
	w.WriteString(`<time datetime="` + t.UTC().Format(time.RFC3339) + `" title="`)
	w.text(w.language.Moment(t))
	w.WriteString(`">`)
	w.text(w.ago(w.now, t))
	w.WriteString(`</time>`)
}
