package hdld

import (
	"net"
	"net/netip"
	"time"

	"github.com/stele-id/stele/internal/datagram"
	"github.com/stele-id/stele/internal/limit"
	"github.com/stele-id/stele/wire/hdl"
)

const (
	udpBatch   = 64   // datagrams that are read with one call of the system, and answered with another
	udpWorkers = 16   // of a socket, that make answers while those that are kept are sent
	udpWaiting = 1024 // requests of a socket that wait for them; beyond that they are dropped, and clients ask again
)

// receive answers the datagrams of a socket until the server ends.
func (s *Server) receive(c *net.UDPConn) {
	b, err := datagram.NewBatch(c, udpBatch, hdl.MaxDatagram, hdl.MaxDatagram)
	if err != nil {
		s.o.Log.Error("a socket can't be read", "protocol", "handle", "err", err)
		return
	}
	later := datagram.NewQueue(udpWorkers, udpWaiting, func() func(*datagram.Request) {
		return func(r *datagram.Request) { s.datagram(c, r) }
	})
	defer later.Close()
	for {
		n, err := b.Receive()
		switch {
		case isClosed(err) || n == 0 && s.stopped():
			return
		case err != nil:
			s.pause()
			continue
		}
		s.answerBatch(b, n, later)
		_ = b.Flush() // a client that misses an answer asks again
	}
}

// answerBatch answers the first n datagrams of a batch with what is kept, or leaves them to the queue.
func (s *Server) answerBatch(b *datagram.Batch, n int, later *datagram.Queue) {
	now := s.o.Now()
	for i := range n {
		request, from := b.Message(i)
		if len(request) == 0 || from.Port() == 0 {
			continue // no client sends it
		}
		if b.IsFull() {
			_ = b.Flush()
		}
		answer, ok := s.known(b.Room(), request, now)
		if !ok {
			if !later.Take(request, from, b.Origin(i)) {
				s.stats.dropped.Add(1)
			}
			continue
		}
		s.stats.udp.Add(1)
		if len(answer) <= hdl.MaxDatagram && len(answer) <= amplification*len(request) {
			b.Answer(i, answer)
			continue
		}
		m, err := hdl.Parse(request)
		if err != nil {
			continue // what is not a message is not known
		}
		if answer = s.bounded(answer, &m, from, len(request), now); len(answer) == 0 {
			continue
		}
		for part := range hdl.Datagrams(answer, isMajor3(&m)) {
			if b.IsFull() {
				_ = b.Flush()
			}
			b.Answer(i, part)
		}
	}
}

// isMajor3 reports whether fragments of the answer to a request are marked, as DO-IRP 3.0 has it.
func isMajor3(m *hdl.Message) bool { return m.Envelope.Version.Major > hdl.Latest().Major }

// datagram answers one datagram whose answer has to be made, if a message ends with it.
func (s *Server) datagram(c *net.UDPConn, r *datagram.Request) {
	now := s.o.Now()
	message, err := s.fragments.Add(now, r.From, r.Message)
	if message == nil && err == nil {
		return // more is to come
	}
	s.stats.udp.Add(1)
	q := &call{raw: message, from: r.From, via: viaUDP, sent: max(len(message), len(r.Message))}
	q.send = func(answer []byte) error {
		if !q.proved {
			answer = s.bounded(answer, &q.m, q.from, q.sent, now)
		}
		if len(answer) == 0 {
			return nil
		}
		for part := range hdl.Datagrams(answer, q.major3) {
			if _, _, err := c.WriteMsgUDPAddrPort(part, r.Origin, r.From); err != nil {
				return err
			}
		}
		return nil
	}
	if err != nil {
		_ = q.send(s.unreadable(err))
		return
	}
	s.work(s.base, q)
}

// amplification is how many times the octets of a request its answer may have for nothing.
const amplification = 3

// bounded returns what may go to an address that may be forged, of which so many octets came: the answer; or a short one in its place;
// or nothing, if that were too long as well. The protocol knows no answer that sends the client to TCP, as the DNS has one, so
// that longer answers are part of it: each network gets some of them, and beyond that the code 2, on which clients ask again
// over TCP. A client that answered a challenge or has a session has proved its address.
func (s *Server) bounded(answer []byte, asked *hdl.Message, to netip.AddrPort, sent int, now time.Time) []byte {
	more := len(answer) - amplification*sent
	if more <= 0 || s.spare.Take(limit.Client(to.Addr()), float64(more), now) == nil {
		return answer
	}
	s.stats.held.Add(1)
	m := hdl.Message{
		Envelope: hdl.Envelope{Version: asked.Envelope.AnswerVersion(), Suggested: hdl.Latest(), Request: asked.Envelope.Request},
		Header:   hdl.Header{Operation: asked.Header.Operation, Response: hdl.ServerError, Flags: hdl.Recursive, SiteSerial: s.o.Site().Serial, Expiration: expirationAt(now)},
	}
	if answer = m.Append(nil); len(answer) > amplification*sent {
		return nil
	}
	return answer
}
