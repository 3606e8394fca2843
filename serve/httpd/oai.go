package httpd

import (
	"io"
	"mime"
	"net/http"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/serve/httpd/describe"
)

// What a page for a harvester costs beside the charge of a list: for each record in it, and for each that was read for it.
const (
	costHarvested = .2
	costRead      = .002
)

// maxHarvestForm is how many bytes the body of a request of a harvester may have.
const maxHarvestForm = 16 << 10

// harvest answers harvesters, who ask by GET or by POST (OAI-PMH 2.0, 3.1.1).
func (h *Handler) harvest(w http.ResponseWriter, r *http.Request, t requestTarget) {
	if r.Method != http.MethodPost && !h.mayAsk(w, r) {
		return
	}
	if _, rest := t.segment(); h.o.OAI == nil || rest != "" {
		h.nothing(w, r, t)
		return
	}
	w = &busy{w}
	query := t.query
	if r.Method == http.MethodPost {
		form, err := harvestForm(w, r)
		if err != nil {
			w.Header()["Connection"] = closing
			h.fail(w, r, err)
			return
		}
		if query != "" {
			query += "&"
		}
		query += form
	}
	if !h.await(w, r) {
		return
	}
	w, done, ok := h.charge(w, r, costReverse)
	if !ok {
		return
	}
	defer done()
	h.o.OAI.Serve(r, query, &harvestSite{h, w, r})
}

// busy is a ResponseWriter for harvesters, who know one status that tells them to come back later (OAI-PMH 2.0, 3.1.2.2).
type busy struct{ http.ResponseWriter }

func (w *busy) WriteHeader(status int) {
	if status == http.StatusTooManyRequests {
		status = http.StatusServiceUnavailable
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for [http.ResponseController].
func (w *busy) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// harvestForm reads the arguments of a POST.
func harvestForm(w http.ResponseWriter, r *http.Request) (string, error) {
	if form, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || form != "application/x-www-form-urlencoded" {
		return "", refused(http.StatusUnsupportedMediaType, "oai.form-expected", "A harvester sends its arguments as application/x-www-form-urlencoded.")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxHarvestForm))
	if err != nil {
		return "", refused(http.StatusRequestEntityTooLarge, "oai.form-too-long", "The arguments of a harvester have at most {most} bytes.", maxHarvestForm)
	}
	return string(body), nil
}

// harvestSite is a request as package oai sees it.
type harvestSite struct {
	h *Handler
	w http.ResponseWriter
	r *http.Request
}

// Base returns the server's address. Where it is not known it is as the client wrote it: an answer must have one.
func (s *harvestSite) Base() string {
	switch base := s.h.base(s.r); {
	case base != "":
		return base
	case s.r.TLS != nil:
		return "https://" + s.r.Host
	}
	return "http://" + s.r.Host
}

// Subject returns what a description of a record is made of.
func (s *harvestSite) Subject(record *stele.Record, ns *stele.Namespace) describe.Subject {
	return s.h.Subject(s.r, record, ns)
}

// Send writes an answer. Pages are not kept by caches: each has the time at which it was made.
func (s *harvestSite) Send(status int, mediaType string, body []byte) {
	head := s.w.Header()
	head["Cache-Control"], head["Access-Control-Allow-Origin"] = notKept, anyOrigin
	s.h.writeOnce(s.w, s.r, status, mediaType, body)
}

// Fail answers that the registry can't be read.
func (s *harvestSite) Fail(err error) { s.h.fail(s.w, s.r, err) }

// Spend takes what a page has cost from the budget of the client.
func (s *harvestSite) Spend(records, read int) {
	s.h.spend(s.r, costHarvested*float64(records)+costRead*float64(read))
}
