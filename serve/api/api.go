// Package api answers programs that read and write the registry over HTTP, below
// /api/v1. One table of operations (operations.go) routes requests, makes the OpenAPI
// document, and makes the page for people.
//
// It decodes a request, authenticates the caller, calls the registrar, and encodes the
// answer. It never judges what a caller may do in a namespace (the registrar does, by package
// auth), never writes to a store itself, and knows neither cookies nor sessions: a client
// authenticates by a bearer token in each request. It works on the raw request target, since
// identifiers hold what a router would clean away. Errors become status codes in one table,
// in problem.go.
package api

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/internal/limit"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/search"
	"github.com/stele-id/stele/serve/api/openapi"
	"github.com/stele-id/stele/web"
)

// Root is the path below which the API is.
const Root = "/api/v1"

// Directory authenticates credentials: an [auth.Directory].
type Directory interface {
	// Authenticate returns the principal of a credential. Unauthenticated if it is not known.
	Authenticate(ctx context.Context, credential string) (auth.Principal, error)
}

// Store is the part of a [stele.Store] that a Handler uses beside the registrar.
type Store interface {
	stele.Namespaces
	stele.Changes
	stele.Upkeep
}

// Options are what a Handler needs to know of the place where it works. Registrar,
// Store, Schemes, Directory, Pages and Now must be set.
type Options struct {
	Registrar *registrar.Registrar
	Store     Store // for what only administrators read: backups, the change feed
	Resolver  *resolver.Resolver
	Schemes   *stele.Schemes
	Directory Directory
	Pages     *web.Pages
	Log       *slog.Logger // of what an operator should look into; nothing is logged if nil

	// Now is the clock. Deadlines of connections are set by it too, so it must not
	// differ from the machine's where there is a real connection.
	Now func() time.Time

	// Base is the server's public address, https://id.example.org, for examples and
	// links. Without it they are made of the request's Host, if OwnHost reports that it
	// is the server's; nil: it never is.
	Base    string
	OwnHost func(*http.Request) bool

	// ClientAddr says from which address a request came, where a proxy is trusted to
	// tell; nil: that of the connection.
	ClientAddr func(*http.Request) netip.Addr

	// Rate is how many requests in a second a caller may send, and Burst how many at once.
	// The public, and callers with refused tokens, are counted by address. If Rate is 0
	// nothing is counted.
	Rate, Burst int

	// Held counts the bytes of answers that clients have not read yet, and Turns the
	// large answers that are being made; nil: without limit.
	Held  *limit.Held
	Turns *limit.Turns

	// Patience is how long a stream may stand still, and Reading how long a client may
	// take to send a document; 30 s, and as long as that, if 0.
	Patience, Reading time.Duration

	// Version returns a position that is not earlier than what was written here, and Await
	// returns when answers are from a state that has a change: Unavailable if that takes too
	// long, a Conflict that is stele.ErrRestored if it is of another generation. Where they
	// are nil answers have no version, and no request waits.
	Version func(ctx context.Context) (stele.Position, error)
	Await   func(ctx context.Context, version stele.Position) error

	// Generations returns the generations of the registry, which cursors and entity
	// tags belong to. Where it is nil they belong to the first one.
	Generations func() stele.Generations

	// Frozen is the error by which all but what the public may read is refused, if the registry is a frozen archive ([stele.Frozen]); nil: it
	// is not.
	Frozen error

	// Addresses says that clients' addresses are kept in the audit trail.
	Addresses bool

	// Links checks where names lead. It must be set.
	Links LinkChecker

	// CheckHarvest says what is wrong with a repository that is to be harvested; nil: nothing is.
	CheckHarvest func(url, format, set string) error

	// Givers asks the registries that this one watches as their heir. It must be set.
	Givers Givers

	// Heirs asks the registries that take over namespaces. It must be set.
	Heirs Heirs

	// Search finds records by words; nil if there is no index.
	Search *search.Finder

	// Transparency is the log of all changes; nil: the API proves nothing.
	Transparency Log

	// Usage has figures of use; nil: there are none.
	Usage UsageBook

	// UsageLogs counts log files of other servers; nil: it takes none.
	UsageLogs UsageLogs

	// Upkeep is what only the running server can do or knows.
	Upkeep Upkeep
}

// Handler answers requests. It is used by many goroutines at once.
type Handler struct {
	o        Options
	table    []operation
	places   map[string]place
	callers  *limit.Rate // by principal, or by address for the public
	failures *limit.Rate // by address: unknown credentials
	streams  crowd       // by principal: bodies without end
	duties   duties

	bundles   chan struct{} // those that are being made
	bundleKey []byte        // marks what clients go on with

	described func() *openapi.Description // made on the first request for it
	page      atomic.Pointer[viewed]      // what pages show, the last that was made
}

// New makes a handler.
func New(o Options) *Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Patience = cmp.Or(o.Patience, 30*time.Second)
	o.Reading = cmp.Or(o.Reading, o.Patience)
	h := &Handler{
		o:        o,
		callers:  limit.NewRate(o.Rate, o.Burst),
		failures: limit.NewRate(o.Rate, o.Burst),

		bundles: make(chan struct{}, bundlesAtOnce), bundleKey: bundleKey(),
	}
	h.table = h.operations()
	h.places = routes(h.table)
	h.described = sync.OnceValue(func() *openapi.Description { return openapi.Describe(h.description()) })
	return h
}

// ServeHTTP answers a request whose path begins with [Root].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{h: h, w: w, r: r, ctx: r.Context()}
	defer c.recover()
	if err := c.answer(); err != nil {
		c.noteFailure(err)
		c.fail(err)
	}
}

// answer runs all checks before it calls an operation, the cheapest refusals first.
func (c *call) answer() error {
	head := c.w.Header()
	head["Vary"], head["X-Content-Type-Options"] = varies, noSniff
	path, query, err := readTarget(c.r)
	if err != nil {
		return err
	}
	if c.h.o.Frozen != nil { // before a client learns that its token is not known
		if err := c.route(path); err != nil || c.op == nil {
			return err
		}
		if c.op.asks != anyone || c.op.method != http.MethodGet {
			return c.h.o.Frozen
		}
	}
	if err := c.identify(); err != nil {
		return err
	}
	if err := c.route(path); err != nil || c.op == nil {
		return err
	}
	if err := c.admit(); err != nil {
		return err
	}
	if err := c.readQuery(query); err != nil {
		return err
	}
	if err := c.readHead(); err != nil {
		return err
	}
	if err := c.await(); err != nil {
		return err
	}
	if err := c.checkBody(); err != nil {
		return err
	}
	if c.op.body != nil && c.op.body.limit == 0 {
		leave, err := c.h.streams.enter(c.bucket)
		if err != nil {
			return err
		}
		defer leave()
	}
	if c.op.gathers {
		leave, err := c.h.o.Turns.Enter(c.ctx)
		if err != nil {
			return err
		}
		c.made = leave
		defer leave()
	}
	if err := c.op.serve(c); err != nil || c.out == nil {
		return err
	}
	c.tellVersion()
	return c.out.flush()
}

// Values of headers that many answers share. The code never writes to them.
var (
	varies    = []string{"Authorization"}
	noSniff   = []string{"nosniff"}
	anyOrigin = []string{"*"}
	exposed   = []string{"ETag"}
	closing   = []string{"close"}
	privately = []string{"private, no-store"}
	notKept   = []string{"no-store"}
	askAgain  = []string{"no-cache"}
)
