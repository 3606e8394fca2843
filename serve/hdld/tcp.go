package hdld

import (
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
		leave, ok := s.clients.admit(c, from.Addr())
		if !ok {
			s.stats.turned.Add(1)
			_ = c.Close()
			continue
		}
		s.running.Go(func() {
			defer leave()
			defer c.Close()
			s.converse(c, from)
		})
	}
}

// converse answers the one request of a connection (section 1: the server closes after the response).
func (s *Server) converse(c net.Conn, from netip.AddrPort) {
	if err := c.SetReadDeadline(s.o.Now().Add(s.o.Limits.Request)); err != nil {
		return
	}
	request, err := hdl.ReadMessage(c)
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
	if !s.answer(s.base, &call{raw: request, from: from, via: viaTCP, send: write}) {
		s.linger(c)
	}
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
	open  map[net.Conn]bool
	count map[string]int
}

// admit takes a connection, unless there are too many.
func (l *clients) admit(c net.Conn, from netip.Addr) (leave func(), ok bool) {
	who := limit.Client(from)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open, l.count = make(map[net.Conn]bool), make(map[string]int)
	}
	if len(l.open) >= l.most || l.count[who] >= l.each {
		return nil, false
	}
	l.open[c] = true
	l.count[who]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.open, c)
		if l.count[who]--; l.count[who] == 0 {
			delete(l.count, who)
		}
	}, true
}

// closeAll closes all connections.
func (l *clients) closeAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		_ = c.Close()
	}
}
