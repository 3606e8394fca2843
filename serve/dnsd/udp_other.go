//go:build !linux

package dnsd

import (
	"context"
	"errors"
	"net"

	"github.com/stele-id/stele"
)

// openUDP opens one socket, whatever number is wished for: how several share a port
// differs from system to system.
func openUDP(ctx context.Context, addr string, _ int) ([]*net.UDPConn, error) {
	var lc net.ListenConfig
	c, err := lc.ListenPacket(ctx, "udp", addr)
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UDPConn)
	if !ok {
		c.Close()
		return nil, stele.Messagef("dns.not-a-udp-address", "{address} is not a UDP address", addr)
	}
	return []*net.UDPConn{u}, nil
}

// serveUDP answers what comes to a socket until its read deadline is set. On a machine
// with several addresses it should listen at each of them: an answer goes out from
// the one that the system chooses.
func (s *Server) serveUDP(c *net.UDPConn, w *worker) {
	in, out := make([]byte, maxQuery), make([]byte, 0, maxUDP+maxOPT)
	later := s.newQueue(c, s.o.Lookups, w.tally)
	defer later.close()
	w.mayBlock = later == nil
	for {
		n, from, err := c.ReadFromUDPAddrPort(in)
		switch {
		case s.stopped() || errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			s.sockets.log(s.o.Log, s.o.Now(), "network", "udp", "err", err)
			s.pause()
			continue
		case n == len(in) || from.Port() == 0:
			w.tally.dropped.Add(1)
			continue
		}
		msg, client := s.sender(in[:n], from.Addr().Unmap().WithZone(""))
		if answer := w.respond(out, msg, peer{addr: client}, s.o.Now()); answer != nil {
			_, _ = c.WriteToUDPAddrPort(answer, from) // a client that misses it asks again
		} else if w.wouldBlock && !later.take(in[:n], from, nil) {
			w.tally.dropped.Add(1)
		}
	}
}
