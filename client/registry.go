package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
)

// RegistryOptions are what a Registry needs to know. Schemes must be set; the rest may
// be left as it is.
type RegistryOptions struct {
	Schemes *stele.Schemes // that read identifiers; see package scheme/all

	// Roots are the authorities whose certificates are believed; the system's if nil.
	Roots *x509.CertPool

	// PlainHTTP lets the token go to another machine in the clear, where everybody on
	// the way can read it. Without it the server must speak HTTPS, or be on this
	// machine.
	PlainHTTP bool

	// Timeout is how long one request may take, and how long a stream may stand still;
	// 60 s if 0.
	Timeout time.Duration

	// Patience is how long a call waits, all in all, before it tries again: for a
	// server that does not answer, is busy, or says when to come again. 15 s if 0; if it
	// is negative nothing is tried again.
	Patience time.Duration

	// Rand makes the keys by which a server knows a request that comes again;
	// crypto/rand's Reader if nil.
	Rand io.Reader

	// Transport sends requests; one of its own if nil.
	Transport http.RoundTripper
}

// ErrInTheClear says that a token would be sent so that others can read it, and
// ErrUntrusted that nobody vouches for a server whom this machine believes.
var (
	ErrInTheClear = errors.New("everybody on the way could read the token")
	ErrUntrusted  = errors.New("the server's certificate is signed by no authority that this machine trusts")
)

// Registry is a registry behind a server that speaks the HTTP API. Its methods have
// the names, signatures and obligations of a registrar's, and their errors are the same
// in kind and text: what a program does with a registry in a folder it does with this
// one. Who acts is who has the token, whatever the context says.
//
// What one call has written the next one sees, whichever of several servers answers.
//
// A call that meets a failure of the network, or a server that is busy, is tried again
// where that can't do anything twice. It is used by many goroutines at once.
type Registry struct {
	o     RegistryOptions
	base  string // of the API: https://id.example.org/api/v1
	site  string // of the server: https://id.example.org
	token string
	own   *http.Transport // nil if one was given

	version atomic.Pointer[stele.Position] // the latest state that an answer told of; nil: none did
	mark    atomic.Pointer[string]         // what entity tags have behind the number of a version; nil: none was seen
}

// NewRegistry makes a registry behind a server, https://id.example.org, for whoever
// has the token; without one it is the public who asks. It asks nobody yet.
func NewRegistry(server, token string, o RegistryOptions) (*Registry, error) {
	if o.Schemes == nil {
		return nil, unfit("there are no schemes to read identifiers")
	}
	p, err := parseBase(server)
	if err == nil {
		err = plainURL(server)
	}
	if err != nil {
		return nil, unfit("%.200q is no server: %w; write https://id.example.org", server, err)
	}
	if token != "" && !p.secure && !o.PlainHTTP && !isLoopback(p.host) {
		return nil, unfit("%w: it is for %s; use https", ErrInTheClear, p.hostport())
	}
	if !isTokenText(token) {
		return nil, unfit("the token has characters that none has; take it as it was printed")
	}
	o.Timeout = cmp.Or(o.Timeout, 60*time.Second)
	o.Patience = cmp.Or(o.Patience, 15*time.Second)
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	r := &Registry{o: o, site: p.url(""), base: p.url("/api/v1"), token: token}
	if o.Transport == nil {
		r.own = registryTransport(o)
		r.o.Transport = r.own
	}
	return r, nil
}

// registryTransport keeps connections, since one verb may send many requests.
func registryTransport(o RegistryOptions) *http.Transport {
	t := newTransport()
	t.Proxy = http.ProxyFromEnvironment
	t.DialContext = (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	t.TLSHandshakeTimeout = 10 * time.Second
	t.TLSClientConfig = &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12}
	t.ForceAttemptHTTP2 = true
	t.MaxIdleConnsPerHost, t.IdleConnTimeout = 16, 60*time.Second
	return t
}

// Close closes connections that nobody uses.
func (r *Registry) Close() {
	if r.own != nil {
		r.own.CloseIdleConnections()
	}
}

// Schemes returns those that read identifiers.
func (r *Registry) Schemes() *stele.Schemes { return r.o.Schemes }

// String returns the server's address.
func (r *Registry) String() string { return r.site }

// unfit says that no registry can be made like this.
func unfit(format string, args ...any) error {
	return &stele.Error{Op: "open", Kind: stele.Invalid, Err: fmt.Errorf(format, args...)}
}

// plainURL makes sure that nothing of the server's URL would be lost.
func plainURL(server string) error {
	u, err := url.Parse(server)
	if err != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return errors.New("the URL ends in a query or a fragment")
	}
	return nil
}

// isLoopback reports whether a host is this machine.
func isLoopback(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") { // RFC 6761, section 6.3
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// isTokenText reports whether a text can stand in a header.
func isTokenText(token string) bool {
	for i := range len(token) {
		if token[i] <= ' ' || token[i] > '~' {
			return false
		}
	}
	return len(token) <= 1024
}

// wait waits, or ends with the context.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
