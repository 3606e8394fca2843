package transparency

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/note"

	"github.com/stele-id/stele"
)

// Keys are the name of a log and the keys that sign its checkpoints.
type Keys struct {
	// Origin names the log for ever: a URL without its scheme, such as names.example.org/.log. A registry that moves to
	// another host keeps it.
	Origin string

	// List has the keys, the oldest first. All that are not retired sign.
	List []SigningKey
}

// Overlap is how long a key signs together with the next one, if nothing else is said.
const Overlap = 30 * 24 * time.Hour

// SigningKey is a key that signs checkpoints.
type SigningKey struct {
	Private ed25519.PrivateKey // nil if it was erased: the key is retired
	Half    ed25519.PublicKey  // the public half; nil if it is that of Private
	Created time.Time
	Retired time.Time // from when on it does not sign; zero: it signs
}

// The types of signatures of signed notes (signed-note, Signatures).
const (
	algEd25519   = 1
	algCosignV1  = 4
	keyHashBytes = 4
)

// keyHash returns the hash of a key in signature lines.
func keyHash(name string, alg byte, public ed25519.PublicKey) uint32 {
	b := append([]byte(name), '\n', alg)
	sum := sha256.Sum256(append(b, public...))
	return binary.BigEndian.Uint32(sum[:keyHashBytes])
}

// signer signs notes under a name.
type signer struct {
	name string
	key  ed25519.PrivateKey
}

func (s signer) public() ed25519.PublicKey {
	public, _ := s.key.Public().(ed25519.PublicKey)
	return public
}

func (s signer) Name() string                    { return s.name }
func (s signer) KeyHash() uint32                 { return keyHash(s.name, algEd25519, s.public()) }
func (s signer) Sign(msg []byte) ([]byte, error) { return ed25519.Sign(s.key, msg), nil }

// PublicKey is the key that checks checkpoints, under the name of a log or of a witness.
type PublicKey struct {
	Name   string
	Key    ed25519.PublicKey
	Cosign bool // it is a witness's: its signatures have a time (tlog-cosignature)
}

// Public returns the keys by which readers check checkpoints, the oldest first.
func (k *Keys) Public() (list []PublicKey) {
	for i := range k.List {
		list = append(list, k.List[i].Public(k.Origin))
	}
	return list
}

// signsAt reports whether the key signs checkpoints at a time.
func (k *SigningKey) signsAt(now time.Time) bool {
	return len(k.Private) == ed25519.PrivateKeySize && (k.Retired.IsZero() || now.Before(k.Retired))
}

// CheckOrigin returns an error if a text can't name a log: it is a URL without its scheme (tlog-checkpoint), and does not end as
// the origin of a later era does.
func CheckOrigin(origin string) error {
	if !validKeyName(origin) || strings.Contains(origin, "://") || strings.HasPrefix(origin, "/") || strings.HasSuffix(origin, "/") || endsAsEra(origin) {
		return &stele.Error{Op: "name log", Kind: stele.Invalid, Err: stele.Messagef("log.origin-malformed", `"{origin}" can't be the name of a log; it is a URL without its scheme, such as names.example.org/.log, has no space and no plus sign, and does not end in /g and a number`, origin)}
	}
	return nil
}

// IsOfLog reports whether an origin is that of a log with this name, in its first era or in a later one.
func IsOfLog(origin, name string) bool { return isEra(origin, name) }

// String returns the key as signed-note has it: the name, the hash and the key, with plus signs.
func (p PublicKey) String() string {
	b := append([]byte{p.alg()}, p.Key...)
	const digits = 8
	hash := strconv.FormatUint(uint64(keyHash(p.Name, p.alg(), p.Key)), 16)
	return p.Name + "+" + strings.Repeat("0", digits-len(hash)) + hash + "+" + base64.StdEncoding.EncodeToString(b)
}

func (p PublicKey) alg() byte {
	if p.Cosign {
		return algCosignV1
	}
	return algEd25519
}

// ParsePublicKey reads what String writes.
func ParsePublicKey(text string) (p PublicKey, err error) {
	bad := func(why string) (PublicKey, error) {
		return PublicKey{}, &stele.Error{Op: "read key", Kind: stele.Invalid, Err: stele.Messagef("log.public-key-malformed", "this is not the public key of a log or a witness: {reason}; it has a name, 8 hexadecimal digits and the key in base64, with plus signs between them, as 'stele log key' prints it", why)}
	}
	name, rest, ok := strings.Cut(strings.TrimSpace(text), "+")
	hash, encoded, ok2 := strings.Cut(rest, "+")
	if !ok || !ok2 || !validKeyName(name) {
		return bad("parts are missing")
	}
	b, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || len(b) != 1+ed25519.PublicKeySize || b[0] != algEd25519 && b[0] != algCosignV1 {
		return bad("the key is not an Ed25519 key in base64")
	}
	p = PublicKey{Name: name, Key: b[1:], Cosign: b[0] == algCosignV1}
	if n, err := strconv.ParseUint(hash, 16, 32); err != nil || len(hash) != 8 || uint32(n) != keyHash(name, b[0], p.Key) {
		return bad("the hash does not belong to the name and the key, so that a part was copied wrongly")
	}
	return p, nil
}

// validKeyName reports whether a text can be the name of a key (signed-note).
func validKeyName(name string) bool {
	return name != "" && len(name) <= 255 && utf8.ValidString(name) &&
		!strings.ContainsFunc(name, func(r rune) bool {
			return r == '+' || r == utf8.RuneError || unicode.IsControl(r) || unicode.IsSpace(r)
		})
}

// verifier checks the signatures of a key under a name.
type verifier struct {
	PublicKey
	name string
}

func (v verifier) Name() string    { return v.name }
func (v verifier) KeyHash() uint32 { return keyHash(v.name, v.alg(), v.Key) }
func (v verifier) Verify(msg, sig []byte) bool {
	if !v.Cosign {
		return len(v.Key) == ed25519.PublicKeySize && ed25519.Verify(v.Key, msg, sig)
	}
	_, ok := v.cosigned(msg, sig)
	return ok
}

// cosigned checks a co-signature, and returns when it was made.
func (v verifier) cosigned(msg, sig []byte) (at time.Time, ok bool) {
	if len(sig) != 8+ed25519.SignatureSize {
		return at, false
	}
	seconds := binary.BigEndian.Uint64(sig)
	if seconds > maxCosignTime {
		return at, false
	}
	return time.Unix(int64(seconds), 0).UTC(), ed25519.Verify(v.Key, cosignMessage(seconds, msg), sig[8:])
}

func cosignMessage(seconds uint64, msg []byte) []byte {
	b := append([]byte("cosignature/v1\ntime "), strconv.FormatUint(seconds, 10)...)
	return append(append(b, '\n'), msg...)
}

// cosigner signs checkpoints as a witness.
type cosigner struct {
	name string
	key  ed25519.PrivateKey
	at   time.Time
}

func (c cosigner) Name() string { return c.name }
func (c cosigner) KeyHash() uint32 {
	return keyHash(c.name, algCosignV1, signer{c.name, c.key}.public())
}
func (c cosigner) Sign(msg []byte) ([]byte, error) {
	seconds := uint64(max(c.at.Unix(), 0))
	return append(binary.BigEndian.AppendUint64(nil, seconds), ed25519.Sign(c.key, cosignMessage(seconds, msg))...), nil
}

// ErrUnsigned says that no known key has signed a checkpoint.
var ErrUnsigned = stele.Messagef("log.checkpoint-unsigned", "no key that you trust has signed this checkpoint")

// verifiers returns what checks the signatures of keys under the origin of a checkpoint: a key signs for all eras of its log. A key that is given
// twice counts once: package note takes two of one hash for a mistake, and the reader would take that for a wrong signature.
func verifiers(origin string, keys []PublicKey) note.Verifiers {
	var list []note.Verifier
	for i, k := range keys {
		if slices.ContainsFunc(keys[:i], k.equal) {
			continue
		}
		name := k.Name
		if !k.Cosign && isEra(origin, k.Name) {
			name = origin
		}
		list = append(list, verifier{k, name})
	}
	return note.VerifierList(list...)
}

func (p PublicKey) equal(other PublicKey) bool {
	return p.Name == other.Name && p.Cosign == other.Cosign && p.Key.Equal(other.Key)
}

// openNote checks the signatures of a note whose first line is an origin.
func openNote(text []byte, keys []PublicKey) (*note.Note, error) {
	origin, _, _ := strings.Cut(string(text[:min(len(text), 1000)]), "\n")
	n, err := note.Open(text, verifiers(origin, keys))
	var unverified *note.UnverifiedNoteError
	switch {
	case errors.As(err, &unverified):
		return nil, &stele.Error{Op: "check checkpoint", Kind: stele.Invalid, Err: ErrUnsigned}
	case err != nil:
		return nil, &stele.Error{Op: "check checkpoint", Kind: stele.Invalid, Err: stele.Messagef("log.checkpoint-signature-wrong", "the checkpoint is not a signed note, or one of its signatures is wrong: {cause}", err)}
	}
	return n, nil
}
