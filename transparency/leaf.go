package transparency

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
)

// Kind says what a leaf is about.
type Kind string

const (
	KindRecord    Kind = "record"
	KindNamespace Kind = "namespace"
)

// Leaf is an entry of the log.
type Leaf struct {
	Kind    Kind
	Name    string   // "" if it is blinded
	Blind   [32]byte // the blinded name, if Name is ""
	Version uint64
	At      time.Time // of the commit, to the microsecond. Dates in documents may be imported, and no proof asserts them

	// Form is the number of the canonical form of the documents. It is 0 for a leaf without digests: of a version that
	// was not kept, or was erased before it was logged.
	Form   int
	Public [32]byte // digest of the document that the public may see
	Full   [32]byte // digest of the full document
}

// maxLeafName is how long a name may be that stands in a leaf: an entry of the log has at most 65,535 bytes
// (tlog-tiles, Log entries). A longer one is blinded.
const maxLeafName = 32 << 10

// Append appends the text of the leaf: a JSON object under RFC 8785 that ends with its brace. It is what the log
// hashes.
func (l *Leaf) Append(b []byte) []byte { return l.appendAt(b, appendTime(nil, l.At)) }

// appendAt is Append for a time that is written already.
func (l *Leaf) appendAt(b, at []byte) []byte {
	b = append(b, `{"at":"`...)
	b = append(b, at...)
	if l.Name == "" {
		b = append(b, `","blind":"`...)
		b = base64.StdEncoding.AppendEncode(b, l.Blind[:])
	}
	b = append(b, '"')
	if l.Form != 0 {
		b = append(b, `,"form":`...)
		b = strconv.AppendInt(b, int64(l.Form), 10)
		b = append(b, `,"full":"`...)
		b = base64.StdEncoding.AppendEncode(b, l.Full[:])
		b = append(b, '"')
	}
	b = append(b, `,"kind":"`...)
	b = append(b, l.Kind...)
	b = append(b, '"')
	if l.Name != "" {
		b = append(b, `,"name":`...)
		b = document.AppendString(b, l.Name)
	}
	if l.Form != 0 {
		b = append(b, `,"public":"`...)
		b = base64.StdEncoding.AppendEncode(b, l.Public[:])
		b = append(b, '"')
	}
	b = append(b, `,"version":`...)
	if l.Version > maxExact {
		b = append(b, '"')
		b = strconv.AppendUint(b, l.Version, 10)
		return append(b, `"}`...)
	}
	b = strconv.AppendUint(b, l.Version, 10)
	return append(b, '}')
}

// maxExact is the largest whole number that every reader of JSON keeps (RFC 8785, appendix D).
const maxExact = 1<<53 - 1

// appendTime appends a time to the microsecond, in UTC, as time.RFC3339Nano does.
func appendTime(b []byte, t time.Time) []byte {
	return t.UTC().Truncate(time.Microsecond).AppendFormat(b, time.RFC3339Nano)
}

// ParseLeaf reads the text of a leaf, and nothing but what Append writes.
func ParseLeaf(text []byte) (*Leaf, error) {
	var raw struct {
		At      time.Time       `json:"at"`
		Blind   []byte          `json:"blind"`
		Form    int             `json:"form"`
		Full    []byte          `json:"full"`
		Kind    Kind            `json:"kind"`
		Name    string          `json:"name"`
		Public  []byte          `json:"public"`
		Version json.RawMessage `json:"version"`
	}
	if len(text) > 1<<16-1 {
		return nil, badLeaf("it has more than 65,535 bytes")
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&raw); err != nil {
		return nil, badLeaf("it is not JSON of the known members")
	}
	l := &Leaf{Kind: raw.Kind, Name: raw.Name, At: raw.At, Form: raw.Form}
	var err error
	if l.Version, err = strconv.ParseUint(string(bytes.Trim(raw.Version, `"`)), 10, 64); err != nil {
		return nil, badLeaf("its version is not a number")
	}
	copy(l.Blind[:], raw.Blind)
	copy(l.Full[:], raw.Full)
	copy(l.Public[:], raw.Public)
	if l.Kind != KindRecord && l.Kind != KindNamespace || l.Form < 0 || l.At.Year() < 1 || l.At.Year() > 9999 {
		return nil, badLeaf("its kind, form or time is unknown")
	}
	if !bytes.Equal(l.Append(nil), text) { // lengths of digests, order, spelling
		return nil, badLeaf("it is not in its canonical form")
	}
	return l, nil
}

func badLeaf(why string) error {
	return &stele.Error{Op: "read log", Kind: stele.Invalid, Err: stele.Messagef("log.leaf-malformed", "this is not a leaf of a log of this kind: {reason}", why)}
}

// Hash returns the hash of the leaf in the tree.
func (l *Leaf) Hash() tlog.Hash { return tlog.RecordHash(l.Append(nil)) }

// seed is the random bytes of a leaf, from which its salts and the key of its blinded name are derived. It is kept
// as long as the content is.
type seed [16]byte

// Key blinds a name, or salts a digest.
type Key [16]byte

func (s *seed) derive(use string) [32]byte {
	var b [48]byte
	n := copy(b[:], "stele log 1 ")
	n += copy(b[n:], use)
	n += copy(b[n:], s[:])
	return sha256.Sum256(b[:n])
}

// The key that blinds a name is that of the first version of what is named, so that all its leaves have the same
// blinded name.
func (s *seed) nameKey() Key {
	sum := s.derive("name")
	return Key(sum[:16])
}

// salts returns the salts of the two documents: the halves of one hash, of which one says nothing about the other.
func (s *seed) salts() (public, full Key) {
	sum := s.derive("salts")
	return Key(sum[:16]), Key(sum[16:])
}

// Blind returns the blinded name.
func Blind(k Key, kind Kind, name string) [32]byte {
	b := make([]byte, 0, 256)
	b = append(b, k[:]...)
	b = append(b, kind...)
	b = append(b, 0)
	b = append(b, name...)
	return sha256.Sum256(b)
}

// Digest returns the salted digest of a document.
func Digest(salt Key, doc []byte) [32]byte {
	b := make([]byte, 0, 1024)
	b = append(b, salt[:]...)
	return sha256.Sum256(append(b, doc...))
}

// noDocument stands for a document that the public may not see: the version was reserved, or restricted to some readers.
const noDocument = "null"

// PublicRecord returns what the public may see of a version of a record, as it was committed; nil if that is nothing. It is
// a part of form 1 of the log and does not change: what later versions withhold is not in it.
func PublicRecord(r *stele.Record) *stele.Record {
	if r.State == stele.Reserved || !r.IsPublic() {
		return nil
	}
	p := *r
	p.Readers, p.By, p.Import = nil, "", 0
	if slices.ContainsFunc(r.Values, isPrivate) {
		p.Values = slices.DeleteFunc(slices.Clone(r.Values), isPrivate)
	}
	if len(p.Withheld.Disavowed) > 0 {
		p.Withheld = r.Withheld.Clone()
		for i := range p.Withheld.Disavowed {
			p.Withheld.Disavowed[i].By = ""
		}
	}
	if p.State == stele.Withdrawn {
		p.Targets, p.Values = nil, nil
	}
	if p.Redacted {
		p.Spelling, p.Aliases, p.Metadata, p.Persistence = "", nil, nil, stele.Persistence{}
		p.Targets, p.Values, p.Signatures = nil, nil, nil
	}
	return &p
}

func isPrivate(v stele.HandleValue) bool { return v.Permissions&stele.PublicRead == 0 }

// PublicNamespace returns what the public may see of a version of a namespace: what it promises, by which keys its
// records are signed, where it is published, which registries are its heirs, and from and to which it was handed over. It is a part of form 1 of the log and does not change.
func PublicNamespace(n *stele.Namespace) *stele.Namespace {
	handed, adoptions := n.HandOver, slices.Clone(n.Adoptions)
	handed.By = ""
	for i := range adoptions {
		adoptions[i].By = ""
	}
	return &stele.Namespace{
		Scheme: n.Scheme, Prefix: n.Prefix, Title: n.Title, TTL: n.TTL, Status: n.Status, Persistence: n.Persistence,
		Delegate: n.Delegate, Listed: n.Listed, Rules: n.Rules, Publication: n.Publication, Keys: n.Keys,
		Heirs: n.Heirs, HandOver: handed, Adoptions: adoptions,
		Version: n.Version, Created: n.Created, Modified: n.Modified,
	}
}
