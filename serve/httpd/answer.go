package httpd

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/destination"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/serve/httpd/describe"
	"github.com/stele-id/stele/trace"
	"github.com/stele-id/stele/web"
	"github.com/stele-id/stele/web/language"
)

// Values of headers that many answers share. The code never writes to them: a header map
// takes them as they are, which saves an allocation each.
var (
	methods        = []string{"GET, HEAD, OPTIONS"}
	anyOrigin      = []string{"*"}
	exposed        = []string{"ETag, Link, Memento-Datetime"}
	closing        = []string{"close"}
	soon           = []string{"5"}
	varies         = []string{"Accept, Accept-Language, Authorization"}
	pageVaries     = []string{"Accept, Accept-Language, Authorization, Cookie"}          // of a page
	timeGateVaries = []string{"Accept, Accept-Language, Accept-Datetime, Authorization"} // of a TimeGate
	plainTextType  = []string{textType}
	notKept        = []string{"no-store"}
	askAgain       = []string{"no-cache"}
	noSniff        = []string{"nosniff"}
	noReferrer     = []string{"strict-origin-when-cross-origin"}
	onlyOwn        = []string{web.Policy}
	ownScript      = []string{web.ScriptPolicy}
)

// write writes an answer that has a body. One with status 200 has an entity tag, and is 304
// or 412 instead if the conditions of the request say so. If the server holds too much for
// clients that do not read, it answers with a refusal instead. It reports whether it wrote the answer.
func (h *Handler) write(w http.ResponseWriter, r *http.Request, status int, mediaType string, body []byte) bool {
	head := w.Header()
	if status == http.StatusOK {
		head["Etag"] = []string{entityTag(mediaType, body)}
		switch judge(r, head) {
		case http.StatusNotModified:
			w.WriteHeader(http.StatusNotModified)
			return false
		case http.StatusPreconditionFailed:
			for _, name := range [...]string{"Etag", "Last-Modified", "Cache-Control"} {
				delete(head, name)
			}
			h.fail(w, r, refused(http.StatusPreconditionFailed, "request.condition-failed", "What is here now is not what the condition of the request names; ask without If-Match and If-Unmodified-Since."))
			return false
		}
	}
	return h.writeOnce(w, r, status, mediaType, body)
}

// writeOnce is write for an answer that is not compared with another one.
func (h *Handler) writeOnce(w http.ResponseWriter, r *http.Request, status int, mediaType string, body []byte) bool {
	head := w.Header()
	if r.Method != http.MethodHead {
		release, err := h.hold(r, len(body))
		if err != nil {
			h.refuse(w, r, err)
			return false
		}
		defer release()
	}
	if status >= http.StatusBadRequest {
		trace.Tell(r.Context(), head)
	}
	head.Set("Content-Type", mediaType)
	head.Set("Content-Length", strconv.Itoa(len(body)))
	head["X-Content-Type-Options"] = noSniff
	if mediaType == htmlType {
		head["Referrer-Policy"] = noReferrer
		if head["Content-Security-Policy"] == nil {
			head["Content-Security-Policy"] = onlyOwn
		}
	}
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		// If this fails the client is gone.
		_, _ = w.Write(body)
	}
	return true
}

// describe answers with a description of the record. The status is 410 if the record was
// withdrawn.
func (h *Handler) describe(w http.ResponseWriter, r *http.Request, res *resolver.Resolution, f describe.Format) {
	w, done, ok := h.charge(w, r, costDescription)
	if !ok {
		return
	}
	defer done()
	subject := h.subject(r, res)
	body, err := f.Append(nil, subject)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	head := w.Header()
	forScripts(head)
	h.about(head, res)
	if res.Kind == resolver.Tombstone {
		h.write(w, r, http.StatusGone, f.Served, body)
		return
	}
	h.signpost(head, r, res)
	if h.write(w, r, http.StatusOK, f.Served, body) {
		h.countDescription(r, res)
	}
}

// forScripts lets the scripts of other sites read an answer: it is public.
func forScripts(head http.Header) {
	head["Access-Control-Allow-Origin"], head["Access-Control-Expose-Headers"] = anyOrigin, exposed
}

// subject is what a description is made of.
func (h *Handler) subject(r *http.Request, res *resolver.Resolution) describe.Subject {
	return h.Subject(r, res.Record, res.Namespace)
}

// Subject returns what a description of a record is made of, with the addresses that the client
// of a request should see. The namespace may be nil.
func (h *Handler) Subject(r *http.Request, record *stele.Record, ns *stele.Namespace) describe.Subject {
	s := describe.Subject{Record: record, Namespace: ns, Base: h.base(r), Self: h.self(r, record.ID), Shown: destination.Shown(record)}
	s.Locate = func(id stele.ID) string { return h.self(r, id) }
	if s.Shown != record.ID.String() {
		s.Cited = s.Base + "/" + h.shownPath(r, record.ID, record)
	}
	for _, id := range record.Names() {
		for _, spelling := range h.o.Schemes.Spellings(id) {
			if spelling.Name == "DOI" && s.DOI == "" {
				_, s.DOI, _ = strings.Cut(spelling.Text, ":")
				if id == record.ID && strings.EqualFold(s.DOI, s.Shown) {
					s.DOI = s.Shown
				}
			}
		}
	}
	return s
}

// about says in the head for how long an answer holds, since when, and on what it
// depends.
func (h *Handler) about(head http.Header, res *resolver.Resolution) {
	vary(head)
	h.keep(head, res)
	if at := h.lastModified(res); !at.IsZero() {
		head.Set("Last-Modified", httpDate(at))
	}
}

// vary says on which headers of requests an answer depends. The answer of a TimeGate, which
// says so itself, depends on Accept-Datetime too; other answers must not name that (RFC 7089,
// sections 4.1.1 and 4.5.7).
func vary(head http.Header) {
	if head["Vary"] == nil {
		head["Vary"] = varies
	}
}

// spoken says in the head that an answer is in the language of its reader, which a cookie may have
// chosen: a shared cache must not give it to readers of another one.
func spoken(head http.Header, l *language.Language) {
	head["Content-Language"] = []string{l.Tag}
	if vary := strings.Join(head["Vary"], ", "); vary == "" {
		head["Vary"] = pageVaries
	} else if !strings.Contains(vary, "Cookie") {
		head["Vary"] = []string{vary + ", Cookie"}
	}
}

// keep says for how long an answer may be kept.
func (h *Handler) keep(head http.Header, res *resolver.Resolution) {
	switch {
	case res.Private, res.Record != nil && !res.Record.IsPublic():
		head["Cache-Control"] = privately
	case res.TTL == 0:
		head["Cache-Control"] = askAgain
	default:
		head["Cache-Control"] = maxAge(res.TTL)
	}
}

var privately = []string{"private, no-store"}

// countedAlways is for redirects that are all to be counted: a cache asks each time.
var countedAlways = []string{"private, no-cache"}

// maxAge returns the value of Cache-Control for a time in seconds.
func maxAge(ttl uint32) []string {
	switch ttl {
	case 60:
		return oneMinute
	case 3600:
		return oneHour
	case 86400:
		return oneDay
	}
	return []string{"max-age=" + strconv.FormatUint(uint64(ttl), 10)}
}

// The commonest ones.
var (
	oneMinute = []string{"max-age=60"}
	oneHour   = []string{"max-age=3600"}
	oneDay    = []string{"max-age=86400"}
)

// httpDate returns a time as headers have it.
func httpDate(t time.Time) string { return t.UTC().Format(http.TimeFormat) }
