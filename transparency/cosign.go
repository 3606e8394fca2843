package transparency

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/stele-id/stele"
)

// WitnessKey is the key with which a witness co-signs checkpoints.
type WitnessKey struct {
	Name    string
	Private ed25519.PrivateKey
}

// Public returns the key by which readers check co-signatures.
func (k WitnessKey) Public() PublicKey {
	return PublicKey{Name: k.Name, Key: signer{k.Name, k.Private}.public(), Cosign: true}
}

// privateKeyPrefix begins the text of a private key, as golang.org/x/mod/sumdb/note writes it.
const privateKeyPrefix = "PRIVATE+KEY+"

// String returns the private key as golang.org/x/mod/sumdb/note writes it, so that other witnesses can use it too. The hash in it
// is that of an Ed25519 key of type 1: the form knows no other.
func (k WitnessKey) String() string {
	b := append([]byte{algEd25519}, k.Private.Seed()...)
	return privateKeyPrefix + k.Name + "+" + keyDigits(keyHash(k.Name, algEd25519, signer{k.Name, k.Private}.public())) + "+" + base64.StdEncoding.EncodeToString(b)
}

// keyDigits returns the hash of a key in hexadecimal.
func keyDigits(hash uint32) string {
	const digits = 8
	text := strconv.FormatUint(uint64(hash), 16)
	return strings.Repeat("0", digits-len(text)) + text
}

// ParseWitnessKey reads what String writes.
func ParseWitnessKey(text string) (k WitnessKey, err error) {
	bad := func(why string) (WitnessKey, error) {
		return WitnessKey{}, &stele.Error{Op: "read key", Kind: stele.Invalid, Err: stele.Messagef("log.witness-key-malformed", "this is not the private key of a witness: {reason}; it begins with {prefix}", why, privateKeyPrefix)}
	}
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), privateKeyPrefix)
	name, rest, ok2 := strings.Cut(rest, "+")
	hash, encoded, ok3 := strings.Cut(rest, "+")
	if !ok || !ok2 || !ok3 || !validKeyName(name) {
		return bad("parts are missing")
	}
	b, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || len(b) != 1+ed25519.SeedSize || b[0] != algEd25519 {
		return bad("the key is not an Ed25519 key in base64")
	}
	k = WitnessKey{Name: name, Private: ed25519.NewKeyFromSeed(b[1:])}
	if hash != keyDigits(keyHash(name, algEd25519, signer{name, k.Private}.public())) {
		return bad("the hash does not belong to the name and the key, so that a part was copied wrongly")
	}
	return k, nil
}

// Cosign returns the line by which a witness co-signs the text of a checkpoint (tlog-cosignature). The caller has checked it.
func (k WitnessKey) Cosign(text string, at time.Time) (line string, err error) {
	signed, err := note.Sign(&note.Note{Text: text}, cosigner{k.Name, k.Private, at})
	if err != nil {
		return "", &stele.Error{Op: "co-sign checkpoint", Kind: stele.Invalid, Err: err}
	}
	return strings.TrimPrefix(string(signed), text+"\n"), nil
}

// KnownCosignatures returns those of the lines that are co-signatures of a checkpoint by a key, and when the last one was made. It leaves out all others: a witness may send
// lines of keys that the reader does not know (tlog-witness, add-checkpoint).
func KnownCosignatures(checkpoint, lines string, key PublicKey) (known string, at time.Time) {
	text, _, ok := strings.Cut(checkpoint, "\n\n")
	if !ok || !key.Cosign {
		return "", at
	}
	v := verifier{key, key.Name}
	for line := range strings.Lines(lines) {
		sig, ok := signatureOf(line, key)
		if !ok {
			continue
		}
		if t, ok := v.cosigned([]byte(text+"\n"), sig); ok {
			known, at = line, t // one is enough
		}
	}
	return known, at
}

// HasCosignature reports whether a signed checkpoint has a line of a witness. It does not check the signature.
func HasCosignature(checkpoint string, key PublicKey) bool {
	_, lines, _ := strings.Cut(checkpoint, "\n\n")
	for line := range strings.Lines(lines) {
		if _, ok := signatureOf(line, key); ok {
			return true
		}
	}
	return false
}

// signatureOf returns the signature in a line of a note, if the line names a key.
func signatureOf(line string, key PublicKey) (sig []byte, ok bool) {
	rest, ok := strings.CutPrefix(line, "\u2014 "+key.Name+" ")
	encoded, ok2 := strings.CutSuffix(rest, "\n")
	if !ok || !ok2 {
		return nil, false
	}
	b, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || len(b) <= keyHashBytes || binary.BigEndian.Uint32(b) != keyHash(key.Name, key.alg(), key.Key) {
		return nil, false
	}
	return b[keyHashBytes:], true
}

// IsWitnessName reports whether a text can be the name of a witness: it is the name of its key (signed-note).
func IsWitnessName(text string) bool { return validKeyName(text) && !strings.HasSuffix(text, "/") }
