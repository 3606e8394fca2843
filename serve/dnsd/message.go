package dnsd

import (
	"encoding/binary"

	"github.com/miekg/dns"

	"github.com/stele-id/stele/internal/dnsrr"
)

// Sizes of the wire format (RFC 1035, section 4).
const (
	headerSize = 12
	maxName    = dnsrr.MaxName
	maxLabel   = dnsrr.MaxLabel
	maxMessage = dnsrr.MaxMessage
	maxUDP     = dnsrr.MaxUDP
	maxQuery   = 2 << 10 // longer datagrams are not read
	minUDP     = 512     // RFC 1035, section 4.2.1; RFC 6891, section 6.2.5
)

// Bits of the header's second word.
const (
	flagQR     = 1 << 15
	flagAA     = 1 << 10
	flagTC     = 1 << 9
	flagRD     = 1 << 8
	maskOpcode = 0xF << 11
)

// dropped, in the place of a response code, says that a message gets no answer.
const dropped = -1

// query is what a message asks. Its slices are parts of the message.
type query struct {
	id     uint16
	flags  uint16
	opcode int

	asks     bool   // there is one question, and these are its parts
	question []byte // as it was sent
	name     []byte // in wire form, in the case it was sent in
	qtype    uint16
	class    uint16

	edns      bool
	size      int // the largest answer that the client takes over UDP
	version   uint8
	do        bool   // signatures are wanted (RFC 3225)
	co        bool   // a name that is proven not to exist may be said not to (RFC 9824, section 5.1)
	cookie    []byte // content of the option (RFC 7873); nil if there is none
	keepalive bool   // the option was sent (RFC 7828)
	padded    bool   // the option was sent (RFC 7830)
	nsid      bool   // the client asks which server this is (RFC 5001)
	expire    bool   // it asks for how long a secondary may keep the zone (RFC 7314)
	tsig      int    // where the signature of the message begins; 0 if it has none
}

// read reads a message, and returns the response code that it deserves so far:
// RcodeSuccess if it can be answered, dropped if it must not be. What could be read
// before an error is in q.
func (q *query) read(msg []byte) int {
	*q = query{size: minUDP}
	if len(msg) < headerSize || len(msg) > maxMessage {
		return dropped
	}
	q.id = binary.BigEndian.Uint16(msg)
	q.flags = binary.BigEndian.Uint16(msg[2:])
	q.opcode = int(q.flags & maskOpcode >> 11)
	if q.flags&flagQR != 0 {
		return dropped // answering answers makes loops
	}
	questions := binary.BigEndian.Uint16(msg[4:])
	off := headerSize
	if questions == 1 {
		off = q.readQuestion(msg)
	}
	if code := judgeOpcode(q.opcode); code != dns.RcodeSuccess {
		// What follows may have another form; its signature is of interest: a client
		// that signs an update believes only a signed refusal (RFC 8945, section 5.3).
		q.tsig = lastRecord(msg)
		return code
	}
	if questions > 1 || off == 0 {
		return dns.RcodeFormatError
	}
	if code := q.readRecords(msg, off); code != dns.RcodeSuccess {
		return code
	}
	if questions == 0 && q.cookie == nil {
		return dns.RcodeFormatError // with a cookie alone it asks for one (RFC 7873, section 5.4)
	}
	return dns.RcodeSuccess
}

// judgeOpcode lets queries through. Clients cannot change the registry over the DNS (RFC
// 2136), and this server transfers no zone in, so it takes no notices (RFC 1996).
func judgeOpcode(opcode int) int {
	switch opcode {
	case dns.OpcodeQuery:
		return dns.RcodeSuccess
	case dns.OpcodeUpdate:
		return dns.RcodeRefused
	}
	return dns.RcodeNotImplemented
}

// readQuestion reads the question and returns where it ends, or 0 if it is broken.
// Its name has nothing before it that a compression pointer could point at.
func (q *query) readQuestion(msg []byte) int {
	off := headerSize
	for {
		if off >= len(msg) {
			return 0
		}
		n := int(msg[off])
		off++
		if n == 0 {
			break
		}
		off += n
		if n > maxLabel || off-headerSize >= maxName {
			return 0
		}
	}
	if len(msg) < off+4 {
		return 0
	}
	q.asks = true
	q.question = msg[headerSize : off+4]
	q.name = msg[headerSize:off]
	q.qtype = binary.BigEndian.Uint16(msg[off:])
	q.class = binary.BigEndian.Uint16(msg[off+2:])
	return off + 4
}

// readRecords goes through what follows the question. A query has no answers; it has
// an authority record only where it asks for changes since a version (RFC 1995), and
// up to two additional ones, OPT and a signature (TSIG or SIG).
func (q *query) readRecords(msg []byte, off int) int {
	answers, authority, additional := binary.BigEndian.Uint16(msg[6:]), binary.BigEndian.Uint16(msg[8:]), binary.BigEndian.Uint16(msg[10:])
	if answers > 0 || authority > 1 || additional > 2 {
		return dns.RcodeFormatError
	}
	for i := range int(authority + additional) {
		r, next := readRecord(msg, off)
		if next == 0 {
			return dns.RcodeFormatError
		}
		if r.rtype == dns.TypeTSIG {
			// RFC 8945, section 5.1: the last of all, in the additional section.
			if i < int(authority) || i+1 < int(authority+additional) {
				return dns.RcodeFormatError
			}
			q.tsig = off
		}
		if r.rtype == dns.TypeOPT {
			// RFC 6891, section 6.1.1: one, in the additional section, at the root.
			if q.edns || i < int(authority) || msg[off] != 0 {
				return dns.RcodeFormatError
			}
			if code := q.readOPT(r); code != dns.RcodeSuccess {
				return code
			}
		}
		off = next
	}
	if off != len(msg) {
		return dns.RcodeFormatError
	}
	if q.version != 0 {
		return dns.RcodeBadVers
	}
	return dns.RcodeSuccess
}

// record is the fixed part of a resource record, and its data.
type record struct {
	rtype, class uint16
	ttl          uint32
	data         []byte
}

// readRecord reads the record at off and returns where the next is, or 0 if it is
// broken. Compression pointers in its name are not followed.
func readRecord(msg []byte, off int) (r record, next int) {
	off = skipName(msg, off)
	if off == 0 || len(msg) < off+10 {
		return record{}, 0
	}
	r.rtype = binary.BigEndian.Uint16(msg[off:])
	r.class = binary.BigEndian.Uint16(msg[off+2:])
	r.ttl = binary.BigEndian.Uint32(msg[off+4:])
	n := int(binary.BigEndian.Uint16(msg[off+8:]))
	off += 10
	if len(msg) < off+n {
		return record{}, 0
	}
	r.data = msg[off : off+n]
	return r, off + n
}

// skipName returns where a name ends, or 0 if it is broken.
func skipName(msg []byte, off int) int {
	for begin := off; off < len(msg) && off-begin < maxName; {
		n := int(msg[off])
		switch {
		case n == 0:
			return off + 1
		case n&0xC0 == 0xC0:
			if off+2 > len(msg) {
				return 0
			}
			return off + 2
		case n > maxLabel:
			return 0
		}
		off += 1 + n
	}
	return 0
}

// Flags of EDNS.
const (
	ednsDO = 1 << 15
	ednsCO = 1 << 14
)

// Options of EDNS.
const (
	optionNSID      = 3  // RFC 5001
	optionExpire    = 9  // RFC 7314
	optionCookie    = 10 // RFC 7873
	optionKeepalive = 11 // RFC 7828
	optionPadding   = 12 // RFC 7830
)

// readOPT reads the client's side of EDNS (RFC 6891, section 6.1.2). Options that are
// not known are passed over.
func (q *query) readOPT(r record) int {
	q.edns = true
	q.size = max(int(r.class), minUDP)
	q.version = uint8(r.ttl >> 16)
	q.do = r.ttl&ednsDO != 0
	q.co = r.ttl&ednsCO != 0
	if q.version != 0 {
		return dns.RcodeSuccess // its options may mean something else
	}
	for data := r.data; len(data) > 0; {
		if len(data) < 4 {
			return dns.RcodeFormatError
		}
		code, n := binary.BigEndian.Uint16(data), int(binary.BigEndian.Uint16(data[2:]))
		if len(data) < 4+n {
			return dns.RcodeFormatError
		}
		switch content := data[4 : 4+n]; {
		case code == optionCookie && q.cookie == nil: // of several the first counts
			if n != clientCookieSize && (n < 16 || n > 40) {
				return dns.RcodeFormatError // RFC 7873, section 5.2.2
			}
			q.cookie = content
		case code == optionKeepalive:
			q.keepalive = true
		case code == optionNSID:
			q.nsid = true
		case code == optionExpire:
			q.expire = true
		case code == optionPadding:
			q.padded = true
		}
		data = data[4+n:]
	}
	return dns.RcodeSuccess
}

// lower appends a name in wire form with its letters in lower case. Lengths of labels
// are below any letter.
func lower(dst, name []byte) []byte {
	for _, c := range name {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}

// packName appends a name in presentation form as it is on the wire, in lower case.
func packName(dst []byte, name string) (_ []byte, ok bool) {
	var buf [maxName]byte
	n, err := dns.PackDomainName(name, buf[:], 0, nil, false)
	if err != nil {
		return dst, false
	}
	return lower(dst, buf[:n]), true
}
