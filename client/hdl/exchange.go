package hdlclient

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/internal/endpoint"
	"github.com/stele-id/stele/wire/hdl"
)

// errEnough says that the caller wants no more messages of an answer.
const errEnough = mark("enough")

// exchange is a request over one interface, and its answer.
type exchange struct {
	c    *Client
	at   netip.AddrPort
	pack func() ([]byte, error) // the request, anew for each repeat

	// take is handed each message of the answer, and says whether another one follows.
	take func(raw []byte) (more bool, err error)

	sent bool // the server may have the request
}

// connect opens a connection or a socket, which ends with the context.
func (x *exchange) connect(ctx context.Context, network string) (net.Conn, func(), error) {
	dialer := net.Dialer{Timeout: x.c.o.Timeout}
	conn, err := dialer.DialContext(ctx, network, x.at.String())
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { end(conn) })
	return conn, func() { stop(); _ = conn.Close() }, nil
}

// end makes all calls on a connection return: its time is over.
func end(conn net.Conn) { _ = conn.SetDeadline(time.Unix(1, 0)) }

// maxStrays is how many datagrams are looked at that are not part of the answer.
const maxStrays = 1000

// overUDP sends the request in datagrams, again if no answer comes, and puts the datagrams of the answer together.
func (x *exchange) overUDP(ctx context.Context) error {
	conn, closed, err := x.connect(ctx, "udp")
	if err != nil {
		return err
	}
	defer closed()
	parts := hdl.NewCollector(hdl.Limits{Messages: 8, Octets: 4 * hdl.MaxMessage, Lifetime: time.Hour})
	for _, wait := range x.c.o.Resends {
		message, err := x.pack()
		if err != nil {
			return err
		}
		for datagram := range hdl.Datagrams(message, true) {
			if _, err := conn.Write(datagram); err != nil {
				return err
			}
		}
		x.sent = true
		if done, err := x.receive(ctx, conn, parts, wait); done {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := conn.SetDeadline(time.Time{}); err != nil {
			return err
		}
	}
	return endpoint.ErrNoAnswer
}

// receive waits for the answer for a while. It reports whether there is no more to wait for.
func (x *exchange) receive(ctx context.Context, conn net.Conn, parts *hdl.Collector, wait time.Duration) (done bool, err error) {
	over := time.AfterFunc(wait, func() { end(conn) })
	defer over.Stop()
	buffer := make([]byte, hdl.MaxDatagram+1)
	for range maxStrays {
		n, err := conn.Read(buffer)
		if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() && ctx.Err() == nil {
			return false, nil
		}
		if err != nil {
			return true, err // perhaps no server listens there
		}
		message, err := parts.Add(time.Time{}, x.at, buffer[:n])
		if err != nil || message == nil {
			continue
		}
		if _, err = x.take(message); !errors.Is(err, errStray) {
			return true, err
		}
	}
	return true, stele.Messagef("hdlclient.strays", "too many messages came that do not answer the request")
}

// overTCP sends the request over a connection. The server closes it after its answer.
func (x *exchange) overTCP(ctx context.Context) error {
	conn, closed, err := x.connect(ctx, "tcp")
	if err != nil {
		return err
	}
	defer closed()
	message, err := x.pack()
	if err != nil {
		return err
	}
	over := time.AfterFunc(x.c.o.Timeout, func() { end(conn) })
	defer over.Stop()
	x.sent = true
	if _, err := conn.Write(message); err != nil {
		return err
	}
	return x.readAll(conn, func() { over.Reset(x.c.o.Timeout) })
}

// maxMessages is how many messages an answer may have: those of 10 million names.
const maxMessages = 200_000

// readAll reads the messages of an answer. It calls next before each further one.
func (x *exchange) readAll(r io.Reader, next func()) error {
	for range maxMessages {
		message, err := hdl.ReadMessage(r)
		if err != nil {
			return err
		}
		more, err := x.take(message)
		if errors.Is(err, errStray) {
			return odd(x.at, err)
		}
		if err != nil || !more {
			return err
		}
		next()
	}
	return stele.Messagef("hdlclient.answer-endless", "the answer has more than {most} messages", maxMessages)
}

// mediaType is that of messages in HTTP.
const mediaType = "application/x-hdl-message"

// overHTTP sends the request through HTTP (section 1 of the specification). It follows no redirects.
func (x *exchange) overHTTP(ctx context.Context, s *server, handle string, secure bool) error {
	message, err := x.pack()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	over := time.AfterFunc(x.c.o.Timeout, cancel)
	defer over.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, x.url(s, handle), bytes.NewReader(message))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", mediaType)
	req.Header.Set("User-Agent", endpoint.UserAgent)
	var dialer net.Dialer
	transport := endpoint.NewTransport()
	transport.DisableKeepAlives = true
	transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, "tcp", x.at.String())
		x.sent = x.sent || err == nil
		return conn, err
	}
	if secure {
		transport.TLSClientConfig = &tls.Config{RootCAs: x.c.o.RootCAs, MinVersion: tls.VersionTLS12, Time: x.c.o.Now}
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return late(over, endpoint.WithoutURL(err))
	}
	defer resp.Body.Close()
	media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode != http.StatusOK || err != nil || media != mediaType {
		return refuse(stele.Unavailable, "hdlclient.not-a-tunnel", "{server} does not speak the Handle protocol in HTTP (status {status})", x.at, resp.StatusCode)
	}
	return late(over, x.readAll(resp.Body, func() { over.Reset(x.c.o.Timeout) }))
}

// late returns the error of an answer that came too late, if that is what an error is.
func late(over *time.Timer, err error) error {
	if errors.Is(err, context.Canceled) && !over.Stop() {
		return endpoint.ErrNoAnswer
	}
	return err
}

// url returns where a message about a handle is posted.
func (x *exchange) url(s *server, handle string) string {
	base := s.tunnel
	if base == "" {
		base = "http://" + x.at.String() + "/"
	}
	return base + url.PathEscape(handle)
}
