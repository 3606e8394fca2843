package hdl

import "io"

// The REST interface proves identities as the protocol does, but over two nonces, the server's and the client's, where
// the protocol has a nonce and the digest of a request; and it names algorithms where the protocol has code octets.

// Derivation is how a key is derived of a secret, by PBKDF2.
type Derivation struct {
	Salt       []byte
	Iterations uint32
	Bits       uint32 // of the key
}

// rounds is how many rounds of SHA-1 the derivation takes.
func (d *Derivation) rounds() uint64 { return uint64(d.Iterations) * ((uint64(d.Bits) + 159) / 160) }

// SecretAnswer returns the answer that VerifySecretAnswer checks, of a code that was computed by an algorithm with a
// name: MD5, SHA1, SHA-1, SHA256, SHA-256, HMAC-SHA1, HMAC-SHA256 or PBKDF2-HMAC-SHA1. Only the last one uses d.
func SecretAnswer(algorithm string, mac []byte, d Derivation) ([]byte, error) {
	code := uint8(hashNamed([]byte(algorithm)))
	switch algorithm {
	case "HMAC-SHA1":
		code = answerHMACSHA1
	case "HMAC-SHA256":
		code = answerHMACSHA256
	case "PBKDF2-HMAC-SHA1":
		dst := appendStr([]byte{answerPBKDF2}, d.Salt)
		dst = appendU32(appendU32(dst, d.Iterations), d.Bits)
		return appendStr(dst, mac), nil
	}
	if code == 0 || len(algorithm) == 1 {
		return nil, errorf(NotAuthenticated, "hdl.answer-hash", "the answer to the challenge uses the hash function {name}, which is not known", quoted(algorithm))
	}
	return append([]byte{code}, mac...), nil
}

// AnswerRounds returns how many rounds of SHA-1 it takes to verify an answer of SecretAnswer; 0 if it is not derived.
func AnswerRounds(algorithm string, d Derivation) uint64 {
	if algorithm != "PBKDF2-HMAC-SHA1" {
		return 0
	}
	return min(d.rounds(), MaxAnswerRounds)
}

// KeyAnswer returns the answer that VerifyKeyAnswer checks, of a signature with a hash function of this name.
func KeyAnswer(algorithm string, signature []byte) []byte {
	return appendStr(appendStr(nil, algorithm), signature)
}

// SignNonces returns the signature of two nonces by which the server of the REST interface proves itself, and the name
// of its hash function. random is for DSA, and may be nil for RSA.
func (k *PrivateKey) SignNonces(nonce, cnonce []byte, random io.Reader) (algorithm string, signature []byte, err error) {
	signature, err = k.sign(SHA256, random, nonce, cnonce)
	return hashName(SHA256), signature, err
}
