package transparency

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// randomBlock returns the places of a block, some of which have the hash of others.
func randomBlock(r *rand.Rand, block uint64) []place {
	list := make([]place, blockLeaves)
	for i := range list {
		list[i] = place{r.Uint32(), block*blockLeaves + uint64(i)}
		if r.IntN(50) == 0 {
			list[i].hash = []uint32{0, 1, 1 << 31, 1<<31 - 1, 1<<32 - 1, 0x20000000}[r.IntN(6)]
		}
	}
	return list
}

// addAll adds blocks as the log does.
func addAll(t *testing.T, x index, blocks [][]place) {
	t.Helper()
	for n, list := range blocks {
		merged, err := x.addBlock(t.Context(), uint64(n), list)
		if err != nil {
			t.Fatal(err)
		}
		if err := x.remove(t.Context(), merged); err != nil {
			t.Fatal(err)
		}
	}
}

// The index of 67 blocks, with runs of three levels, has every leaf once, and finds it.
func TestIndexFindsEveryLeaf(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	cells := newCellMap()
	x := newIndex(cells)
	var all [][]place
	var want []place
	for n := range uint64(67) {
		all = append(all, randomBlock(r, n))
		want = append(want, all[n]...)
	}
	addAll(t, x, all)
	var got []place
	read := 0
	for _, one := range runsOf(67) {
		for part := range uint64(1) << parts(one.Level) {
			value := cells.cells[indexCell(one.Level, one.Block, part)]
			list, ok := one.decodePart(part, value, nil)
			if !ok || !slices.IsSortedFunc(list, comparePlaces) {
				t.Fatalf("part %d of %+v is damaged or not sorted", part, one)
			}
			got = append(got, list...)
			read++
		}
	}
	if read != len(cells.cells) {
		t.Errorf("%d cells, of which %d are read: merged runs are left", len(cells.cells), read)
	}
	slices.SortFunc(got, comparePlaces)
	sorted := slices.SortedFunc(slices.Values(want), comparePlaces)
	if !slices.Equal(got, sorted) {
		t.Fatalf("the index has %d places, want the %d that were added", len(got), len(want))
	}
	at67 := &position{state: state{Indexed: 67}}
	for range 500 { // and some of them again in memory
		p := want[r.IntN(len(want))]
		leaves, err := x.find(t.Context(), at67, p.hash)
		if err != nil || !slices.Contains(leaves, p.leaf) {
			t.Fatalf("leaf %d is not found (%v)", p.leaf, err)
		}
	}
	for range 100 {
		hash := r.Uint32()
		at, found := slices.BinarySearchFunc(sorted, place{hash: hash}, comparePlaces)
		if leaves, err := x.find(t.Context(), at67, hash); err != nil || len(leaves) > 0 != (found || at < len(sorted) && sorted[at].hash == hash) {
			t.Errorf("hash %d is in %d leaves (%v)", hash, len(leaves), err)
		}
	}
}

// A commit that fails at any point of a merge, or whose answer is lost, is made again, and gives the same cells.
func TestIndexAfterFailures(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	var all [][]place
	for n := range uint64(9) {
		all = append(all, randomBlock(r, n))
	}
	plain := newCellMap()
	addAll(t, newIndex(plain), all)
	for fails := range 40 {
		cells := newCellMap()
		calls := 0
		x := newIndex(&faulty{Keeper: cells, fail: func() (before, after bool) {
			calls++
			hit := calls%41 == fails
			return hit && fails%2 == 0, hit && fails%2 == 1
		}})
		again := func(do func() error) {
			for do() != nil {
			}
		}
		for n, list := range all {
			var merged []run
			again(func() (err error) { merged, err = x.addBlock(t.Context(), uint64(n), list); return err })
			for _, one := range merged {
				again(func() error { return x.remove(t.Context(), []run{one}) })
			}
		}
		if len(cells.cells) != len(plain.cells) {
			t.Fatalf("with failure %d: %d cells, want %d", fails, len(cells.cells), len(plain.cells))
		}
		for name, value := range plain.cells {
			if string(cells.cells[name]) != string(value) {
				t.Fatalf("with failure %d: cell %q differs", fails, name)
			}
		}
	}
}

// A cell of the index with any octets is read, or told to be damaged.
func FuzzIndexPart(f *testing.F) {
	one := run{1, 8}
	list := []place{{1 << 29, 8 * blockLeaves}, {1<<29 + 5, 9 * blockLeaves}}
	f.Add(uint16(2), one.encodePart(2, list))
	f.Add(uint16(0), []byte{indexForm})
	f.Add(uint16(15), []byte{indexForm, 0xff, 0xff, 0xff, 0xff, 0x0f, 0})
	f.Add(uint16(1), []byte{indexForm, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0})
	f.Fuzz(func(t *testing.T, part uint16, value []byte) {
		n := uint64(part) % (1 << parts(one.Level))
		list, ok := one.decodePart(n, value, nil)
		if !ok {
			return
		}
		for i, p := range list {
			if p.leaf < one.first() || p.leaf >= one.first()+span(1)*blockLeaves || i > 0 && p.hash < list[i-1].hash {
				t.Fatalf("place %+v of a run of 8 blocks", p)
			}
		}
	})
}
