package dnsd

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
)

// accept takes connections until the listener is closed, and has them served. The tally
// counts them.
func (s *Server) accept(l net.Listener, t *tally, serve func(c net.Conn, at *place)) {
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) || err != nil && s.stopped() {
			return
		}
		if err != nil { // too many files are open, perhaps
			s.sockets.log(s.o.Log, s.o.Now(), "network", "tcp", "err", err)
			s.pause()
			continue
		}
		if from := addrOf(c.RemoteAddr()); s.isProxy(from) {
			s.running.Go(func() { s.acceptProxied(c, from, t, serve) })
		} else {
			s.welcome(c, from, t, serve)
		}
	}
}

// welcome has a connection served, if there is a place for it.
func (s *Server) welcome(c net.Conn, from netip.Addr, t *tally, serve func(c net.Conn, at *place)) {
	at := s.clients.admit(c, from)
	if at == nil {
		t.refused.Add(1)
		c.Close()
		return
	}
	t.connections.Add(1)
	s.running.Go(func() {
		defer s.clients.leave(at)
		defer c.Close()
		serve(c, at)
	})
}

// acceptProxied reads the client's address from a proxy, and takes the connection as that
// client's. The server does not limit connections that wait for a header: it trusts
// proxies.
func (s *Server) acceptProxied(c net.Conn, proxy netip.Addr, t *tally, serve func(c net.Conn, at *place)) {
	from, err := netip.Addr{}, c.SetReadDeadline(s.o.Now().Add(s.o.TCP.Message))
	if err == nil {
		from, err = readProxied(c, proxy)
	}
	if err != nil {
		t.refused.Add(1)
		s.unproxied.log(s.o.Log, s.o.Now(), "from", proxy, "err", err)
		c.Close()
		return
	}
	s.welcome(c, from, t, serve)
}

// pause waits a moment before something that failed is tried again.
func (s *Server) pause() {
	select {
	case <-time.After(50 * time.Millisecond):
	case <-s.base.Done():
	}
}

// addrOf returns the address of a peer, IPv4 in four bytes.
func addrOf(a net.Addr) netip.Addr {
	if t, ok := a.(*net.TCPAddr); ok {
		return t.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// Sizes of a connection's buffers.
const (
	tcpRead  = 4 << 10
	tcpFlush = 16 << 10 // answers are written when there are so many bytes of them
)

// stream is a connection: messages with their lengths in front (RFC 1035, section
// 4.2.2). Clients may send questions without waiting for answers, which come in the
// same order and, when several questions came at once, at once (RFC 7766, section
// 6.2.1).
type stream struct {
	s   *Server
	c   net.Conn
	r   *bufio.Reader
	out []byte    // answers that are not written yet
	end time.Time // of the connection at the latest
}

// serveTCP answers what comes over a connection, until it ends, is idle for too long,
// or is not DNS.
func (s *Server) serveTCP(c net.Conn, at *place, from peer, count *tally) {
	t := &stream{s: s, c: c, r: bufio.NewReaderSize(c, tcpRead), end: s.o.Now().Add(s.o.TCP.Total)}
	w := s.newWorker(s.base, count)
	var msg, answer []byte
	for {
		var err error
		at.rests()
		if msg, err = t.read(msg); err != nil {
			break
		}
		at.asks(s.o.Now())
		from.idle = s.clients.idle()
		if w.q.read(msg) == dns.RcodeSuccess && w.q.isTransfer() {
			if t.transfer(w, msg, from, s.o.Now()) != nil {
				break
			}
			continue
		}
		answer = w.respond(answer, msg, from, s.o.Now())
		if answer == nil {
			break // RFC 7766, section 7: such a client is better cut off
		}
		t.out = binary.BigEndian.AppendUint16(t.out, uint16(len(answer)))
		t.out = append(t.out, answer...)
	}
	_ = t.flush() // the client may be gone
}

var errNoMessage = stele.Messagef("dns.message-malformed", "this is not a message of the DNS")

// read reads the next message into buf, after writing what would keep the client
// waiting.
func (t *stream) read(buf []byte) ([]byte, error) {
	if t.r.Buffered() < 2 {
		if err := t.wait(t.s.clients.idle()); err != nil {
			return buf, err
		}
	}
	head, err := t.r.Peek(2)
	if err != nil {
		return buf, err
	}
	n := int(binary.BigEndian.Uint16(head))
	if n < headerSize {
		return buf, errNoMessage
	}
	if t.r.Buffered() < 2+n || len(t.out) > tcpFlush {
		if err := t.wait(t.s.o.TCP.Message); err != nil {
			return buf, err
		}
	}
	if _, err := t.r.Discard(2); err != nil {
		return buf, err
	}
	buf = slices.Grow(buf[:0], n)[:n]
	_, err = io.ReadFull(t.r, buf)
	return buf, err
}

// wait writes the answers there are, and lets the next read take so long. It fails if
// the server is stopping: what was read is answered then, and no more.
func (t *stream) wait(most time.Duration) error {
	if err := t.flush(); err != nil {
		return err
	}
	until := t.s.o.Now().Add(most)
	if until.After(t.end) {
		until = t.end
	}
	if err := t.c.SetReadDeadline(until); err != nil {
		return err
	}
	if t.s.clients.stopping() {
		return net.ErrClosed
	}
	return nil
}

// flush writes the answers there are. A client that does not take them in time is cut
// off.
func (t *stream) flush() error {
	if len(t.out) == 0 {
		return nil
	}
	if err := t.c.SetWriteDeadline(t.s.o.Now().Add(t.s.o.TCP.Message)); err != nil {
		return err
	}
	_, err := t.c.Write(t.out)
	t.out = t.out[:0]
	return err
}
