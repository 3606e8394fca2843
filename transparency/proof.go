package transparency

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/stele-id/stele"
)

// Proof shows what a name stood for in a version, when that was committed, and that it is in the log. It is checked with the
// public key of the log, without the registry.
type Proof struct {
	Full     bool   // it has the full document, not the one for the public
	Name     string // of the record or namespace
	NameKey  Key    // that blinds it; zero if the leaf has the name
	Salt     Key    // of the digest; zero if there is no document
	Document []byte // in its canonical form; nil: only the entry is proved
	Leaf     []byte // its text
	Index    uint64 // of the leaf
	Hashes   tlog.RecordProof
	Note     string // the signed checkpoint
}

const (
	proofHeader  = "stele proof 1"
	tlogHeader   = "c2sp.org/tlog-proof@v1"
	maxProof     = 2 << 20
	maxHashLines = 63
	hashLine     = (tlog.HashSize+2)/3*4 + 1 // in base64
)

// AppendText appends the file of the proof:
//
//	stele proof 1
//	public
//	name ark:12345/x1
//	name-key 00112233445566778899aabbccddeeff
//	salt ffeeddccbbaa99887766554433221100
//	document {"id":"ark:12345/x1",...}
//	leaf {"at":"2031-05-02T10:00:00Z",...}
//
//	c2sp.org/tlog-proof@v1
//	index 1041
//	...
//
// and what follows is a proof as tlog-proof has it. A proof of the full document says "full", one of the entry alone
// "entry".
func (p *Proof) AppendText(b []byte) ([]byte, error) {
	const lines = 256 // and their names
	b = slices.Grow(b, lines+len(p.Name)+len(p.Document)+len(p.Leaf)+(len(p.Hashes)+1)*hashLine+len(p.Note))
	line := func(name string, value ...string) {
		b = append(b, name...)
		for _, v := range value {
			b = append(append(b, ' '), v...)
		}
		b = append(b, '\n')
	}
	line(proofHeader)
	line(p.kind())
	line("name", p.Name)
	if p.NameKey != (Key{}) {
		text, _ := p.NameKey.MarshalText()
		line("name-key", string(text))
	}
	if p.Document != nil {
		text, _ := p.Salt.MarshalText()
		line("salt", string(text))
		line("document", string(p.Document))
	}
	line("leaf", string(p.Leaf))
	line("")
	line(tlogHeader)
	line("index", strconv.FormatUint(p.Index, 10))
	for _, h := range p.Hashes {
		b = append(base64.StdEncoding.AppendEncode(b, h[:]), '\n')
	}
	line("")
	return append(b, p.Note...), nil
}

// MarshalText returns the file of the proof; see AppendText.
func (p *Proof) MarshalText() ([]byte, error) { return p.AppendText(nil) }

func (p *Proof) kind() string {
	switch {
	case p.Document == nil:
		return "entry"
	case p.Full:
		return "full"
	}
	return "public"
}

func badProof(why string) error {
	return &stele.Error{Op: "read proof", Kind: stele.Invalid, Err: stele.Messagef("log.proof-malformed", "this is not a proof, or it was damaged: {reason}", why)}
}

// UnmarshalText reads what AppendText writes.
func (p *Proof) UnmarshalText(text []byte) error {
	if len(text) > maxProof {
		return badProof("it is too long")
	}
	head, rest, ok := strings.Cut(string(text), "\n\n"+tlogHeader+"\n")
	if !ok {
		return badProof("it has no part that begins with " + tlogHeader)
	}
	var q Proof
	if err := q.readHead(head); err != nil {
		return err
	}
	lines, note, ok := strings.Cut(rest, "\n\n")
	if !ok {
		return badProof("it has no checkpoint")
	}
	if err := q.readPath(lines); err != nil {
		return err
	}
	q.Note = note
	if again, err := q.AppendText(nil); err != nil || !bytes.Equal(again, text) {
		return badProof("its lines are not in their form and order")
	}
	*p = q
	return nil
}

func (p *Proof) readHead(head string) error {
	lines := strings.Split(head, "\n")
	if len(lines) < 3 || lines[0] != proofHeader {
		return badProof("it does not begin with " + proofHeader)
	}
	p.Full = lines[1] == "full"
	for _, line := range lines[2:] {
		name, value, _ := strings.Cut(line, " ")
		var err error
		switch name {
		case "name":
			p.Name = value
		case "name-key":
			err = p.NameKey.UnmarshalText([]byte(value))
		case "salt":
			err = p.Salt.UnmarshalText([]byte(value))
		case "document":
			p.Document = []byte(value)
		case "leaf":
			p.Leaf = []byte(value)
		default:
			return badProof("a line has an unknown name")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *Proof) readPath(text string) error {
	first, rest, _ := strings.Cut(text, "\n")
	number, ok := strings.CutPrefix(first, "index ")
	var err error
	if p.Index, err = strconv.ParseUint(number, 10, 63); !ok || err != nil {
		return badProof("it does not say which leaf it is about")
	}
	for line := range strings.SplitSeq(rest, "\n") {
		if line == "" && rest == "" {
			break
		}
		h, err := tlog.ParseHash(line)
		if err != nil || len(p.Hashes) == maxHashLines {
			return badProof("a line is not a hash")
		}
		p.Hashes = append(p.Hashes, h)
	}
	return nil
}

// Proved is what a proof shows.
type Proved struct {
	Leaf     *Leaf
	Name     string
	Document []byte // nil if only the entry is proved
	Full     bool

	Checkpoint   *Checkpoint
	Cosignatures []Cosignature // of the witnesses that are known
}

// Check checks the proof against the public keys of the log and of witnesses.
func (p *Proof) Check(keys []PublicKey) (*Proved, error) {
	c, cosigned, err := OpenCheckpoint([]byte(p.Note), keys)
	if err != nil {
		return nil, err
	}
	wrong := func(m *stele.Message) (*Proved, error) {
		return nil, &stele.Error{Op: "check proof", Kind: stele.Invalid, Err: m}
	}
	if p.Index >= c.Size || tlog.CheckRecord(p.Hashes, int64(c.Size), c.Root, int64(p.Index), tlog.RecordHash(p.Leaf)) != nil {
		return wrong(stele.Messagef("log.proof-not-included", "the log that was signed does not have this leaf"))
	}
	leaf, err := ParseLeaf(p.Leaf)
	if err != nil {
		return nil, err
	}
	switch {
	case leaf.Name != "" && (leaf.Name != p.Name || p.NameKey != (Key{})),
		leaf.Name == "" && Blind(p.NameKey, leaf.Kind, p.Name) != leaf.Blind:
		return wrong(stele.Messagef("log.proof-other-name", "the leaf in the log is about another name"))
	}
	shown := &Proved{Leaf: leaf, Name: p.Name, Document: p.Document, Full: p.Full, Checkpoint: c, Cosignatures: cosigned}
	if p.Document == nil {
		return shown, nil
	}
	want := leaf.Public
	if p.Full {
		want = leaf.Full
	}
	if leaf.Form != leafForm || Digest(p.Salt, p.Document) != want {
		return wrong(stele.Messagef("log.proof-other-document", "the document is not the one whose digest is in the log"))
	}
	var d struct {
		ID      *string      `json:"id"`
		Prefix  *string      `json:"prefix"`
		Version *json.Number `json:"version"`
	}
	if json.Unmarshal(p.Document, &d) != nil || d.Version == nil || d.Version.String() != strconv.FormatUint(leaf.Version, 10) || leaf.Kind == KindRecord && (d.ID == nil || *d.ID != p.Name) {
		return wrong(stele.Messagef("log.proof-other-document", "the document is not the one whose digest is in the log"))
	}
	return shown, nil
}

// Wanted says what a proof is asked of.
type Wanted struct {
	ID      stele.ID
	Version uint64
	Record  *stele.Record // that version, as the store has it, if the caller has read it. It is not read again then
	Full    bool          // the full document, not the one for the public; the caller has judged who may see it
	Entry   bool          // no document: the entry alone
}

// Prove makes a proof of a version of a record, against the last checkpoint. Of an erased version, and of one of which the
// public may see nothing, it proves the entry. Unavailable if the last checkpoint does not have it yet.
func (l *Log) Prove(ctx context.Context, w Wanted) (*Proof, error) {
	p, shown, err := l.proving(ctx)
	if err != nil {
		return nil, err
	}
	leaf, c, err := l.find(ctx, p, KindRecord, w.ID.String(), w.Version)
	if stele.KindOf(err) == stele.NotFound {
		return nil, &stele.Error{Op: "prove", ID: w.ID, Kind: stele.Unavailable, Err: stele.Reason(err)}
	}
	if err != nil {
		return nil, err
	}
	if shown.size <= leaf {
		return nil, &stele.Error{Op: "prove", ID: w.ID, Kind: stele.Unavailable, Err: stele.Messagef("log.version-not-signed", "version {version} of {name} is not in a signed checkpoint yet; try again in a moment", w.Version, w.ID)}
	}
	hashes := l.hashes(ctx, p)
	e := &entry{change: c}
	if e.kept, err = hashes.leaf(leaf); err != nil {
		return nil, err
	}
	m := l.makers.Get().(*maker)
	defer l.makers.Put(m)
	if err := l.proved(ctx, p, m, e, leaf, w.Record); err != nil {
		return nil, err
	}
	proof := &Proof{Full: w.Full, Name: w.ID.String(), Leaf: e.leaf.Append(nil), Index: leaf, Note: shown.note}
	if e.leaf.Name == "" {
		proof.NameKey = e.key
	}
	if e.kept.flags&(flagNoted|flagErased) == flagNoted && !w.Entry {
		public, full := e.seed.salts()
		switch {
		case w.Full:
			proof.Document, proof.Salt = bytes.Clone(m.full[len(full):]), full
		case string(m.public[len(public):]) != noDocument:
			proof.Document, proof.Salt = bytes.Clone(m.public[len(public):]), public
		}
	}
	if proof.Document == nil {
		proof.Full = false
	}
	proof.Hashes, err = tlog.ProveRecord(int64(shown.size), int64(leaf), hashes)
	return proof, err
}

// proving returns the state of the log with its edge and its tail, and the last checkpoint, both read at once.
func (l *Log) proving(ctx context.Context) (p *position, shown *readCheckpoint, err error) {
	cells, err := l.o.Cells.LogValues(ctx, []string{checkpointCell, stateCell})
	if err != nil {
		return nil, nil, err
	}
	if shown, err = l.checkpointOf(cells[0]); err != nil {
		return nil, nil, err
	}
	if p, err = l.positionOf(cells[1]); err == nil && p.edge == nil {
		p, err = l.load(ctx)
	}
	return p, shown, err
}

// proved makes the leaf of an entry again, with its documents: from a record, if that is what was logged, or else from what the store
// has now.
func (l *Log) proved(ctx context.Context, p *position, m *maker, e *entry, leaf uint64, record *stele.Record) error {
	if e.kept.flags&flagErased == 0 {
		if record != nil && record.ID == e.change.ID && record.Version == e.change.Version {
			e.record = record
			if err := l.again(ctx, p, m, e, leaf); err == nil || stele.KindOf(err) != stele.Internal {
				return err
			}
			e.record = nil
		}
		list := []entry{*e}
		if err := l.content(ctx, list); err != nil {
			return err
		}
		*e = list[0]
	}
	return l.again(ctx, p, m, e, leaf)
}

// ProveGrowth returns the proof that the log of a size is the beginning of the log of another (RFC 6962, section 2.1.2).
func (l *Log) ProveGrowth(ctx context.Context, from, to uint64) (tlog.TreeProof, error) {
	if from == 0 || from == to {
		return nil, nil
	}
	return tlog.ProveTree(int64(to), int64(from), newHashReader(ctx, l.o.Cells))
}

// Time returns when the version was committed.
func (p *Proved) Time() time.Time { return p.Leaf.At }
