// Package ezid answers clients of EZID, the identifier service of the California Digital Library, below /.ezid/: they mint,
// create, view, modify and delete identifiers as they do there (EZID API, version 2), with elements in ANVL.
//
// It decodes a request, authenticates the client, calls the registrar, and encodes the answer. What a record is to EZID's users
// is in package ezidrecord, and the one table of errors is in answer.go. It never judges what a client may do in a namespace,
// never writes to a store itself, and never deletes: an identifier that is deleted here is blank and stays reserved.
package ezid

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/internal/limit"
	"github.com/stele-id/stele/registrar"
)

// Root is the path below which clients find what is at the root of EZID's own server.
const Root = "/.ezid"

// Directory authenticates credentials: an [auth.Directory].
type Directory interface {
	// Authenticate returns the principal of a token. Unauthenticated if it is not known.
	Authenticate(ctx context.Context, credential string) (auth.Principal, error)
	// TokenSession returns a session that was begun with a token, and its principal.
	TokenSession(ctx context.Context, credential string) (auth.Session, auth.Principal, error)
}

// Store is the part of a [stele.Store] that a Handler uses beside the registrar.
type Store interface {
	// Longest returns the record that has the longest registered prefix of a name; see [stele.Store].
	Longest(ctx context.Context, name stele.ID, cuts func(n int) bool) (*stele.Record, stele.Prefix, error)
}

// Options are what a Handler needs to know of the place where it works. Registrar, Store, Schemes, Directory and Now must be set.
type Options struct {
	Registrar *registrar.Registrar
	Store     Store
	Schemes   *stele.Schemes
	Directory Directory
	Now       func() time.Time
	Log       *slog.Logger // of what an operator should look into; nothing is logged if nil

	// Base is the server's public address, https://id.example.org. Without it links are made of the request's Host, if OwnHost
	// reports that it is the server's; nil: it never is.
	Base    string
	OwnHost func(*http.Request) bool

	// ClientAddr says from which address a request came; nil: that of the connection.
	ClientAddr func(*http.Request) netip.Addr

	// Rate is how many requests in a second a client may send, and Burst how many at once. The public, and clients with wrong
	// credentials, are counted by address. If Rate is 0 nothing is counted.
	Rate, Burst int

	// Held counts the bytes of answers that clients have not read yet; nil: without limit.
	Held *limit.Held

	// Version returns a position that is not earlier than what was written here; nil: answers have no version.
	Version func(ctx context.Context) (stele.Position, error)

	// Ready says whether the server can do all that it should; nil: always.
	Ready func(ctx context.Context) error

	// Frozen is the error by which all but what the public may read is refused, if the registry is a frozen archive ([stele.Frozen]); nil: it
	// is not.
	Frozen error

	// Addresses says that clients' addresses are kept in the audit trail.
	Addresses bool

	// Patience is how long a client may take to read an answer, beside the time that a minter takes; 30 s if 0.
	Patience time.Duration
}

// Handler answers requests. It is used by many goroutines at once.
type Handler struct {
	o        Options
	callers  *limit.Rate // by principal, or by address for the public
	failures *limit.Rate // by address: unknown credentials
	cross    *http.CrossOriginProtection
}

// New returns a handler.
func New(o Options) *Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Patience == 0 {
		o.Patience = 30 * time.Second
	}
	return &Handler{o: o, callers: limit.NewRate(o.Rate, o.Burst), failures: limit.NewRate(o.Rate, o.Burst), cross: http.NewCrossOriginProtection()}
}

// Request is a request below [Root]: what follows it, as it stands in the request's target, and the query.
type Request struct {
	Path  string // id/ark:/99999/fk4test
	Query string
}

// call is one request and its answer.
type call struct {
	h   *Handler
	w   http.ResponseWriter
	r   *http.Request
	q   Request
	ctx context.Context // holds the client's principal
	who auth.Principal

	operation string // for the audit trail and the log
	rest      string // what follows the first segment of the path, decoded once
	session   auth.Session
	drained   bool // the body was read, or there is none
}

// operation is what is done at a first segment of a path with a method.
type operation struct {
	name        string
	credentials bool // it needs a client that is known
	body        bool // it reads a body
	sessions    bool // it begins or ends a session, though its method is GET
	serve       func(*call) error
}

// operations has what there is, by the first segment of the path and the method.
var operations = map[string]map[string]operation{
	"id": {
		http.MethodGet:    {name: "view identifier", serve: (*call).view},
		http.MethodPut:    {name: "create identifier", credentials: true, body: true, serve: (*call).create},
		http.MethodPost:   {name: "modify identifier", credentials: true, body: true, serve: (*call).modify},
		http.MethodDelete: {name: "delete identifier", credentials: true, serve: (*call).delete},
	},
	"shoulder":  {http.MethodPost: {name: "mint identifier", credentials: true, body: true, serve: (*call).mint}},
	"login":     {http.MethodGet: {name: "log in", credentials: true, sessions: true, serve: (*call).login}},
	"logout":    {http.MethodGet: {name: "log out", sessions: true, serve: (*call).logout}},
	"status":    {http.MethodGet: {name: "status", serve: (*call).status}},
	"heartbeat": {http.MethodGet: {name: "status", serve: (*call).status}},
}

// Serve answers a request.
func (h *Handler) Serve(w http.ResponseWriter, r *http.Request, q Request) {
	c := &call{h: h, w: w, r: r, q: q, ctx: r.Context()}
	c.drained = r.ContentLength == 0 && len(r.TransferEncoding) == 0
	defer c.recover()
	if err := c.answer(); err != nil {
		c.noteFailure(err)
		c.fail(err)
	}
}

// answer runs all checks before it calls an operation, the cheapest refusals first.
func (c *call) answer() error {
	op, err := c.route()
	if err != nil {
		return err
	}
	c.operation = op.name
	if c.h.o.Frozen != nil && (op.credentials || op.sessions) {
		return c.h.o.Frozen
	}
	if c.isInClear() && (op.credentials || c.hasCredentials()) {
		return auth.ErrInClear
	}
	if err := c.identify(); err != nil {
		return err
	}
	switch {
	case c.h.cross.Check(c.r) != nil, op.sessions && c.isForeign():
		// Any page can have a browser send a text with the password or the cookie that the browser has.
		return &stele.Error{Op: op.name, Kind: stele.Forbidden, Err: stele.Messagef("ezid.cross-origin", "a page of another site sent this request")}
	case op.credentials && !c.who.IsKnown():
		return c.errNoCredentials()
	case !op.body && !c.drained:
		return badf(http.StatusBadRequest, "request.body-unexpected", "the request has a body, and here nothing is done with one; send it without")
	}
	return op.serve(c)
}

// route returns the operation of a request.
func (c *call) route() (operation, error) {
	first, rest, _ := strings.Cut(c.q.Path, "/")
	methods, ok := operations[first]
	named := first == "id" || first == "shoulder"
	if !ok || !named && rest != "" {
		return operation{}, badf(http.StatusNotFound, "ezid.path-unknown", "there is nothing at this path; use {paths}", "/id/IDENTIFIER, /shoulder/SHOULDER, /login, /logout or /status below "+Root)
	}
	method := c.r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	op, ok := methods[method]
	if !ok {
		return operation{}, &notAllowed{methods}
	}
	var err error
	if c.rest, err = url.PathUnescape(rest); err != nil {
		return operation{}, badf(http.StatusBadRequest, "ezid.path-encoding", "invalid identifier; after % come two hexadecimal digits, and %25 is the sign itself")
	}
	return op, nil
}

// identifier reads the identifier in the path, in any spelling.
func (c *call) identifier() (stele.ID, error) {
	id, err := c.h.o.Schemes.Parse(c.rest)
	if err != nil {
		return id, badf(http.StatusBadRequest, "ezid.identifier-invalid", "invalid identifier ({reason})", stele.Reason(err).Error())
	}
	return id, nil
}

// options reads the query: each name once, with one of its values. The value nil allows any.
func (c *call) options(known map[string][]string) (map[string]string, error) {
	given := make(map[string]string)
	for part := range strings.SplitSeq(c.q.Query, "&") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		name, err := url.QueryUnescape(name)
		value, err2 := url.QueryUnescape(value)
		values, ok := known[name]
		if err != nil || !ok {
			return nil, badf(http.StatusBadRequest, "ezid.parameter-unknown", "unrecognized URL query parameter '{name}'", name)
		}
		_, twice := given[name]
		if given[name] = strings.ToLower(value); err2 != nil || twice || values != nil && !contains(values, given[name]) {
			return nil, badf(http.StatusBadRequest, "ezid.parameter-invalid", "invalid value for URL query parameter '{name}'", name)
		}
	}
	return given, nil
}

func contains(list []string, text string) bool {
	for _, s := range list {
		if s == text {
			return true
		}
	}
	return false
}

// yesNo are the values of most parameters.
var yesNo = []string{"yes", "no"}

// recover keeps a fault in one answer from ending the others, and from being shown to the public. The stack goes to the log.
func (c *call) recover() {
	fault := recover()
	if fault == nil {
		return
	}
	c.h.o.Log.ErrorContext(c.ctx, "a request made the server fail; please report it", "operation", c.operation, "fault", fmt.Sprint(fault), "stack", string(debug.Stack()))
	c.fail(&stele.Error{Kind: stele.Internal, Err: stele.Messagef("server.fault", "a fault")})
}
