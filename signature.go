package stele

import "time"

// Signature is a statement that a namespace's key signed: that what the record's
// name stands for had these bytes. Package proof makes and judges them.
//
// What is signed names the identifier, so a signature can't be moved to another
// record; a change of targets leaves it as true as it was.
type Signature struct {
	SHA256 [32]byte  // of the bytes
	Size   uint64    // how many there are
	Type   string    // media type; "" says nothing
	Date   time.Time // when it was signed, by the signer's clock: UTC, whole seconds
	Key    string    // ID of the [SigningKey]
	JWS    string    // compact and detached (RFC 7515, appendix F): header..signature
}

// SigningKey is the public part of a key that signs for a namespace. The registry
// never has the private part. A key is never removed, since signatures of it stay:
// it is retired, and they stay valid; or revoked, and none of them is valid.
type SigningKey struct {
	ID        string // thumbprint (RFC 7638): SHA-256 in base64url
	Algorithm string // one of KeyED25519, KeyECDSA and KeyRSA
	Public    []byte // SubjectPublicKeyInfo in DER (RFC 5280, 4.1.2.7)
	Created   time.Time
	Expires   time.Time // it signs nothing from then on; zero: never
	Revoked   time.Time // from then on none of its signatures is accepted; zero: never
	Note      string    // for people
}

// The algorithms of signing keys, by the names that N2S has for them.
const (
	KeyED25519 = "ED25519"
	KeyECDSA   = "ECDSA" // on P-256, with SHA-256
	KeyRSA     = "RSA"   // of 2048 to 4096 bits, with SHA-256
)
