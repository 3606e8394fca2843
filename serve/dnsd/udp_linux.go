package dnsd

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/stele-id/stele"
)

// openUDP opens several sockets at one address. The system spreads clients over them.
func openUDP(ctx context.Context, addr string, n int) ([]*net.UDPConn, error) {
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, err
	}
	lc := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var err error
		if e := raw.Control(func(fd uintptr) { err = setUp(int(fd), at.Addr().IsUnspecified()) }); e != nil {
			return e
		}
		return err
	}}
	var conns []*net.UDPConn
	for range n {
		c, err := lc.ListenPacket(ctx, "udp", addr)
		if err == nil {
			u, ok := c.(*net.UDPConn)
			if ok {
				_ = u.SetReadBuffer(udpBuffer) // the system may allow less
				conns = append(conns, u)
				continue
			}
			c.Close()
			err = stele.Messagef("dns.not-a-udp-address", "{address} is not a UDP address", addr)
		}
		for _, c := range conns {
			c.Close()
		}
		return nil, err
	}
	return conns, nil
}

// udpBuffer is how many bytes of questions may wait while the processor is busy.
const udpBuffer = 4 << 20

// setUp prepares a socket: it shares its address; if it has them all it is told to which of
// them a question came; and an attacker can't make it believe in a path with a small MTU,
// which would have answers cut into fragments that can be forged (RFC 9715).
func setUp(fd int, all bool) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return err
	}
	family, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return err
	}
	level, discover, omit, info := unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_OMIT, unix.IP_PKTINFO
	if family == unix.AF_INET6 {
		level, discover, omit, info = unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_OMIT, unix.IPV6_RECVPKTINFO
	}
	_ = unix.SetsockoptInt(fd, level, discover, omit) // an old system does not know it
	if !all {
		return nil
	}
	return unix.SetsockoptInt(fd, level, info, 1)
}

// serveUDP answers what comes to a socket, a batch at a time, until its read deadline
// is set.
func (s *Server) serveUDP(c *net.UDPConn, w *worker) {
	raw, err := c.SyscallConn()
	if err != nil {
		s.sockets.log(s.o.Log, s.o.Now(), "network", "udp", "err", err)
		return
	}
	b, later := newBatch(udpBatch), s.newQueue(c, s.o.Lookups, w.tally)
	defer later.close()
	w.mayBlock = later == nil
	for {
		n, err := b.receive(raw)
		switch {
		case n == 0 && s.stopped() || errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			s.sockets.log(s.o.Log, s.o.Now(), "network", "udp", "err", err)
			s.pause()
			continue
		}
		s.answerBatch(b, n, w, later)
		if err := b.flush(raw); err != nil && !s.stopped() {
			s.sockets.log(s.o.Log, s.o.Now(), "network", "udp", "err", err)
		}
	}
}

// answerBatch answers the first n messages of a batch, or leaves them to the queue.
func (s *Server) answerBatch(b *batch, n int, w *worker, later *queue) {
	now := s.o.Now()
	for i := range n {
		msg, from := b.message(i)
		if msg == nil || from.Port() == 0 {
			w.tally.dropped.Add(1)
			continue
		}
		asked, client := s.sender(msg, from.Addr())
		if answer := w.respond(b.room(), asked, peer{addr: client}, now); answer != nil {
			b.answer(i, answer)
		} else if w.wouldBlock && !later.take(msg, from, b.origin(i)) {
			w.tally.dropped.Add(1)
		}
	}
}
