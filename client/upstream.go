package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"sync"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/internal/endpoint"
)

// upstream is a name server, and the connections to it that are kept.
type upstream struct {
	server NameServer
	tls    *tls.Config     // of one that speaks TLS
	https  *http.Transport // of one that speaks HTTPS

	// dialing is filled while a goroutine opens a connection: the others wait for it.
	dialing chan struct{}
	mu      sync.Mutex
	line    *line // nil: there is none
	closed  bool
}

// newUpstreams makes the name servers of a way.
func newUpstreams(o *DNSOptions) (list []*upstream) {
	for _, s := range o.Servers {
		u := &upstream{server: s}
		switch s.transport() {
		case netTLS:
			u.tls, u.dialing = s.tls(o.RootCAs, o.Now), make(chan struct{}, 1)
		case netHTTPS:
			u.https = newSecureTransport(o)
		}
		list = append(list, u)
	}
	return list
}

// exchange sends a message and returns the answer to it. An error that will be the same
// the next time is a refusal.
func (u *upstream) exchange(ctx context.Context, transport string, m *dns.Msg) (reply *dns.Msg, err error) {
	switch transport {
	case netTLS:
		reply, err = u.exchangeTLS(ctx, m)
	case netHTTPS:
		reply, err = u.exchangeHTTPS(ctx, m)
	default:
		reply, err = exchangePlain(ctx, transport, u.server.addr, m)
	}
	if err != nil {
		return nil, asStranger(endpoint.Timely(ctx, err))
	}
	return reply, nil
}

// asStranger turns the error of a server that fails authentication into a refusal. The
// client has sent it no question, and asks no other server in clear instead.
func asStranger(err error) error {
	_, unverified := errors.AsType[*tls.CertificateVerificationError](err)
	_, unnamed := errors.AsType[x509.HostnameError](err)
	if unverified || unnamed || errors.Is(err, errPin) {
		return refusal{stele.Messagef("dns.wrong-server", "this is not the server that was meant: {cause}", err)}
	}
	return err
}

// exchangeTLS asks over a connection that may be in use already. If it ends before the
// answer, which a server may do at any time with one that is idle (RFC 7766, section
// 6.2.4), a new one is opened.
func (u *upstream) exchangeTLS(ctx context.Context, m *dns.Msg) (*dns.Msg, error) {
	for {
		l, fresh, err := u.connect(ctx)
		if err != nil {
			return nil, err
		}
		reply, err := l.exchange(ctx, m)
		if err == nil || fresh || ctx.Err() != nil || !l.isOver() {
			return reply, err
		}
	}
}

// connect returns a connection, and whether it is new.
func (u *upstream) connect(ctx context.Context) (l *line, fresh bool, err error) {
	select {
	case u.dialing <- struct{}{}:
		defer func() { <-u.dialing }()
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	if l := u.open(); l != nil {
		return l, false, nil
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", u.server.at)
	if err != nil {
		return nil, false, err
	}
	secure := tls.Client(conn, u.tls)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, false, err
	}
	l = newLine(secure)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		l.end(net.ErrClosed)
		return nil, false, net.ErrClosed
	}
	u.line = l
	return l, true, nil
}

// open returns the present connection, or nil if there is none that can be used.
func (u *upstream) open() *line {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.line != nil && u.line.isUsable() {
		return u.line
	}
	return nil
}

// close closes the connections.
func (u *upstream) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	if u.line != nil {
		u.line.end(net.ErrClosed)
		u.line.gone.Wait()
	}
	if u.https != nil {
		u.https.CloseIdleConnections()
	}
}
