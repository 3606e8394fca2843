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

// tileTree is the hashes of a tile, and those of the nodes above them within the tile. Of a tile of leaves it has the nodes above groups of
// them and no others: hashes of leaves are in the cell, and a group is read from it faster than 256 nodes are made again.
type tileTree struct {
	width  int
	levels [tileHeight + 1][]tlog.Hash
}

// A group is leaves of a tile that are read at once.
const (
	groupHeight = 3
	groupWidth  = 1 << groupHeight
)

// newTileTree makes the tree of a tile from its hashes, with the nodes from a height on.
func newTileTree(hashes []byte, from int) *tileTree {
	t := &tileTree{width: len(hashes) / tlog.HashSize}
	var row [tileWidth]tlog.Hash
	for i := range t.width {
		row[i] = tlog.Hash(hashes[i*tlog.HashSize:])
	}
	kept := make([]tlog.Hash, 0, 2*t.width>>from)
	for height, n := 0, t.width; height <= tileHeight; height, n = height+1, n/2 {
		if height >= from {
			first := len(kept)
			kept = append(kept, row[:n]...)
			t.levels[height] = kept[first:]
		}
		for i := range n / 2 {
			row[i] = hashNode(&row[2*i], &row[2*i+1])
		}
	}
	return t
}

// tileID names a tile of the tree.
type tileID struct {
	level int
	n     uint64
}

// How many tiles are kept: those of leaves, of 2 KB each, and those above them, of 16 KB.
const (
	maxLeafTiles  = 8192
	maxUpperTiles = 512
)

// tileTrees are tiles that were read lately.
type tileTrees struct{ leaves, upper *shelf[tileID, *tileTree] }

func newTileTrees() tileTrees {
	return tileTrees{newShelf[tileID, *tileTree](maxLeafTiles), newShelf[tileID, *tileTree](maxUpperTiles)}
}

// of returns the shelf of a tile.
func (t tileTrees) of(id tileID) *shelf[tileID, *tileTree] {
	if id.level == 0 {
		return t.leaves
	}
	return t.upper
}

// hashReader reads hashes of the tree from its tiles.
type hashReader struct {
	ctx   context.Context
	cells Keeper
	era   stele.GenerationID
	trees tileTrees
	group leafGroup // that was read last
}

// leafGroup is a group of leaves, of which the last one of a log may have fewer.
type leafGroup struct {
	number uint64 // of the group: that of its first leaf divided by groupWidth
	leaves []kept
}

// newHashReader returns a reader that knows no tiles yet.
func newHashReader(ctx context.Context, cells Keeper) *hashReader {
	return &hashReader{ctx: ctx, cells: cells, trees: newTileTrees()}
}

// hashes returns a reader that knows the tiles that were read lately.
func (l *Log) hashes(ctx context.Context, p *position) *hashReader {
	r := &hashReader{ctx: ctx, cells: l.o.Cells, era: p.era(), trees: l.trees}
	if r.era == (stele.GenerationID{}) {
		r = newHashReader(ctx, l.o.Cells)
	}
	return r
}

// ReadHashes implements [tlog.HashReader].
func (r *hashReader) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	list := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		level, n := tlog.SplitStoredHashIndex(index)
		height := level % tileHeight
		if level < groupHeight {
			var err error
			if list[i], err = r.low(height, uint64(n)); err != nil {
				return nil, err
			}
			continue
		}
		id := tileID{level / tileHeight, uint64(n) >> (tileHeight - height)}
		at := int(n) & (tileWidth>>height - 1)
		t, err := r.tile(id, (at+1)<<height)
		if err != nil {
			return nil, err
		}
		list[i] = t.levels[height][at]
	}
	return list, nil
}

// low returns the n-th node of a height below that of a group.
func (r *hashReader) low(height int, n uint64) (h tlog.Hash, err error) {
	first := n << height
	k, err := r.leaf(first + 1<<height - 1) // the last one, so that all are there
	if err != nil || height == 0 {
		return k.hash, err
	}
	var row [groupWidth / 2]tlog.Hash
	for i := range row[:1<<height] {
		row[i] = r.group.leaves[int(first%groupWidth)+i].hash
	}
	for width := 1 << height; width > 1; width /= 2 {
		for i := range width / 2 {
			row[i] = hashNode(&row[2*i], &row[2*i+1])
		}
	}
	return row[0], nil
}

// leaf returns what is kept of a leaf. Its group is read, unless it was read last.
func (r *hashReader) leaf(n uint64) (k kept, err error) {
	number, at := n/groupWidth, int(n%groupWidth)
	if r.group.leaves == nil || r.group.number != number {
		if r.group, err = readGroup(r.ctx, r.cells, number); err != nil {
			return k, err
		}
	}
	if at >= len(r.group.leaves) {
		return k, damaged(tileCell(0, n/tileWidth))
	}
	return r.group.leaves[at], nil
}

// readGroup reads a group of leaves, of a tile that is in this program's form: hashes tell if it is not.
func readGroup(ctx context.Context, cells Keeper, number uint64) (g leafGroup, err error) {
	name, first := tileCell(0, number*groupWidth/tileWidth), int(number*groupWidth%tileWidth)
	part, length, err := cells.LogPart(ctx, name, keptAt(first), groupWidth*leafSize)
	if err != nil {
		return g, err
	}
	if n := leavesOf(length); n <= first || len(part) != min(groupWidth, n-first)*leafSize {
		return g, damaged(name)
	}
	g = leafGroup{number, make([]kept, 0, groupWidth)}
	for ; len(part) > 0; part = part[leafSize:] {
		g.leaves = append(g.leaves, decodeKept(part[:leafSize]))
	}
	return g, nil
}

// tile returns a tile with so many hashes at least.
func (r *hashReader) tile(id tileID, width int) (*tileTree, error) {
	if t, ok := r.trees.of(id).get(r.era, id); ok && t.width >= width {
		return t, nil
	}
	hashes, err := tileHashes(r.ctx, r.cells, id)
	if err != nil {
		return nil, err
	}
	if len(hashes) < width*tlog.HashSize {
		return nil, damaged(tileCell(id.level, id.n))
	}
	from := 0
	if id.level == 0 {
		from = groupHeight
	}
	t := newTileTree(hashes, from)
	r.trees.of(id).put(r.era, id, t)
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
