package auth

import (
	"crypto/sha256"
	"encoding/base64"
	"io"
	"strings"

	"github.com/stele-id/stele"
)

// A credential's text is a mark by which people and scanners for leaked secrets know
// it, the token's ID, and 256 random bits:
//
//	stele_4k2m9x0q7rbc_bWKpIO3G0c2HJ9s4g7hVwZ0yq5mT1e8nLxR6uDfAkQo
const (
	idSize       = 12 // characters of 5 bits
	secretSize   = 32 // bytes
	secretLength = 43 // of them as text
)

// CredentialKind is what a credential is for, which its mark says: one of a session is
// never taken for a token.
type CredentialKind string

// The kinds of credentials.
const (
	TokenCredential   CredentialKind = "stele_"
	SessionCredential CredentialKind = "stele-session_" // in a cookie of the desk
	LinkCredential    CredentialKind = "stele-link_"    // in a link that signs in once
)

// idLetters are those of Crockford's base 32, in lower case: without i, l, o and u,
// so that an ID can be read out.
const idLetters = "0123456789abcdefghjkmnpqrstvwxyz"

// Credential is what a caller sends to authenticate. It prints without its secret; see
// Reveal.
type Credential struct {
	kind   CredentialKind
	id     string
	secret [secretSize]byte
}

// NewCredential makes a token's credential from a source of random bits.
func NewCredential(random io.Reader) (Credential, error) {
	return NewCredentialOf(TokenCredential, random)
}

// NewCredentialOf makes a credential of a kind from a source of random bits.
func NewCredentialOf(kind CredentialKind, random io.Reader) (Credential, error) {
	c := Credential{kind: kind}
	var id [idSize]byte
	if _, err := io.ReadFull(random, id[:]); err != nil {
		return c, refuse(stele.Unavailable, "token.no-random-bits", "no random bits: {cause}", err)
	}
	if _, err := io.ReadFull(random, c.secret[:]); err != nil {
		return c, refuse(stele.Unavailable, "token.no-random-bits", "no random bits: {cause}", err)
	}
	for i, b := range id {
		id[i] = idLetters[b%byte(len(idLetters))] // 256 is a multiple of 32
	}
	c.id = string(id[:])
	return c, nil
}

// ID returns the ID of the credential's token, session or link. The ID is not a secret.
func (c Credential) ID() string { return c.id }

// Hash returns what is kept of the secret. It has 256 random bits, so that nothing
// slower than SHA-256 is needed to keep it safe.
func (c Credential) Hash() []byte {
	sum := sha256.Sum256(c.secret[:])
	return sum[:]
}

// Reveal returns the credential's text, with the secret.
func (c Credential) Reveal() string {
	return string(c.kind) + c.id + "_" + base64.RawURLEncoding.EncodeToString(c.secret[:])
}

// String returns the text without the secret.
func (c Credential) String() string { return string(c.kind) + c.id + "_..." }

// GoString returns the text without the secret.
func (c Credential) GoString() string { return c.String() }

var errNoCredential = stele.Messagef("token.malformed", "this is not a token of a Stele registry: one is stele_, 12 characters, _ and 43 more; check that all of it was copied")

// ParseCredential reads a credential. Each has one text only. The error, of Kind
// Unauthenticated, does not repeat what was given: it may be a user's secret.
func ParseCredential(text string) (Credential, error) {
	c, ok := parseCredential(TokenCredential, text)
	if !ok {
		return Credential{}, &stele.Error{Op: op, Kind: stele.Unauthenticated, Err: errNoCredential}
	}
	return c, nil
}

func parseCredential(kind CredentialKind, text string) (c Credential, ok bool) {
	rest, marked := strings.CutPrefix(text, string(kind))
	if !marked || len(rest) != idSize+1+secretLength || rest[idSize] != '_' {
		return c, false
	}
	id, secret := rest[:idSize], rest[idSize+1:]
	if !isID(id) || strings.ContainsAny(secret, "\r\n") { // which the decoder skips
		return c, false
	}
	n, err := base64.RawURLEncoding.Strict().Decode(c.secret[:], []byte(secret))
	if err != nil || n != secretSize {
		return Credential{}, false
	}
	c.kind, c.id = kind, id
	return c, true
}

// isID reports whether a text can be a token's ID.
func isID(text string) bool {
	for i := range len(text) {
		if strings.IndexByte(idLetters, text[i]) < 0 {
			return false
		}
	}
	return len(text) == idSize
}
