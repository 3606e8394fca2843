package transparency

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/stele-id/stele"
)

// The index finds the leaf of a version by what is named and its version. It has runs: one of level 0 for each block of
// blockLeaves leaves, and eight neighbouring runs of a level become one of the next, so that few are read however long the log
// is. Which runs there are follows from the number of indexed blocks: the digits of that number to the base of runsAbove. The
// leaves after the last block are not in it; they are read from the feed.
//
// A run of level l is divided into 2 * 8^l parts by the highest bits of the hash, a cell each: the number of this form, a byte, and
// pairs of the hash, as the difference to the one before, and of the leaf, counted from the first of the run, both as uvarints,
// sorted.
const (
	blockLeaves = 4096
	runBits     = 3 // of runsAbove
	runsAbove   = 1 << runBits
	partBits    = 1 // of the parts of a run of level 0
	indexForm   = 1
)

func indexCell(level int, block, part uint64) string {
	return fmt.Sprintf("log index %x %08x %04x", level, block, part)
}

// place is a leaf in the index.
type place struct {
	hash uint32
	leaf uint64
}

func comparePlaces(a, b place) int {
	return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.leaf, b.leaf))
}

// placeHash returns the hash by which a version is found.
func placeHash(kind Kind, name string, version uint64) uint32 {
	b := make([]byte, 0, 256)
	b = append(b, kind...)
	b = append(b, 0)
	b = append(b, name...)
	b = append(b, 0)
	b = binary.AppendUvarint(b, version)
	sum := sha256.Sum256(b)
	return binary.BigEndian.Uint32(sum[:])
}

// parts returns by how many bits a run is divided.
func parts(level int) int { return partBits + runBits*level }

// span returns how many blocks a run covers.
func span(level int) uint64 { return 1 << (runBits * level) }

// run is one run: its level and its first block.
type run struct {
	Level int    `json:"level"`
	Block uint64 `json:"block"`
}

// runsOf returns the runs of an index of so many blocks, the oldest first.
func runsOf(blocks uint64) (list []run) {
	first := uint64(0)
	for level := 20; level >= 0; level-- {
		for ; blocks-first >= span(level); first += span(level) {
			list = append(list, run{level, first})
		}
	}
	return list
}

// first returns the first leaf of the run.
func (r run) first() uint64 { return r.Block * blockLeaves }

// encodePart returns the cell of a part of a run from its places, which are sorted.
func (r run) encodePart(part uint64, list []place) []byte {
	b := append(make([]byte, 0, 1+6*len(list)), indexForm)
	before := uint32(part << (32 - parts(r.Level)))
	for _, p := range list {
		b = binary.AppendUvarint(b, uint64(p.hash-before))
		b = binary.AppendUvarint(b, p.leaf-r.first())
		before = p.hash
	}
	return b
}

// decodePart reads a part of a run. False if it is damaged.
func (r run) decodePart(part uint64, value []byte, list []place) ([]place, bool) {
	if len(value) == 0 || value[0] != indexForm {
		return nil, false
	}
	h := part << (32 - parts(r.Level))
	for value = value[1:]; len(value) > 0; {
		step, n := binary.Uvarint(value)
		if n <= 0 || h+step > 1<<32-1 {
			return nil, false
		}
		leaf, m := binary.Uvarint(value[n:])
		if m <= 0 || leaf >= span(r.Level)*blockLeaves {
			return nil, false
		}
		h += step
		list = append(list, place{uint32(h), r.first() + leaf})
		value = value[n+m:]
	}
	return list, true
}

// cutPart returns the cell of a part, and the places after it.
func cutPart(r run, part uint64, list []place) (value []byte, rest []place) {
	end := (part + 1) << (32 - parts(r.Level))
	n, _ := slices.BinarySearchFunc(list, end, func(p place, end uint64) int { return cmp.Compare(uint64(p.hash), end) })
	return r.encodePart(part, list[:n]), list[n:]
}

// index reads and merges runs.
type index struct{ cells Keeper }

// find returns the leaves that may be those of a version, by its hash: a few, of which others have the same hash.
func (x index) find(ctx context.Context, blocks uint64, hash uint32) (leaves []uint64, err error) {
	runs := runsOf(blocks)
	names := make([]string, len(runs))
	for i, r := range runs {
		names[i] = indexCell(r.Level, r.Block, uint64(hash)>>(32-parts(r.Level)))
	}
	values, err := x.cells.LogValues(ctx, names)
	if err != nil {
		return nil, err
	}
	var list []place
	for i, r := range runs {
		var ok bool
		if list, ok = r.decodePart(uint64(hash)>>(32-parts(r.Level)), values[i], list[:0]); !ok {
			return nil, damaged(names[i])
		}
		n, _ := slices.BinarySearchFunc(list, place{hash: hash}, comparePlaces)
		for ; n < len(list) && list[n].hash == hash; n++ {
			leaves = append(leaves, list[n].leaf)
		}
	}
	return leaves, nil
}

// merge makes eight runs one of the next level, in steps of one part of each. Each step is committed, and
// done again after a crash: the merged runs stay until the state says that they are merged.
func (x index) merge(ctx context.Context, level int, block uint64) error {
	above := run{level + 1, block}
	var list []place
	for part := range uint64(1) << parts(level) {
		list = list[:0]
		for i := range uint64(runsAbove) {
			r := run{level, block + i*span(level)}
			name := indexCell(level, r.Block, part)
			value, err := x.cells.LogCell(ctx, name)
			if err != nil {
				return err
			}
			var ok bool
			if list, ok = r.decodePart(part, value, list); !ok {
				return damaged(name)
			}
		}
		slices.SortFunc(list, comparePlaces)
		if err := x.write(ctx, above, part, list); err != nil {
			return err
		}
	}
	return nil
}

// write commits the parts of a run that replace one part of the level below.
func (x index) write(ctx context.Context, above run, part uint64, list []place) error {
	return x.put(ctx, above, part<<runBits, runsAbove, list)
}

// put commits neighbouring parts of a run. What is there already is not written again: the same leaves give the same
// octets, whichever server writes them.
func (x index) put(ctx context.Context, r run, first, count uint64, list []place) error {
	var changes []stele.CellChange
	for part := first; part < first+count; part++ {
		var after []byte
		after, list = cutPart(r, part, list)
		name := indexCell(r.Level, r.Block, part)
		before, err := x.cells.LogCell(ctx, name)
		if err != nil {
			return err
		}
		if !bytes.Equal(before, after) {
			changes = append(changes, stele.CellChange{Name: name, Before: before, After: after})
		}
	}
	if len(changes) == 0 {
		return nil
	}
	return x.cells.KeepLog(ctx, changes...)
}

// addBlock writes the run of a block, and merges runs as far as they are complete then. It returns those that were
// merged.
func (x index) addBlock(ctx context.Context, block uint64, list []place) (merged []run, err error) {
	list = slices.SortedFunc(slices.Values(list), comparePlaces)
	if err := x.put(ctx, run{0, block}, 0, 1<<parts(0), list); err != nil {
		return nil, err
	}
	for level := 0; (block+1)%span(level+1) == 0; level++ {
		first := block + 1 - span(level+1)
		if err := x.merge(ctx, level, first); err != nil {
			return nil, err
		}
		for i := range uint64(runsAbove) {
			merged = append(merged, run{level, first + i*span(level)})
		}
	}
	return merged, nil
}

// remove removes the cells of a run that was merged, as far as they are there.
func (x index) remove(ctx context.Context, r run) error {
	var changes []stele.CellChange
	for part := range uint64(1) << parts(r.Level) {
		name := indexCell(r.Level, r.Block, part)
		before, err := x.cells.LogCell(ctx, name)
		if err != nil {
			return err
		}
		if before != nil {
			changes = append(changes, stele.CellChange{Name: name, Before: before})
		}
		if last := part+1 == 1<<parts(r.Level); len(changes) == 64 || last && len(changes) > 0 {
			if err := x.cells.KeepLog(ctx, changes...); err != nil {
				return err
			}
			changes = nil
		}
	}
	return nil
}
