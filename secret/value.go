package secret

import (
	"encoding/json"

	"github.com/stele-id/stele"
)

// Sealed is an encrypted secret.
type Sealed struct {
	Key  string `json:"key"`  // identifier of the key that encrypted it
	Data []byte `json:"data"` // nonce, ciphertext and tag
}

// Value is a secret in a document that is stored. In JSON it is the object of a [Sealed];
// a string, which is the secret itself in base64, is read too, since programs before this
// package wrote that, but is never written.
type Value struct {
	clear  []byte
	sealed *Sealed
}

// NewValue returns a secret that is not encrypted yet. It must be sealed before it can be
// written.
func NewValue(clear []byte) Value { return Value{clear: clear} }

// IsZero reports whether there is no secret.
func (v Value) IsZero() bool { return v.clear == nil && v.sealed == nil }

// Key returns the identifier of the key that encrypted the secret; "" if it is not
// encrypted.
func (v Value) Key() string {
	if v.sealed == nil {
		return ""
	}
	return v.sealed.Key
}

// Clear returns the secret; nil if it is encrypted and [Value.Open] was not called.
func (v Value) Clear() []byte { return v.clear }

// String hides the secret.
func (v Value) String() string {
	switch {
	case v.IsZero():
		return "no secret"
	case v.sealed == nil:
		return "secret in clear"
	}
	return "secret under key " + v.sealed.Key
}

// GoString does the same for %#v.
func (v Value) GoString() string { return v.String() }

// Opener decrypts the secrets of places.
type Opener interface {
	Open(place string, s *Sealed) ([]byte, error)
}

// Open decrypts the secret, so that Clear returns it.
func (v *Value) Open(with Opener, place string) error {
	if v.clear != nil || v.sealed == nil {
		return nil
	}
	clear, err := with.Open(place, v.sealed)
	if err == nil {
		v.clear = clear
	}
	return err
}

// Seal encrypts the secret with the key and reports whether that changed anything. An
// encrypted secret that is not under this key must have been opened before.
func (v *Value) Seal(with Key, place string) (changed bool, err error) {
	if v.IsZero() || v.Key() == with.ID() {
		return false, nil
	}
	if v.clear == nil {
		return false, stele.Messagef("secret.other-key", "the secret is encrypted under another key and was not opened")
	}
	sealed, err := with.Seal(place, v.clear)
	if err != nil {
		return false, err
	}
	v.sealed = sealed
	return true, nil
}

var errClear = stele.Messagef("secret.not-encrypted", "a secret that is not encrypted is never written")

// MarshalJSON writes the encrypted secret, and fails if it is not encrypted.
func (v Value) MarshalJSON() ([]byte, error) {
	switch {
	case v.sealed != nil:
		return json.Marshal(v.sealed)
	case v.clear != nil:
		return nil, errClear
	}
	return []byte("null"), nil
}

// UnmarshalJSON reads an encrypted secret, or one in clear that an older program wrote.
func (v *Value) UnmarshalJSON(text []byte) error {
	*v = Value{}
	if len(text) > 0 && text[0] == '"' {
		return json.Unmarshal(text, &v.clear)
	}
	if err := json.Unmarshal(text, &v.sealed); err != nil {
		return err
	}
	if v.sealed != nil && (v.sealed.Key == "" || len(v.sealed.Data) == 0) {
		return stele.Messagef("secret.key-or-data-missing", "an encrypted secret has key and data")
	}
	return nil
}
