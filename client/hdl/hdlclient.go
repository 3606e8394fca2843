// Package hdlclient is a client of the Handle protocol (RFC 3652, and what its reference implementation
// does): it finds the servers of a handle, asks them over UDP, TCP or through HTTP, and verifies what
// they answer. An [Administrator] also changes handles, and reads what is not for the public.
//
// It begins at a server that the user names, at a site from a file, or at the root of the Handle System, where it looks up
// the prefix of each handle; it follows referrals to other services. If it knows the key of a site it asks for certified
// answers, and refuses others. Servers may be malicious: sizes, times and numbers of steps are bounded, and
// answers that do not belong to a request are ignored.
//
// Package wire/hdl has the octets and the cryptography. This package reads no files, has no state beside its values, and no
// clock and no randomness except what the caller passes in.
package hdlclient

import (
	"cmp"
	"context"
	"crypto/x509"
	"io"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/wire/hdl"
)

// Options are what a [Client] works with. Now and Rand must be set, and one of Server, Sites and Root.
type Options struct {
	// Server is asked for all handles, if it is set; else Sites, if there are any.
	Server *Place
	Sites  []hdl.Site

	// Root are the sites of the root, which tell where the handles of a prefix are.
	Root []hdl.Site

	// Permit is called before the client sends something to an address that a record names. If it returns an
	// error, the client does not. A program that resolves names of others should refuse addresses of its own network.
	Permit func(netip.AddrPort) error

	// Lookup returns the addresses of a server that the user names; the system's resolver does it if nil.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)

	Now  func() time.Time
	Rand io.Reader

	// Version is the highest version that the client speaks; that of package wire/hdl if it is zero.
	Version hdl.Version

	// Transports are those that are used, in this order. Without any they are UDP, TCP and HTTP for queries, and TCP,
	// HTTP and UDP for what an administrator does, which should not be repeated unnoticed.
	Transports []hdl.Transport

	// Uncertified says that answers need no signature, even if the key of the site is known.
	Uncertified bool

	RootCAs *x509.CertPool // that sign the certificate of a Server that speaks HTTPS; the system's if nil

	Timeout time.Duration // for one connection, and for each message of an answer; 5 s if 0
	Resends []time.Duration
}

// resends are how long the client waits for an answer over UDP before it sends the request again (section 1 of the
// specification; the last is the wait after which it gives up).
func resends() []time.Duration {
	return []time.Duration{500 * time.Millisecond, time.Second, 1500 * time.Millisecond}
}

// Client asks servers of the Handle System. It is used by many goroutines at once.
type Client struct {
	o     Options
	known known
}

// New returns a client. It sends nothing yet.
func New(o Options) (*Client, error) {
	switch {
	case o.Now == nil || o.Rand == nil:
		return nil, refuse(stele.Invalid, "hdlclient.clock-missing", "a client of the Handle protocol needs a clock and a source of random octets")
	case o.Server == nil && len(o.Sites) == 0 && len(o.Root) == 0:
		return nil, refuse(stele.Invalid, "hdlclient.nowhere-to-begin", "there is no server to ask; name a server, a site or the root of the Handle System")
	}
	o.Version = cmp.Or(o.Version, hdl.Latest())
	o.Timeout = cmp.Or(o.Timeout, 5*time.Second)
	if o.Resends == nil {
		o.Resends = resends()
	}
	if o.Lookup == nil {
		o.Lookup = lookup
	}
	return &Client{o: o}, nil
}

// lookup asks the system's resolver.
func lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	var r net.Resolver
	return r.LookupNetIP(ctx, "ip", host)
}

// Query says which values of a handle are wanted. Without indexes and types it is all of them.
type Query struct {
	Handle  string
	Indexes []uint32
	Types   []string // "X." stands for X and all types below it

	Trace func(Step) // is told every step; may be nil
}

// Answer is what a handle has.
type Answer struct {
	Handle string
	Values []hdl.Value

	// Certified says that the answer was signed, and all that led to it, from the keys on that the caller gave.
	Certified bool
	Server    string // address and port of the server that answered
}

// Step is one message and its answer, or another thing that was done.
type Step struct {
	Operation string `json:"operation,omitempty"` // resolve, site, ...
	Handle    string `json:"handle,omitempty"`
	Server    string `json:"server,omitempty"`    // address and port
	Transport string `json:"transport,omitempty"` // udp, tcp, http or https
	Response  uint32 `json:"response,omitempty"`  // the response code; 0: no answer
	Meaning   string `json:"meaning,omitempty"`   // of the response code
	Values    int    `json:"values,omitempty"`
	Certified bool   `json:"certified,omitempty"`
	Error     string `json:"error,omitempty"`
	Note      string `json:"note,omitempty"`
}

// Resolve returns the values of a handle that the public may read. The error is of Kind NotFound if there is no such handle
// or value; Unavailable if no server could answer; Conflict if an answer fails verification; Forbidden if the
// servers are at addresses that the client may not send to. With a [Failure] in it, it is what a server said.
func (c *Client) Resolve(ctx context.Context, q Query) (Answer, error) {
	if err := checkHandle(q.Handle); err != nil {
		return Answer{}, err
	}
	w := c.newWalk(q.Trace)
	return w.resolve(ctx, q)
}

// checkHandle refuses names that no server can have.
func checkHandle(handle string) error {
	if err := hdl.CheckHandle([]byte(handle)); err != nil {
		return refuse(stele.Invalid, "", "{cause}", err)
	}
	return nil
}

// resolve asks for values that the public may read.
func (w *walk) resolve(ctx context.Context, q Query) (Answer, error) {
	body := &hdl.ResolveRequest{Handle: []byte(q.Handle), Indexes: q.Indexes, Types: octets(q.Types)}
	got, err := w.run(ctx, q.Handle, false, func(ctx context.Context, s *server) (*reply, error) {
		return w.c.ask(ctx, w, s, &request{operation: hdl.Resolve, handle: q.Handle, flags: hdl.PublicOnly, body: body})
	})
	if err != nil {
		return Answer{}, err
	}
	return w.answer(q.Handle, got)
}

// answer reads the values of an answer.
func (w *walk) answer(handle string, got *reply) (Answer, error) {
	if got.code() != hdl.Success {
		return Answer{}, got.failure()
	}
	values, ok := got.body.(*hdl.ValuesBody)
	if !ok {
		return Answer{}, got.odd()
	}
	if !sameHandle(string(values.Handle), handle) {
		return Answer{}, refuse(stele.Conflict, "hdlclient.other-handle", "{server} answered about another handle than the one that was asked for", got.from)
	}
	list := make([]hdl.Value, len(values.Values))
	for i := range list {
		list[i] = copied(&values.Values[i])
	}
	return Answer{Handle: string(values.Handle), Values: list, Certified: got.certified && !w.unproven, Server: got.from}, nil
}

// copied returns a value that does not share the memory of a message.
func copied(v *hdl.Value) hdl.Value {
	next := *v
	next.Type, next.Data, next.References = slices.Clone(v.Type), slices.Clone(v.Data), slices.Clone(v.References)
	return next
}

// sameHandle compares handles, ASCII letters without case.
func sameHandle(a, b string) bool { return folded(a) == folded(b) }

// folded returns a handle with ASCII letters in upper case.
func folded(handle string) string {
	b := []byte(handle)
	for i, c := range b {
		if 'a' <= c && c <= 'z' {
			b[i] = c - 'a' + 'A'
		}
	}
	return string(b)
}

func octets(list []string) (out [][]byte) {
	for _, text := range list {
		out = append(out, []byte(text))
	}
	return out
}

// Site asks the server that a handle is at for its site. Nothing vouches for what it answers, unless the key of the
// server is known already.
func (c *Client) Site(ctx context.Context, trace func(Step)) (hdl.Site, error) {
	w := c.newWalk(trace)
	got, err := w.run(ctx, prefixMark, false, func(ctx context.Context, s *server) (*reply, error) {
		return c.askSite(ctx, w, s)
	})
	if err != nil {
		return hdl.Site{}, err
	}
	return got.site()
}

// askSite asks a server for its site.
func (c *Client) askSite(ctx context.Context, w *walk, s *server) (*reply, error) {
	return c.ask(ctx, w, s, &request{operation: hdl.GetSiteInfo, handle: "/", body: &hdl.HandleBody{Handle: []byte("/")}})
}

// site reads the site of an answer.
func (got *reply) site() (hdl.Site, error) {
	if got.code() != hdl.Success {
		return hdl.Site{}, got.failure()
	}
	body, ok := got.body.(hdl.SiteBody)
	if !ok {
		return hdl.Site{}, got.odd()
	}
	if len(body.Site) == 0 {
		return hdl.Site{}, refuse(stele.NotFound, "hdlclient.site-not-set-up", "{server} does not belong to a site yet; set it up first", got.from)
	}
	site, err := hdl.ParseSite(slices.Clone(body.Site))
	if err != nil {
		return hdl.Site{}, refuse(stele.Conflict, "hdlclient.site-unreadable", "{server} answered with a site that cannot be read: {cause}", got.from, err)
	}
	return site, nil
}
