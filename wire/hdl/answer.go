package hdl

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"hash"
	"io"
)

// The types of keys in answers to challenges.
const (
	TypePublicKey = "HS_PUBKEY"
	TypeSecretKey = "HS_SECKEY"
)

// DigestFor returns the hash function of request digests in version v.
func DigestFor(v Version) DigestCode {
	switch {
	case v.Before(1):
		return MD5
	case v.Before(7):
		return SHA1
	}
	return SHA256
}

// hash returns the hash function; nil for an unknown code.
func (c DigestCode) hash() func() hash.Hash {
	switch c {
	case MD5:
		return md5.New
	case SHA1:
		return sha1.New
	case SHA256:
		return sha256.New
	}
	return nil
}

// RequestDigest returns the digest of a request's header and body. The code must be a known one.
func RequestDigest(code DigestCode, m *Message) Digest {
	make := code.hash()
	if make == nil {
		return Digest{}
	}
	h := make()
	m.writeSigned(h)
	return Digest{code, h.Sum(nil)}
}

// writeSigned writes header and body.
func (m *Message) writeSigned(w io.Writer) {
	var head [HeaderSize]byte
	_, _ = w.Write(m.Header.append(head[:0], len(m.Body)))
	_, _ = w.Write(m.Body)
}

// MatchesDigest reports whether a digest in a response is that of the request m.
func (m *Message) MatchesDigest(d Digest) bool {
	return d.Code != 0 && len(d.Sum) > 0 && subtle.ConstantTimeCompare(RequestDigest(d.Code, m).Sum, d.Sum) == 1
}

// The codes of answers by a secret, beside those of DigestCode: 0x10 adds HMAC, 0x20 PBKDF2.
const (
	answerHMACSHA1   = 0x12
	answerHMACSHA256 = 0x13
	answerPBKDF2     = 0x22
)

// Bounds of answers that derive a key of the secret. Anyone can send such an answer, and the
// server must compute it, so the rounds of SHA-1 that an answer may cost are 10 times those that clients ask for,
// and no more.
const (
	MaxAnswerRounds = 100_000
	maxAnswerBits   = 512
	maxSalt         = 1024
)

// The derivation that the reference's client uses.
const (
	answerIterations = 10_000
	answerKeyBits    = 160
)

// SaltSize is how many random octets AnswerBySecret needs.
const SaltSize = 16

// AnswerBySecret returns the answer to a challenge by the holder of a secret, in the form that the
// reference's client of version v sends. salt has SaltSize random octets; before 2.7 it is not used.
func AnswerBySecret(v Version, secret, nonce []byte, digest Digest, salt []byte) ([]byte, error) {
	switch {
	case v.Before(1):
		return secretSum(md5.New, secret, nonce, digest.Sum), nil
	case v.Before(7):
		return append([]byte{byte(SHA1)}, secretSum(sha1.New, secret, nonce, digest.Sum)...), nil
	}
	sum, err := derivedSum(secret, nonce, digest.Sum, salt, answerIterations, answerKeyBits)
	if err != nil {
		return nil, err
	}
	dst := appendStr([]byte{answerPBKDF2}, salt)
	dst = appendU32(appendU32(dst, answerIterations), answerKeyBits)
	return appendStr(dst, sum), nil
}

// VerifySecretAnswer checks an answer to a challenge by a secret, of a client of version v. It returns
// nil if the answer is right.
func VerifySecretAnswer(v Version, answer, secret, nonce, digest []byte) error {
	var want []byte
	got := answer
	if v.Before(1) {
		want = secretSum(md5.New, secret, nonce, digest)
	} else {
		r := newReader("answer by a secret", NotAuthenticated, answer)
		var err *Error
		code := r.u8("code")
		if code == answerPBKDF2 {
			salt, iterations, bits := r.limited("salt", maxSalt, NotAuthenticated), r.u32("iterations"), r.u32("key bits")
			if got = r.str("code of the message"); r.end() == nil {
				want, err = derivedSum(secret, nonce, digest, salt, iterations, bits)
			}
		} else {
			want, err = plainSum(code, secret, nonce, digest)
			got = r.rest()
		}
		if r.err != nil {
			return r.err
		}
		if err != nil {
			return err
		}
	}
	if subtle.ConstantTimeCompare(got, want) != 1 {
		return errorf(NotAuthenticated, "hdl.answer-wrong", "the answer to the challenge is wrong; check the secret or the key")
	}
	return nil
}

// plainSum computes the answers that do not derive a key.
func plainSum(code uint8, secret, nonce, digest []byte) ([]byte, *Error) {
	switch code {
	case uint8(MD5), uint8(SHA1), uint8(SHA256):
		return secretSum(DigestCode(code).hash(), secret, nonce, digest), nil
	case answerHMACSHA1:
		return hmacSum(sha1.New, secret, nonce, digest), nil
	case answerHMACSHA256:
		return hmacSum(sha256.New, secret, nonce, digest), nil
	}
	return nil, errorf(NotAuthenticated, "hdl.answer-code", "the answer to the challenge has the code {code}, which is not known", int(code))
}

// secretSum is the hash of secret, nonce, digest, secret.
func secretSum(make func() hash.Hash, secret, nonce, digest []byte) []byte {
	h := make()
	for _, b := range [][]byte{secret, nonce, digest, secret} {
		_, _ = h.Write(b)
	}
	return h.Sum(nil)
}

func hmacSum(make func() hash.Hash, key []byte, parts ...[]byte) []byte {
	h := hmac.New(make, key)
	for _, b := range parts {
		_, _ = h.Write(b)
	}
	return h.Sum(nil)
}

// derivedSum computes the answer with a key that PBKDF2 derives of the secret.
func derivedSum(secret, nonce, digest, salt []byte, iterations, bits uint32) ([]byte, *Error) {
	blocks := (uint64(bits) + 159) / 160
	if iterations == 0 || bits == 0 || bits%8 != 0 || bits > maxAnswerBits || uint64(iterations)*blocks > MaxAnswerRounds {
		return nil, errorf(NotAuthenticated, "hdl.answer-derivation",
			"the answer asks for {iterations} iterations and a key of {bits} bits; the key may have up to {most}, and its derivation may take {rounds} rounds", iterations, bits, maxAnswerBits, MaxAnswerRounds)
	}
	key, err := pbkdf2.Key(sha1.New, string(secret), salt, int(iterations), int(bits/8))
	if err != nil {
		return nil, errorf(NotAuthenticated, "", "{cause}", err)
	}
	return hmacSum(sha1.New, key, nonce, digest), nil
}

// HashedSecret returns the secret that tools store for a password where the user asks for its hash.
func HashedSecret(password []byte) []byte {
	sum := sha1.Sum(password)
	return hex.AppendEncode(nil, sum[:])
}

// AnswerByKey returns the answer to a challenge by the holder of a private key, in the form that the
// reference's client of version v sends. random is for DSA, and may be nil for RSA.
func AnswerByKey(v Version, key *PrivateKey, nonce []byte, digest Digest, random io.Reader) ([]byte, error) {
	code := signatureHash(v, key.DSA != nil)
	signature, err := key.sign(code, random, nonce, digest.Sum)
	if err != nil {
		return nil, err
	}
	return appendStr(appendStr(nil, hashName(code)), signature), nil
}

// VerifyKeyAnswer checks an answer to a challenge by a public key. It returns nil if the answer is right.
func VerifyKeyAnswer(key *PublicKey, answer, nonce, digest []byte) error {
	r := newReader("answer by a key", NotAuthenticated, answer)
	name, signature := r.limited("hash name", 32, NotAuthenticated), r.str("signature")
	if err := r.end(); err != nil {
		return err
	}
	code := hashNamed(name)
	if code == 0 {
		return errorf(NotAuthenticated, "hdl.answer-hash", "the answer to the challenge uses the hash function {name}, which is not known", quoted(string(name)))
	}
	if err := key.verify(code, signature, nonce, digest); err != nil {
		return err
	}
	return nil
}
