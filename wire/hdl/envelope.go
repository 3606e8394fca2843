package hdl

import "encoding/binary"

// The sizes of what every message begins with.
const (
	EnvelopeSize = 20
	HeaderSize   = 24
)

// Envelope is the beginning of every message, and of every fragment of one (specification, section 2).
type Envelope struct {
	Version    Version
	Compressed bool // never used; a reader of messages refuses it
	Encrypted  bool
	Truncated  bool    // a fragment; servers do not set it, so receivers go by Length
	Suggested  Version // the highest version of the sender; major has 5 bits (DO-IRP). Major 0: none
	Session    uint32  // 0: none
	Request    uint32
	Sequence   uint32 // of a fragment
	Length     uint32 // of the whole message after the envelope, encrypted if it is. Append of a Message computes it
}

const (
	compressedBit = 0x80
	encryptedBit  = 0x40
	truncatedBit  = 0x20
	majorBits     = 0x1f
)

// ParseEnvelope reads the envelope at the beginning of b. It does not judge Length, except that no
// message may be longer than MaxMessage.
func ParseEnvelope(b []byte) (Envelope, error) {
	if len(b) < EnvelopeSize {
		return Envelope{}, errorf(ProtocolError, "hdl.envelope-short", "the message has {octets} octets, and its envelope alone needs 20", len(b))
	}
	e := Envelope{
		Version:    Version{b[0], b[1]},
		Compressed: b[2]&compressedBit != 0,
		Encrypted:  b[2]&encryptedBit != 0,
		Truncated:  b[2]&truncatedBit != 0,
		Suggested:  Version{b[2] & majorBits, b[3]},
		Session:    binary.BigEndian.Uint32(b[4:]),
		Request:    binary.BigEndian.Uint32(b[8:]),
		Sequence:   binary.BigEndian.Uint32(b[12:]),
		Length:     binary.BigEndian.Uint32(b[16:]),
	}
	if e.Length > MaxMessage {
		return e, errorf(ProtocolError, "hdl.message-too-long", "the message says that it has {octets} octets, and at most {most} are allowed", e.Length, MaxMessage)
	}
	return e, nil
}

// Append appends the envelope's 20 octets.
func (e *Envelope) Append(dst []byte) []byte {
	flags := e.Suggested.Major & majorBits
	if e.Compressed {
		flags |= compressedBit
	}
	if e.Encrypted {
		flags |= encryptedBit
	}
	if e.Truncated {
		flags |= truncatedBit
	}
	dst = append(dst, e.Version.Major, e.Version.Minor, flags, e.Suggested.Minor)
	dst = appendU32(dst, e.Session)
	dst = appendU32(dst, e.Request)
	dst = appendU32(dst, e.Sequence)
	return appendU32(dst, e.Length)
}

// AnswerVersion returns the version of the answer to a request with this envelope: the version that the
// client suggests, else that of the request, and never one that we do not know. A request of major
// version 3 is answered in 2.11 (do-irp.md).
func (e *Envelope) AnswerVersion() Version {
	v := e.Version
	if e.Suggested.Major != 0 {
		v = e.Suggested
	}
	if Latest().less(v) {
		return Latest()
	}
	return v
}

// Header begins a message after its envelope (specification, section 3). The length of the body is not a
// field: it is that of the body.
type Header struct {
	Operation  Operation
	Response   ResponseCode // 0 in requests
	Flags      Flags
	SiteSerial uint16 // 0xffff: unknown
	Recursion  uint8
	Reserved   uint8
	Expiration uint32 // Unix time
}

// UnknownSerial is the SiteSerial of clients that do not know the site.
const UnknownSerial = 0xffff

// parseHeader reads the header at the beginning of b, which has HeaderSize octets, and the length of the body.
func parseHeader(b []byte) (Header, uint32) {
	_ = b[HeaderSize-1]
	return Header{
		Operation:  Operation(binary.BigEndian.Uint32(b)),
		Response:   ResponseCode(binary.BigEndian.Uint32(b[4:])),
		Flags:      Flags(binary.BigEndian.Uint32(b[8:])),
		SiteSerial: binary.BigEndian.Uint16(b[12:]),
		Recursion:  b[14],
		Reserved:   b[15],
		Expiration: binary.BigEndian.Uint32(b[16:]),
	}, binary.BigEndian.Uint32(b[20:])
}

// append appends the header's 24 octets, for a body of the given length.
func (h *Header) append(dst []byte, body int) []byte {
	dst = appendU32(dst, uint32(h.Operation))
	dst = appendU32(dst, uint32(h.Response))
	dst = appendU32(dst, uint32(h.Flags))
	dst = appendU16(dst, h.SiteSerial)
	dst = append(dst, h.Recursion, h.Reserved)
	dst = appendU32(dst, h.Expiration)
	return appendU32(dst, uint32(body))
}
