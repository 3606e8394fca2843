package transparency

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
)

// peer is a tree as tlog itself keeps it: all its hashes in one row.
type peer []tlog.Hash

func (p peer) ReadHashes(indexes []int64) (list []tlog.Hash, err error) {
	for _, i := range indexes {
		list = append(list, p[i])
	}
	return list, nil
}

func randomKept(r *rand.Rand) (k kept) {
	k.flags = byte(r.IntN(flagUnknown))
	for i := range k.hash {
		k.hash[i] = byte(r.Uint32())
	}
	for i := range k.seed {
		k.seed[i] = byte(r.Uint32())
	}
	return k
}

// borders are the sizes at which a tree is compared with its peer: all small ones, and those next to the borders of tiles.
func borders(size uint64) bool {
	near := func(n uint64) bool { return size%n <= 2 || size%n >= n-2 }
	switch {
	case size <= 20:
		return true
	case size <= 1100:
		return near(tileWidth) || near(64)
	}
	return near(tileWidth*tileWidth) || size%9973 == 0
}

// The tiles that grow leaf by leaf, in batches of any size, are those that tlog makes of the same leaves.
func TestTilesAreThoseOfTlog(t *testing.T) {
	const last = 70_000
	r := rand.New(rand.NewPCG(1, 2))
	cells := newCellMap()
	e := &edge{}
	var p peer
	for e.size < last {
		count := min(1+r.IntN(1+r.IntN(3000)), last-int(e.size))
		if e.size < 1100 || e.size > 65_400 && e.size < 65_700 {
			count = 1 + r.IntN(3)
		}
		list := make([]kept, count)
		for i := range list {
			list[i] = randomKept(r)
			hashes, err := tlog.StoredHashesForRecordHash(int64(e.size)+int64(i), list[i].hash, p)
			if err != nil {
				t.Fatal(err)
			}
			p = append(p, hashes...)
		}
		next := e.clone()
		if err := cells.KeepLog(t.Context(), next.add(list)...); err != nil {
			t.Fatalf("%d leaves to %d: %v", count, e.size, err)
		}
		e = next
		if r.IntN(3) == 0 { // a server that begins here writes on
			var err error
			if e, err = loadEdge(t.Context(), cells, e.size); err != nil {
				t.Fatal(err)
			}
		}
		if borders(e.size) || e.size == last {
			comparePeer(t, cells, int64(e.size), p)
		}
	}
	proofsOfPeer(t, r, cells, p)
}

func comparePeer(t *testing.T, cells Keeper, size int64, p peer) {
	t.Helper()
	want, err := tlog.TreeHash(size, p)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := tlog.TreeHash(size, newHashReader(t.Context(), cells)); err != nil || got != want {
		t.Fatalf("size %d: root %v, want %v (%v)", size, got, want, err)
	}
	l := New(Options{Cells: cells})
	for _, tile := range tlog.NewTiles(tileHeight, max(size-3*tileWidth, 0), size) {
		want, err := tlog.ReadTileData(tile, p)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := l.Tile(t.Context(), tile.L, uint64(tile.N), tile.W); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("size %d: tile %s differs (%v)", size, tile.Path(), err)
		}
	}
}

// Proofs made from the tiles are accepted by tlog, for sizes that are past, too.
func proofsOfPeer(t *testing.T, r *rand.Rand, cells Keeper, p peer) {
	t.Helper()
	l := New(Options{Cells: cells})
	for range 300 {
		size := 1 + r.Int64N(70_000)
		root, err := tlog.TreeHash(size, p)
		if err != nil {
			t.Fatal(err)
		}
		leaf := r.Int64N(size)
		proof, err := tlog.ProveRecord(size, leaf, newHashReader(t.Context(), cells))
		if err != nil {
			t.Fatal(err)
		}
		if err := tlog.CheckRecord(proof, size, root, leaf, p[tlog.StoredHashIndex(0, leaf)]); err != nil {
			t.Errorf("leaf %d of %d: %v", leaf, size, err)
		}
		from := 1 + r.Int64N(size)
		before, err := tlog.TreeHash(from, p)
		if err != nil {
			t.Fatal(err)
		}
		growth, err := l.ProveGrowth(t.Context(), uint64(from), uint64(size))
		if err != nil {
			t.Fatal(err)
		}
		if err := tlog.CheckTree(growth, size, root, from, before); err != nil {
			t.Errorf("from %d to %d: %v", from, size, err)
		}
	}
}

// A tile that is not there, is too short or has other bytes is told, not served.
func TestTilesDamaged(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	cells := newCellMap()
	e := &edge{}
	list := make([]kept, 700)
	for i := range list {
		list[i] = randomKept(r)
	}
	if err := cells.KeepLog(t.Context(), e.add(list)...); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		cell  string
		value []byte
	}{
		{tileCell(0, 2), nil},
		{tileCell(0, 2), []byte{}},
		{tileCell(0, 2), []byte{leafForm}},
		{tileCell(0, 2), bytes.Clone(cells.cells[tileCell(0, 2)][:leafSize])},
		{tileCell(0, 2), append([]byte{leafForm + 1}, cells.cells[tileCell(0, 2)][1:]...)},
		{tileCell(1, 0), cells.cells[tileCell(1, 0)][:tlog.HashSize]},
		{tileCell(1, 0), cells.cells[tileCell(1, 0)][:tlog.HashSize+1]},
	} {
		before := cells.cells[tt.cell]
		if cells.cells[tt.cell] = tt.value; tt.value == nil {
			delete(cells.cells, tt.cell)
		}
		if _, err := loadEdge(t.Context(), cells, 700); err == nil {
			t.Errorf("%s with %d bytes: no error", tt.cell, len(tt.value))
		}
		if _, err := tlog.TreeHash(700, newHashReader(t.Context(), cells)); err == nil {
			t.Errorf("%s with %d bytes: a root all the same", tt.cell, len(tt.value))
		}
		cells.cells[tt.cell] = before
	}
	l := New(Options{Cells: cells})
	for _, tt := range []struct {
		level, width int
		n            uint64
	}{{0, 189, 2}, {0, 0, 0}, {0, 257, 0}, {-1, 1, 0}, {1, 3, 0}, {2, 1, 0}, {63, 1, 0}, {0, 1, 1 << 63}} {
		if data, err := l.Tile(t.Context(), tt.level, tt.n, tt.width); err == nil {
			t.Errorf("tile %+v has %d bytes", tt, len(data))
		}
	}
}
