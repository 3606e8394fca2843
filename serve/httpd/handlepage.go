package httpd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/handlejson"
	"github.com/stele-id/stele/internal/destination"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/web"
)

// showValues shows the values of a handle: on a page for people, as the REST interface does
// to clients that ask for JSON, and otherwise as lines of text with tabs between index, type,
// timestamp and data.
func (h *Handler) showValues(w http.ResponseWriter, r *http.Request, res *resolver.Resolution, values []stele.HandleValue) {
	handle := strings.TrimPrefix(shownIn(res), handleMark)
	forScripts(w.Header())
	switch h.problemForm(r) {
	case htmlType:
		shown := *res.Record // with the values that were asked for
		shown.Values = values
		page := *res
		page.Record = &shown
		h.infoPage(w, r, &page)
	case problemType:
		h.writeHandle(w, r, nil, newHandleAnswer(handle, values))
	default:
		var b bytes.Buffer
		fmt.Fprintf(&b, "Handle Values for: %s\nIndex\tType\tTimestamp\tData\n", legible(handle))
		values = byIndex(values)
		for i := range values {
			v := handlejson.Show(&values[i])
			fmt.Fprintf(&b, "%d\t%s\t%s\t%s\n", v.Index, legible(v.Type), v.Timestamp, dataLine(v.Data))
		}
		h.write(w, r, http.StatusOK, textType, b.Bytes())
	}
}

// addValues adds the values of a handle that the public may read to the page about it: each
// is a line of what is known, and addresses are where it leads as well.
func addValues(v *web.Info, values []stele.HandleValue) {
	open := byIndex(openValues(values))
	rows := make([]web.Row, len(open))
	for i := range open {
		shown := handlejson.Show(&open[i])
		rows[i] = web.Row{Name: fmt.Sprintf("%d %s", shown.Index, shown.Type), Value: dataLine(shown.Data), Note: shown.Timestamp}
	}
	v.Metadata = append(rows, v.Metadata...)
	if len(v.Targets) > 0 {
		return
	}
	for _, location := range destination.URLs(open) {
		v.Targets = append(v.Targets, web.Target{Service: stele.N2L, URL: location})
	}
}

// dataLine returns the data of a value on one line: texts as they are, what has parts as JSON.
func dataLine(d handlejson.Data) string {
	if text, ok := d.Value.(string); ok {
		return strings.Join(strings.Fields(legible(text)), " ")
	}
	// It is made of texts, numbers and lists, which can always be written.
	parts, _ := json.Marshal(d.Value)
	return string(parts)
}
