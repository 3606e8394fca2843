package transparency

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/stele-id/stele"
)

// Checkpoint is the root of a log at a size.
type Checkpoint struct {
	Origin string
	Size   uint64
	Root   tlog.Hash
}

// String returns the text that is signed.
func (c *Checkpoint) String() string {
	return c.Origin + "\n" + strconv.FormatUint(c.Size, 10) + "\n" + base64.StdEncoding.EncodeToString(c.Root[:]) + "\n"
}

// maxCheckpoint is how long a signed checkpoint may be.
const maxCheckpoint = 64 << 10

// ParseCheckpoint reads the text of a checkpoint, without its signatures.
func ParseCheckpoint(text string) (*Checkpoint, error) {
	lines := strings.SplitN(text, "\n", 4)
	if len(lines) < 4 || lines[0] == "" {
		return nil, badCheckpoint("it has not three lines")
	}
	size, err := strconv.ParseUint(lines[1], 10, 63)
	if err != nil || strconv.FormatUint(size, 10) != lines[1] || size > maxTreeSize {
		return nil, badCheckpoint("its size is not a number")
	}
	root, err := base64.StdEncoding.Strict().DecodeString(lines[2])
	if err != nil || len(root) != tlog.HashSize {
		return nil, badCheckpoint("its hash is not one in base64")
	}
	c := &Checkpoint{Origin: lines[0], Size: size}
	copy(c.Root[:], root)
	return c, nil
}

func badCheckpoint(why string) error {
	return &stele.Error{Op: "read checkpoint", Kind: stele.Invalid, Err: stele.Messagef("log.checkpoint-malformed", "this is not the checkpoint of a log: {reason}", why)}
}

// Cosignature says that a witness has seen a checkpoint.
type Cosignature struct {
	Witness string
	At      time.Time
}

// OpenCheckpoint checks a signed checkpoint. It is Invalid if none of the keys of logs has signed it, or a signature of a known
// key is wrong. It returns which of the known witnesses have co-signed it.
func OpenCheckpoint(text []byte, keys []PublicKey) (*Checkpoint, []Cosignature, error) {
	if len(text) > maxCheckpoint {
		return nil, nil, badCheckpoint("it is too long")
	}
	n, err := openNote(text, keys)
	if err != nil {
		return nil, nil, err
	}
	c, err := ParseCheckpoint(n.Text)
	if err != nil {
		return nil, nil, err
	}
	signed := false
	var cosigned []Cosignature
	for _, s := range n.Sigs {
		for _, k := range keys {
			v := verifier{k, s.Name}
			switch {
			case v.KeyHash() != s.Hash:
			case !k.Cosign:
				signed = signed || isEra(c.Origin, k.Name)
			case k.Name == s.Name:
				sig, err := base64.StdEncoding.DecodeString(s.Base64)
				if err != nil || len(sig) < keyHashBytes {
					continue
				}
				if at, ok := v.cosigned([]byte(n.Text), sig[keyHashBytes:]); ok {
					cosigned = append(cosigned, Cosignature{k.Name, at})
				}
			}
		}
	}
	if !signed {
		return nil, nil, &stele.Error{Op: "check checkpoint", Kind: stele.Invalid, Err: ErrUnsigned}
	}
	return c, cosigned, nil
}

// ReadCosignatures returns which witnesses have co-signed a checkpoint, by what its signature lines say. It checks none of them.
func ReadCosignatures(text string) (list []Cosignature) {
	_, lines, _ := strings.Cut(text, "\n\n")
	for line := range strings.Lines(lines) {
		name, encoded, ok := strings.Cut(strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "\u2014 "), " ")
		sig, err := base64.StdEncoding.DecodeString(encoded)
		if !ok || err != nil || len(sig) != keyHashBytes+8+ed25519.SignatureSize {
			continue
		}
		if seconds := binary.BigEndian.Uint64(sig[keyHashBytes:]); seconds <= maxCosignTime {
			list = append(list, Cosignature{name, time.Unix(int64(seconds), 0).UTC()})
		}
	}
	return list
}

// maxCosignTime bounds the times of co-signatures, in seconds of Unix time.
const maxCosignTime = 1 << 40

// Published is the checkpoint that a registry shows.
type Published struct {
	Note string    `json:"note"` // the signed checkpoint, with co-signatures
	At   time.Time `json:"at"`   // when it was signed
}

// Shown returns the last checkpoint for readers; the zero one if there is none yet. Unavailable if it is one of the generation before a restore: the backup has
// it, it is smaller than what readers have seen of that generation, and they would take it for a log that has shrunk.
func (l *Log) Shown(ctx context.Context) (p Published, err error) {
	p, err = l.Published(ctx)
	if err != nil || p.Note == "" {
		return p, err
	}
	c, err := ParseCheckpoint(p.Note)
	if err != nil {
		return Published{}, damaged(checkpointCell)
	}
	at, err := l.read(ctx)
	if err != nil {
		return Published{}, err
	}
	now, err := l.o.Source.Position(ctx)
	if err != nil {
		return Published{}, err
	}
	if n := len(at.Eras); n > 0 && at.Eras[n-1].Generation == now.Generation && originEnd(c.Origin) == at.Eras[n-1].id().String() {
		return p, nil
	}
	return Published{}, &stele.Error{Op: "show log", Kind: stele.Unavailable, Err: stele.Messagef("log.not-signed-since-restore", "the registry was restored from a backup, and its log was not signed since; try again in a moment")}
}

// Published returns the last checkpoint; the zero one if there is none yet. It may be of the generation before a restore.
func (l *Log) Published(ctx context.Context) (p Published, err error) {
	p, _, err = l.published(ctx)
	return p, err
}

func (l *Log) published(ctx context.Context) (p Published, cell []byte, err error) {
	if cell, err = l.o.Cells.LogCell(ctx, checkpointCell); err == nil {
		p, err = decodePublished(cell)
	}
	return p, cell, err
}

// decodePublished reads the cell of the last checkpoint, nil if there is none yet.
func decodePublished(cell []byte) (p Published, err error) {
	if cell != nil && json.Unmarshal(cell, &p) != nil {
		return p, damaged(checkpointCell)
	}
	return p, nil
}

// readCheckpoint is the last checkpoint with the cell that has it.
type readCheckpoint struct {
	cell []byte
	note string
	size uint64 // 0 if there is no checkpoint, or one that this program can't read
}

// checkpointOf returns what is in the cell of the last checkpoint, which has mostly not changed since it was read before.
func (l *Log) checkpointOf(cell []byte) (*readCheckpoint, error) {
	if last := l.checkpoint.Load(); last != nil && cell != nil && bytes.Equal(last.cell, cell) {
		return last, nil
	}
	p, err := decodePublished(cell)
	if err != nil {
		return nil, err
	}
	now := &readCheckpoint{cell: cell, note: p.Note}
	if c, err := ParseCheckpoint(p.Note); err == nil {
		now.size = c.Size
	}
	l.checkpoint.Store(now)
	return now, nil
}

// Sign makes a checkpoint of the log as it is, unless the last one says the same and has the signatures of all keys.
func (l *Log) Sign(ctx context.Context, keys *Keys) (p Published, err error) {
	for range maxTries {
		if p, err = l.sign(ctx, keys); stele.KindOf(err) != stele.Conflict {
			break
		}
	}
	return p, err
}

func (l *Log) sign(ctx context.Context, keys *Keys) (Published, error) {
	at, err := l.read(ctx)
	if err != nil {
		return Published{}, err
	}
	before, cell, err := l.published(ctx)
	if err != nil {
		return Published{}, err
	}
	c := Checkpoint{Origin: eraOrigin(keys.Origin, at.Eras), Size: at.Size}
	old, err := ParseCheckpoint(before.Note)
	if err != nil || old.Origin != c.Origin {
		old = nil
	}
	if old != nil && old.Size > c.Size {
		return before, l.confirm(ctx, at, old) // another server was faster
	}
	hashes := newHashReader(ctx, l.o.Cells)
	if c.Root, err = tlog.TreeHash(int64(at.Size), hashes); err != nil {
		return Published{}, err
	}
	if old != nil {
		root, err := tlog.TreeHash(int64(old.Size), hashes)
		if err != nil {
			return Published{}, err
		}
		if root != old.Root {
			return Published{}, otherLog(old)
		}
	}
	signers := l.signers(keys, c.Origin)
	if len(signers) == 0 {
		return Published{}, noSigningKey()
	}
	text, err := note.Sign(&note.Note{Text: c.String()}, signers...)
	if err != nil {
		return Published{}, &stele.Error{Op: "sign checkpoint", Kind: stele.Internal, Err: err}
	}
	if strings.HasPrefix(before.Note, string(text)) {
		return before, nil // with co-signatures, perhaps
	}
	p := Published{Note: string(text), At: l.o.Now().UTC()}
	return p, l.publish(ctx, cell, p)
}

// confirm returns an error if the log is smaller than its last checkpoint, which it never is: another server adds leaves first, and signs then. A copy of the
// registry that lags may show both in another order.
func (l *Log) confirm(ctx context.Context, before *position, old *Checkpoint) error {
	now, err := l.read(ctx)
	if err == nil && now.Size < old.Size && string(now.cell) == string(before.cell) {
		if l.o.Lagging != nil {
			if _, lags := l.o.Lagging(); lags {
				return nil
			}
		}
		err = otherLog(old)
	}
	return err
}

// otherLog says that the log did not grow from its last checkpoint. A second checkpoint of another history would be signed evidence against the registry.
func otherLog(old *Checkpoint) error {
	return &stele.Error{Op: "sign checkpoint", Kind: stele.Internal, Err: stele.Messagef("log.other-than-signed", "the log is not the one whose {size} leaves were signed last, so it is not signed: its cells were lost or changed; restore a backup, or make one now and restore it, and the log goes on under the name of a new generation", old.Size)}
}

func noSigningKey() error {
	return &stele.Error{Op: "sign checkpoint", Kind: stele.Conflict, Err: stele.Messagef("log.no-signing-key", "the log has no key that signs; 'stele log key --roll' makes one")}
}

func (l *Log) publish(ctx context.Context, before []byte, p Published) error {
	after, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return l.o.Cells.KeepLog(ctx, stele.CellChange{Name: checkpointCell, Before: before, After: after})
}
