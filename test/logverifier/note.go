package logverifier

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Key is a public key as signed-note writes it.
type Key struct {
	Name   string
	kind   byte // 1: Ed25519, 4: a co-signature
	public ed25519.PublicKey
}

// ParseKey reads NAME+HASH+BASE64 (C2SP signed-note, Verifier keys).
func ParseKey(text string) (k Key, err error) {
	parts := strings.SplitN(text, "+", 3)
	if len(parts) != 3 {
		return k, errors.New("a key has three parts")
	}
	b, err := base64.StdEncoding.DecodeString(parts[2])
	if err != nil || len(b) != 33 || b[0] != 1 && b[0] != 4 {
		return k, errors.New("the key is not an Ed25519 key")
	}
	k = Key{parts[0], b[0], b[1:]}
	if id := k.id(k.Name); hex.EncodeToString(id[:]) != parts[1] {
		return k, errors.New("the hash is not that of the key")
	}
	return k, nil
}

// id returns the key ID under a name.
func (k Key) id(name string) (id [4]byte) {
	sum := sha256.Sum256(append([]byte(name+"\n"+string(rune(k.kind))), k.public...))
	copy(id[:], sum[:])
	return id
}

// Cosigned says that a witness has seen a checkpoint.
type Cosigned struct {
	Name string
	Unix uint64
}

// Open checks a signed note whose first line is the name of a log, and returns its text. A key of a log signs under its name, and under those of
// later generations: NAME/g2-20320109T083000Z and so on.
func Open(note string, keys []Key) (text string, cosigned []Cosigned, err error) {
	at := strings.LastIndex(note, "\n\n")
	if at < 0 || !strings.HasSuffix(note, "\n") {
		return "", nil, errors.New("not a signed note")
	}
	text = note[:at+1]
	origin, _, _ := strings.Cut(text, "\n")
	signed := false
	for _, line := range strings.Split(strings.TrimSuffix(note[at+2:], "\n"), "\n") {
		fields := strings.Split(line, " ")
		if len(fields) != 3 || fields[0] != "—" {
			return "", nil, errors.New("a line is not a signature")
		}
		sig, err := base64.StdEncoding.DecodeString(fields[2])
		if err != nil || len(sig) < 5 {
			return "", nil, errors.New("a signature is not one")
		}
		for _, k := range keys {
			name := k.Name
			if k.kind == 1 && generation(origin, k.Name) {
				name = origin
			}
			if id := k.id(name); name != fields[1] || string(id[:]) != string(sig[:4]) {
				continue
			}
			seconds, ok := k.verify(text, sig[4:])
			if !ok {
				return "", nil, fmt.Errorf("the signature of %s is wrong", name)
			}
			if k.kind == 4 {
				cosigned = append(cosigned, Cosigned{name, seconds})
			} else if name == origin {
				signed = true
			}
		}
	}
	if !signed {
		return "", nil, errors.New("the log has not signed")
	}
	return text, cosigned, nil
}

// verify checks a signature: Ed25519 of signed-note, or the co-signature of tlog-cosignature, which has a time.
func (k Key) verify(text string, sig []byte) (seconds uint64, ok bool) {
	if k.kind == 1 {
		return 0, len(sig) == ed25519.SignatureSize && ed25519.Verify(k.public, []byte(text), sig)
	}
	if len(sig) != 8+ed25519.SignatureSize {
		return 0, false
	}
	for _, b := range sig[:8] {
		seconds = seconds<<8 | uint64(b)
	}
	return seconds, ed25519.Verify(k.public, fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s", seconds, text), sig[8:])
}

// generation reports whether an origin is that of a log, or of a later generation of it.
func generation(origin, log string) bool {
	return origin == log || strings.HasPrefix(origin, log) && regexp.MustCompile(`^/g([2-9]|[1-9][0-9]+)-[0-9]{8}T[0-9]{6}Z$`).MatchString(origin[len(log):])
}

// Checkpoint is the root of a log at a size (C2SP tlog-checkpoint).
type Checkpoint struct {
	Origin string
	Size   uint64
	Root   Hash
}

// ParseCheckpoint reads the text of a note.
func ParseCheckpoint(text string) (c Checkpoint, err error) {
	lines := strings.Split(text, "\n")
	if len(lines) < 4 {
		return c, errors.New("a checkpoint has three lines")
	}
	c.Origin = lines[0]
	if c.Size, err = strconv.ParseUint(lines[1], 10, 64); err != nil {
		return c, err
	}
	root, err := base64.StdEncoding.DecodeString(lines[2])
	if err != nil || copy(c.Root[:], root) != len(c.Root) || len(root) != len(c.Root) {
		return c, errors.New("the root is not a hash")
	}
	return c, nil
}
