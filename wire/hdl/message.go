package hdl

import (
	"encoding/binary"
	"io"
)

// Message is a request or a response.
type Message struct {
	Envelope   Envelope
	Header     Header
	Body       []byte
	Credential *Credential // nil: none

	// Sealed is the encrypted header, body and credential of a message whose envelope says Encrypted.
	// Then Header, Body and Credential are not there; Open reads them.
	Sealed []byte
}

// Parse reads a whole message. The envelope that it returns with an error is that of the message, if
// there was one.
func Parse(b []byte) (Message, error) {
	env, err := ParseEnvelope(b)
	m := Message{Envelope: env}
	if err != nil {
		return m, err
	}
	b = b[EnvelopeSize:]
	switch {
	case int(env.Length) != len(b):
		return m, errorf(ProtocolError, "hdl.message-length", "the message says that it has {said} octets after its envelope, and has {octets}", env.Length, len(b))
	case env.Compressed:
		return m, errorf(ProtocolError, "hdl.compressed", "the message is compressed, which the protocol does not define; send it without compression")
	case env.Encrypted:
		m.Sealed = b
		return m, nil
	}
	return m, m.parse(b)
}

// firstRead is how many octets ReadMessage reads before their sender has sent as many.
const firstRead = 4 << 10

// ReadMessage reads a whole message from a stream, which Parse reads. Its memory grows with what comes, and not with the length that the
// message claims. An [Error] says that the envelope is wrong; others are those of the stream.
func ReadMessage(r io.Reader) ([]byte, error) {
	var head [EnvelopeSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	e, err := ParseEnvelope(head[:])
	if err != nil {
		return nil, err
	}
	message := head[:]
	for left := int(e.Length); left > 0; {
		n := min(left, max(firstRead, len(message)))
		at := len(message)
		message = append(message, make([]byte, n)...)
		if _, err := io.ReadFull(r, message[at:]); err != nil {
			return nil, err
		}
		left -= n
	}
	return message, nil
}

// parse reads header, body and credential in clear.
func (m *Message) parse(b []byte) error {
	if len(b) < HeaderSize {
		return errorf(ProtocolError, "hdl.header-short", "the message has {octets} octets after its envelope, and its header alone needs 24", len(b))
	}
	head, size := parseHeader(b)
	m.Header = head
	b = b[HeaderSize:]
	if uint64(size)+4 > uint64(len(b)) {
		// The reference says 2 here, and 4 where the envelope is wrong; both were recorded.
		return errorf(ServerError, "hdl.body-length", "the header says that the body has {said} octets, and {octets} follow, of which 4 are the length of the credential", size, len(b))
	}
	m.Body = b[:size:size]
	b = b[size:]
	if n := binary.BigEndian.Uint32(b); int64(n) != int64(len(b)-4) {
		return errorf(ServerError, "hdl.credential-length", "the credential says that it has {said} octets, and {octets} follow", n, len(b)-4)
	} else if n > 0 {
		c, err := parseCredential(b[4:])
		if err != nil {
			return err
		}
		m.Credential = &c
	}
	return nil
}

// Append appends the message. It computes the lengths.
func (m *Message) Append(dst []byte) []byte {
	start := len(dst)
	dst = m.Envelope.Append(dst)
	if m.Envelope.Encrypted {
		dst = append(dst, m.Sealed...)
	} else {
		dst = m.AppendClear(dst)
	}
	setLength(dst[start:])
	return dst
}

// AppendClear appends what follows the envelope, in clear: this is what Seal encrypts.
func (m *Message) AppendClear(dst []byte) []byte {
	dst = m.AppendSigned(dst)
	if m.Credential == nil {
		return appendU32(dst, 0)
	}
	at := len(dst)
	dst = m.Credential.append(appendU32(dst, 0))
	binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return dst
}

// AppendSigned appends header and body: what digests, codes and signatures are computed of.
func (m *Message) AppendSigned(dst []byte) []byte {
	return append(m.Header.append(dst, len(m.Body)), m.Body...)
}

// setLength writes the length of a message into its envelope.
func setLength(b []byte) {
	binary.BigEndian.PutUint32(b[16:], uint32(len(b)-EnvelopeSize))
}

// BeginMessage appends the envelope and the header of a message to dst, for a caller that appends the body
// itself, without another buffer, and then calls EndMessage with len(dst) from before this call.
func BeginMessage(dst []byte, e *Envelope, h *Header) []byte {
	return h.append(e.Append(dst), 0)
}

// EndMessage ends the message without a credential that begins at octet start of dst: it writes the lengths.
func EndMessage(dst []byte, start int) []byte {
	binary.BigEndian.PutUint32(dst[start+EnvelopeSize+HeaderSize-4:], uint32(len(dst)-start-EnvelopeSize-HeaderSize))
	dst = appendU32(dst, 0)
	setLength(dst[start:])
	return dst
}

// Unparsable returns the answer to octets that are not a message, as the reference sends it: version 2.3,
// request ffffffff, operation 0. The body is the text.
func Unparsable(code ResponseCode, text string, expiration uint32) Message {
	return Message{
		Envelope: Envelope{Version: Version{2, 3}, Suggested: Latest(), Request: 0xffffffff},
		Header: Header{Response: code, Flags: Recursive | CacheCertify | PublicOnly,
			SiteSerial: UnknownSerial, Expiration: expiration},
		Body: appendStr(nil, text),
	}
}

// Credential proves that a message was made by the holder of a key (specification, section 3).
type Credential struct {
	Version, Reserved uint8
	Flags             uint16
	Signer            []byte // empty
	Counter           uint32 // of the messages of a session; 0: not counted
	Type              []byte // HS_MAC or HS_SIGNED
	Algorithm         []byte // a name, or before 2.6 a digest code
	Signature         []byte
}

// The types of credentials.
const (
	TypeMAC    = "HS_MAC"
	TypeSigned = "HS_SIGNED"
)

// parseCredential reads a credential, without its length.
func parseCredential(b []byte) (Credential, error) {
	r := newReader("credential", InvalidCredential, b)
	c := Credential{
		Version: r.u8("version"), Reserved: r.u8("reserved octet"), Flags: r.u16("flags"),
		Signer: r.handle("signer"), Counter: r.u32("counter"), Type: r.str("type"),
	}
	info := r.str("signed information")
	if err := r.end(); err != nil {
		return Credential{}, err
	}
	r = newReader("signed information of the credential", InvalidCredential, info)
	c.Algorithm, c.Signature = r.str("algorithm"), r.str("signature")
	return c, r.end()
}

// append appends the credential, without its length.
func (c *Credential) append(dst []byte) []byte {
	dst = append(dst, c.Version, c.Reserved)
	dst = appendU16(dst, c.Flags)
	dst = appendStr(dst, c.Signer)
	dst = appendU32(dst, c.Counter)
	dst = appendStr(dst, c.Type)
	dst = appendU32(dst, uint32(8+len(c.Algorithm)+len(c.Signature)))
	dst = appendStr(dst, c.Algorithm)
	return appendStr(dst, c.Signature)
}
