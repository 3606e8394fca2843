package dnsd

import (
	"bytes"
	"encoding/binary"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
)

// maxIdentity is how many bytes the name of a server may have. A string of a TXT record
// holds more, but would make datagrams too long.
const maxIdentity = 64

// CheckIdentity says what is wrong with the name of a server.
func CheckIdentity(name string) error {
	if len(name) > maxIdentity {
		return stele.Messagef("dns.identity-too-long", "it has {bytes} bytes; choose one of {limit} at most", len(name), maxIdentity)
	}
	for _, c := range []byte(name) {
		if c < ' ' || c > '~' {
			return stele.Messagef("dns.identity-not-ascii", `"{name}" is not printable ASCII; choose a name such as ns1.example.org`, name)
		}
	}
	return nil
}

// tellsName reports whether the answer names the server (RFC 5001).
func (w *worker) tellsName() bool { return w.q.nsid && w.s.o.Identity != "" }

// identityNames are the names that ask for a server's identity (RFC 4892, section 2).
var identityNames = [][]byte{[]byte("\x02id\x06server\x00"), []byte("\x08hostname\x04bind\x00")}

// identify answers with the server's identity, if the client asks and the operator has set
// one. The server does not tell its program (version.bind, version.server).
func (w *worker) identify(dst []byte, limit int) ([]byte, packed, bool) {
	name := w.s.o.Identity
	if name == "" || w.q.class != dns.ClassCHAOS || w.q.qtype != dns.TypeTXT && w.q.qtype != dns.TypeANY {
		return dst, packed{}, false
	}
	for _, known := range identityNames {
		if !bytes.Equal(w.name, known) {
			continue
		}
		if 2+10+1+len(name) > limit {
			return dst, packed{aa: true, tc: true}, true
		}
		dst = binary.BigEndian.AppendUint16(dst, 0xC000|headerSize)
		dst = binary.BigEndian.AppendUint16(dst, dns.TypeTXT)
		dst = binary.BigEndian.AppendUint16(dst, dns.ClassCHAOS)
		dst = binary.BigEndian.AppendUint32(dst, 0)
		dst = binary.BigEndian.AppendUint16(dst, uint16(1+len(name)))
		dst = append(append(dst, byte(len(name))), name...)
		return dst, packed{aa: true, answers: 1}, true
	}
	return dst, packed{}, false
}
