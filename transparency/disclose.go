package transparency

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/stele-id/stele"
)

// Disclosure is what makes a leaf of the log again, together with the document that the leaf is about. Bundles have one for each
// version.
type Disclosure struct {
	Index uint64
	At    time.Time // of the commit

	// Seed is where the salts of the leaf come from. It is zero if Leaf is given.
	Seed Key

	Listed bool // the name stands in the leaf
	Bare   bool // the leaf has no digests

	// NameKey blinds the name. It is zero if the name stands in the leaf, and if the leaf is the first of its name and
	// has a seed, which gives the key.
	NameKey Key

	// Leaf is the text of the leaf, where the document does not say all that was logged: its content was erased or is
	// withheld. What it said can't be proved then, except that there was an entry.
	Leaf string
}

// LeafMaker makes leaves again, in memory that it uses again. The zero value is ready. One goroutine at a time may use it.
type LeafMaker struct{ m maker }

// Record returns the leaf of a version of a record, as [Disclosure.RecordLeaf] does.
func (m *LeafMaker) Record(d *Disclosure, r *stele.Record) (*Leaf, error) {
	return d.leaf(KindRecord, r.ID.String(), r.Version, func(l *Leaf, s seed) error { return m.m.digest(l, &entry{record: r, seed: s}) })
}

// RecordLeaf returns the leaf of a version of a record. Invalid if there can't be such a leaf.
func (d *Disclosure) RecordLeaf(r *stele.Record) (*Leaf, error) {
	return new(LeafMaker).Record(d, r)
}

// NamespaceLeaf returns the leaf of a version of a namespace. Invalid if there can't be such a leaf.
func (d *Disclosure) NamespaceLeaf(n *stele.Namespace) (*Leaf, error) {
	return d.leaf(KindNamespace, n.Key().String(), n.Version, func(l *Leaf, s seed) error { return new(maker).digest(l, &entry{space: n, seed: s}) })
}

// leaf makes the leaf of a version. Digest fills in the digests of its documents.
func (d *Disclosure) leaf(kind Kind, name string, version uint64, digest func(l *Leaf, s seed) error) (*Leaf, error) {
	if d.Leaf != "" {
		return d.leafText(kind, name, version)
	}
	l := &Leaf{Kind: kind, Name: name, Version: version, At: d.At}
	s := seed(d.Seed)
	if !d.Listed {
		key := d.NameKey
		if version == 1 {
			if key != (Key{}) {
				return nil, badDisclosure("the first leaf of a name has its key in its seed")
			}
			key = s.nameKey()
		}
		l.Name, l.Blind = "", Blind(key, kind, name)
	} else if d.NameKey != (Key{}) {
		return nil, badDisclosure("a name that stands in the leaf has no key")
	}
	if d.Bare {
		return l, nil
	}
	if err := digest(l, s); err != nil {
		return nil, err
	}
	return l, nil
}

// leafText reads the leaf, and makes sure that it is about the version.
func (d *Disclosure) leafText(kind Kind, name string, version uint64) (*Leaf, error) {
	l, err := ParseLeaf([]byte(d.Leaf))
	if err != nil {
		return nil, err
	}
	blinded := l.Name == ""
	switch {
	case d.Seed != (Key{}):
		return nil, badDisclosure("a leaf that is given has no seed")
	case l.Kind != kind || l.Version != version || !l.At.Equal(d.At) || blinded == d.Listed || d.Bare != (l.Form == 0):
		return nil, badDisclosure("the leaf is about something else")
	case blinded && Blind(d.NameKey, kind, name) != l.Blind, !blinded && (l.Name != name || d.NameKey != (Key{})):
		return nil, badDisclosure("the leaf is about another name")
	}
	return l, nil
}

func badDisclosure(why string) error {
	return &stele.Error{Op: "read log", Kind: stele.Invalid, Err: stele.Messagef("log.disclosure-wrong", "the leaf can't be made again: {reason}", why)}
}

// SignText signs lines of text for a log, with all keys that sign now. The first line of the text is the origin of the log.
func (k *Keys) SignText(text string, now time.Time) (string, error) {
	origin, _, _ := strings.Cut(text, "\n")
	var signers []note.Signer
	for _, key := range k.List {
		if key.signsAt(now) {
			signers = append(signers, signer{origin, key.Private})
		}
	}
	if len(signers) == 0 {
		return "", noSigningKey()
	}
	signed, err := note.Sign(&note.Note{Text: text}, signers...)
	if err != nil {
		return "", &stele.Error{Op: "sign", Kind: stele.Internal, Err: err}
	}
	return string(signed), nil
}

// OpenText returns the text of a note that one of the keys has signed. Invalid if none has, or if the signature of one of them is
// wrong.
func OpenText(signed []byte, keys []PublicKey) (string, error) {
	if len(signed) > maxCheckpoint {
		return "", badCheckpoint("it is too long")
	}
	n, err := openNote(signed, keys)
	if err != nil {
		return "", err
	}
	for _, s := range n.Sigs {
		for _, k := range keys {
			if !k.Cosign && k.signs(s.Name, s.Hash) {
				return n.Text, nil
			}
		}
	}
	return "", &stele.Error{Op: "check signature", Kind: stele.Invalid, Err: ErrUnsigned}
}

// signs reports whether a signature line with this name and hash is by the key, for its log.
func (p PublicKey) signs(name string, hash uint32) bool {
	return isEra(name, p.Name) && keyHash(name, p.alg(), p.Key) == hash
}

// SplitCheckpoint divides a signed checkpoint into the part that the log's own keys have signed and the lines of others, which are
// co-signatures.
func SplitCheckpoint(signed string, keys []PublicKey) (own, cosignatures string) {
	text, lines, ok := strings.Cut(signed, "\n\n")
	if !ok {
		return signed, ""
	}
	origin, _, _ := strings.Cut(text, "\n")
	own = text + "\n\n"
	for line := range strings.Lines(lines) {
		if isOwnLine(line, origin, keys) {
			own += line
		} else {
			cosignatures += line
		}
	}
	return own, cosignatures
}

// isOwnLine reports whether a line of signatures is by a key of the log. It does not check the signature.
func isOwnLine(line, origin string, keys []PublicKey) bool {
	name, signature, ok := strings.Cut(strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "— "), " ")
	raw, err := base64.StdEncoding.DecodeString(signature)
	if !ok || err != nil || len(raw) < keyHashBytes || name != origin {
		return false
	}
	hash := binary.BigEndian.Uint32(raw)
	return slices.ContainsFunc(keys, func(k PublicKey) bool { return !k.Cosign && k.signs(name, hash) })
}

// Public returns the public half of a key, under the name of a log.
func (k *SigningKey) Public(origin string) PublicKey {
	if k.Half != nil {
		return PublicKey{Name: origin, Key: k.Half}
	}
	return PublicKey{Name: origin, Key: signer{origin, k.Private}.public()}
}

// EraOrigin returns the origin of the checkpoints of the present era; see [Checkpoint].
func (l *Log) EraOrigin(ctx context.Context, keys *Keys) (string, error) {
	p, err := l.read(ctx)
	if err != nil {
		return "", err
	}
	return eraOrigin(keys.Origin, p.Eras), nil
}

// Cosignatures returns which of the witnesses have co-signed a checkpoint by one of the lines. Invalid if the line of one of them is
// wrong.
func Cosignatures(c *Checkpoint, lines []byte, witnesses []PublicKey) (list []Cosignature, err error) {
	n, err := note.Open(append([]byte(c.String()+"\n"), lines...), verifiers(c.Origin, witnesses))
	if unverified, ok := errors.AsType[*note.UnverifiedNoteError](err); ok {
		n, err = unverified.Note, nil
	}
	if err != nil {
		return nil, &stele.Error{Op: "check checkpoint", Kind: stele.Invalid, Err: stele.Messagef("log.checkpoint-signature-wrong", "the checkpoint is not a signed note, or one of its signatures is wrong: {cause}", err)}
	}
	for _, s := range n.Sigs {
		for _, k := range witnesses {
			v := verifier{k, k.Name}
			sig, err := base64.StdEncoding.DecodeString(s.Base64)
			if !k.Cosign || s.Name != k.Name || s.Hash != v.KeyHash() || err != nil || len(sig) < keyHashBytes {
				continue
			}
			if at, ok := v.cosigned([]byte(n.Text), sig[keyHashBytes:]); ok {
				list = append(list, Cosignature{k.Name, at})
			}
		}
	}
	return list, nil
}
