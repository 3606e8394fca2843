// Package handle answers those who administer handles over the REST interface of the Handle System's own
// server, release 9: writes and deletes, lists of handles, prefixes, verifications, sessions and the site.
// It decodes, calls package handles, and encodes. It says who a client is; package httpd reads handles itself, for the
// public and for those whom this package knows.
//
// It accepts credentials only over TLS, and keeps nothing of a client that has not proved who it is. Numbers in
// comments are sections of the description of the protocol, and what the reference implementation, release
// 9.2.0, was seen to answer.
package handle

import (
	"cmp"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"runtime"
	"strings"
	"time"

	"github.com/stele-id/stele/document/handlejson"
	"github.com/stele-id/stele/handles"
	"github.com/stele-id/stele/internal/limit"
	"github.com/stele-id/stele/wire/hdl"
)

// Options are what a Handler needs. Handles, Now, Rand and Client must be set.
type Options struct {
	Handles *handles.Service
	Now     func() time.Time
	Rand    io.Reader
	Log     *slog.Logger // nothing is logged if nil

	// Client returns the address of the sender of a request, and Proxied reports whether a proxy sent it: the
	// certificate of the connection is the proxy's then. Proxied may be nil.
	Client  func(r *http.Request) netip.Addr
	Proxied func(r *http.Request) bool

	// Site returns what the servers of the registry are to the Handle System. May be nil.
	Site func() Site

	// Costs is the budget of each client for answers that cost more than a redirect, and Turns bounds how many large
	// answers are made at once; nil: without limit.
	Costs *limit.Rate
	Turns *limit.Turns

	// MaxSessions is how many sessions of clients that have proved who they are the server keeps; 0: 10,000. When there
	// are more, the one that was not used for the longest time ends.
	MaxSessions int

	// Addresses: the audit trail has the addresses of clients.
	Addresses bool
}

// Site is what the servers of a registry are to the Handle System.
type Site struct {
	Octets []byte          // HS_SITE; nil: none was set up
	Key    *hdl.PrivateKey // that signs; nil: none
}

// Wrong credentials cost a client's address one of these: 20 at once, and then two a second. A client that has spent them is not
// answered until some have come back, right or wrong, so that a secret can't be guessed.
const (
	guessRate  = 2
	guessBurst = 20
)

// Limits of proofs that take computing time: those that derive keys, and the server's own signatures.
const (
	dearWaiting = 100
	dearWait    = 10 * time.Second
	costOfSign  = 10 // as many units of Options.Costs as ten descriptions
)

// Handler answers requests. It is used by many goroutines at once.
type Handler struct {
	o        Options
	sessions *sessions
	guesses  *limit.Rate
	public   *limit.Rate // bodies of clients without credentials
	dear     *limit.Turns
	cross    *http.CrossOriginProtection
}

// New returns a handler.
func New(o Options) (*Handler, error) {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Site == nil {
		o.Site = func() Site { return Site{} }
	}
	if o.Proxied == nil {
		o.Proxied = func(*http.Request) bool { return false }
	}
	s, err := newSessions(o.Rand, cmp.Or(o.MaxSessions, maxSessions))
	if err != nil {
		return nil, err
	}
	return &Handler{o: o, sessions: s, guesses: limit.NewRate(guessRate, guessBurst), public: limit.NewRate(publicRate, publicBurst),
		dear: limit.NewTurns(max(runtime.GOMAXPROCS(0)/2, 1), dearWaiting, dearWait), cross: http.NewCrossOriginProtection()}, nil
}

// Request is a request below /api/: what follows that, as it stands in the request's target, and the parameters.
type Request struct {
	Path   string // handles/20.500.12345/a%20b
	Query  url.Values
	Broken error // the query has a part that cannot be read, which Query lacks; may be nil
}

// split returns the first segment of the path, and the decoded rest.
func (q *Request) split() (first, rest string) {
	first, rest, _ = strings.Cut(q.Path, "/")
	return first, Decode(rest)
}

// Decode decodes a handle that stands in a path; what can't be decoded stays.
func Decode(text string) string {
	if decoded, err := url.PathUnescape(text); err == nil {
		return decoded
	}
	return text
}

// Serves reports whether this package answers below /api/ at this first segment, whatever the method. Handles are read
// by package httpd.
func Serves(segment string) bool {
	switch segment {
	case "prefixes", "verifications", "sessions", "site":
		return true
	}
	return false
}

// Serve answers a request: one that is below a segment that Serves reports, one that writes or deletes a handle, or
// one that lists handles.
func (h *Handler) Serve(w http.ResponseWriter, r *http.Request, q Request) {
	first, rest := q.split()
	if q.Broken != nil && writes(first, r.Method) {
		// Without the parameter index, a request that is about one value would be about the whole handle.
		h.refuse(w, r, q, "", wrong("The query cannot be read ("+brief(q.Broken.Error())+"); write name=value pairs with & between them, percent-encoded"))
		return
	}
	switch first {
	case "handles":
		switch {
		case r.Method == http.MethodPut:
			h.put(w, r, q, rest)
		case r.Method == http.MethodDelete:
			h.delete(w, r, q, rest)
		default:
			h.list(w, r, q)
		}
	case "prefixes":
		h.prefixes(w, r, q, rest)
	case "verifications":
		h.verification(w, r, q, rest)
	case "sessions":
		h.session(w, r, q, rest)
	case "site":
		h.site(w, r, q, rest)
	default:
		h.unknown(w, r, q)
	}
}

// writes reports whether a request changes handles or prefixes.
func writes(segment, method string) bool {
	switch segment {
	case "handles":
		return method == http.MethodPut || method == http.MethodDelete
	case "prefixes":
		return method == http.MethodPost || method == http.MethodDelete
	}
	return false
}

// unknown answers where there is nothing.
func (h *Handler) unknown(w http.ResponseWriter, r *http.Request, q Request) {
	h.answer(w, r, q, http.StatusNotFound, refusal{Code: hdl.ProtocolError, Message: "Unknown HTTP API endpoint " + r.Method + " /api/" + brief(q.Path)})
}

// brief cuts a text of the client's that stands in an answer.
func brief(text string) string {
	const most = 200
	if len(text) > most {
		text = text[:most] + "..."
	}
	return strings.ToValidUTF8(text, "?")
}

// method makes sure that a request has one of the methods. It returns false if the request is answered.
func (h *Handler) method(w http.ResponseWriter, r *http.Request, q Request, methods string) bool {
	for m := range strings.SplitSeq(methods, ", ") {
		if r.Method == m {
			return true
		}
	}
	if r.Method == http.MethodOptions {
		w.Header().Set("Allow", methods+", OPTIONS")
		w.Header().Set("Content-Length", "0")
		return false
	}
	h.answer(w, r, q, http.StatusNotImplemented, refusal{Code: hdl.ProtocolError, Message: "Unknown method " + brief(r.Method)})
	return false
}

// site answers with the description of the servers.
func (h *Handler) site(w http.ResponseWriter, r *http.Request, q Request, rest string) {
	switch octets := h.o.Site().Octets; {
	case rest != "":
		h.unknown(w, r, q)
	case !h.method(w, r, q, "GET, HEAD"):
	case octets == nil:
		h.refuse(w, r, q, "", &handles.Refusal{Code: hdl.Unsupported, Text: "This server has no site of the Handle System yet"})
	default:
		h.answer(w, r, q, http.StatusOK, siteAnswer{hdl.Success, handlejson.Describe("HS_SITE", octets).Value})
	}
}

type siteAnswer struct {
	Code hdl.ResponseCode `json:"responseCode"`
	Site any              `json:"site"`
}
