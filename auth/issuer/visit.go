package issuer

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"time"
)

// VisitLife is how long a person may take at the provider.
const VisitLife = 10 * time.Minute

// Visit is what the server remembers while the person is at the provider.
type Visit struct {
	Next  string `json:"next,omitempty"`  // path to which signing in leads
	Link  string `json:"link,omitempty"`  // credential of a one-time link that is used
	Join  string `json:"join,omitempty"`  // ID of a session whose user wants to link the account
	Again string `json:"again,omitempty"` // ID of a session whose user proves again who they are
}

// sealed is a visit with what must come back, as the cookie has it.
type sealed struct {
	Visit
	Issuer   string    `json:"issuer"`
	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`
	Verifier string    `json:"verifier"`
	Expires  time.Time `json:"expires"`
}

// purpose is what the key is derived for (HKDF, RFC 5869).
const purpose = "stele issuer visit aes-256-gcm v1"

// aead returns the cipher of cookies. Its key comes from the client's secret: all servers of a
// registry have it, it outlives a restart, and nothing has to be written for a visitor who is not
// known yet.
func (i *Issuer) aead() (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, []byte(i.o.Secret), []byte(i.o.URL+"\n"+i.o.Client), purpose, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

func (i *Issuer) seal(s sealed) (string, error) {
	clear, err := json.Marshal(s)
	if err != nil {
		return "", err
	}
	aead, err := i.aead()
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(aead.Seal(nil, nil, clear, []byte(i.o.Name))), nil
}

func (i *Issuer) open(cookie string) (s sealed, err error) {
	data, err := base64.RawURLEncoding.DecodeString(cookie)
	if err != nil {
		return s, err
	}
	aead, err := i.aead()
	if err != nil {
		return s, err
	}
	clear, err := aead.Open(nil, nil, data, []byte(i.o.Name))
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(clear, &s)
}

// random returns 256 random bits as text.
func random(from io.Reader) (string, error) {
	var b [32]byte
	if _, err := io.ReadFull(from, b[:]); err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(b[:]), nil
}
