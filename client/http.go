package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/internal/endpoint"
	"github.com/stele-id/stele/ddds"
)

// HTTPOptions are what the way over HTTP needs to know. Schemes and Server must be
// set; the rest may be left as it is.
type HTTPOptions struct {
	Schemes *stele.Schemes // that read names; see package scheme/all
	Server  string         // URL of a resolver that speaks THTTP: https://id.example.org

	// RootCAs are the authorities that sign the resolver's certificate; the system's if nil.
	RootCAs *x509.CertPool

	// Transport sends requests; one of its own if nil.
	Transport http.RoundTripper
	Timeout   time.Duration // for one name, all in all; 10 s if 0
}

// HTTP resolves names by a resolver's HTTP interface (RFC 2169). It is used by many
// goroutines at once.
type HTTP struct {
	o    HTTPOptions
	base place
	own  *http.Transport // nil if it was given
}

// NewHTTP makes a way over HTTP. It sends nothing yet.
func NewHTTP(o HTTPOptions) (*HTTP, error) {
	if o.Schemes == nil {
		return nil, invalid("resolve.schemes-missing", "there are no schemes to read names")
	}
	base, err := parseBase(o.Server)
	if err != nil {
		return nil, invalid("resolve.resolver-invalid", `"{resolver}" is not a resolver: {cause}; write https://id.example.org`, o.Server, err)
	}
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	h := &HTTP{o: o, base: base}
	if o.Transport == nil {
		h.own = endpoint.NewTransport()
		h.own.Proxy = http.ProxyFromEnvironment
		h.own.IdleConnTimeout = 30 * time.Second
		h.own.TLSClientConfig = &tls.Config{RootCAs: o.RootCAs, MinVersion: tls.VersionTLS12}
		h.o.Transport = h.own
	}
	return h, nil
}

// Close closes idle connections.
func (h *HTTP) Close() {
	if h.own != nil {
		h.own.CloseIdleConnections()
	}
}

// Resolve finds where a name leads.
func (h *HTTP) Resolve(ctx context.Context, q Request) (Result, error) {
	q, err := q.check()
	if err != nil {
		return Result{}, err
	}
	x, err := h.o.Schemes.Explain(q.Name)
	if err != nil {
		return Result{}, err
	}
	t := newTracer(q.Trace)
	c := ComponentsOf(x.Parts)
	res, err := h.ask(ctx, t, c.forResolver(nameOf(x.ID, q.Name)), &q)
	if err != nil {
		err = aboutName(x.ID, err)
		return Result{Trace: t.trace(&q, nil, err)}, err
	}
	res.ID, res.Via, res.Service = x.ID, ViaHTTP, q.Service
	if !q.wantsNames() {
		res.Note = cmp.Or(res.Note, unsafeNote(res.Location))
	}
	c.Place(&res)
	res.Trace = t.trace(&q, &res, nil)
	return res, nil
}

// nameOf returns a name as resolvers are asked for it: a URN as it was written, except
// for the parts that do not distinguish URNs.
func nameOf(id stele.ID, written string) string {
	if name, err := ddds.URNString(written); err == nil {
		return name
	}
	return id.String()
}

func (h *HTTP) ask(ctx context.Context, t *tracer, name string, q *Request) (Result, error) {
	where := h.base.URL(servicePath(q.asks(), name))
	a, err := h.get(ctx, t, where, q)
	if err == nil {
		if _, there, ok := a.upgrade(); ok {
			where = there
			a, err = h.get(ctx, t, where, q)
		}
	}
	if err != nil {
		return Result{}, &stele.Error{Op: "resolve", Kind: stele.Unavailable, Err: stele.Messagef("http.unreachable", "{host}: {cause}; try again", h.base.HostPort(), err)}
	}
	res, err := a.result(q, where, isResource(q.asks()))
	if err == nil && a.ttl == maxTTL && a.header.Get("Cache-Control") == "" {
		res.TTL = 0 // the resolver did not say
	}
	return res, err
}

func (h *HTTP) get(ctx context.Context, t *tracer, where string, q *Request) (*reply, error) {
	told := &Exchange{URL: where}
	t.add(Step{HTTP: told})
	a, err := roundTrip(ctx, h.o.Transport, where, q, h.o.Timeout)
	a.tell(told, err)
	return a, err
}
