package httpd

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"time"
)

// The head of a request of HTTP/2 is a HEADERS frame and any number of CONTINUATION
// frames (RFC 9113, section 6.10). net/http bounds their bytes, and neither their number
// nor their time: a client that sends empty ones without end keeps the server reading for
// as long as it likes. So a connection is watched, and closed if the head of a request
// takes longer than that of HTTP/1 may.

// Names under which net/http keeps what serves HTTP/2. The second takes any connection after
// its preface was read; it is meant for connections without TLS, and a connection that was
// decrypted already is like one.
const (
	overTLS   = "h2"
	decrypted = "unencrypted_http2"
)

// preface is what a client of HTTP/2 sends first (RFC 9113, section 3.4).
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// watchHeads makes a server watch its connections of HTTP/2, before it serves the first
// connection: from then on net/http reads TLSNextProto.
func watchHeads(s *http.Server) {
	// net/http sets up HTTP/2 when it begins to serve. It ends at once, without a connection
	// or without a certificate.
	_ = s.ServeTLS(unready{}, "", "")
	serve := s.TLSNextProto[decrypted]
	if s.TLSNextProto[overTLS] == nil || serve == nil {
		return // a test would find it
	}
	s.TLSNextProto[overTLS] = func(hs *http.Server, c *tls.Conn, h http.Handler) {
		w := &heads{Conn: c, timeout: hs.ReadHeaderTimeout}
		if !w.begin() {
			_ = c.Close() // it does not speak HTTP/2
			return
		}
		serve(hs, tls.Client(handed{Conn: c, watched: w}, nil), h)
	}
}

// handed is how net/http is handed a connection that is not a [tls.Conn].
type handed struct {
	net.Conn
	watched net.Conn
}

// UnencryptedNetConn is what net/http asks for.
func (h handed) UnencryptedNetConn() net.Conn { return h.watched }

// heads is a connection of HTTP/2 that watches the frames as they are read. One goroutine
// reads at a time.
type heads struct {
	*tls.Conn
	timeout time.Duration

	frame  [9]byte // the head of the present frame
	have   int     // bytes of it
	left   int     // bytes of its payload that are to come
	inside bool    // of the head of a request
	timer  *time.Timer
}

// Types and flags of frames (RFC 9113, section 6).
const (
	headersFrame      = 1
	continuationFrame = 9
	endHeaders        = 4
)

// begin reads the preface, in no more time than the head of a request may take.
func (c *heads) begin() bool {
	c.start()
	defer c.stop()
	var got [len(preface)]byte
	_, err := io.ReadFull(c.Conn, got[:])
	return err == nil && string(got[:]) == preface
}

// Read implements [net.Conn].
func (c *heads) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.see(b[:n])
	switch {
	case err != nil:
		c.stop()
	case c.inside && c.timer == nil:
		c.start()
	}
	return n, err
}

// see follows the frames.
func (c *heads) see(b []byte) {
	for len(b) > 0 {
		if c.have < len(c.frame) {
			n := copy(c.frame[c.have:], b)
			b, c.have = b[n:], c.have+n
			if c.have < len(c.frame) {
				return
			}
			c.left = int(c.frame[0])<<16 | int(c.frame[1])<<8 | int(c.frame[2])
			c.inside = c.inside || c.frame[3] == headersFrame
		}
		n := min(c.left, len(b))
		b, c.left = b[n:], c.left-n
		if c.left > 0 {
			return
		}
		c.have = 0
		if kind, flags := c.frame[3], c.frame[4]; (kind == headersFrame || kind == continuationFrame) && flags&endHeaders != 0 {
			c.inside = false
			c.stop()
		}
	}
}

func (c *heads) start() {
	if c.timeout > 0 {
		// Without a goodbye: the client has had its time.
		c.timer = time.AfterFunc(c.timeout, func() { _ = c.NetConn().Close() })
	}
}

func (c *heads) stop() {
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
}

// unready is a listener without connections.
type unready struct{ net.Listener }

func (unready) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (unready) Close() error              { return nil }
func (unready) Addr() net.Addr            { return &net.TCPAddr{} }
