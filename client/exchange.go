package client

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
)

const (
	ednsSize   = 1232 // what passes everywhere without fragments (DNS flag day 2020)
	readSize   = 4096 // servers may send more than they were told to
	maxStrays  = 32   // messages that are not the answer, before something is wrong
	headerSize = 12
)

// Errors of an exchange. Each is a reason to ask again in another way.
var (
	errCase   = stele.Messagef("dns.answer-case-differs", "the answer writes the name in another way than the question")
	errStrays = stele.Messagef("dns.messages-unrelated", "too many messages that do not answer the question")

	errMalformed = stele.Messagef("dns.answer-unreadable", "what came back can't be read")
)

// question is what is asked. Each message of it has an ID of its own, and over UDP
// letters of the name in random upper and lower case, which the server repeats: an
// attacker who does not see the question has much to guess (RFC 5452;
// draft-vixie-dnsext-dns0x20).
type question struct {
	name string // canonical
	kind uint16
}

func (q question) String() string { return q.name + " " + dns.TypeToString[q.kind] }

// manner is how a question is sent.
type manner struct {
	transport string
	edns      bool
	proof     DNSSEC
}

// message makes a message of the question.
func (q question) message(how manner) *dns.Msg {
	var chance [2 + 32]byte
	_, _ = rand.Read(chance[:]) // it does not fail
	name := q.name
	if how.transport == netUDP {
		name = mixCase(name, chance[2:])
	}
	m := &dns.Msg{
		MsgHdr:   dns.MsgHdr{Id: binary.BigEndian.Uint16(chance[:]), RecursionDesired: true},
		Question: []dns.Question{{Name: name, Qtype: q.kind, Qclass: dns.ClassINET}},
	}
	if how.transport == netHTTPS {
		m.Id = 0 // RFC 8484, section 4.1: the same question is the same request
	}
	switch how.proof {
	case Validate:
		m.CheckingDisabled = true // the client validates itself (RFC 6840, section 5.9)
	case TrustAD:
		m.AuthenticatedData = true // RFC 6840, section 5.7
	}
	if how.edns {
		m.Extra = []dns.RR{how.opt()}
		if how.transport == netTLS || how.transport == netHTTPS {
			pad(m)
		}
	}
	return m
}

// opt makes the client's side of EDNS.
func (how manner) opt() *dns.OPT {
	opt := &dns.OPT{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeOPT}}
	opt.SetUDPSize(ednsSize)
	if how.proof == Validate {
		opt.SetDo()
	}
	if how.transport == netTLS {
		opt.Option = append(opt.Option, &dns.EDNS0_TCP_KEEPALIVE{Code: dns.EDNS0TCPKEEPALIVE}) // RFC 7828, section 3.2.1
	}
	return opt
}

// padTo is a length in bytes; questions are padded to a multiple of it, so that their
// length does not tell them apart (RFC 8467, section 4.1).
const padTo = 128

// pad fills a message with an OPT record up to a length that many others have.
func pad(m *dns.Msg) {
	opt := m.IsEdns0()
	packed, err := m.Pack()
	if err != nil {
		return // it can't be sent, and the sender returns the error
	}
	n := len(packed) + 4 // with the option's own head
	opt.Option = append(opt.Option, &dns.EDNS0_PADDING{Padding: make([]byte, (padTo-n%padTo)%padTo)})
}

// mixCase writes letters in upper case where chance has a bit.
func mixCase(name string, chance []byte) string {
	b := []byte(name)
	for i, c := range b {
		if 'a' <= c && c <= 'z' && chance[i/8%len(chance)]>>(i%8)&1 == 1 {
			b[i] = c - 'a' + 'A'
		}
	}
	return string(b)
}

// exchangePlain sends a message in clear and returns the answer to it.
func exchangePlain(ctx context.Context, network string, server netip.AddrPort, m *dns.Msg) (*dns.Msg, error) {
	packed, err := m.Pack()
	if err != nil {
		return nil, stele.Messagef("dns.question-not-askable", "the question can't be asked: {cause}", err)
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, network, server.String())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	// Network calls end with the context.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if network == netTCP {
		return exchangeTCP(conn, packed, m)
	}
	return exchangeUDP(conn, packed, m)
}

// exchangeUDP ignores messages that do not answer the question: they may be late, or
// forged.
func exchangeUDP(conn net.Conn, packed []byte, m *dns.Msg) (*dns.Msg, error) {
	if _, err := conn.Write(packed); err != nil {
		return nil, err
	}
	buffer := make([]byte, readSize)
	for range maxStrays {
		n, err := conn.Read(buffer)
		if err != nil {
			return nil, err
		}
		if n < headerSize || binary.BigEndian.Uint16(buffer) != m.Id {
			continue
		}
		reply := new(dns.Msg)
		if reply.Unpack(buffer[:n]) != nil && !reply.Truncated {
			continue
		}
		if !answers(m, reply) {
			continue
		}
		if len(reply.Question) == 1 && reply.Question[0].Name != m.Question[0].Name {
			return nil, errCase
		}
		return reply, nil
	}
	return nil, errStrays
}

// exchangeTCP is exchangeUDP for a connection, on which there is one answer.
func exchangeTCP(conn net.Conn, packed []byte, m *dns.Msg) (*dns.Msg, error) {
	if _, err := conn.Write(frame(packed)); err != nil {
		return nil, err
	}
	buffer, err := readFrame(conn)
	if err != nil {
		return nil, err
	}
	reply := new(dns.Msg)
	if len(buffer) < headerSize || reply.Unpack(buffer) != nil || !answers(m, reply) {
		return nil, errMalformed
	}
	return reply, nil
}

// frame puts its length in front of a message (RFC 1035, section 4.2.2).
func frame(packed []byte) []byte {
	framed := binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(packed)), uint16(len(packed)))
	return append(framed, packed...)
}

// readFrame reads a message with its length in front.
func readFrame(r io.Reader) ([]byte, error) {
	var size [2]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, closedEarly(err)
	}
	buffer := make([]byte, binary.BigEndian.Uint16(size[:]))
	_, err := io.ReadFull(r, buffer)
	return buffer, closedEarly(err)
}

func closedEarly(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return stele.Messagef("dns.connection-closed-early", "the connection was closed before the answer came")
	}
	return err
}

// answers reports whether a reply is to the question that was asked. Servers that do
// not understand a question at all need not repeat it (RFC 1035, section 4.1.1).
func answers(m, reply *dns.Msg) bool {
	if !reply.Response || reply.Opcode != dns.OpcodeQuery || reply.Id != m.Id {
		return false
	}
	if len(reply.Question) == 0 {
		return reply.Rcode == dns.RcodeFormatError || reply.Rcode == dns.RcodeNotImplemented
	}
	asked, got := m.Question[0], reply.Question[0]
	return len(reply.Question) == 1 && got.Qtype == asked.Qtype && got.Qclass == asked.Qclass && strings.EqualFold(got.Name, asked.Name)
}
