// Package remote is the client of the HTTP API: a [Registry] reads and writes the registry
// of a server, with the methods of a registrar.
//
// The server may be malicious or broken: sizes and times are bounded, the token is sent to
// this server only, and an answer that does not have the form of the API is an error. The
// package has no clock, and no randomness except idempotency keys.
package remote

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/internal/endpoint"
)

// Options are the settings of a Registry. Schemes is required.
type Options struct {
	Schemes *stele.Schemes // that read identifiers; see package scheme/all

	// Roots are the trusted certificate authorities; those of the system if nil.
	Roots *x509.CertPool

	// PlainHTTP allows sending the token to another machine without TLS, where every
	// machine between can read it. Without it the server must speak HTTPS, or be on this
	// machine.
	PlainHTTP bool

	// Timeout is how long one request may take, and how long a stream may be idle; 60 s
	// if 0.
	Timeout time.Duration

	// Patience is how long a call waits in total between retries: for a server that does
	// not answer, is busy, or sends Retry-After. 15 s if 0; a negative value turns retries
	// off.
	Patience time.Duration

	// Rand is the source of idempotency keys; crypto/rand's Reader if nil.
	Rand io.Reader

	// Transport sends requests; the Registry makes one if nil.
	Transport http.RoundTripper
}

// ErrInTheClear says that the token would be sent without TLS, and ErrUntrusted that no
// trusted authority has signed the server's certificate.
var (
	ErrInTheClear = stele.Messagef("api.token-in-clear", "every machine on the path could read the token")
	ErrUntrusted  = stele.Messagef("fetch.certificate-untrusted", "the server's certificate is signed by no authority that this machine trusts")
)

// Registry is a registry that a server offers over the HTTP API. Its methods have the
// names, signatures and obligations of a registrar's, and their errors are the same in
// kind and text: a program uses it as it uses a registry in a folder. The user of the
// token acts, whatever principal the context has.
//
// A call sees what earlier calls have written, whichever of several servers answers.
//
// A Registry retries a request after a failure of the network, or when the server is busy,
// if the server cannot do it twice. Many goroutines may use a Registry at once.
type Registry struct {
	o     Options
	base  string // of the API: https://id.example.org/api/v1
	site  string // of the server: https://id.example.org
	token string
	own   *http.Transport // nil if one was given

	private bool // only the server can read what is sent to it

	version atomic.Pointer[stele.Position] // the latest state that an answer named; nil: none did
	mark    atomic.Pointer[string]         // the part of entity tags after the number of the version; nil: none was seen
}

// New returns the registry of a server, https://id.example.org, for the user of the token;
// without a token the server answers as it answers the public. New sends nothing.
func New(server, token string, o Options) (*Registry, error) {
	if o.Schemes == nil {
		return nil, unfit("api.schemes-missing", "there are no schemes to read identifiers")
	}
	p, err := parseServer(server)
	if err != nil {
		return nil, err
	}
	if err := checkToken(token, p, o.PlainHTTP); err != nil {
		return nil, err
	}
	o.Timeout = cmp.Or(o.Timeout, 60*time.Second)
	o.Patience = cmp.Or(o.Patience, 15*time.Second)
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	r := &Registry{o: o, private: isPrivate(p), site: p.URL(""), base: p.URL("/api/v1"), token: token}
	if o.Transport == nil {
		r.own = newTransport(o)
		r.o.Transport = r.own
	}
	return r, nil
}

// newTransport returns a transport that keeps connections, since one command may send many
// requests.
func newTransport(o Options) *http.Transport {
	t := endpoint.NewTransport()
	t.Proxy = http.ProxyFromEnvironment
	t.DialContext = (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	t.TLSHandshakeTimeout = 10 * time.Second
	t.TLSClientConfig = &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12}
	t.ForceAttemptHTTP2 = true
	t.MaxIdleConnsPerHost, t.IdleConnTimeout = 16, 60*time.Second
	return t
}

// Close closes idle connections.
func (r *Registry) Close() {
	if r.own != nil {
		r.own.CloseIdleConnections()
	}
}

// Schemes returns the schemes that read identifiers.
func (r *Registry) Schemes() *stele.Schemes { return r.o.Schemes }

// String returns the server's address.
func (r *Registry) String() string { return r.site }

// unfit returns the error of settings or requests that cannot be used.
func unfit(code, text string, args ...any) error {
	return &stele.Error{Op: "open", Kind: stele.Invalid, Err: stele.Messagef(code, text, args...)}
}

// plainURL refuses a URL with parts that the client would drop.
func plainURL(server string) error {
	u, err := url.Parse(server)
	if err != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return stele.Messagef("server.url-has-query", "the URL ends in a query or a fragment")
	}
	return nil
}

// IsPrivate reports whether what is sent to a server can be read by it alone: over https, or on this machine.
func IsPrivate(server string) bool {
	p, err := endpoint.Parse(server)
	return err == nil && isPrivate(p)
}

func isPrivate(p endpoint.Endpoint) bool { return p.Secure || isLoopback(p.Host) }

func parseServer(server string) (endpoint.Endpoint, error) {
	p, err := endpoint.Parse(server)
	if err == nil {
		err = plainURL(server)
	}
	if err != nil {
		return p, unfit("api.server-invalid", `"{server}" is not a server: {cause}; write https://id.example.org`, server, err)
	}
	return p, nil
}

// CheckToken returns why a token can't be sent to a server, as New does: it is not the text of a token, or every machine on the path
// could read it, which plainHTTP allows.
func CheckToken(token, server string, plainHTTP bool) error {
	p, err := parseServer(server)
	if err != nil {
		return err
	}
	return checkToken(token, p, plainHTTP)
}

func checkToken(token string, p endpoint.Endpoint, plainHTTP bool) error {
	if token != "" && !p.Secure && !plainHTTP && !isLoopback(p.Host) {
		return unfit("api.token-in-clear-for", "{cause}: it is for {server}; use https", ErrInTheClear, p.HostPort())
	}
	if !isTokenText(token) {
		return unfit("token.characters-invalid", "the token has characters that tokens do not have; copy it as it was printed")
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

// isTokenText reports whether a text can be sent as a token in a header.
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
