package dnsd

import (
	"errors"
	"net"

	"github.com/stele-id/stele/internal/datagram"
)

const (
	// udpBatch is how many messages are read with one call of the system, and answered
	// with another.
	udpBatch   = 64
	answerRoom = maxUDP + 16
)

// serveUDP answers what comes to a socket, a batch at a time, until its read deadline
// is set.
func (s *Server) serveUDP(c *net.UDPConn, w *worker) {
	b, err := datagram.NewBatch(c, udpBatch, maxQuery, answerRoom)
	if err != nil {
		s.sockets.log(s.o.Log, s.o.Now(), "network", "udp", "err", err)
		return
	}
	later := s.newQueue(c, s.o.Lookups, w.tally)
	defer later.Close()
	w.mayBlock = later == nil
	for {
		n, err := b.Receive()
		switch {
		case n == 0 && s.stopped() || errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			s.sockets.log(s.o.Log, s.o.Now(), "network", "udp", "err", err)
			s.pause()
			continue
		}
		s.answerBatch(b, n, w, later)
		if err := b.Flush(); err != nil && !s.stopped() {
			s.sockets.log(s.o.Log, s.o.Now(), "network", "udp", "err", err)
		}
	}
}

// answerBatch answers the first n messages of a batch, or leaves them to the queue.
func (s *Server) answerBatch(b *datagram.Batch, n int, w *worker, later *datagram.Queue) {
	now := s.o.Now()
	for i := range n {
		msg, from := b.Message(i)
		if msg == nil || from.Port() == 0 {
			w.tally.dropped.Add(1)
			continue
		}
		asked, client := s.sender(msg, from.Addr().WithZone(""))
		if answer := w.respond(b.Room(), asked, peer{addr: client}, now); answer != nil {
			b.Answer(i, answer)
		} else if w.wouldBlock && !later.Take(msg, from, b.Origin(i)) {
			w.tally.dropped.Add(1)
		}
	}
}

// newQueue starts so many goroutines that answer at a socket questions for which the server has to wait for the
// registry. It returns nil if there are to be none. t counts what they do.
func (s *Server) newQueue(c *net.UDPConn, n int, t *tally) *datagram.Queue {
	return datagram.NewQueue(n, 4*n, func() func(*datagram.Request) {
		w, out := s.newWorker(s.base, t), make([]byte, 0, maxUDP+maxOPT)
		return func(q *datagram.Request) {
			msg, client := s.sender(q.Message, q.From.Addr().Unmap().WithZone(""))
			if answer := w.respond(out, msg, peer{addr: client}, s.o.Now()); answer != nil {
				_, _, _ = c.WriteMsgUDPAddrPort(answer, q.Origin, q.From) // a client that misses it asks again
			}
		}
	})
}
