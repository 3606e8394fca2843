package hdld

import (
	"bytes"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/stele-id/stele/internal/limit"
	"github.com/stele-id/stele/wire/hdl"
)

// accept takes connections until the listener is closed.
func (s *Server) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if isClosed(err) || err != nil && s.stopped() {
			return
		}
		if err != nil { // too many files are open, perhaps
			s.o.Log.Warn("a connection could not be accepted", "protocol", "handle", "err", err)
			s.pause()
			continue
		}
		from := c.RemoteAddr().(*net.TCPAddr).AddrPort()
		from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
		network := limit.Network(from.Addr())
		if !s.clients.admit(c, network) {
			s.stats.turned.Add(1)
			_ = c.Close()
			continue
		}
		s.running.Go(func() {
			s.converse(c, from)
			_ = c.Close()
			s.clients.leave(c, network)
		})
	}
}

// buffers are the memory of a connection.
type buffers struct{ in, out []byte }

// firstRead is how many octets of a connection are read at first: most requests are shorter.
const firstRead = 4 << 10

// converse answers the one request of a connection (section 1: the server closes after the response).
func (s *Server) converse(c net.Conn, from netip.AddrPort) {
	now := s.o.Now()
	if err := c.SetReadDeadline(now.Add(s.o.Limits.Request)); err != nil {
		return
	}
	b := s.buffers.Get().(*buffers)
	request, err := readRequest(c, b.in)
	if err != nil {
		if _, ok := err.(*hdl.Error); !ok {
			return // it ended, or took too long
		}
	}
	s.stats.tcp.Add(1)
	write := func(message []byte) error {
		if err := c.SetWriteDeadline(s.o.Now().Add(s.o.Limits.Write)); err != nil {
			return err
		}
		_, err := c.Write(message)
		return err
	}
	if err != nil {
		if write(s.unreadable(err)) == nil {
			s.linger(c)
		}
		return
	}
	s.notice(request, from.Addr(), now)
	if answer, ok := s.known(b.out[:0], request, now); ok {
		_ = write(answer) // a client that is gone does not need it
		b.out = answer
		s.buffers.Put(b)
		return
	}
	if !s.work(s.base, &call{raw: request, from: from, via: viaTCP, send: write}) {
		s.linger(c)
	}
}

// readRequest reads a request, into the buffer if it has room for it.
func readRequest(c net.Conn, buffer []byte) ([]byte, error) {
	n, err := c.Read(buffer)
	if err != nil {
		return nil, err
	}
	if n >= hdl.EnvelopeSize {
		e, err := hdl.ParseEnvelope(buffer[:n])
		if err != nil {
			return nil, err
		}
		if all := hdl.EnvelopeSize + int(e.Length); all <= n {
			return buffer[:all], nil
		}
	}
	return hdl.ReadMessage(io.MultiReader(bytes.NewReader(buffer[:n]), c))
}

// linger lets the client read the answer before the connection ends: what it still sends would make the system
// break the connection off, and the answer with it.
func (s *Server) linger(c net.Conn) {
	const most, patience = 64 << 10, time.Second
	half, ok := c.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || c.SetReadDeadline(s.o.Now().Add(patience)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, c, most)
}

// clients are the connections that are open, by client.
type clients struct {
	most, each int

	mu    sync.Mutex
	open  map[net.Conn]struct{}
	count map[netip.Addr]int // by network
}

// admit takes a connection, unless there are too many.
func (l *clients) admit(c net.Conn, network netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open, l.count = make(map[net.Conn]struct{}), make(map[netip.Addr]int)
	}
	if len(l.open) >= l.most || l.count[network] >= l.each {
		return false
	}
	l.open[c] = struct{}{}
	l.count[network]++
	return true
}

// leave forgets a connection.
func (l *clients) leave(c net.Conn, network netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
	if l.count[network]--; l.count[network] == 0 {
		delete(l.count, network)
	}
}

// closeAll closes all connections.
func (l *clients) closeAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		_ = c.Close()
	}
}
