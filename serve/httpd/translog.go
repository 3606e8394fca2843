package httpd

import (
	"bytes"
	"net/http"

	"github.com/stele-id/stele/serve/httpd/translog"
	"github.com/stele-id/stele/web"
)

// costEntries is what the entries of a tile cost, for which up to 256 records are read.
const costEntries = 2

// log answers those who check the transparency log.
func (h *Handler) log(w http.ResponseWriter, r *http.Request, t requestTarget) {
	_, path := t.segment()
	if h.o.Transparency == nil {
		h.nothing(w, r, t)
		return
	}
	if path == "" {
		h.logPage(w, r)
		return
	}
	w, done, ok := h.charge(w, r, costEntries*translog.Share(path))
	if !ok {
		return
	}
	defer done()
	h.o.Transparency.Serve(r, path, &logSite{h, w, r, t})
}

// logSite is a request as package translog sees it.
type logSite struct {
	h *Handler
	w http.ResponseWriter
	r *http.Request
	t requestTarget
}

func (s *logSite) Header() http.Header { return s.w.Header() }
func (s *logSite) Missing()            { s.h.nothing(s.w, s.r, s.t) }
func (s *logSite) Fail(err error)      { s.h.fail(s.w, s.r, err) }

func (s *logSite) Send(mediaType string, body []byte) {
	s.w.Header()["Access-Control-Allow-Origin"] = anyOrigin
	s.h.write(s.w, s.r, http.StatusOK, mediaType, body)
}

// logPage answers with the page about the log.
func (h *Handler) logPage(w http.ResponseWriter, r *http.Request) {
	a, err := h.o.Transparency.About(r.Context())
	if err != nil {
		h.fail(w, r, err)
		return
	}
	v := web.Log{Frame: h.frame(r, "about"), Site: (&harvestSite{h, w, r}).Base(), Origin: a.Origin, Size: a.Size, At: a.Published.At, Behind: a.Status.Changes - min(a.Size, a.Status.Changes)}
	for _, k := range a.Keys {
		v.Keys = append(v.Keys, web.LogKey{Key: k.String(), Retired: k.Retired})
	}
	for _, e := range a.Status.Eras[min(1, len(a.Status.Eras)):] {
		v.Restore = append(v.Restore, web.LogRestore{At: e.Began, Size: e.Size})
	}
	v.Witnesses = a.Witnesses()
	var b bytes.Buffer
	if err := h.o.Pages.Log(&b, &v); err != nil {
		h.fail(w, r, err)
		return
	}
	w.Header()["Cache-Control"] = oneMinute
	h.writePage(w, r, v.Language, b.Bytes())
}
