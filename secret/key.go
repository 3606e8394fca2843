// Package secret encrypts small secrets, such as the private keys of zones, before they
// are written to a store. The operator keeps the key that encrypts them apart from the
// registry, so that a copy of the registry, such as a backup, reveals no secret.
//
// A secret is encrypted with AES-256-GCM under a random nonce, as the standard library's
// [cipher.NewGCMWithRandomNonce] does it. The name of the place where the secret is stored
// is authenticated with it, so that a secret that was moved to another place does not open.
//
// The package never writes a secret in clear, never logs a key, and does not know what the
// secrets are for.
package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"log/slog"
	"strings"

	"github.com/stele-id/stele"
)

// Key encrypts secrets. The zero Key is invalid.
type Key struct {
	id       string
	material string // keySize random bytes; a string, so that keys can be compared
}

// keySize is the length of a key in bytes.
const keySize = 32

// keyMark begins the text of a key, so that people and programs that search for leaked
// secrets recognise one.
const keyMark = "stele-secret-key-1:"

// Purposes of what is derived from a key (HKDF, RFC 5869).
const (
	purposeID     = "stele secret key id v1"
	purposeCipher = "stele secret aes-256-gcm v1"
)

// NewKey makes a key of random bytes.
func NewKey(random io.Reader) (Key, error) {
	material := make([]byte, keySize)
	if _, err := io.ReadFull(random, material); err != nil {
		return Key{}, stele.Messagef("secret.key-not-made", "a secret key could not be made: {cause}", err)
	}
	return newKey(material)
}

func newKey(material []byte) (Key, error) {
	id, err := hkdf.Key(sha256.New, material, nil, purposeID, 6)
	if err != nil {
		return Key{}, err
	}
	return Key{hex.EncodeToString(id), string(material)}, nil
}

// ParseKey reads the text of a key. Its errors never repeat the text.
func ParseKey(text string) (Key, error) {
	encoded, ok := strings.CutPrefix(text, keyMark)
	if !ok {
		return Key{}, stele.Messagef("secret.key-malformed", "this is not a secret key; it should begin with stele-secret-key-1: and have 43 characters after that")
	}
	material, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	if err != nil || len(material) != keySize {
		return Key{}, stele.Messagef("secret.key-damaged", "this secret key is damaged: stele-secret-key-1: must be followed by 43 characters of base64url")
	}
	return newKey(material)
}

// ID returns the identifier of the key. It is derived from the key, and does not help to
// find the key.
func (k Key) ID() string { return k.id }

// IsZero reports whether k is the zero Key.
func (k Key) IsZero() bool { return k == Key{} }

// Text returns the key as [ParseKey] reads it. It is as secret as the key.
func (k Key) Text() string {
	return keyMark + base64.RawURLEncoding.EncodeToString([]byte(k.material))
}

// String returns the identifier, so that a key that is printed by mistake is not revealed.
func (k Key) String() string { return "secret key " + k.id }

// GoString does the same for %#v.
func (k Key) GoString() string { return k.String() }

// LogValue does the same for logs.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.id) }

// aead returns the cipher of the key.
func (k Key) aead() (cipher.AEAD, error) {
	if len(k.material) != keySize {
		return nil, stele.Messagef("secret.key-zero", "the zero key encrypts nothing")
	}
	derived, err := hkdf.Key(sha256.New, []byte(k.material), nil, purposeCipher, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// Seal encrypts a secret for the place with this name.
func (k Key) Seal(place string, clear []byte) (*Sealed, error) {
	aead, err := k.aead()
	if err != nil {
		return nil, err
	}
	return &Sealed{Key: k.id, Data: aead.Seal(nil, nil, clear, []byte(place))}, nil
}

// errDamaged says that a secret was changed, or moved to another place, after it was
// encrypted.
var errDamaged = stele.Messagef("secret.damaged-or-misplaced", "the encrypted secret is damaged, or belongs to another place")

// Open decrypts a secret of the place with this name.
func (k Key) Open(place string, s *Sealed) ([]byte, error) {
	aead, err := k.aead()
	if err != nil {
		return nil, err
	}
	clear, err := aead.Open(nil, nil, s.Data, []byte(place))
	if err != nil || s.Key != k.id {
		return nil, errDamaged
	}
	return clear, nil
}

// maxKeys bounds the keys in a file.
const maxKeys = 100

// ParseKeys reads keys: one a line, or separated by spaces. Empty lines and lines that
// begin with # are skipped. A text without a key is an error.
func ParseKeys(text string) (keys []Key, err error) {
	number := 0
	for line := range strings.Lines(text) {
		number++
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		for _, word := range strings.Fields(line) {
			k, err := ParseKey(word)
			if err != nil {
				return nil, stele.Messagef("secret.key-file-line-wrong", "line {line}: {cause}", number, err)
			}
			if len(keys) == maxKeys {
				return nil, stele.Messagef("secret.too-many-keys", "line {line}: more than {most} keys; remove those that no backup needs", number, maxKeys)
			}
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return nil, stele.Messagef("secret.key-file-empty", "there is no secret key in it; make one with 'stele secret keygen FILE'")
	}
	return keys, nil
}
