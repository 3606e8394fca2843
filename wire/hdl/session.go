package hdl

import (
	"io"
	"math/big"
)

// Algorithm is the cipher of a session.
type Algorithm uint32

// The ciphers. The reference's server chooses AES for all clients since version 8.
const (
	DES       Algorithm = 1
	TripleDES Algorithm = 2
	AES       Algorithm = 3
)

// BlockSize returns the size of the cipher's initial vector, and 0 for an unknown cipher.
func (a Algorithm) BlockSize() int {
	switch a {
	case DES, TripleDES:
		return 8
	case AES:
		return 16
	}
	return 0
}

// SessionKey makes the key of a session of the secret that both sides share, as Java's key agreement does:
// AES takes 32 octets after leading zeros, all of which the codes of messages use and 16 the cipher;
// DES and triple DES take the first 8 and 24, with odd parity, and do not strip zeros.
func (a Algorithm) SessionKey(secret []byte) ([]byte, error) {
	need := map[Algorithm]int{DES: 8, TripleDES: 24, AES: 32}[a]
	if a == AES {
		for len(secret) > 0 && secret[0] == 0 {
			secret = secret[1:]
		}
	}
	if need == 0 || len(secret) < need {
		return nil, errorf(InvalidSessionKey, "hdl.session-secret", "the shared secret of {octets} octets gives no key for the cipher {algorithm}; set up another session", len(secret), uint32(a))
	}
	key := append(make([]byte, 0, need), secret[:need]...)
	if a != AES {
		for i, b := range key {
			key[i] = oddParity(b)
		}
	}
	return key, nil
}

// oddParity sets the lowest bit so that the number of bits is odd.
func oddParity(b byte) byte {
	p := b >> 1
	p ^= p >> 4
	p ^= p >> 2
	p ^= p >> 1
	return b&0xfe | ^p&1
}

// Check says whether the other side's key may be used: a group of a size that is neither weak nor
// expensive, and numbers that do not fix the secret. It does not ask whether P is prime, which costs more than the
// exchange: the client chooses the group, and its digest and our signature keep others from changing it.
func (k *DHKey) Check() error {
	bits := k.P.BitLen()
	switch {
	case bits < MinDHBits || bits > MaxDHBits:
		return errorf(InvalidSessionKey, "hdl.dh-size", "the Diffie-Hellman group has {bits} bits; it must have from {least} to {most}", bits, MinDHBits, MaxDHBits)
	case k.P.Bit(0) == 0:
		return errorf(InvalidSessionKey, "hdl.dh-even", "the modulus of the Diffie-Hellman group is even")
	case !between(k.G, k.P) || !between(k.Y, k.P):
		return errorf(InvalidSessionKey, "hdl.dh-degenerate", "the generator or the public number of the Diffie-Hellman key is not from 2 to p-2")
	}
	return nil
}

// privateOctets is the size of our private numbers: 512 bits, twice the strength of any group we accept.
const privateOctets = 64

// DHPrivate is one side of an exchange. It is used once.
type DHPrivate struct {
	Public DHKey
	x      *big.Int
}

// NewDH makes a private number for a group, of octets of random. A server takes the group of the client's key,
// after Check.
func NewDH(p, g *big.Int, random io.Reader) (*DHPrivate, error) {
	if err := (&DHKey{Y: g, P: p, G: g}).Check(); err != nil {
		return nil, err
	}
	var b [privateOctets]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return nil, errorf(SessionFailed, "", "{cause}", err)
	}
	x := new(big.Int).SetBytes(b[:])
	k := &DHPrivate{DHKey{new(big.Int).Exp(g, x, p), p, g}, x}
	if err := k.Public.Check(); err != nil {
		return nil, err
	}
	return k, nil
}

// OakleyGroup returns the group that clients offer: the second group of RFC 2409, of 1024 bits.
func OakleyGroup() (p, g *big.Int) {
	p, _ = new(big.Int).SetString("ffffffffffffffffc90fdaa22168c234c4c6628b80dc1cd129024e088a67cc74020bbea63b139b22514a08798e3404dd"+
		"ef9519b3cd3a431b302b0a6df25f14374fe1356d6d51c245e485b576625e7ec6f44c42e9a637ed6b0bff5cb6f406b7edee386bfb5a899fa5ae9f24117c4b1fe649286651ece65381ffffffffffffffff", 16)
	return p, big.NewInt(2)
}

// Shared returns the secret that both sides share, as wide as the modulus.
func (k *DHPrivate) Shared(peer *DHKey) ([]byte, error) {
	if err := peer.Check(); err != nil {
		return nil, err
	}
	if peer.P.Cmp(k.Public.P) != 0 || peer.G.Cmp(k.Public.G) != 0 {
		return nil, errorf(InvalidSessionKey, "hdl.dh-group", "the two keys of the session are of different Diffie-Hellman groups")
	}
	secret := new(big.Int).Exp(peer.Y, k.x, k.Public.P)
	if !between(secret, k.Public.P) {
		return nil, errorf(InvalidSessionKey, "hdl.dh-secret", "the shared secret of the session is 0, 1 or p-1, which everyone can guess")
	}
	return secret.FillBytes(make([]byte, (k.Public.P.BitLen()+7)/8)), nil
}

// Seal encrypts header, body and credential with the session's key. iv has BlockSize random octets; before 2.4
// it is not used, because messages are encrypted block by block.
func (m *Message) Seal(a Algorithm, key, iv []byte) error {
	var out []byte
	var err *Error
	if clear := m.AppendClear(nil); m.Envelope.Version.Before(4) {
		out, err = encryptECB(a, key, clear)
	} else {
		out, err = encryptCBC(a, key, iv, clear)
	}
	if err != nil {
		return err
	}
	m.Envelope.Encrypted, m.Sealed = true, out
	return nil
}

// Open decrypts the message and reads header, body and credential. The message still encodes to the same
// octets, encrypted.
func (m *Message) Open(a Algorithm, key []byte) error {
	var clear []byte
	var err *Error
	if m.Envelope.Version.Before(4) {
		clear, err = decryptECB(a, key, m.Sealed)
	} else {
		clear, err = decryptCBC(a, key, m.Sealed)
	}
	if err != nil {
		return err
	}
	return m.parse(clear)
}
