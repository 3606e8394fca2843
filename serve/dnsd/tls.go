package dnsd

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/stele-id/stele"
)

// ListenTLS opens an address, such as ":853", for DNS over TLS (RFC 7858), and answers
// there as [Server.Listen] does. The configuration has the certificates. Connections
// count with those for TCP, and have the same limits.
func (s *Server) ListenTLS(ctx context.Context, addr string, config *tls.Config) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return &stele.Error{Op: "serve DNS over TLS", Kind: stele.Unavailable, Err: err}
	}
	if !s.startTLS(l, forDNS(config)) {
		_ = l.Close()
		return &stele.Error{Op: "serve DNS over TLS", Kind: stele.Unavailable, Err: stele.Messagef("dns.name-server-shut-down", "the name server was shut down")}
	}
	context.AfterFunc(ctx, s.stop)
	return nil
}

// forDNS returns a configuration for connections on which there is nothing but the DNS
// (RFC 7858, section 7), without what is older than RFC 8310, section 9, allows.
func forDNS(config *tls.Config) *tls.Config {
	c := config.Clone()
	c.NextProtos = []string{"dot"}
	c.MinVersion = max(c.MinVersion, tls.VersionTLS12)
	return c
}

func (s *Server) startTLS(l net.Listener, config *tls.Config) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if a, ok := l.Addr().(*net.TCPAddr); ok {
		s.tlsAddrs = append(s.tlsAddrs, a.AddrPort())
	}
	s.stops = append(s.stops, func() { _ = l.Close() })
	s.running.Go(func() {
		s.accept(l, s.tls, func(c net.Conn, at *place) { s.serveTLS(c, at, config) })
	})
	return true
}

// AddrTLS is the first address that is open for TLS, with its port; the zero AddrPort
// if there is none.
func (s *Server) AddrTLS() netip.AddrPort { return firstAddr(s.AddrsTLS()) }

// AddrsTLS are the addresses that are open for TLS, with their ports, in the order in
// which they were opened.
func (s *Server) AddrsTLS() []netip.AddrPort {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.tlsAddrs)
}

// serveTLS answers what comes over a connection, once it is agreed how it is encrypted.
// That may take as long as a message.
func (s *Server) serveTLS(c net.Conn, at *place, config *tls.Config) {
	secure := tls.Server(c, config)
	if err := c.SetDeadline(s.o.Now().Add(s.o.TCP.Message)); err != nil || s.clients.stopping() {
		return
	}
	if secure.HandshakeContext(s.base) != nil {
		return // the client speaks another protocol, or is a scanner
	}
	if err := c.SetDeadline(time.Time{}); err != nil {
		return
	}
	s.serveTCP(secure, at, peer{addr: at.from, tcp: true, private: true}, s.tls)
	_ = secure.Close() // the client may be gone
}

// padTo is the block length of encrypted answers: each is padded to a multiple of it (RFC
// 8467, section 4.1), so that the length does not tell an observer which answer it is.
const padTo = 468

// paddingSize returns how many bytes the padding option of an answer takes, with its head,
// if the answer has so many without it; 0 if there is none. Only a client that pads gets
// padding, and only over an encrypted transport (RFC 7830, sections 4 and 6).
func (w *worker) paddingSize(n int) int {
	if !w.private || !w.q.padded || n+4 > maxMessage {
		return 0
	}
	whole := (n + 4 + padTo - 1) / padTo * padTo
	return min(whole, maxMessage) - n
}

// appendPadding appends a padding option of so many bytes, with its head. It must be the
// last one.
func appendPadding(dst []byte, size int) []byte {
	if size == 0 {
		return dst
	}
	dst = binary.BigEndian.AppendUint16(dst, optionPadding)
	dst = binary.BigEndian.AppendUint16(dst, uint16(size-4))
	return append(dst, make([]byte, size-4)...)
}
