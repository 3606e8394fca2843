package transparency

import (
	"fmt"
	"iter"
	"strconv"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/stele-id/stele"
)

// TileID names a tile of a log: its level, its number there, and how many hashes it has.
type TileID struct {
	Level int
	N     uint64
	Width int
}

// Path returns the path of a tile below that of its log (tlog-tiles).
func (t TileID) Path() string {
	number := fmt.Sprintf("%03d", t.N%1000)
	for n := t.N / 1000; n > 0; n /= 1000 {
		number = fmt.Sprintf("x%03d/", n%1000) + number
	}
	path := "tile/" + strconv.Itoa(t.Level) + "/" + number
	if t.Width < tileWidth {
		path += ".p/" + strconv.Itoa(t.Width)
	}
	return path
}

// TilesAbove yields the tiles of a log of a size that are above the leaves, from the highest level down.
func TilesAbove(size uint64) iter.Seq[TileID] {
	return func(yield func(TileID) bool) {
		top := 0
		for n := size / tileWidth; n > 0; n /= tileWidth {
			top++
		}
		for level := top; level > 0; level-- {
			n := size >> (tileHeight * level)
			for i := uint64(0); i*tileWidth < n; i++ {
				if !yield(TileID{level, i, int(min(n-i*tileWidth, tileWidth))}) {
					return
				}
			}
		}
	}
}

// TileOf returns the tile that has a leaf of a log of a size.
func TileOf(leaf, size uint64) TileID {
	n := leaf / tileWidth
	return TileID{0, n, int(min(size-n*tileWidth, tileWidth))}
}

// TileWidth is how many hashes a full tile has.
const TileWidth = tileWidth

// MaxBundledLeaves is how large a log may be whose tiles a [TileCheck] reads: it keeps an eighth of a byte for each leaf.
const MaxBundledLeaves = 1 << 32

// TileCheck finds out whether tiles are those of the log that a checkpoint has signed. The tiles come in the order of
// TilesAbove, all of them; then some of the tiles of leaves, in the order of their numbers, and always the last one if it is not full.
type TileCheck struct {
	c     *Checkpoint
	above map[TileID][]byte
	last  []byte // the tile of leaves at the edge, if it is not full
}

// NewTileCheck begins to check the tiles of a log.
func NewTileCheck(c *Checkpoint) (*TileCheck, error) {
	if c.Size > MaxBundledLeaves {
		return nil, &stele.Error{Op: "check log", Kind: stele.Invalid, Err: stele.Messagef("log.too-large-to-check", "the log has {size} leaves, which is more than can be checked at once", c.Size)}
	}
	return &TileCheck{c: c, above: map[TileID][]byte{}}, nil
}

// Add adds a tile. Invalid if it is not what the level above it says.
func (t *TileCheck) Add(id TileID, hashes []byte) error {
	if len(hashes) != id.Width*tlog.HashSize {
		return otherTile()
	}
	if id.Width == tileWidth {
		if above, ok := t.entry(id.Level+1, id.N); ok && rootOf(hashes) != above {
			return otherTile()
		}
	}
	switch {
	case id.Level > 0:
		t.above[TileID{id.Level, id.N, 0}] = hashes
	case id.Width < tileWidth:
		t.last = hashes
	}
	return nil
}

// entry returns a hash of a level above the leaves; false if the level has none for that number, as above the highest one.
func (t *TileCheck) entry(level int, n uint64) (h tlog.Hash, ok bool) {
	tile := t.above[TileID{level, n / tileWidth, 0}]
	at := int(n%tileWidth) * tlog.HashSize
	if len(tile) < at+tlog.HashSize {
		return h, false
	}
	copy(h[:], tile[at:])
	return h, true
}

// End makes sure that the tiles together give the root that was signed.
func (t *TileCheck) End() error {
	root, err := tlog.TreeHash(int64(t.c.Size), t)
	if err != nil || root != t.c.Root {
		return &stele.Error{Op: "check log", Kind: stele.Invalid, Err: stele.Messagef("log.tiles-other-than-checkpoint", "the tiles do not give the hash that the checkpoint has")}
	}
	return nil
}

// ReadHashes implements [tlog.HashReader].
func (t *TileCheck) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	list := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		tile := tlog.TileForIndex(tileHeight, index)
		data := t.above[TileID{tile.L, uint64(tile.N), 0}]
		if tile.L == 0 {
			data = t.last
		}
		if len(data) < tile.W*tlog.HashSize || tile.L == 0 && uint64(tile.N) != t.c.Size/tileWidth {
			return nil, otherTile()
		}
		var err error
		if list[i], err = tlog.HashFromTile(tile, data[:tile.W*tlog.HashSize], index); err != nil {
			return nil, otherTile()
		}
	}
	return list, nil
}

func otherTile() error {
	return &stele.Error{Op: "check log", Kind: stele.Invalid, Err: stele.Messagef("log.tile-other", "the tile does not belong to the log")}
}
