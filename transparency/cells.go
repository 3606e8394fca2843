package transparency

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/stele-id/stele"
)

// All cells of the log:
//
//	cell                        value
//	----                        -----
//	log state                   JSON: how far the log is; see state
//	log tile 0 NNNNNNNNNN       up to 256 leaves; see leafSize
//	log tile L NNNNNNNNNN       up to 256 hashes of 32 bytes, each of a full tile of the level below
//	log erased NNNNNNNNNN       JSON: a leaf whose content was erased; see erased
//	log index L BBBBBBBB PPPPPP where leaves of blocks are found by name and version; see index.go
//	log checkpoint              the last checkpoint, a signed note with its co-signatures
//	log keys                    JSON: the keys that sign checkpoints; see keys.go
//
// N, B and P are hexadecimal: the number of the tile within its level, or of the leaf; the first block of a run; the part
// of it. A tile that is not full yet grows under the same name. What a tile has never changes, except that the seed of an erased leaf
// is removed.
const (
	// Cells begins the names of all cells of the log.
	Cells = "log "

	stateCell      = "log state"
	checkpointCell = "log checkpoint"
)

func tileCell(level int, n uint64) string { return fmt.Sprintf("log tile %x %010x", level, n) }
func erasedCell(leaf uint64) string       { return fmt.Sprintf("log erased %010x", leaf) }

// Keeper keeps cells: a [registrar.Registrar].
type Keeper interface {
	LogCell(ctx context.Context, name string) ([]byte, error)
	// LogPart returns so many bytes of a cell from one on, fewer if there are no more, and how long it is; -1 if there is none.
	LogPart(ctx context.Context, name string, from, count int) (part []byte, length int, err error)
	// LogValues returns many cells, in the order of their names; nil for one that is not there.
	LogValues(ctx context.Context, names []string) ([][]byte, error)
	LogList(ctx context.Context, prefix, after string) iter.Seq2[stele.Cell, error]
	// KeepLog changes cells, all or none. Conflict if one does not have the value that the change expects.
	KeepLog(ctx context.Context, changes ...stele.CellChange) error
}

// state is how far the log is.
type state struct {
	// Eras are the generations that the log was written in, the oldest first. The size is that with which the era
	// began.
	Eras []Era `json:"eras"`

	Size uint64 `json:"size"` // leaves; that of the change feed if the log has caught up

	// Mark is what the last leaf is about: by it the log finds out that it belongs to another feed.
	Mark mark `json:"mark,omitzero"`

	Indexed uint64 `json:"indexed,omitempty"` // blocks in the index
	Merged  []run  `json:"merged,omitempty"`  // runs of the index that were merged and whose cells are still to be removed
}

// Era is a generation of the registry, as the log knows it.
type Era struct {
	Generation stele.GenerationID `json:"generation"`
	Number     uint64             `json:"number"`
	Size       uint64             `json:"size"` // leaves that it has from the eras before it
	Began      time.Time          `json:"began"`
}

type mark struct {
	Name    string    `json:"name"`
	Version uint64    `json:"version"`
	At      time.Time `json:"at"`
}

func markOf(c *stele.Change) mark {
	_, name := subject(c)
	return mark{Name: name, Version: c.Version, At: c.At.UTC().Truncate(time.Microsecond)}
}

// subject returns what a change is about.
func subject(c *stele.Change) (Kind, string) {
	if c.ID.IsValid() {
		return KindRecord, c.ID.String()
	}
	return KindNamespace, c.Namespace.String()
}

func (s *state) encode() ([]byte, error) { return json.Marshal(s) }

func decodeState(value []byte) (*state, error) {
	var s state
	if err := json.Unmarshal(value, &s); err != nil || len(s.Eras) == 0 {
		return nil, damaged(stateCell)
	}
	return &s, nil
}

func damaged(cell string) error {
	return &stele.Error{Op: opLog, Kind: stele.Internal, Err: stele.Messagef("log.cell-damaged", `the cell "{cell}" of the log is damaged; restore a backup, or 'stele verify' tells what else is`, cell)}
}

const opLog = "follow with the log"

// A tile of level 0 has leafSize bytes for each leaf: flags, the hash, the seed. It begins with one byte, the number of this form.
const (
	tileWidth   = 256
	leafForm    = 1
	leafSize    = 1 + tlog.HashSize + len(seed{})
	tileHeight  = 8
	maxTreeSize = 1 << 40
)

// Flags of a leaf.
const (
	flagListed  = 1 << iota // the name stands in the leaf
	flagNoted               // it has digests
	flagErased              // the seed was removed, and the leaf is in a cell of its own
	flagUnknown             // this one and all above are not used
)

// kept is what the log keeps of a leaf.
type kept struct {
	flags byte
	hash  tlog.Hash
	seed  seed
}

func appendKept(b []byte, k *kept) []byte {
	b = append(b, k.flags)
	b = append(b, k.hash[:]...)
	return append(b, k.seed[:]...)
}

// leavesIn returns how many leaves a tile of level 0 has; -1 if it is damaged.
func leavesIn(value []byte) int {
	if len(value) == 0 {
		return 0
	}
	if value[0] != leafForm {
		return -1
	}
	return leavesOf(len(value))
}

// leavesOf returns how many leaves a tile of level 0 has that is so long; -1 if none is.
func leavesOf(length int) int {
	if n := length - 1; n >= 0 && n%leafSize == 0 && n/leafSize <= tileWidth {
		return n / leafSize
	}
	return -1
}

// keptAt returns where a tile of level 0 has a leaf.
func keptAt(i int) int { return 1 + i*leafSize }

// readKept reads a leaf of a tile that has it.
func readKept(value []byte, i int) (k kept) {
	return decodeKept(value[keptAt(i):][:leafSize])
}

func decodeKept(b []byte) (k kept) {
	k.flags = b[0]
	copy(k.hash[:], b[1:])
	copy(k.seed[:], b[1+tlog.HashSize:])
	return k
}

// hashesOf returns the hashes of a tile of level 0.
func hashesOf(value []byte) []byte {
	n := leavesIn(value)
	out := make([]byte, 0, n*tlog.HashSize)
	for i := range n {
		out = append(out, value[1+i*leafSize+1:][:tlog.HashSize]...)
	}
	return out
}

// erased is a leaf whose content was erased: its text, and the key of its blinded name, which later versions need.
type erased struct {
	Leaf string `json:"leaf"`
	Key  Key    `json:"key,omitzero"`
}

// MarshalText writes a key in hexadecimal.
func (k Key) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, k[:]), nil }

// UnmarshalText reads what MarshalText writes.
func (k *Key) UnmarshalText(text []byte) error {
	if len(text) == hex.EncodedLen(len(k)) {
		if _, err := hex.Decode(k[:], text); err == nil {
			return nil
		}
	}
	return &stele.Error{Op: "read log", Kind: stele.Invalid, Err: stele.Messagef("log.key-malformed", "a key of a leaf has 32 hexadecimal digits")}
}
