package auth

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"io"
	"time"

	"github.com/stele-id/stele"
)

// The names of cells in which passkeys are kept, and challenges that were used.
const (
	PasskeyCells   = "passkey "
	ChallengeCells = "challenge "

	// ChallengeKeyCell has the key that seals challenges.
	ChallengeKeyCell = ChallengeCells + "key"
)

// Limits on passkeys.
const (
	MaxPasskeys     = 50   // of one user
	MaxPasskeyName  = 100  // bytes
	maxCredentialID = 1023 // bytes (Web Authentication Level 3, section 4)
)

// ChallengeLife is how long a challenge may be answered.
const ChallengeLife = 15 * time.Minute

// Passkey is a key pair of a user whose private half is in an authenticator: a telephone, a
// computer, a security key. The public half is kept; nothing in it is secret.
type Passkey struct {
	ID         string    `json:"id"` // of the registry; see [PasskeyID]
	User       string    `json:"user"`
	Name       string    `json:"name"`       // in its owner's words
	Site       string    `json:"site"`       // host of the site that it is for (RP ID)
	Credential []byte    `json:"credential"` // the ID that the authenticator gave it
	PublicKey  []byte    `json:"publicKey"`  // a COSE key
	Transports []string  `json:"transports,omitempty"`
	Flags      uint8     `json:"flags"` // of the authenticator's data when it was made
	Counter    uint32    `json:"counter,omitempty"`
	Created    time.Time `json:"created"`
	Used       time.Time `json:"used,omitzero"`
	Copied     time.Time `json:"copied,omitzero"` // when the counter went back last: it may have been copied
}

// PasskeyID returns the ID of a passkey in the registry: of a fixed length, whatever the
// authenticator chose.
func PasskeyID(credential []byte) string {
	sum := sha256.Sum256(credential)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// PasskeyUser returns what authenticators know a user by. It does not show the name.
func PasskeyUser(name string) []byte {
	sum := sha256.Sum256([]byte("stele user " + name))
	return sum[:]
}

// Validate reports everything that is wrong with the passkey, as [User.Validate] does.
func (p *Passkey) Validate() error {
	var problems stele.Problems
	if p.Name == "" {
		problems = append(problems, stele.Problem{Path: "name", Err: stele.Messagef("passkey.name-missing", "give the passkey a name by which you will know it, such as that of the device")})
	} else if len(p.Name) > MaxPasskeyName {
		problems = append(problems, stele.Problem{Path: "name", Err: stele.Messagef("value.too-long", "has {size} bytes; {most} are the most", len(p.Name), MaxPasskeyName)})
	} else if err := stele.CheckText("", p.Name); err != nil {
		problems = append(problems, stele.Problem{Path: "name", Err: stele.Reason(err)})
	}
	if len(p.Credential) == 0 || len(p.Credential) > maxCredentialID || p.ID != PasskeyID(p.Credential) || len(p.PublicKey) == 0 || p.Site == "" {
		problems = append(problems, stele.Problem{Path: "credential", Err: stele.Messagef("passkey.malformed", "the browser sent something that is not a passkey; try again")})
	}
	if len(problems) > 0 {
		return &stele.Error{Op: "validate passkey", Kind: stele.Invalid, Err: problems}
	}
	return nil
}

// Cell returns the passkey as it is kept.
func (p *Passkey) Cell() (stele.Cell, error) {
	value, err := json.Marshal(p)
	return stele.Cell{Name: PasskeyCells + p.ID, Value: value}, err
}

// ReadPasskey reads a passkey from its cell.
func ReadPasskey(c stele.Cell) (p Passkey, err error) {
	if err := read(c, &p); err != nil {
		return Passkey{}, err
	}
	if c.Name != PasskeyCells+p.ID || p.ID != PasskeyID(p.Credential) {
		return Passkey{}, damaged(c, stele.Messagef("token.stored-id-differs", "it has another ID inside"))
	}
	return p, nil
}

// PasskeyRefused returns the error that a passkey does not sign in. Nothing tells an unknown passkey
// from a wrong signature or from one of a disabled user.
func PasskeyRefused() error {
	return refuse(stele.Unauthenticated, "passkey.refused", "the passkey is not known here, or was used for another page; try again, or sign in by another way")
}

// Passkey returns the passkey that an authenticator calls by this ID, and its cell.
// Unauthenticated if there is none, or its user is disabled. Passkeys are looked up one by one.
func (d *Directory) Passkey(ctx context.Context, credential []byte) (Passkey, stele.Cell, error) {
	held := stele.Cell{Name: PasskeyCells + PasskeyID(credential)}
	var err error
	if held.Value, err = d.store.Cell(ctx, held.Name); err != nil {
		return Passkey{}, held, tell(err)
	}
	p, err := ReadPasskey(held)
	if err != nil {
		return Passkey{}, held, PasskeyRefused()
	}
	if _, err := d.Principal(ctx, p.User); stele.KindOf(err) == stele.Unauthenticated && err != nil {
		return Passkey{}, held, PasskeyRefused()
	} else if err != nil {
		return Passkey{}, held, err
	}
	return p, held, nil
}

// ChallengeKey seals challenges: it makes them, and knows its own again. All servers of a
// registry have the same, so that an answer may reach another server than the question came from.
type ChallengeKey []byte

// challengeKeySize is the length of a key in bytes.
const challengeKeySize = 32

// NewChallengeKey makes a key from a source of random bits.
func NewChallengeKey(random io.Reader) (ChallengeKey, error) {
	k := make(ChallengeKey, challengeKeySize)
	if _, err := io.ReadFull(random, k); err != nil {
		return nil, refuse(stele.Unavailable, "token.no-random-bits", "no random bits: {cause}", err)
	}
	return k, nil
}

// IsValid reports whether k can seal challenges.
func (k ChallengeKey) IsValid() bool { return len(k) == challengeKeySize }

// A challenge is a random number, the time at which it expires, and what the key makes of both.
const (
	challengeNonce = 16
	challengeTime  = 8
	challengeSize  = challengeNonce + challengeTime + sha256.Size
)

// Challenge returns a challenge for a purpose.
func (k ChallengeKey) Challenge(random io.Reader, purpose string, now time.Time) ([]byte, error) {
	c := make([]byte, challengeNonce, challengeSize)
	if _, err := io.ReadFull(random, c); err != nil {
		return nil, refuse(stele.Unavailable, "token.no-random-bits", "no random bits: {cause}", err)
	}
	c = binary.BigEndian.AppendUint64(c, uint64(now.Add(ChallengeLife).Unix()))
	return append(c, k.seal(c, purpose)...), nil
}

func (k ChallengeKey) seal(c []byte, purpose string) []byte {
	m := hmac.New(sha256.New, k)
	m.Write(c[:challengeNonce+challengeTime])
	m.Write([]byte(purpose))
	return m.Sum(nil)
}

// Check returns the mark of a challenge that was answered, which is kept so that it is not
// answered twice. Unauthenticated if k did not make it for this purpose, or it has expired.
func (k ChallengeKey) Check(challenge []byte, purpose string, now time.Time) (Answered, error) {
	if !k.IsValid() || len(challenge) != challengeSize || !hmac.Equal(challenge[challengeNonce+challengeTime:], k.seal(challenge, purpose)) {
		return Answered{}, PasskeyRefused()
	}
	expires := time.Unix(int64(binary.BigEndian.Uint64(challenge[challengeNonce:])), 0).UTC()
	if !now.Before(expires) {
		return Answered{}, refuse(stele.Unauthenticated, "passkey.too-late", "this page was open for too long; try again")
	}
	return Answered{ID: base64.RawURLEncoding.EncodeToString(challenge[:challengeNonce]), Expires: expires}, nil
}

// Answered is the mark of a challenge that was answered.
type Answered struct {
	ID      string
	Expires time.Time
}

// Cell returns the mark as it is kept.
func (a Answered) Cell() stele.Cell {
	return stele.Cell{Name: ChallengeCells + a.ID, Value: []byte(a.Expires.UTC().Format(time.RFC3339))}
}

// AnsweredLong reports whether the mark in a cell is not needed any more: the challenge has expired.
func AnsweredLong(c stele.Cell, now time.Time) bool {
	if c.Name == ChallengeKeyCell {
		return false
	}
	expires, err := time.Parse(time.RFC3339, string(c.Value))
	return err != nil || !now.Before(expires)
}
