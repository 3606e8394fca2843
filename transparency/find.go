package transparency

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/stele-id/stele"
)

// subjectKey names what leaves are about.
type subjectKey struct {
	kind Kind
	name string
}

// maxNameKeys is how many keys of blinded names are kept in memory.
const maxNameKeys = 50_000

// nameKeys are keys of blinded names that were used lately.
type nameKeys struct {
	mu   *sync.Mutex
	keys map[subjectKey]Key
}

func newNameKeys() nameKeys { return nameKeys{new(sync.Mutex), map[subjectKey]Key{}} }

func (n nameKeys) get(s subjectKey) (Key, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	k, ok := n.keys[s]
	return k, ok
}

func (n nameKeys) put(s subjectKey, k Key) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.keys) >= maxNameKeys {
		clear(n.keys)
	}
	s.name = strings.Clone(s.name)
	n.keys[s] = k
}

// learn keeps the keys of names that changed again: they may change once more.
func (n nameKeys) learn(list []entry) {
	for i := range list {
		if e := &list[i]; !e.listed && e.change.Version > 1 {
			kind, name := subject(&e.change)
			n.put(subjectKey{kind, name}, e.key)
		}
	}
}

// nameKey returns the key that blinds a name whose first version was logged before, or is one of those that are given.
func (l *Log) nameKey(ctx context.Context, p *position, fresh map[subjectKey]Key, kind Kind, name string) (Key, error) {
	s := subjectKey{kind, name}
	if k, ok := fresh[s]; ok {
		return k, nil
	}
	if k, ok := l.names.get(s); ok {
		return k, nil
	}
	leaf, _, err := l.find(ctx, p, kind, name, 1)
	if err != nil {
		return Key{}, err
	}
	return l.keyOf(ctx, leaf)
}

// keyOf returns the key that the first leaf of a name gives.
func (l *Log) keyOf(ctx context.Context, leaf uint64) (Key, error) {
	k, err := l.kept(ctx, leaf)
	if err != nil {
		return Key{}, err
	}
	if k.flags&flagErased == 0 {
		return k.seed.nameKey(), nil
	}
	e, err := l.erased(ctx, leaf)
	return e.Key, err
}

// kept reads what the log keeps of a leaf.
func (l *Log) kept(ctx context.Context, leaf uint64) (kept, error) {
	name, i := tileCell(0, leaf/tileWidth), int(leaf%tileWidth)
	value, err := l.o.Cells.LogCell(ctx, name)
	if err != nil {
		return kept{}, err
	}
	if leavesIn(value) <= i {
		return kept{}, damaged(name)
	}
	return readKept(value, i), nil
}

func (l *Log) erased(ctx context.Context, leaf uint64) (e erased, err error) {
	name := erasedCell(leaf)
	value, err := l.o.Cells.LogCell(ctx, name)
	if err != nil {
		return e, err
	}
	if json.Unmarshal(value, &e) != nil {
		return e, damaged(name)
	}
	return e, nil
}

// find returns the leaf of a version, and its change. NotFound if it is not logged.
func (l *Log) find(ctx context.Context, p *position, kind Kind, name string, version uint64) (leaf uint64, c stele.Change, err error) {
	hash := placeHash(kind, name, version)
	leaves, err := l.index.find(ctx, p, hash)
	for range maxTries {
		if err == nil || !l.overtaken(ctx, p) {
			break
		}
		// Another server has merged the runs, and removed them.
		if p, err = l.load(ctx); err != nil {
			break
		}
		leaves, err = l.index.find(ctx, p, hash)
	}
	if err != nil {
		return 0, c, err
	}
	for _, t := range p.tail {
		if t.hash == hash {
			leaves = append(leaves, t.leaf)
		}
	}
	for _, leaf := range leaves {
		c, err := l.change(ctx, leaf)
		if err != nil {
			return 0, c, err
		}
		if k, n := subject(&c); k == kind && n == name && c.Version == version {
			return leaf, c, nil
		}
	}
	return 0, c, &stele.Error{Op: "find in log", Kind: stele.NotFound, Err: stele.Messagef("log.version-not-logged", "version {version} of {name} is not in the log yet; try again in a moment", version, name)}
}

// change reads the change that a leaf is about.
func (l *Log) change(ctx context.Context, leaf uint64) (stele.Change, error) {
	for c, err := range l.o.Source.Changes(ctx, leaf) {
		if err != nil {
			return c, err
		}
		if c.Seq == leaf+1 {
			return c, nil
		}
		break
	}
	return stele.Change{}, otherFeed()
}

// readTogether is how many leaves are made again at once: their records are in memory then, and a record may have a megabyte.
const readTogether = 32

// leaves returns the texts of leaves of a tile of level 0, from the first one on, count of them: as they were logged, from the feed, and from
// the versions that the changes made. Each is compared with its hash.
func (l *Log) leaves(ctx context.Context, n uint64, count int) ([]Leaf, error) {
	p, err := l.load(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]Leaf, 0, count)
	for len(list) < count {
		first := n*tileWidth + uint64(len(list))
		part, err := l.part(ctx, first, min(readTogether, count-len(list)))
		if err != nil {
			return nil, err
		}
		if err := l.remake(ctx, p, part, first, nil); err != nil {
			return nil, err
		}
		for i := range part {
			list = append(list, part[i].leaf)
		}
	}
	return list, nil
}

// part returns what the log and the feed have of some leaves of one tile. NotFound if the tile does not have them.
func (l *Log) part(ctx context.Context, first uint64, count int) ([]entry, error) {
	tile, err := l.o.Cells.LogCell(ctx, tileCell(0, first/tileWidth))
	if err != nil {
		return nil, err
	}
	at := int(first % tileWidth)
	if leavesIn(tile) < at+count {
		return nil, noTile()
	}
	list := make([]entry, 0, count)
	for c, err := range l.o.Source.Changes(ctx, first) {
		if err != nil {
			return nil, err
		}
		if list = append(list, entry{change: c, kept: readKept(tile, at+len(list))}); len(list) == count {
			return list, nil
		}
	}
	return nil, otherFeed()
}

// remake makes the leaves of entries again. If one is not what the log has, it calls report, or returns the error if report is nil.
func (l *Log) remake(ctx context.Context, p *position, list []entry, first uint64, report func(e *entry, leaf uint64)) error {
	if err := l.content(ctx, list); err != nil {
		return err
	}
	m := l.makers.Get().(*maker)
	defer l.makers.Put(m)
	for i := range list {
		e, leaf := &list[i], first+uint64(i)
		err := l.again(ctx, p, m, e, leaf)
		switch {
		case err == nil:
		case report == nil || stele.KindOf(err) != stele.Internal:
			return err
		default:
			report(e, leaf)
		}
		e.record, e.space = nil, nil
	}
	return nil
}

// again makes the leaf of an entry again, with what is kept of it. The maker has its documents then, or none if they are not known.
//
// A redaction erases content and seed with one commit. If it came after the seed was read, the content of the seed is not there any more, which
// is not damage: what is kept of the leaf is read again then.
func (l *Log) again(ctx context.Context, p *position, m *maker, e *entry, leaf uint64) error {
	err := l.againAs(ctx, p, m, e, leaf)
	if err == nil || stele.KindOf(err) != stele.Internal {
		return err
	}
	now, kerr := l.kept(ctx, leaf)
	if kerr != nil || now.flags == e.kept.flags {
		return err
	}
	e.kept = now
	return l.againAs(ctx, p, m, e, leaf)
}

func (l *Log) againAs(ctx context.Context, p *position, m *maker, e *entry, leaf uint64) error {
	m.public, m.full = m.public[:0], m.full[:0] // those of another record are not taken for its own
	kind, name := subject(&e.change)
	if e.kept.flags&flagErased != 0 {
		was, err := l.erased(ctx, leaf)
		if err != nil {
			return err
		}
		text, err := ParseLeaf([]byte(was.Leaf))
		if err != nil {
			return damaged(erasedCell(leaf))
		}
		e.leaf, e.key = *text, was.Key
	} else {
		e.seed = e.kept.seed
		e.leaf = Leaf{Kind: kind, Name: name, Version: e.change.Version, At: e.change.At}
		if e.kept.flags&flagListed == 0 {
			var err error
			if e.key, err = l.keyFor(ctx, p, e, kind, name); err != nil {
				return err
			}
			e.leaf.Name, e.leaf.Blind = "", Blind(e.key, kind, name)
		}
		if e.kept.flags&flagNoted != 0 {
			// Its version was kept, and had no text that is not UTF-8.
			if e.record == nil && e.space == nil || m.digest(&e.leaf, e) != nil {
				return differs(leaf, name)
			}
		}
	}
	if e.leaf.Hash() != e.kept.hash {
		return differs(leaf, name)
	}
	return nil
}

// keyFor returns the key of the blinded name of a leaf that is logged.
func (l *Log) keyFor(ctx context.Context, p *position, e *entry, kind Kind, name string) (Key, error) {
	if e.change.Version == 1 {
		return e.seed.nameKey(), nil
	}
	return l.nameKey(ctx, p, nil, kind, name)
}

func differs(leaf uint64, name string) error {
	return &stele.Error{Op: "read log", Kind: stele.Internal, Err: stele.Messagef("log.leaf-differs", "change {change}, of {name}, is not what the log has of it: the registry was changed behind the log", leaf+1, name)}
}

// Tile returns hashes of the tree: a tile of a level, as far as the width goes (tlog-tiles). NotFound if the log is not that
// large.
func (l *Log) Tile(ctx context.Context, level int, n uint64, width int) ([]byte, error) {
	if level < 0 || level > 5 || width < 1 || width > tileWidth || n > maxTreeSize {
		return nil, noTile()
	}
	data, err := tileHashes(ctx, l.o.Cells, tileID{level, n})
	if err != nil {
		return nil, err
	}
	if len(data) < width*tlog.HashSize {
		return nil, noTile()
	}
	return data[:width*tlog.HashSize], nil
}

// Entries returns the leaves of a tile of level 0, each with its length in two bytes before it (tlog-tiles).
func (l *Log) Entries(ctx context.Context, n uint64, width int) ([]byte, error) {
	if width < 1 || width > tileWidth || n > maxTreeSize {
		return nil, noTile()
	}
	list, err := l.leaves(ctx, n, width)
	if err != nil {
		return nil, err
	}
	var out, text []byte
	for i := range list {
		text = list[i].Append(text[:0])
		out = append(out, byte(len(text)>>8), byte(len(text)))
		out = append(out, text...)
	}
	return out, nil
}

func noTile() error {
	return &stele.Error{Op: "read log", Kind: stele.NotFound, Err: stele.Messagef("log.tile-missing", "the log has no such tile")}
}
