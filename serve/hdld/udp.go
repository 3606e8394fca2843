package hdld

import (
	"net"
	"net/netip"
	"time"

	"github.com/stele-id/stele/internal/limit"
	"github.com/stele-id/stele/wire/hdl"
)

// receive answers datagrams until the socket is closed, or the server ends.
func (s *Server) receive(p *net.UDPConn) {
	buffer := make([]byte, hdl.MaxDatagram+1)
	for {
		n, from, err := p.ReadFromUDPAddrPort(buffer)
		if isClosed(err) || err != nil && s.stopped() {
			return
		}
		if err != nil {
			s.pause()
			continue
		}
		s.datagram(p, buffer[:n], from)
	}
}

// datagram answers one datagram, if a message ends with it.
func (s *Server) datagram(p *net.UDPConn, datagram []byte, from netip.AddrPort) {
	if len(datagram) > hdl.MaxDatagram {
		return // no client sends it
	}
	now := s.o.Now()
	message, err := s.fragments.Add(now, from, datagram)
	if message == nil && err == nil {
		return // more is to come
	}
	s.stats.udp.Add(1)
	q := &call{raw: message, from: from, via: viaUDP, sent: max(len(message), len(datagram))}
	q.send = func(answer []byte) error {
		if !s.maySend(q, len(answer), now) {
			s.stats.held.Add(1)
			if answer = s.tooLong(q); len(answer) > amplification*q.sent {
				return nil
			}
		}
		for part := range hdl.Datagrams(answer, q.major3) {
			if _, err := p.WriteToUDPAddrPort(part, from); err != nil {
				return err
			}
		}
		return nil
	}
	if err != nil {
		_ = q.send(s.unreadable(err))
		return
	}
	s.answer(s.base, q)
}

// amplification is how many times the octets of a request its answer may have for nothing.
const amplification = 3

// maySend reports whether an answer may go to an address that may be forged. The protocol knows no answer that
// sends the client to TCP, as the DNS has one, so that longer answers are part of it: each network
// gets some of them, and beyond that the code 2, on which clients ask again over TCP. Who answered a challenge
// or has a session is where they say they are.
func (s *Server) maySend(q *call, octets int, now time.Time) bool {
	more := octets - amplification*q.sent
	return more <= 0 || q.proved || s.spare.Take(limit.Client(q.from.Addr()), float64(more), now) == nil
}

// tooLong returns the answer in the place of one that would be too long for an address that may be forged.
func (s *Server) tooLong(q *call) []byte {
	m := hdl.Message{
		Envelope: hdl.Envelope{Version: q.m.Envelope.AnswerVersion(), Suggested: hdl.Latest(), Request: q.m.Envelope.Request},
		Header:   hdl.Header{Operation: q.m.Header.Operation, Response: hdl.ServerError, Flags: hdl.Recursive, SiteSerial: s.o.Site().Serial, Expiration: s.expiration()},
	}
	return m.Append(nil)
}
