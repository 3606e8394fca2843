package auth

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha512"
	"io"

	"github.com/stele-id/stele"
)

// DigestRate is how often a user gets a digest by mail.
type DigestRate string

const (
	DigestWeekly DigestRate = "weekly" // of users who have not chosen
	DigestDaily  DigestRate = "daily"
	DigestOff    DigestRate = "off"
)

// DigestRates are the rates that a user can choose.
func DigestRates() []DigestRate { return []DigestRate{DigestDaily, DigestWeekly, DigestOff} }

// DigestKeyCell has the key of the links that end digests.
const DigestKeyCell = "digest key"

// DigestCredential is in a link that ends the digests of a user.
const DigestCredential CredentialKind = "stele-digest_"

// DigestKey makes the credentials that end digests. The link in an old mail must work as long as
// the user exists, so credentials are computed and not kept.
type DigestKey []byte

const digestKeySize = 32

// NewDigestKey makes a key from a source of random bits.
func NewDigestKey(random io.Reader) (DigestKey, error) {
	k := make(DigestKey, digestKeySize)
	if _, err := io.ReadFull(random, k); err != nil {
		return nil, refuse(stele.Unavailable, "token.no-random-bits", "no random bits: {cause}", err)
	}
	return k, nil
}

// IsValid reports whether it can be a key.
func (k DigestKey) IsValid() bool { return len(k) == digestKeySize }

// Credential returns the credential that ends the digests of a user.
func (k DigestKey) Credential(user string) (Credential, error) {
	mac := hmac.New(sha512.New, k)
	mac.Write([]byte("end the digests of user:" + user))
	return NewCredentialOf(DigestCredential, bytes.NewReader(mac.Sum(nil)))
}

// Proves reports whether a text is the credential that ends the digests of a user.
func (k DigestKey) Proves(user, text string) bool {
	c, ok := parseCredential(DigestCredential, text)
	made, err := k.Credential(user)
	return ok && err == nil && c.id == made.id && c.Proves(made.Hash())
}
