package transparency

import (
	"context"
	"errors"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/stele-id/stele"
)

// Monitor follows the log of a registry from outside: it compares each checkpoint with those that it has seen, reads the entries that are
// new, and reports what changed. It trusts the keys that it is given, and what it has seen before.
type Monitor struct {
	Client *TileClient
	Keys   []PublicKey
	Watch  *Watch

	State *MonitorState
	Save  func(*MonitorState) error // makes the state durable

	Report   func(Event)
	Progress func(done, total uint64) // of entries; it may be nil
	Now      func() time.Time
}

// Event is something that a monitor reports.
type Event struct {
	Event string `json:"event"` // "change", "checkpoint", "restored"

	// Of a change:
	Change  uint64    `json:"change,omitempty"` // its number
	Kind    Kind      `json:"kind,omitempty"`
	Name    string    `json:"name,omitempty"`
	Version uint64    `json:"version,omitempty"`
	At      time.Time `json:"at,omitzero"`

	// Of a checkpoint:
	Origin    string   `json:"origin,omitempty"`
	Size      uint64   `json:"size,omitempty"`
	Root      string   `json:"root,omitempty"`
	New       uint64   `json:"new,omitempty"` // entries since the last look
	Witnesses []string `json:"witnesses,omitempty"`

	// Of a restore: the changes of the former era that are not in the log any more. Both are 0 if none is known to be.
	Former     string `json:"former,omitempty"` // its origin
	FirstGone  uint64 `json:"firstGone,omitempty"`
	LastGone   uint64 `json:"lastGone,omitempty"`
	Generation uint64 `json:"generation,omitempty"`
}

const (
	// saveEvery is after how many bundles the state is saved while a long log is read.
	saveEvery = 32

	// staleTries is how often a monitor asks again before it says that a log has shrunk: a cache, or a server whose database follows another
	// one, may show an earlier checkpoint for a moment.
	staleTries = 3
	staleWait  = 2 * time.Second
)

// Look looks at the log once. An error that is [ErrRewritten] says that the log is not what it was; one of kind Unavailable that the
// registry can't be reached now.
func (m *Monitor) Look(ctx context.Context) error {
	text, c, cosigned, err := m.checkpoint(ctx)
	if err != nil {
		return m.keepEvidence(text, err)
	}
	last := m.State.last()
	if last == nil || m.State.Eras == nil && c.Origin == m.State.Origin {
		if m.State.Eras, err = m.eras(ctx, c); err != nil {
			return m.keepEvidence(text, err)
		}
	}
	switch {
	case last == nil:
		m.State.Origin = c.Origin
	case c.Origin != m.State.Origin:
		if err := m.restored(ctx, c); err != nil {
			return m.keepEvidence(text, err)
		}
	default:
		if err := m.consistent(ctx, last, c); err != nil {
			return m.keepEvidence(text, err)
		}
	}
	m.State.see(c, string(text), m.Now())
	if err := m.Save(m.State); err != nil {
		return err
	}
	before := m.State.Read
	if err := m.read(ctx, c); err != nil {
		return m.keepEvidence(text, errors.Join(err, m.Save(m.State)))
	}
	e := Event{Event: "checkpoint", Origin: c.Origin, Size: c.Size, Root: c.Root.String(), New: c.Size - before}
	for _, w := range cosigned {
		e.Witnesses = append(e.Witnesses, w.Witness)
	}
	m.Report(e)
	return m.Save(m.State)
}

// keepEvidence keeps a checkpoint that does not belong to what was seen: with the one before it, all can check what the registry did.
func (m *Monitor) keepEvidence(text []byte, err error) error {
	if errors.Is(err, ErrRewritten) && m.State.accuse(string(text), m.Now()) {
		return errors.Join(err, m.Save(m.State))
	}
	return err
}

// checkpoint reads the checkpoint that the log shows. If it is smaller than the last one, it asks again.
func (m *Monitor) checkpoint(ctx context.Context) (text []byte, c *Checkpoint, cosigned []Cosignature, err error) {
	for try := 1; ; try++ {
		text, err = m.Client.Checkpoint(ctx)
		if errors.Is(err, errMissing) && m.State.last() != nil {
			if try < staleTries { // a server that is being set up, or a web server before it, may not have it for a moment
				if err := m.Client.Wait(ctx, staleWait); err != nil {
					return nil, nil, nil, err
				}
				continue
			}
			err = wrong("log.gone", "the registry does not show its log any more, which had {size} entries", m.State.last().Size)
		}
		if err != nil {
			return text, nil, nil, err
		}
		if c, cosigned, err = OpenCheckpoint(text, m.Keys); err != nil {
			return text, nil, nil, wrong("log.checkpoint-refused", "the checkpoint that the registry shows is not to be trusted: {cause}", stele.Reason(err))
		}
		last := m.State.last()
		if last == nil || c.Origin != m.State.Origin || c.Size >= last.Size || try == staleTries {
			return text, c, cosigned, nil
		}
		if err := m.Client.Wait(ctx, staleWait); err != nil {
			return text, nil, nil, err
		}
	}
}

// consistent makes sure that the log of the last checkpoint is the beginning of the log of another.
func (m *Monitor) consistent(ctx context.Context, last *SeenCheckpoint, c *Checkpoint) error {
	switch {
	case c.Size < last.Size:
		return wrong("log.shrunk", "the log has shrunk: it had {before} entries, and its signed checkpoint says {now}; entries that were published are gone", last.Size, c.Size)
	case c.Size == last.Size && c.Root == last.Root:
		return nil
	case c.Size == last.Size:
		return wrong("log.forked", "the log is another one: two signed checkpoints of {size} entries have different roots, so that two histories were shown", c.Size)
	}
	return m.hasRoot(ctx, c, last)
}

// hasRoot makes sure that the log had a root when it had a size, as the tiles below a later checkpoint say.
func (m *Monitor) hasRoot(ctx context.Context, c *Checkpoint, seen *SeenCheckpoint) error {
	if seen.Size == 0 {
		return nil
	}
	root := c.Root
	if seen.Size < c.Size {
		var err error
		if root, err = tlog.TreeHash(int64(seen.Size), m.hashes(ctx, c)); err != nil {
			return tileError(err)
		}
	}
	if root != seen.Root {
		return wrong("log.rewritten", "the first {size} entries of the log are not those that its registry signed before: one or more were changed, removed or put in another order", seen.Size)
	}
	return nil
}

// eras reads with which sizes the eras of the log began. A log without such a list has one.
func (m *Monitor) eras(ctx context.Context, c *Checkpoint) ([]SeenEra, error) {
	text, err := m.Client.Generations(ctx)
	if errors.Is(err, errMissing) {
		return []SeenEra{{Origin: c.Origin}}, nil
	}
	if err != nil {
		return nil, err
	}
	list, err := m.generations(text, c)
	return list, err
}

// generations checks the list of the eras of the log of a checkpoint.
func (m *Monitor) generations(text []byte, c *Checkpoint) (eras []SeenEra, err error) {
	list, err := OpenGenerations(text, m.Keys)
	if err != nil {
		return nil, wrong("log.generations-refused", "the list of generations that the registry shows is not to be trusted: {cause}", stele.Reason(err))
	}
	if list.Origin != c.Origin {
		return nil, &stele.Error{Op: opMonitor, Kind: stele.Unavailable, Err: stele.Messagef("log.generations-of-another-time", "the checkpoint is of {origin}, and the list of generations of {listed}: the registry is being restored; try again later", c.Origin, list.Origin)}
	}
	for _, e := range list.Eras {
		eras = append(eras, SeenEra{e.Origin, e.Size})
	}
	return eras, nil
}

// restored compares a log that goes on after a restore with what was seen before it.
func (m *Monitor) restored(ctx context.Context, c *Checkpoint) error {
	now, later := m.laterEra(c.Origin)
	if !later {
		return wrong("log.origin-other", "the checkpoint is of the log {origin}, which is not the one that was followed, {before}, nor what came of it after a restore", c.Origin, m.State.Origin)
	}
	text, err := m.Client.Generations(ctx)
	if errors.Is(err, errMissing) {
		return wrong("log.generations-missing", "the log has the name {origin} since a restore, but the registry does not show the list of its generations", c.Origin)
	}
	if err != nil {
		return err
	}
	eras, err := m.generations(text, c)
	if err != nil {
		return err
	}
	kept, ok := commonSize(m.State.Eras, eras)
	if !ok || kept > c.Size {
		return wrong("log.generations-impossible", "the log has {size} entries, but its generations say that it kept {kept}, or other things than they said before", c.Size, kept)
	}
	last := m.State.last()
	if seen := m.State.upTo(kept); seen != nil {
		if err := m.hasRoot(ctx, c, seen); err != nil {
			return err
		}
	}
	e := Event{Event: "restored", Origin: c.Origin, Former: m.State.Origin, Generation: now.Number}
	if last.Size > kept {
		e.FirstGone, e.LastGone = kept+1, last.Size
	}
	m.Report(e)
	m.State.restore(c.Origin, kept, eras)
	return nil
}

// laterEra returns the era of an origin, and whether it is a later one of the log that is followed.
func (m *Monitor) laterEra(origin string) (e EraID, later bool) {
	for _, k := range m.Keys {
		now, ok := EraOf(origin, k.Name)
		before, ok2 := EraOf(m.State.Origin, k.Name)
		if !k.Cosign && ok && ok2 {
			return now, now.Compare(before) > 0
		}
	}
	return e, false
}

// commonSize returns up to which size two logs are one, by the eras of both. The backup may be newer than the one that was restored before: then the log
// has nothing of the era that was followed. False if an era that both have began with two sizes.
func commonSize(before, now []SeenEra) (size uint64, ok bool) {
	for i := range min(len(before), len(now)) {
		switch {
		case before[i].Origin != now[i].Origin:
			return min(before[i].Size, now[i].Size), true
		case before[i].Size != now[i].Size:
			return now[i].Size, false
		}
	}
	if len(now) > len(before) {
		return now[len(before)].Size, true
	}
	return 0, false
}

// hashes reads hashes of the tree below a checkpoint. Each tile is checked against the root.
func (m *Monitor) hashes(ctx context.Context, c *Checkpoint) tlog.HashReader {
	return tlog.TileHashReader(tlog.Tree{N: int64(c.Size), Hash: c.Root}, &tileReader{ctx: ctx, client: m.Client, kept: map[tlog.Tile][]byte{}})
}

// tileError says what an error of a [tlog.HashReader] means.
func tileError(err error) error {
	var known *stele.Error
	switch {
	case errors.Is(err, errMissing):
		return wrong("log.tile-not-served", "the registry does not show a part of the log that it has signed: {cause}", stele.Reason(err))
	case errors.As(err, &known), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return wrong("log.tiles-not-signed", "the hashes that the registry shows do not give the root that it has signed: {cause}", err)
}

// tileReader is a [tlog.TileReader] over HTTP.
type tileReader struct {
	ctx    context.Context
	client *TileClient
	kept   map[tlog.Tile][]byte // that were checked
}

// maxKeptTiles is how many tiles are kept in memory: 8 KB each.
const maxKeptTiles = 256

func (r *tileReader) Height() int { return tileHeight }

func (r *tileReader) ReadTiles(tiles []tlog.Tile) (list [][]byte, err error) {
	for _, t := range tiles {
		data, ok := r.kept[t]
		if !ok {
			if data, err = r.client.Tile(r.ctx, t.L, uint64(t.N), t.W); err != nil {
				return nil, err
			}
		}
		list = append(list, data)
	}
	return list, nil
}

func (r *tileReader) SaveTiles(tiles []tlog.Tile, data [][]byte) {
	for i, t := range tiles {
		if len(r.kept) >= maxKeptTiles {
			clear(r.kept)
		}
		r.kept[t] = data[i]
	}
}

// read reads the entries that are new, up to those of a checkpoint.
func (m *Monitor) read(ctx context.Context, c *Checkpoint) error {
	hashes := m.hashes(ctx, c)
	for bundles := 1; m.State.Read < c.Size; bundles++ {
		n := m.State.Read / tileWidth
		width := int(min(c.Size-n*tileWidth, tileWidth))
		list, err := m.Client.Entries(ctx, n, width)
		if err != nil {
			return tileError(err)
		}
		if err := checkBundle(list, n, hashes); err != nil {
			return err
		}
		for i := int(m.State.Read - n*tileWidth); i < width; i++ {
			leaf, err := ParseLeaf(list[i])
			if err != nil {
				return wrong("log.entry-malformed", "entry {change} of the log is not one of a registry: {cause}", n*tileWidth+uint64(i)+1, stele.Reason(err))
			}
			if name, ok := m.Watch.match(leaf); ok {
				m.Report(Event{Event: "change", Change: n*tileWidth + uint64(i) + 1, Kind: leaf.Kind, Name: name, Version: leaf.Version, At: leaf.At})
			}
		}
		m.State.Read = n*tileWidth + uint64(width)
		if m.Progress != nil {
			m.Progress(m.State.Read, c.Size)
		}
		if bundles%saveEvery == 0 {
			if err := m.Save(m.State); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkBundle makes sure that the entries of a bundle are those that the tree has. The hash of a full tile stands in the level above,
// so that its own hashes need not be read.
func checkBundle(list [][]byte, n uint64, hashes tlog.HashReader) error {
	got := make([]tlog.Hash, len(list))
	flat := make([]byte, 0, maxTileBytes)
	for i, entry := range list {
		got[i] = tlog.RecordHash(entry)
		flat = append(flat, got[i][:]...)
	}
	if len(list) == tileWidth {
		want, err := hashes.ReadHashes([]int64{tlog.StoredHashIndex(tileHeight, int64(n))})
		if err != nil {
			return tileError(err)
		}
		if rootOf(flat) == want[0] {
			return nil
		}
	}
	indexes := make([]int64, len(list))
	for i := range indexes {
		indexes[i] = tlog.StoredHashIndex(0, int64(n)*tileWidth+int64(i))
	}
	want, err := hashes.ReadHashes(indexes)
	if err != nil {
		return tileError(err)
	}
	for i := range got {
		if got[i] != want[i] {
			return wrong("log.entry-other-than-signed", "entry {change} of the log is not the one whose hash is in the log", n*tileWidth+uint64(i)+1)
		}
	}
	return nil
}
