package hdl

import (
	"crypto/sha1"
	"crypto/sha256"
	"crypto/subtle"
	"io"
)

// signedEnvelope returns the part of the envelope that codes and signatures cover from 2.7 on, and the counter
// (specification, section 3: E).
func (m *Message) signedEnvelope(counter uint32) []byte {
	e := &m.Envelope
	b := append(make([]byte, 0, 16), e.Version.Major, e.Version.Minor)
	if !e.Version.Before(8) {
		b = append(b, e.Suggested.Major, e.Suggested.Minor)
	}
	b = appendU32(b, e.Session)
	b = appendU32(b, e.Request)
	return appendU32(b, counter)
}

// mac computes the code of a message of a session, and the name of its algorithm.
func (m *Message) mac(key []byte, counter uint32) (algorithm string, sum []byte) {
	v := m.Envelope.Version
	if !v.Before(7) {
		return "HMAC-SHA256", hmacSum(sha256.New, key, m.signedEnvelope(counter), m.AppendSigned(nil))
	}
	h := sha1.New()
	if v.Before(5) {
		_, _ = h.Write(key)
		m.writeSigned(h)
		_, _ = h.Write(key)
		return "\x02", h.Sum(nil)
	}
	// 2.5 and 2.6 meant to cover the envelope, and wrote the parts at wrong places: clients of both
	// versions compute and expect this.
	_, _ = h.Write(key[:min(4, len(key))])
	m.writeSigned(h)
	_, _ = h.Write(key)
	_, _ = h.Write(make([]byte, len(key)+10))
	if v.Before(6) {
		return "\x02", h.Sum(nil)
	}
	return "SHA1", h.Sum(nil)
}

// AddMAC sets the credential of a message of a session: a code that only holders of the session's key can make.
func (m *Message) AddMAC(key []byte, counter uint32) {
	algorithm, sum := m.mac(key, counter)
	m.Credential = &Credential{Counter: counter, Type: []byte(TypeMAC), Algorithm: []byte(algorithm), Signature: sum}
}

// VerifyMAC checks the code of a message of a session. The algorithm must be that of the message's version:
// a message does not choose a weaker one. It does not judge the counter.
func (m *Message) VerifyMAC(key []byte) error {
	c := m.Credential
	if c == nil || string(c.Type) != TypeMAC {
		return errorf(InvalidCredential, "hdl.mac-missing", "the message has no HS_MAC credential")
	}
	algorithm, sum := m.mac(key, c.Counter)
	if string(c.Algorithm) != algorithm {
		return errorf(InvalidCredential, "hdl.mac-algorithm", "the message has a code of the algorithm {algorithm}; {expected} is that of its version", quoted(string(c.Algorithm)), quoted(algorithm))
	}
	if subtle.ConstantTimeCompare(sum, c.Signature) != 1 {
		return errorf(InvalidCredential, "hdl.mac-wrong", "the code of the message is wrong: it was changed on its way, or made with another session's key")
	}
	return nil
}

// signedParts returns what a signature of the message covers.
func (m *Message) signedParts(counter uint32) [][]byte {
	v := m.Envelope.Version
	switch {
	case v.Before(6):
		return [][]byte{m.AppendSigned(nil)}
	case v.Before(7):
		// 2.6 wrote the counter over the session id, and left the rest empty.
		session := appendU32(nil, m.Envelope.Session)
		e := append([]byte{v.Major, v.Minor}, session[:2]...)
		e = append(appendU32(e, counter), make([]byte, 6)...)
		return [][]byte{e, m.AppendSigned(nil)}
	}
	return [][]byte{m.signedEnvelope(counter), m.AppendSigned(nil)}
}

// Sign sets the credential of a certified response outside of a session: the signature of the server's key.
// random is for DSA, and may be nil for RSA.
func (m *Message) Sign(key *PrivateKey, counter uint32, random io.Reader) error {
	code := signatureHash(m.Envelope.Version, key.DSA != nil)
	signature, err := key.sign(code, random, m.signedParts(counter)...)
	if err != nil {
		return err
	}
	m.Credential = &Credential{Counter: counter, Type: []byte(TypeSigned), Algorithm: []byte(hashName(code)), Signature: signature}
	return nil
}

// VerifySignature checks the signature of a certified response with the server's key, which HS_SITE has. The hash
// function must be at least as strong as that of the message's version.
func (m *Message) VerifySignature(key *PublicKey) error {
	c := m.Credential
	if c == nil || string(c.Type) != TypeSigned {
		return errorf(InvalidCredential, "hdl.signature-missing", "the message has no HS_SIGNED credential")
	}
	code := hashNamed(c.Algorithm)
	if code < signatureHash(m.Envelope.Version, key.DSA != nil) {
		return errorf(InvalidCredential, "hdl.signature-hash", "the message is signed with the hash function {name}, which its version does not use", quoted(string(c.Algorithm)))
	}
	if err := key.verify(code, c.Signature, m.signedParts(c.Counter)...); err != nil {
		return err
	}
	return nil
}
