package bundle

import (
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/transparency"
)

// Form is the number of the form that this package writes and reads.
const Form = 1

// Head is what data/bundle.json says: of what the bundle is, and when.
type Head struct {
	Form       int       `json:"form"`
	Origin     string    `json:"origin"`               // of the checkpoint
	Generation string    `json:"generation"`           // of the registry, in hexadecimal digits
	Changes    uint64    `json:"changes"`              // the number of the last change that is in it: the size of the log
	At         time.Time `json:"at"`                   // of that change
	Prefixes   []Prefix  `json:"prefixes,omitempty"`   // what names in it begin with, in order; none: all names of the registry
	Hosts      []string  `json:"hosts,omitempty"`      // whose http names are PURLs
	UsageUntil string    `json:"usageUntil,omitempty"` // the last month of which it has figures of use, 2031-05; "": it has none
}

// Prefix is the beginning of names.
type Prefix struct {
	Scheme string `json:"scheme"`
	Prefix string `json:"prefix"`
}

// Key returns the prefix as that of a namespace.
func (p Prefix) Key() stele.NamespaceKey {
	return stele.NamespaceKey{Scheme: p.Scheme, Prefix: p.Prefix}
}

// Counts is what data/counts.json says: how many lines there are of each kind.
type Counts struct {
	Records    uint64 `json:"records"`
	Versions   uint64 `json:"versions"`   // of records: lines
	Namespaces uint64 `json:"namespaces"` // that are not of earlier versions
	Kept       uint64 `json:"kept"`       // versions of namespaces: lines
	Minters    uint64 `json:"minters"`
	Keys       uint64 `json:"keys"`
	Statements uint64 `json:"statements"`
	Usage      uint64 `json:"usage"`
	Fixed      uint64 `json:"fixed,omitempty"`
	Tiles      uint64 `json:"tiles"`
}

// Era is a generation of the registry, as its log knows it.
type Era struct {
	Generation string    `json:"generation"`
	Number     uint64    `json:"number"`
	Size       uint64    `json:"size"` // leaves that it has from the eras before it
	Began      time.Time `json:"began"`
}

// RecordVersion is a line of data/records-NNNNN.jsonl: a version of a record. The versions of a record follow each other, the
// oldest first.
type RecordVersion struct {
	Record  *stele.Record
	Current bool // it is the last one of its record
	Log     transparency.Disclosure
}

// NamespaceVersion is a line of data/namespaces.jsonl: a version of a namespace. Those of a namespace follow each other, the oldest
// first. The first is not number 1 if earlier ones were not kept.
type NamespaceVersion struct {
	Namespace *stele.Namespace
	Current   bool
	Log       transparency.Disclosure
}

// Minter is a line of data/minters.jsonl: how far the names of a prefix were given out.
type Minter struct {
	Name  string `json:"name"` // the scheme, a space and the prefix
	State []byte `json:"state"`
}

// Key is a line of data/keys.jsonl: a public key of the log, or one that signs for a namespace.
type Key struct {
	Log string `json:"log,omitempty"` // the key of a log, as signed notes have it

	Namespace string `json:"namespace,omitempty"` // whose key it is
	ID        string `json:"id,omitempty"`
	Algorithm string `json:"algorithm,omitempty"`
	Public    []byte `json:"public,omitempty"` // SubjectPublicKeyInfo in DER

	Created time.Time `json:"created,omitzero"`
	Retired time.Time `json:"retired,omitzero"` // of the log's: it does not sign from then on
	Expires time.Time `json:"expires,omitzero"` // of a namespace's: it does not sign from then on
	Revoked time.Time `json:"revoked,omitzero"` // of a namespace's: nothing of it is accepted
	Note    string    `json:"note,omitempty"`
}

// Statement is a line of data/statements.jsonl: what a namespace promises, and who owns it.
type Statement struct {
	Namespace string `json:"namespace"`
	Title     string `json:"title,omitempty"`
	Owner     string `json:"owner,omitempty"`
	Level     string `json:"level,omitempty"`
	Until     string `json:"until,omitempty"`
	Statement string `json:"statement,omitempty"`
}

// Usage is a line of data/usage.jsonl: how often a name was used in a month. Lines stand by scheme, name and month.
type Usage struct {
	Scheme string            `json:"scheme"`
	Name   string            `json:"name"`
	Month  string            `json:"month"`  // 2031-05
	Counts map[string]uint64 `json:"counts"` // see usageCounts
}

// Signature is signatures/namespace-KEY.json: the statement of a namespace that the bundle is what it hands over.
type Signature struct {
	Namespace string    `json:"namespace"`
	Scheme    string    `json:"scheme"`
	Manifest  string    `json:"manifest"` // SHA-256 of manifest-sha256.txt, in hexadecimal digits
	Size      uint64    `json:"size"`     // of manifest-sha256.txt
	Date      time.Time `json:"date"`
	Key       string    `json:"key"`
	JWS       string    `json:"jws"`
}

// The files of a bundle, in their order. All but those of the namespaces' signatures, of co-signatures and of fixed bytes are always there, and
// data/records-NNNNN.jsonl and data/log/tile/... are as many as it takes.
const (
	fileBagit       = "bagit.txt"
	fileReadme      = "data/README.txt"
	fileHead        = "data/bundle.json"
	fileKeys        = "data/keys.jsonl"
	fileCheckpoint  = "data/log/checkpoint"
	fileEras        = "data/log/eras.json"
	fileLog         = "data/log/" // tiles below it
	fileNamespaces  = "data/namespaces.jsonl"
	fileStatements  = "data/statements.jsonl"
	fileMinters     = "data/minters.jsonl"
	fileRecords     = "data/records-%05d.jsonl"
	fileUsage       = "data/usage.jsonl"
	fileFixed       = "data/fixed.jsonl"
	fileCounts      = "data/counts.json"
	fileManifest    = "manifest-sha256.txt"
	fileInfo        = "bag-info.txt"
	fileRegistry    = "signatures/registry.note"
	fileCosigned    = "signatures/cosignatures"
	fileSigned      = "signatures/namespace-%s.json"
	fileTagManifest = "tagmanifest-sha256.txt"
)

const bagit = "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"

// Limits. The first three are those of the writer.
const (
	maxFileLines   = 50_000
	maxFileBytes   = 16 << 20 // a file of records ends after the line with which it is that long
	usualFileBytes = 2 << 20  // a file of records has half as much at least, and as much more on average; see [lineWriter.endsWith]

	maxLine  = 5 << 20 // a document and what is beside it
	maxSmall = 1 << 20 // a file that is read as a whole
	maxHeld  = 1 << 29 // a file whose lines are kept while the rest is read
	maxFile  = 1 << 33 // what the header of a tar can say
	maxFiles = 20_000_000
)

// SignatureType is the media type of what a namespace signs: so that its signature over a manifest is never one over what a name
// stands for.
const SignatureType = "application/vnd.stele.bundle-manifest"

// noteLine is the second line of signatures/registry.note.
const noteLine = "stele bundle 1"
