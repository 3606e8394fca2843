package logverifier

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Leaf is an entry of the log of a registry, as docs/transparency.md describes it.
type Leaf struct {
	At      string `json:"at"`
	Blind   []byte `json:"blind"`
	Form    int    `json:"form"`
	Full    []byte `json:"full"`
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Public  []byte `json:"public"`
	Version any    `json:"version"` // a number, or digits in a string if it is above 2^53-1
}

// ParseLeaf reads an entry.
func ParseLeaf(text []byte) (l Leaf, err error) {
	if err := json.Unmarshal(text, &l); err != nil {
		return l, err
	}
	at, err := time.Parse(time.RFC3339Nano, l.At)
	switch {
	case err != nil:
		return l, err
	case !strings.HasSuffix(l.At, "Z") || at.Nanosecond()%1000 != 0:
		return l, errors.New("the time is not one in UTC to the microsecond")
	case l.Kind != "record" && l.Kind != "namespace":
		return l, errors.New("the kind is unknown")
	case (l.Name == "") != (len(l.Blind) == 32):
		return l, errors.New("it has neither a name nor a blinded one, or both")
	case (l.Form == 0) != (l.Full == nil) || (l.Full == nil) != (l.Public == nil):
		return l, errors.New("a digest is missing")
	}
	return l, nil
}

// Digits returns the version.
func (l Leaf) Digits() string {
	if n, ok := l.Version.(float64); ok {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return fmt.Sprint(l.Version)
}

// BlindedName returns SHA-256 of the key, the kind, a zero octet and the name.
func BlindedName(key []byte, kind, name string) Hash {
	return sha256.Sum256([]byte(string(key) + kind + "\x00" + name))
}

// SaltedDigest returns SHA-256 of the salt and the document.
func SaltedDigest(salt, document []byte) Hash {
	return sha256.Sum256([]byte(string(salt) + string(document)))
}

// Shown is what a proof shows.
type Shown struct {
	Name       string
	Leaf       Leaf
	Document   string // "" if only the entry is proved
	Checkpoint Checkpoint
	Cosigned   []Cosigned
}

// CheckProof checks the file of a proof.
func CheckProof(file string, keys []Key) (s Shown, err error) {
	head, rest, ok := strings.Cut(file, "\n\nc2sp.org/tlog-proof@v1\n")
	path, note, ok2 := strings.Cut(rest, "\n\n")
	lines := strings.Split(head, "\n")
	if !ok || !ok2 || len(lines) < 4 || lines[0] != "stele proof 1" {
		return s, errors.New("not a proof")
	}
	member := map[string]string{}
	for _, line := range lines[2:] {
		name, value, _ := strings.Cut(line, " ")
		if _, twice := member[name]; twice {
			return s, errors.New("a line stands there twice")
		}
		member[name] = value
	}
	text, cosigned, err := Open(note, keys)
	if err != nil {
		return s, err
	}
	s = Shown{Name: member["name"], Document: member["document"], Cosigned: cosigned}
	if s.Checkpoint, err = ParseCheckpoint(text); err != nil {
		return s, err
	}
	if err := checkPath(path, member["leaf"], s.Checkpoint); err != nil {
		return s, err
	}
	if s.Leaf, err = ParseLeaf([]byte(member["leaf"])); err != nil {
		return s, err
	}
	return s, s.check(lines[1], member)
}

// checkPath checks that the leaf is in the tree.
func checkPath(path, leaf string, c Checkpoint) error {
	lines := strings.Split(path, "\n")
	index, err := strconv.ParseUint(strings.TrimPrefix(lines[0], "index "), 10, 64)
	if err != nil {
		return err
	}
	var hashes []Hash
	for _, line := range lines[1:] {
		b, err := base64.StdEncoding.DecodeString(line)
		if err != nil || len(b) != 32 {
			return errors.New("a line is not a hash")
		}
		hashes = append(hashes, Hash(b))
	}
	return CheckInclusion(index, c.Size, LeafHash([]byte(leaf)), hashes, c.Root)
}

// check checks that the leaf is about the name and the document.
func (s *Shown) check(kind string, member map[string]string) error {
	if s.Leaf.Name == "" {
		key, err := hex.DecodeString(member["name-key"])
		if blind := BlindedName(key, s.Leaf.Kind, s.Name); err != nil || len(key) != 16 || string(blind[:]) != string(s.Leaf.Blind) {
			return errors.New("the leaf is about another name")
		}
	} else if s.Leaf.Name != s.Name {
		return errors.New("the leaf is about another name")
	}
	want := s.Leaf.Public
	switch kind {
	case "entry":
		if s.Document != "" {
			return errors.New("a proof of the entry has a document")
		}
		return nil
	case "full":
		want = s.Leaf.Full
	case "public":
	default:
		return errors.New("a proof of another kind")
	}
	salt, err := hex.DecodeString(member["salt"])
	if digest := SaltedDigest(salt, []byte(s.Document)); err != nil || len(salt) != 16 || string(digest[:]) != string(want) {
		return errors.New("the document is another one")
	}
	var d struct {
		ID      string `json:"id"`
		Version any    `json:"version"`
	}
	if err := json.Unmarshal([]byte(s.Document), &d); err != nil || d.ID != s.Name || (Leaf{Version: d.Version}).Digits() != s.Leaf.Digits() {
		return errors.New("the document is of another record or version")
	}
	return nil
}
