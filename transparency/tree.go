package transparency

import (
	"context"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/stele-id/stele"
)

// edge is the right edge of the tree: the last tile of each level, as its cell has it.
type edge struct {
	size  uint64
	tiles [][]byte // by level; the value of the cell before, empty if the tile begins
}

// loadEdge reads the edge of a tree.
func loadEdge(ctx context.Context, cells Keeper, size uint64) (*edge, error) {
	e := &edge{size: size}
	for level, n := 0, size; n > 0; level, n = level+1, n/tileWidth {
		width := int(n % tileWidth)
		var tile []byte
		if width > 0 {
			name := tileCell(level, n/tileWidth)
			value, err := cells.LogCell(ctx, name)
			if err != nil {
				return nil, err
			}
			if got := widthOf(level, value); got != width { // the commit of the state wrote both
				return nil, damaged(name)
			}
			tile = value
		}
		e.tiles = append(e.tiles, tile)
	}
	return e, nil
}

// widthOf returns how many hashes a tile has; -1 if it is damaged.
func widthOf(level int, value []byte) int {
	if level == 0 {
		return leavesIn(value)
	}
	if len(value)%tlog.HashSize != 0 || len(value) > tileWidth*tlog.HashSize {
		return -1
	}
	return len(value) / tlog.HashSize
}

// clone returns a copy to which leaves can be added.
func (e *edge) clone() *edge {
	c := &edge{size: e.size}
	for _, t := range e.tiles {
		c.tiles = append(c.tiles, t[:len(t):len(t)])
	}
	return c
}

// add adds leaves and returns how the cells of tiles change.
func (e *edge) add(leaves []kept) []stele.CellChange {
	w := &edgeWriter{edge: e, before: map[string][]byte{}}
	for i := range leaves {
		w.leaf(&leaves[i])
	}
	return w.changes()
}

// edgeWriter adds leaves to an edge.
type edgeWriter struct {
	*edge
	full   []stele.CellChange
	before map[string][]byte // of tiles that were there
	counts []uint64          // tiles of each level before the last one
}

// tile returns the last tile of a level and its number.
func (w *edgeWriter) tile(level int) (value []byte, n uint64) {
	for len(w.counts) <= level {
		n := w.size
		for range len(w.counts) + 1 {
			n /= tileWidth
		}
		w.counts = append(w.counts, n)
		l := len(w.counts) - 1
		for len(w.tiles) <= l {
			w.tiles = append(w.tiles, nil)
		}
		if len(w.tiles[l]) > 0 {
			w.before[tileCell(l, n)] = w.tiles[l]
			w.tiles[l] = append(make([]byte, 0, 1+tileWidth*leafSize), w.tiles[l]...)
		}
	}
	return w.tiles[level], w.counts[level]
}

func (w *edgeWriter) leaf(k *kept) {
	value, _ := w.tile(0)
	if len(value) == 0 {
		value = append(make([]byte, 0, 1+tileWidth*leafSize), leafForm)
	}
	w.put(0, appendKept(value, k))
	w.size++
}

// put replaces the last tile of a level, and adds the hash of a full one to the level above.
func (w *edgeWriter) put(level int, value []byte) {
	w.tiles[level] = value
	if widthOf(level, value) < tileWidth {
		return
	}
	name := tileCell(level, w.counts[level])
	w.full = append(w.full, stele.CellChange{Name: name, Before: w.before[name], After: value})
	hashes := value
	if level == 0 {
		hashes = hashesOf(value)
	}
	w.tile(level + 1) // its number is known before that of this level changes
	w.tiles[level] = nil
	w.counts[level]++
	above, _ := w.tile(level + 1)
	root := rootOf(hashes)
	w.put(level+1, append(above, root[:]...))
}

// changes returns the changes of full tiles and of those at the edge.
func (w *edgeWriter) changes() []stele.CellChange {
	list := w.full
	for level, value := range w.tiles {
		if len(value) == 0 || level >= len(w.counts) {
			continue
		}
		name := tileCell(level, w.counts[level])
		if before := w.before[name]; widthOf(level, before) != widthOf(level, value) {
			list = append(list, stele.CellChange{Name: name, Before: before, After: value})
		}
	}
	return list
}

// rootOf returns the hash of a full tile.
func rootOf(hashes []byte) tlog.Hash {
	var level [tileWidth]tlog.Hash
	n := len(hashes) / tlog.HashSize
	for i := range n {
		copy(level[i][:], hashes[i*tlog.HashSize:])
	}
	for ; n > 1; n /= 2 {
		for i := range n / 2 {
			level[i] = hashNode(&level[2*i], &level[2*i+1])
		}
	}
	return level[0]
}

// tileTree is the hashes of a tile, and those of the nodes above them within the tile: the hashes of each level after those of the
// level below.
type tileTree struct {
	width  int
	levels [tileHeight + 1][]tlog.Hash
}

func newTileTree(hashes []byte) *tileTree {
	t := &tileTree{width: len(hashes) / tlog.HashSize}
	all := make([]tlog.Hash, 0, 2*t.width)
	for i := range t.width {
		all = append(all, tlog.Hash(hashes[i*tlog.HashSize:]))
	}
	t.levels[0] = all
	for level := 1; level <= tileHeight; level++ {
		below, first := t.levels[level-1], len(all)
		for i := range len(below) / 2 {
			all = append(all, hashNode(&below[2*i], &below[2*i+1]))
		}
		t.levels[level] = all[first:]
	}
	return t
}

// tileID names a tile of the tree.
type tileID struct {
	level int
	n     uint64
}

// maxTileTrees is how many tiles are kept, of 16 KB each.
const maxTileTrees = 1024

// hashReader reads hashes of the tree from its tiles.
type hashReader struct {
	ctx   context.Context
	cells Keeper
	era   stele.GenerationID
	trees *shelf[tileID, *tileTree]
}

// newHashReader returns a reader that reads each tile from its cell once.
func newHashReader(ctx context.Context, cells Keeper) *hashReader {
	return &hashReader{ctx: ctx, cells: cells, trees: newShelf[tileID, *tileTree](maxTileTrees)}
}

// hashes returns a reader that knows the tiles that were read lately.
func (l *Log) hashes(ctx context.Context, p *position) *hashReader {
	r := newHashReader(ctx, l.o.Cells)
	if era := p.era(); era != (stele.GenerationID{}) {
		r.era, r.trees = era, l.trees
	}
	return r
}

// ReadHashes implements [tlog.HashReader].
func (r *hashReader) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	list := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		level, n := tlog.SplitStoredHashIndex(index)
		id := tileID{level / tileHeight, uint64(n) >> (tileHeight - level%tileHeight)}
		height := level % tileHeight
		at := int(n) & (tileWidth>>height - 1)
		t, err := r.tile(id, (at+1)<<height)
		if err != nil {
			return nil, err
		}
		list[i] = t.levels[height][at]
	}
	return list, nil
}

// tile returns a tile with so many hashes at least.
func (r *hashReader) tile(id tileID, width int) (*tileTree, error) {
	if t, ok := r.trees.get(r.era, id); ok && t.width >= width {
		return t, nil
	}
	hashes, err := tileHashes(r.ctx, r.cells, id)
	if err != nil {
		return nil, err
	}
	if len(hashes) < width*tlog.HashSize {
		return nil, damaged(tileCell(id.level, id.n))
	}
	t := newTileTree(hashes)
	r.trees.put(r.era, id, t)
	return t, nil
}

// tileHashes reads the hashes of a tile, as far as it goes.
func tileHashes(ctx context.Context, cells Keeper, id tileID) ([]byte, error) {
	name := tileCell(id.level, id.n)
	value, err := cells.LogCell(ctx, name)
	if err != nil {
		return nil, err
	}
	if widthOf(id.level, value) < 0 {
		return nil, damaged(name)
	}
	if id.level == 0 {
		value = hashesOf(value)
	}
	return value, nil
}
