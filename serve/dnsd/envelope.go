package dnsd

import (
	"encoding/binary"
	"sync"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
)

// Sizes of the messages of a transfer. They are filled up to the first; a record that
// does not fit has one that is larger.
const (
	envelopeSize = 16 << 10
	maxEnvelope  = maxMessage - 1024 // leaves room for a signature
)

// maxPointer is up to where a compression pointer reaches (RFC 1035, section 4.1.4).
const maxPointer = 1<<14 - 1

// envelopes pack records into the messages of a transfer, whose questions are the same.
// Names of owners are compressed; those in the data of our types must not be (RFC 3597,
// section 4), or are not worth it.
type envelopes struct {
	head    []byte // header and question; the name of the zone is in it
	apex    int    // size of the zone's name on the wire
	scratch []byte
	rest    []byte     // of a record that is made
	plain   []byte     // the name of its owner
	spare   *sync.Pool // of messages that can be used again; nil: there are none

	full  [][]byte // messages that are done
	msg   []byte   // the one that is filled
	count int      // of its records
	owner []byte   // of the last record
	at    int      // where that is
}

// newEnvelopes makes envelopes for the answers to a question: the zone's name, in the
// case it was sent in, and so on.
func newEnvelopes(id, flags uint16, question []byte) *envelopes {
	head := make([]byte, headerSize, headerSize+len(question))
	binary.BigEndian.PutUint16(head, id)
	binary.BigEndian.PutUint16(head[2:], flags)
	binary.BigEndian.PutUint16(head[4:], 1)
	return &envelopes{head: append(head, question...), apex: len(question) - 4, scratch: make([]byte, maxMessage)}
}

// another returns envelopes for the same question.
func (e *envelopes) another() *envelopes {
	return &envelopes{head: e.head, apex: e.apex, scratch: make([]byte, maxMessage)}
}

// addShared adds a copy of a shared record: packing a record changes it.
func (e *envelopes) addShared(rr dns.RR) error { return e.add(dns.Copy(rr)) }

// add adds a record of the zone.
func (e *envelopes) add(rr dns.RR) error {
	end, err := dns.PackRR(rr, e.scratch, 0, nil, false)
	if err != nil {
		return stele.Messagef("zone-record.not-packable", `the {type} record of "{name}" can't be packed: {cause}`, dns.TypeToString[rr.Header().Rrtype], rr.Header().Name, err)
	}
	split := skipName(e.scratch, 0)
	return e.put(rr.Header().Name, e.scratch[:split], e.scratch[split:end])
}

// put adds a record: its owner, and all that follows that.
func (e *envelopes) put(name string, owner, rest []byte) error {
	if len(owner) < e.apex {
		return stele.Messagef("zone.name-outside", `"{name}" is not in the zone`, name)
	}
	if len(e.msg) > 0 && (len(e.msg) > envelopeSize || len(e.msg)+len(owner)+len(rest) > maxEnvelope) {
		e.close()
	}
	if len(e.msg) == 0 {
		e.msg = append(e.empty(), e.head...)
		e.owner = nil
	}
	e.addOwner(owner)
	if e.msg = append(e.msg, rest...); len(e.msg) > maxMessage {
		return stele.Messagef("zone.answer-too-long", `the records of "{name}" are too long for a message`, name)
	}
	e.count++
	return nil
}

// empty returns memory for a message.
func (e *envelopes) empty() []byte {
	if e.spare != nil {
		if msg, ok := e.spare.Get().(*[]byte); ok {
			return (*msg)[:0]
		}
	}
	return make([]byte, 0, envelopeSize+envelopeSize/4)
}

// addOwner writes the name of a record: that of the one before, if it is the same, or
// what is in front of the zone's.
func (e *envelopes) addOwner(name []byte) {
	if len(e.owner) > 0 && string(e.owner) == string(name) {
		e.msg = binary.BigEndian.AppendUint16(e.msg, 0xC000|uint16(e.at))
		return
	}
	e.owner = e.owner[:0]
	if len(name) > e.apex && len(e.msg) <= maxPointer {
		e.owner, e.at = append(e.owner, name...), len(e.msg)
	}
	e.msg = append(e.msg, name[:len(name)-e.apex]...)
	e.msg = binary.BigEndian.AppendUint16(e.msg, 0xC000|headerSize)
}

// close ends the message that is filled.
func (e *envelopes) close() {
	if e.count > 0 {
		binary.BigEndian.PutUint16(e.msg[6:], uint16(e.count))
		e.full = append(e.full, e.msg)
	}
	e.msg, e.count = nil, 0
}

// take returns the messages that are done.
func (e *envelopes) take() [][]byte {
	list := e.full
	e.full = nil
	return list
}
