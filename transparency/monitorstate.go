package transparency

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/stele-id/stele"
)

// MonitorState is what a monitor keeps of a log.
type MonitorState struct {
	Form   int    `json:"form"`
	Origin string `json:"origin,omitempty"` // of the last checkpoint
	Read   uint64 `json:"read"`             // entries that were read and reported

	// Eras are those of the log, the last one being that of the origin: they say where this log and another one parted, if the registry is
	// restored from a backup of an earlier era.
	Eras []SeenEra `json:"eras,omitempty"`

	// Seen are the checkpoints that were seen in this era, the oldest first. When they are many, older ones are left out.
	Seen []SeenCheckpoint `json:"seen,omitempty"`

	Note   string       `json:"note,omitempty"`   // the last checkpoint, signed
	Former []FormerNote `json:"former,omitempty"` // the last ones of eras that ended by a restore

	// Wrong are signed checkpoints that do not belong to the ones before them: evidence.
	Wrong []FormerNote `json:"wrong,omitempty"`
}

// SeenCheckpoint is a checkpoint that was seen.
type SeenCheckpoint struct {
	Size uint64    `json:"size"`
	Root tlog.Hash `json:"root"`
	At   time.Time `json:"at"`
}

// SeenEra is an era of the log that is followed.
type SeenEra struct {
	Origin string `json:"origin"`
	Size   uint64 `json:"size"` // with which it began
}

// FormerNote is a signed checkpoint that is kept.
type FormerNote struct {
	Note string    `json:"note"`
	At   time.Time `json:"at"`
}

const (
	monitorForm = 1

	// MaxMonitorState bounds the text of a state.
	MaxMonitorState = 8 << 20

	maxSeen   = 512
	fullySeen = 128 // of the last ones none is left out
	maxNotes  = 20
)

// NewMonitorState returns the state of a monitor that has seen nothing.
func NewMonitorState() *MonitorState { return &MonitorState{Form: monitorForm} }

// ParseMonitorState reads the JSON of a state.
func ParseMonitorState(text []byte) (*MonitorState, error) {
	bad := func(why string) (*MonitorState, error) {
		return nil, &stele.Error{Op: "read state", Kind: stele.Invalid, Err: stele.Messagef("log.monitor-state-malformed", "this is not the state of a monitor: {reason}; restore it from a backup, or begin anew with another file", why)}
	}
	var s MonitorState
	if len(text) > MaxMonitorState || json.Unmarshal(text, &s) != nil {
		return bad("it is not JSON of the known members, or too long")
	}
	if s.Form != monitorForm || len(s.Eras) > stele.MaxGenerations || len(s.Seen) > maxSeen || len(s.Former) > maxNotes || len(s.Wrong) > maxNotes {
		return bad("it is of another form")
	}
	before := uint64(0)
	for i, c := range s.Seen {
		if i > 0 && c.Size <= before || c.Size > maxTreeSize {
			return bad("its checkpoints are not in order")
		}
		before = c.Size
	}
	if s.Read > before || len(s.Seen) > 0 && (s.Origin == "" || s.Note == "") {
		return bad("a part is missing")
	}
	return &s, nil
}

// last returns the last checkpoint; nil if there is none.
func (s *MonitorState) last() *SeenCheckpoint {
	if len(s.Seen) == 0 {
		return nil
	}
	return &s.Seen[len(s.Seen)-1]
}

// upTo returns the largest checkpoint that is not above a size; nil if there is none.
func (s *MonitorState) upTo(size uint64) (c *SeenCheckpoint) {
	for i := range s.Seen {
		if s.Seen[i].Size <= size {
			c = &s.Seen[i]
		}
	}
	return c
}

// see notes a checkpoint that is consistent with the ones before.
func (s *MonitorState) see(c *Checkpoint, note string, at time.Time) {
	s.Note = note
	if last := s.last(); last != nil && last.Size == c.Size {
		return
	}
	s.Seen = append(s.Seen, SeenCheckpoint{c.Size, c.Root, at.UTC().Truncate(time.Second)})
	if len(s.Seen) <= maxSeen {
		return
	}
	s.Seen = slices.Delete(s.Seen, s.dense(), s.dense()+1)
}

// dense returns the checkpoint that is missed least: the one whose neighbours are nearest to each other, measured by how long ago
// it was. So the older they are, the fewer are left.
func (s *MonitorState) dense() (at int) {
	least := math.Inf(1)
	now := s.last().Size
	for i := 1; i < len(s.Seen)-fullySeen; i++ {
		if gap := float64(s.Seen[i+1].Size-s.Seen[i-1].Size) / float64(now-s.Seen[i].Size); gap < least {
			least, at = gap, i
		}
	}
	return at
}

// restore forgets what a restored log does not have, or is not known to have.
func (s *MonitorState) restore(origin string, kept uint64, eras []SeenEra) {
	s.Eras = eras
	s.Former = appendNote(s.Former, FormerNote{Note: s.Note, At: s.last().At})
	for len(s.Seen) > 0 && s.last().Size > kept {
		s.Seen = s.Seen[:len(s.Seen)-1]
	}
	// What no checkpoint of this era shows is read again.
	s.Origin, s.Read = origin, 0
	if last := s.last(); last != nil {
		s.Read = last.Size
	}
}

// accuse keeps a checkpoint as evidence, and reports whether it is a new one.
func (s *MonitorState) accuse(note string, at time.Time) bool {
	if note == "" || len(note) > maxCheckpoint || len(s.Seen) == 0 {
		return false
	}
	for _, w := range s.Wrong {
		if w.Note == note {
			return false
		}
	}
	s.Wrong = appendNote(s.Wrong, FormerNote{Note: note, At: at.UTC().Truncate(time.Second)})
	return true
}

// appendNote appends a note, and forgets the second one if they are too many: the first tells most.
func appendNote(list []FormerNote, n FormerNote) []FormerNote {
	if len(list) >= maxNotes {
		list = append(list[:1:1], list[2:]...)
	}
	return append(list, n)
}

// Watch says which names are watched. Its zero value watches none.
type Watch struct {
	names  map[string]bool
	starts []string // of names, for those that end with a star
	blinds map[[32]byte]string
}

// Name watches a name and the names below it: those that go on with a slash, a colon or a dot. A star at its end stands for
// anything.
func (w *Watch) Name(name string) {
	if start, ok := strings.CutSuffix(name, "*"); ok {
		w.starts = append(w.starts, start)
		return
	}
	if w.names == nil {
		w.names = map[string]bool{}
	}
	w.names[name] = true
}

// Proof watches the name that a proof is about. The proof discloses the key that blinds it, so that it is found in the log although
// its namespace is not listed. The caller has checked the proof.
func (w *Watch) Proof(p *Proof) error {
	leaf, err := ParseLeaf(p.Leaf)
	if err != nil {
		return err
	}
	w.Name(p.Name)
	if leaf.Name == "" {
		if w.blinds == nil {
			w.blinds = map[[32]byte]string{}
		}
		w.blinds[leaf.Blind] = p.Name
	}
	return nil
}

// match returns the name of a leaf that is watched.
func (w *Watch) match(l *Leaf) (name string, ok bool) {
	if l.Name == "" {
		name, ok = w.blinds[l.Blind]
		return name, ok
	}
	return l.Name, w.covers(l.Name)
}

// covers reports whether a name is watched.
func (w *Watch) covers(name string) bool {
	if w.names[name] {
		return true
	}
	for i := range len(name) {
		if strings.IndexByte("/:.", name[i]) >= 0 && (w.names[name[:i]] || w.names[name[:i+1]]) {
			return true
		}
	}
	return slices.ContainsFunc(w.starts, func(start string) bool { return strings.HasPrefix(name, start) })
}
