package proof

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/stele-id/stele"
)

const (
	maxPEM  = 16 << 10 // bytes of a key in PEM; one of RSA with 4096 bits has 3,300
	maxDER  = 4 << 10  // bytes of a private key; one of RSA with 4096 bits has 2,400
	rsaBits = 3072     // of a new key

	minRSA, maxRSA = 2048, 4096
)

// algorithms are those of signatures (RFC 7518, RFC 8037) by those of keys: each key
// makes signatures of one, so that none is taken for another. (RS256 and not PS256:
// all common tools verify it.)
var algorithms = map[string]jose.SignatureAlgorithm{
	stele.KeyED25519: jose.EdDSA,
	stele.KeyECDSA:   jose.ES256,
	stele.KeyRSA:     jose.RS256,
}

func invalid(op string, err error) error {
	return &stele.Error{Op: op, Kind: stele.Invalid, Err: err}
}

// Generate makes a private key. The algorithm is one of stele.KeyED25519, KeyECDSA and
// KeyRSA, in any case of letters.
func Generate(algorithm string, rand io.Reader) (crypto.Signer, error) {
	switch strings.ToUpper(algorithm) {
	case stele.KeyED25519:
		_, key, err := ed25519.GenerateKey(rand)
		return key, err
	case stele.KeyECDSA:
		return ecdsa.GenerateKey(elliptic.P256(), rand)
	case stele.KeyRSA:
		return rsa.GenerateKey(rand, rsaBits)
	}
	return nil, invalid("make a key", stele.Messagef("signing-key.algorithm-not-supported", `"{algorithm}" is not an algorithm; use ed25519, ecdsa or rsa`, algorithm))
}

// MarshalPrivate returns a private key in PEM (PKCS #8, RFC 5958).
func MarshalPrivate(key crypto.Signer) ([]byte, error) {
	if _, err := PublicKey(key, time.Time{}); err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, invalid("write the key", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// ParsePrivate reads a private key in PEM, as MarshalPrivate and OpenSSL write it:
// PKCS #8, or the older forms of EC and RSA keys. Its errors never contain a part of the key.
func ParsePrivate(text []byte) (crypto.Signer, error) {
	const op = "read the private key"
	block, err := onlyBlock(text, "PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY")
	if err != nil {
		return nil, invalid(op, err)
	}
	var key any
	switch {
	case block.Headers["DEK-Info"] != "":
		return nil, invalid(op, errEncrypted)
	case len(block.Bytes) > maxDER:
		return nil, invalid(op, stele.Messagef("private-key.rsa-too-large", "it is too large; RSA keys have 2048 to 4096 bits"))
	case block.Type == "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case block.Type == "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	default:
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	}
	signer, ok := key.(crypto.Signer)
	if err != nil || !ok {
		return nil, invalid(op, stele.Messagef("private-key.unusable", "its bytes are not a private key that can sign; make one with stele key new"))
	}
	if _, err := PublicKey(signer, time.Time{}); err != nil {
		return nil, err
	}
	return signer, nil
}

var errEncrypted = stele.Messagef("private-key.encrypted", "it has a password; take that away first: openssl pkey -in FILE -out NEW")

// onlyBlock returns the one block of PEM that is of these types. It ignores parameters of
// a curve, which OpenSSL writes before a key.
func onlyBlock(text []byte, types ...string) (*pem.Block, error) {
	if len(text) > maxPEM {
		return nil, stele.Messagef("pem.too-large", "it has {size} bytes; no key has more than {most}", len(text), maxPEM)
	}
	var found *pem.Block
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		switch {
		case block.Type == "EC PARAMETERS":
			continue
		case found != nil:
			return nil, stele.Messagef("pem.several-keys", "there is more than one key; give a file that has one")
		case block.Type == "ENCRYPTED PRIVATE KEY":
			return nil, errEncrypted
		}
		found = block
		if !slices.Contains(types, block.Type) {
			return nil, stele.Messagef("pem.wrong-type", `it is a "{type}" in PEM; give a "{expected}"`, block.Type, types[0])
		}
	}
	if found == nil {
		return nil, stele.Messagef("pem.key-missing", "there is no key in PEM; it begins with -----BEGIN {expected}-----", types[0])
	}
	return found, nil
}

// ParsePublic reads a public key in PEM (SubjectPublicKeyInfo), as
// "openssl pkey -pubout" writes it.
func ParsePublic(text []byte, created time.Time) (stele.SigningKey, error) {
	const op = "read the public key"
	if bytes.Contains(text, []byte("PRIVATE KEY-----")) {
		return stele.SigningKey{}, invalid(op, stele.Messagef("public-key.is-private", "it is a private key, which must not be shared; give its public part: openssl pkey -in FILE -pubout"))
	}
	block, err := onlyBlock(text, "PUBLIC KEY")
	if err != nil {
		return stele.SigningKey{}, invalid(op, err)
	}
	key, err := parseSPKI(block.Bytes)
	if err != nil {
		return stele.SigningKey{}, invalid(op, err)
	}
	return PublicKey(key, created)
}

// PublicKey returns the public part of a key, or the key itself if it is public, as a
// key that is valid from then on.
func PublicKey(key crypto.PublicKey, created time.Time) (stele.SigningKey, error) {
	if private, ok := key.(crypto.Signer); ok {
		key = private.Public()
	}
	k := stele.SigningKey{Created: created.UTC().Truncate(time.Second)}
	var err error
	if k.Algorithm, err = algorithmOf(key); err != nil {
		return stele.SigningKey{}, invalid("read the key", err)
	}
	if k.Public, err = x509.MarshalPKIXPublicKey(key); err != nil {
		return stele.SigningKey{}, invalid("read the key", err)
	}
	if k.ID, err = thumbprint(key); err != nil {
		return stele.SigningKey{}, invalid("read the key", err)
	}
	return k, nil
}

// algorithmOf returns the algorithm of a public key, and refuses weak keys and unsupported
// ones.
func algorithmOf(key crypto.PublicKey) (string, error) {
	switch key := key.(type) {
	case ed25519.PublicKey:
		return stele.KeyED25519, nil
	case *ecdsa.PublicKey:
		if key.Curve != elliptic.P256() {
			return "", stele.Messagef("signing-key.curve-not-supported", "it is on the curve {curve}; use P-256", key.Curve.Params().Name)
		}
		return stele.KeyECDSA, nil
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits < minRSA || bits > maxRSA {
			return "", stele.Messagef("signing-key.rsa-wrong-size", "the RSA key has {bits} bits; use {least} to {most}", bits, minRSA, maxRSA)
		}
		if key.E != 65537 || key.N.Bit(0) == 0 {
			return "", stele.Messagef("signing-key.rsa-unusual", "the RSA key's numbers are unusual; make one with the exponent 65537")
		}
		return stele.KeyRSA, nil
	}
	return "", stele.Messagef("signing-key.kind-not-supported", "keys are of Ed25519, ECDSA on P-256, or RSA; make one with stele key new")
}

// thumbprint returns the SHA-256 of the key as RFC 7638 writes it.
func thumbprint(key crypto.PublicKey) (string, error) {
	sum, err := (&jose.JSONWebKey{Key: key}).Thumbprint(crypto.SHA256)
	return base64.RawURLEncoding.EncodeToString(sum), err
}

// parseSPKI reads a public key. Other bytes for the same key are refused, so that a
// key has one form.
func parseSPKI(der []byte) (crypto.PublicKey, error) {
	key, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, stele.Messagef("public-key.malformed", "its bytes are not a public key (SubjectPublicKeyInfo)")
	}
	if again, err := x509.MarshalPKIXPublicKey(key); err != nil || !bytes.Equal(again, der) {
		return nil, stele.Messagef("public-key.not-canonical", "its bytes are not a public key in its shortest form (DER)")
	}
	return key, nil
}

// Check tells why a key is not what it says, or nil: its bytes must be a public key
// of its algorithm, and its ID their thumbprint.
func Check(k stele.SigningKey) error {
	if _, err := check(k); err != nil {
		return invalid("check the key", err)
	}
	return nil
}

func check(k stele.SigningKey) (crypto.PublicKey, error) {
	public, err := parseSPKI(k.Public)
	if err != nil {
		return nil, stele.Messagef("signing-key.invalid", `key "{key}": {cause}`, k.ID, err)
	}
	algorithm, err := algorithmOf(public)
	if err != nil {
		return nil, stele.Messagef("signing-key.invalid", `key "{key}": {cause}`, k.ID, err)
	}
	if algorithm != k.Algorithm {
		return nil, stele.Messagef("signing-key.algorithm-differs", `key "{key}" says to be of "{claimed}", and is of "{algorithm}"`, k.ID, k.Algorithm, algorithm)
	}
	id, err := thumbprint(public)
	if err != nil || id != k.ID {
		return nil, stele.Messagef("signing-key.thumbprint-differs", `key "{key}" has the thumbprint "{thumbprint}"; use that`, k.ID, id)
	}
	return public, nil
}

// decodeURL reads base64url without padding, strictly.
func decodeURL(text string) ([]byte, error) {
	if strings.ContainsAny(text, "\r\n") {
		return nil, stele.Messagef("base64url.line-breaks", "line breaks")
	}
	return base64.RawURLEncoding.Strict().DecodeString(text)
}

// KeyState returns the state of a key in a word, and since when it has it: it signs, or is
// waiting to, or is retired, or revoked.
func KeyState(k *stele.SigningKey, now time.Time) (state string, since time.Time) {
	switch {
	case !k.Revoked.IsZero() && !now.Before(k.Revoked):
		return "revoked", k.Revoked
	case !k.Expires.IsZero() && !now.Before(k.Expires):
		return "retired", k.Expires
	case k.Created.After(now.Add(Skew)):
		return "waiting", k.Created
	}
	return "signs", k.Created
}

// NewKey makes a key pair of an algorithm. A key whose ID begins with a hyphen would be taken
// for a flag on a command line, so NewKey makes another then.
func NewKey(algorithm string, random io.Reader, created time.Time) (key crypto.Signer, k stele.SigningKey, err error) {
	for {
		if key, err = Generate(algorithm, random); err != nil {
			return nil, k, err
		}
		if k, err = PublicKey(key, created); err != nil || !strings.HasPrefix(k.ID, "-") {
			return key, k, err
		}
	}
}
