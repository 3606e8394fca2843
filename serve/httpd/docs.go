package httpd

import (
	"bytes"
	"net/http"
	"strings"

	"github.com/stele-id/stele/web"
	"github.com/stele-id/stele/web/documents"
)

// docs answers with the documents about the program, and with their pictures. They are the same for
// all clients, except the language of the frame around them.
func (h *Handler) docs(w http.ResponseWriter, r *http.Request, t requestTarget) {
	_, name := t.segment()
	switch {
	case h.o.Docs == nil:
		h.nothing(w, r, t)
	case name == "" && !strings.HasSuffix(t.path, "/"):
		send(w, r, h.base(r)+documents.Path, http.StatusMovedPermanently)
	case strings.HasSuffix(name, ".png"):
		h.docsPicture(w, r, t, name)
	default:
		h.docsPage(w, r, t, name)
	}
}

func (h *Handler) docsPicture(w http.ResponseWriter, r *http.Request, t requestTarget, name string) {
	content, err := h.o.Docs.Picture(name)
	if err != nil {
		h.nothing(w, r, t)
		return
	}
	w.Header()["Cache-Control"] = oneDay
	h.write(w, r, http.StatusOK, "image/png", content)
}

func (h *Handler) docsPage(w http.ResponseWriter, r *http.Request, t requestTarget, name string) {
	page, err := h.o.Docs.Page(name)
	if err != nil {
		h.nothing(w, r, t)
		return
	}
	v := web.Docs{Frame: h.frame(r, "docs"), Title: page.Title, Body: page.Body}
	for _, g := range h.o.Docs.Groups() {
		group := web.DocsGroup{Title: g.Title}
		for _, p := range g.Pages {
			shown := web.DocsPage{Name: web.Name{Text: p.Title, URL: documents.Path + p.Name}, Current: p.Name == page.Name}
			if shown.Current {
				for _, c := range page.Contents {
					shown.Contents = append(shown.Contents, web.Name{Text: c.Title, URL: "#" + c.Name})
				}
			}
			group.Pages = append(group.Pages, shown)
		}
		v.Groups = append(v.Groups, group)
	}
	var b bytes.Buffer
	if err := h.o.Pages.Docs(&b, &v); err != nil {
		h.fail(w, r, err)
		return
	}
	w.Header()["Cache-Control"] = oneMinute
	h.writePage(w, r, v.Language, b.Bytes())
}
