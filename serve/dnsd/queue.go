package dnsd

import (
	"net"
	"net/netip"
	"sync"
)

// queue answers questions for which the server has to wait for the registry, so that a
// socket's own goroutine answers those whose answers are known without delay.
type queue struct {
	questions chan *waiting
	free      sync.Pool
	running   sync.WaitGroup
}

// waiting is a question that waits for the registry.
type waiting struct {
	msg     []byte
	from    netip.AddrPort
	control []byte // what tells the system where to answer from
}

// newQueue starts so many goroutines that answer at a socket. It returns nil if there
// are to be none. t counts what they do.
func (s *Server) newQueue(c *net.UDPConn, n int, t *tally) *queue {
	if n <= 0 {
		return nil
	}
	q := &queue{questions: make(chan *waiting, 4*n)}
	q.free.New = func() any { return new(waiting) }
	for range n {
		w := s.newWorker(s.base, t)
		q.running.Go(func() {
			out := make([]byte, 0, maxUDP+maxOPT)
			for one := range q.questions {
				msg, client := s.sender(one.msg, one.from.Addr().Unmap().WithZone(""))
				if answer := w.respond(out, msg, peer{addr: client}, s.o.Now()); answer != nil {
					_, _, _ = c.WriteMsgUDPAddrPort(answer, one.control, one.from) // a client that misses it asks again
				}
				q.free.Put(one)
			}
		})
	}
	return q
}

// take takes a copy of a question, and reports false if there are too many already.
func (q *queue) take(msg []byte, from netip.AddrPort, control []byte) bool {
	one, ok := q.free.Get().(*waiting)
	if !ok {
		return false
	}
	one.msg, one.from, one.control = append(one.msg[:0], msg...), from, append(one.control[:0], control...)
	select {
	case q.questions <- one:
		return true
	default:
		q.free.Put(one)
		return false
	}
}

// close ends the queue once all of it is answered.
func (q *queue) close() {
	if q != nil {
		close(q.questions)
		q.running.Wait()
	}
}
