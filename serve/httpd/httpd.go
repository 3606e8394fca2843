// Package httpd answers the web: any identifier, in every spelling its users
// write, leads to what it names; and the clients of other systems (handle proxies
// and their REST interface, ARK resolvers, PURL servers, RFC 2169's THTTP, LSID
// authorities) find what they know.
//
// It decodes a request, calls the resolver or the registrar, and encodes the
// answer. It never fetches what a target points at (package lsid does, where a protocol asks for the bytes
// themselves), leaves writing to the handlers of
// the API and of handles, and works on the raw request target: a router that cleans paths corrupts
// identifiers. Errors become status codes in one table, in problem.go.
package httpd

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/internal/limit"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/serve/httpd/ezid"
	"github.com/stele-id/stele/serve/httpd/handle"
	"github.com/stele-id/stele/serve/httpd/lsid"
	"github.com/stele-id/stele/serve/httpd/oai"
	"github.com/stele-id/stele/serve/httpd/translog"
	"github.com/stele-id/stele/trace"
	"github.com/stele-id/stele/web"
	"github.com/stele-id/stele/web/documents"
)

// Registry is what the server reads beside the resolver's answers: a [registrar.Registrar] is
// one. The principal is in the context.
type Registry interface {
	// History yields all versions of the record that has this name, the newest first, as the
	// principal may see them. NotFound if the principal may see none.
	History(ctx context.Context, name stele.ID) iter.Seq2[*stele.Record, error]
	// HistoryBefore is History without the versions from the given one on.
	HistoryBefore(ctx context.Context, name stele.ID, version uint64) iter.Seq2[*stele.Record, error]
	// Version returns one version. NotFound if there is none.
	Version(ctx context.Context, name stele.ID, version uint64) (*stele.Record, error)
	// At returns the version that was current at a time.
	At(ctx context.Context, name stele.ID, t time.Time) (*stele.Record, error)
}

// Options are what a Handler needs to know of the place where it works. Resolver,
// Registry, Schemes, Pages and Now must be set.
type Options struct {
	Resolver *resolver.Resolver
	Registry Registry
	Schemes  *stele.Schemes
	Pages    *web.Pages
	Now      func() time.Time
	Log      *slog.Logger // of what an operator should look into; nothing is logged if nil

	// Base is the server's public address, https://id.example.org, without a slash
	// at its end, for links to itself. Without it they are made of the request's
	// Host if that is the server's, see [IsOwnHost], and are relative otherwise.
	Base string

	// OwnName reports whether a name, in lower case and without a port, is one of the
	// server's; nil: it has none.
	OwnName func(name string) bool

	// Host is the host, a PURL resolver's perhaps, under which paths are read as names if the
	// request's own Host gives no name.
	Host string

	// Identify authenticates the sender of a request: it is called for those that have an
	// Authorization header. Unauthenticated if the credentials are wrong. If it is nil all
	// are the public.
	Identify func(r *http.Request) (auth.Principal, error)

	// API answers programs that read and write the registry, below /api/v1, and authenticates
	// them itself; nil: there is no API.
	API http.Handler

	// Proofs reports whether the API proves what names stood for: pages and mementos link to the proofs then; nil: it does not.
	Proofs func(ctx context.Context) bool

	// Desk answers curators below /.desk, and identifies them itself; nil: there is no desk.
	Desk http.Handler

	// Docs are the documents about the program, below /.docs/; nil: the path is not served.
	Docs *documents.Library

	// DNS answers DNS over HTTPS at /dns-query, and checks methods itself; nil: the path is
	// not served.
	DNS http.Handler

	// Tunnel answers a request of the Handle protocol in HTTP, and returns false if the request is another
	// one; nil: the protocol is not served.
	Tunnel func(w http.ResponseWriter, r *http.Request) bool

	// Handles answers those who administer handles over the Handle System's REST interface; nil: handles are
	// only read.
	Handles *handle.Handler

	// EZID answers clients of EZID below /.ezid, and authenticates them itself; nil: there is nothing for them.
	EZID *ezid.Handler

	// LSID answers clients of Life Science Identifiers below /authority/, and authenticates those who change
	// something; nil: the path is not served.
	LSID *lsid.Handler

	// OAI lists the records of listed namespaces for harvesters, at /.oai; nil: the path is not served.
	OAI *oai.Handler

	// Transparency serves the log of all changes, below /.log/; nil: the path is not served.
	Transparency *translog.Handler

	// Pointing answers the reverse look-ups of RFC 2483 (L2Ns, L2Ls, L2C), which let the
	// public list what a publisher has; nil: they are off.
	Pointing func(ctx context.Context, at stele.Location, after stele.ID) iter.Seq2[stele.ID, error]

	// Global is the resolver, by scheme, to which names are passed on that belong to
	// no namespace here: a URL with {id} in it, https://n2t.net/{id}. Only names that
	// nothing here could answer for go there.
	Global map[string]string

	// Await returns when answers are from a state of the registry that has a change:
	// Unavailable if that takes too long. If it is nil no request waits.
	Await func(ctx context.Context, version stele.Position) error

	// Costs is the budget of each client for answers that cost more than a redirect, Held
	// counts the bytes of answers that clients have not read yet, and Turns the large
	// answers that are being made; nil: without limit.
	Costs *limit.Rate
	Held  *limit.Held
	Turns *limit.Turns

	// Random returns a number from 0 to n-1 and may be called by many goroutines at
	// once. It chooses between locations of a handle; nil: always the first.
	Random func(n int) int

	// Ready says whether the server can do all that it should; nil: always.
	Ready func(ctx context.Context) error

	// RequestID makes the ids of requests, which stand in log lines and error answers; nil:
	// only those have one that come with one.
	RequestID func() string

	// Tracer records what requests are about and how long they take; nil: it is off.
	Tracer *trace.Tracer

	// Observe is called with every answer, once it is written; see [Observation].
	Observe func(Observation)

	// Counter counts how names are used; nil: that is not counted.
	Counter Counter
	// CountsAll reports whether all redirects of the namespace of a name are to be counted: caches do not keep them then. It is
	// called for each redirect, so it must not wait; nil: caches keep redirects of all namespaces.
	CountsAll func(id stele.ID) bool

	// Figures reads how often names are used, and judges what all may see of it; nil: pages do not have it.
	Figures Figures

	// Frozen is the error by which all is refused that changes something or needs a user, if the registry is a frozen archive
	// ([stele.Frozen]); nil: it is not. There is no Desk then, and Handles is nil.
	Frozen error

	// Examples are identifiers that the home page offers to try.
	Examples []Example
}

// Example is an identifier to try, and what it shows.
type Example struct{ ID, What string }

// Validate says what is wrong with the options. A Handler made of wrong ones
// works, but leaves out what they ask for.
func (o *Options) Validate() error {
	if o.Base != "" && !isBase(o.Base) {
		return stele.Messagef("server.public-address-invalid", `the public address "{address}" is none; write it as in https://id.example.org, without a slash at its end`, o.Base)
	}
	for scheme, template := range o.Global {
		if !isTemplate(template) {
			return stele.Messagef("resolver.global-template-invalid", `the global resolver for {scheme}, "{template}", is not a URL with {mark} in its path or query, such as https://n2t.net/{mark}`, scheme, template, "{id}")
		}
	}
	return nil
}

// Limits on requests.
const (
	maxTarget = 8 << 10 // bytes of the request target, identifier and query; longer ones are answered with 414
	maxAccept = 4 << 10 // bytes of Accept, and of Accept-Language; longer ones count as none
)

// Handler answers requests. It is used by many goroutines at once.
type Handler struct {
	o         Options
	schemes   []stele.Scheme
	random    func(n int) int
	names     [2]string        // of this server: those of Host and of Base
	known     map[string]route // by the first segment of the path
	accepts   memory           // of Accept
	languages memory           // of Accept-Language
	formats   []format         // the best first
	promises  []format         // the same, the best for promises first
	unready   atomic.Bool      // the last answer of /readyz was no
}

// New makes a handler.
func New(o Options) *Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if !isBase(o.Base) {
		o.Base = ""
	}
	h := &Handler{o: o, schemes: slices.Collect(o.Schemes.All()), random: o.Random}
	if h.random == nil {
		h.random = func(int) int { return 0 }
	}
	h.accepts.parse, h.languages.parse = resolver.ParseAccept, resolver.ParseAcceptLanguage
	h.names = [2]string{withoutPort(o.Host), withoutPort(hostOf(o.Base))}
	h.formats, h.promises = allFormats()
	h.known = h.routes()
	return h
}

// ServeHTTP answers a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.o.Observe == nil && h.o.Tracer == nil {
		h.serve(w, r)
		return
	}
	seen := &watched{ResponseWriter: w}
	start := h.o.Now()
	r, span := h.traced(r)
	h.serve(seen, r)
	if Declined(r) { // the span is not ended, so that none is told of
		return
	}
	o := seen.observation(r, h.o.Now().Sub(start))
	if span != nil {
		o.describe(span, r)
	}
	if h.o.Observe != nil {
		h.o.Observe(o)
	}
}

// serve answers, whatever happens.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request) {
	defer h.recover(w, r)
	t := readTarget(r)
	if len(t.path)+len(t.query) > maxTarget {
		h.fail(w, r, refused(http.StatusRequestURITooLong, "resolver.address-too-long", "The address has more than {most} bytes; no identifier is so long.", maxTarget))
		return
	}
	if r.Method == http.MethodPost && h.o.Tunnel != nil && h.o.Tunnel(w, r) {
		note(w, "handle", "")
		return
	}
	first, _ := t.segment()
	at, ok := h.known[first]
	note(w, cmp.Or(at.kind, "identifier"), "")
	if (ok || isDotted(first)) && decline(r) {
		return
	}
	if ok {
		r = h.named(r)
	}
	if !at.anonymous {
		var known bool
		if w, r, known = h.identify(w, r); !known || !h.await(w, r) {
			return
		}
	}
	switch {
	case !at.writes && !h.mayAsk(w, r):
	case at.cost > 0:
		if w, done, ok := h.charge(w, r, at.cost); ok {
			defer done()
			at.serve(w, r, t)
		}
	case ok:
		at.serve(w, r, t)
	case isDotted(first):
		h.nothing(w, r, t)
	default:
		h.identifier(w, r, t)
	}
}

// mayAsk lets requests through that read. It refuses those with a body, since servers along
// the way may disagree about where it ends (RFC 9110, section 9.3.1; RFC 9112, section 11.2);
// the connection is not used again.
func (h *Handler) mayAsk(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case r.ContentLength != 0 || len(r.TransferEncoding) > 0:
		w.Header()["Connection"] = closing
		h.fail(w, r, refused(http.StatusBadRequest, "resolver.body-unexpected", "The request has a body, and here nothing is done with one; send it without."))
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		return true
	case r.Method == http.MethodOptions:
		head := w.Header()
		head["Allow"], head["Access-Control-Allow-Methods"], head["Access-Control-Allow-Origin"] = methods, methods, anyOrigin
		head.Set("Access-Control-Max-Age", "86400")
		if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
			head.Set("Access-Control-Allow-Headers", "Accept, Accept-Language, Accept-Datetime, If-Match, If-Modified-Since, If-None-Match, If-Unmodified-Since, Stele-Version")
		}
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header()["Allow"] = methods
		h.fail(w, r, refused(http.StatusMethodNotAllowed, "resolver.read-only", "Here identifiers are read, with GET or HEAD; nothing can be changed."))
	}
	return false
}

// recover keeps a fault in one answer from ending the others, and from being shown to the
// public. The stack goes to the log.
func (h *Handler) recover(w http.ResponseWriter, r *http.Request) {
	fault := recover()
	if fault == nil {
		return
	}
	r = h.named(r)
	h.o.Log.ErrorContext(r.Context(), "a request made the server fail; please report it", "fault", fmt.Sprint(fault), "stack", string(debug.Stack()))
	w.Header()["Cache-Control"] = notKept
	// All answers are written in one piece, so that none has begun.
	if isHandleREST(readTarget(r)) {
		h.writeHandle(w, r, nil, handleRefusal{Code: handleError, Message: "Something went wrong here. It was noted."})
		return
	}
	trace.Tell(r.Context(), w.Header())
	http.Error(w, "Something went wrong here. It was noted.", http.StatusInternalServerError)
}
