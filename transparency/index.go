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
// A run of level l is divided into 16 * 8^l parts, of about 256 leaves each, by the highest bits of the hash, a cell each: the number of this form, a byte, and
// pairs of the hash, as the difference to the one before, and of the leaf, counted from the first of the run, both as uvarints,
// sorted.
const (
	blockLeaves = 4096
	runBits     = 3 // of runsAbove
	runsAbove   = 1 << runBits
	partBits    = 4 // of the parts of a run of level 0
	indexForm   = 1
)

func indexCell(level int, block, part uint64) string {
	return fmt.Sprintf("log index %x %08x %06x", level, block, part)
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

// runOf returns the run of an index of so many blocks that has a leaf; false if it is not indexed.
func runOf(blocks, leaf uint64) (r run, ok bool) {
	for _, r := range runsOf(blocks) {
		if leaf >= r.first() && leaf < (r.Block+span(r.Level))*blockLeaves {
			return r, true
		}
	}
	return run{}, false
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

// search appends the leaves of a part that have a hash. False if the part is damaged before them.
func (r run) search(value []byte, hash uint32, leaves []uint64) ([]uint64, bool) {
	if len(value) == 0 || value[0] != indexForm {
		return nil, false
	}
	h := uint64(hash) >> (32 - parts(r.Level)) << (32 - parts(r.Level))
	for value = value[1:]; len(value) > 0; {
		step, n := binary.Uvarint(value)
		if n <= 0 {
			return nil, false
		}
		leaf, m := binary.Uvarint(value[n:])
		if m <= 0 {
			return nil, false
		}
		if h += step; h > uint64(hash) {
			break
		}
		if h == uint64(hash) {
			leaves = append(leaves, r.first()+leaf)
		}
		value = value[n+m:]
	}
	return leaves, true
}

// cutPart returns the cell of a part, and the places after it.
func cutPart(r run, part uint64, list []place) (value []byte, rest []place) {
	end := (part + 1) << (32 - parts(r.Level))
	n, _ := slices.BinarySearchFunc(list, end, func(p place, end uint64) int { return cmp.Compare(uint64(p.hash), end) })
	return r.encodePart(part, list[:n]), list[n:]
}

// index reads and merges runs.
type index struct {
	cells Keeper
	parts *shelf[partID, packedPart]
}

// maxParts is how many parts of runs are kept in memory, of about 2 KB each.
const maxParts = 4096

func newIndex(cells Keeper) index { return index{cells, newShelf[partID, packedPart](maxParts)} }

// partID names a part of a run. What a part has never changes; its cell is removed when the run is merged with others.
type partID struct {
	run
	part uint64
}

// packedPart is a part with the hash and the leaf of each place in one number, sorted.
type packedPart []uint64

// packed returns places in this form.
func (r run) packed(list []place) packedPart {
	p := make(packedPart, len(list))
	for i, at := range list {
		p[i] = uint64(at.hash)<<32 | (at.leaf - r.first())
	}
	return p
}

// packs reports whether the hash and the leaf of a place fit into one number. They do unless the run has more than four billion
// leaves.
func (r run) packs() bool { return span(r.Level)*blockLeaves <= 1<<32 }

// search appends the leaves that have a hash.
func (p packedPart) search(r run, hash uint32, leaves []uint64) []uint64 {
	at, _ := slices.BinarySearch(p, uint64(hash)<<32)
	for ; at < len(p) && uint32(p[at]>>32) == hash; at++ {
		leaves = append(leaves, r.first()+p[at]&(1<<32-1))
	}
	return leaves
}

// find returns the leaves that may be those of a version, by its hash: a few, of which others have the same hash.
func (x index) find(ctx context.Context, p *position, hash uint32) (leaves []uint64, err error) {
	var read []partID
	var names []string
	for _, r := range runsOf(p.Indexed) {
		id := partID{r, uint64(hash) >> (32 - parts(r.Level))}
		if kept, ok := x.parts.get(p.era(), id); ok {
			leaves = kept.search(r, hash, leaves)
			continue
		}
		read, names = append(read, id), append(names, indexCell(r.Level, r.Block, id.part))
	}
	if read == nil {
		return leaves, nil
	}
	values, err := x.cells.LogValues(ctx, names)
	if err != nil {
		return nil, err
	}
	var list []place
	for i, id := range read {
		var ok bool
		if list, ok = id.decodePart(id.part, values[i], list[:0]); !ok {
			return nil, damaged(names[i])
		}
		if !id.packs() {
			leaves, _ = id.run.search(values[i], hash, leaves)
			continue
		}
		part := id.packed(list)
		x.parts.put(p.era(), id, part)
		leaves = part.search(id.run, hash, leaves)
	}
	return leaves, nil
}

// lacks returns those of some leaves, of one run and sorted by their hashes, that the index does not have.
func (x index) lacks(ctx context.Context, r run, list []place) (missing []uint64, err error) {
	part := func(p place) uint64 { return uint64(p.hash) >> (32 - parts(r.Level)) }
	var leaves []uint64
	for len(list) > 0 {
		n := 1
		for n < len(list) && part(list[n]) == part(list[0]) {
			n++
		}
		name := indexCell(r.Level, r.Block, part(list[0]))
		value, err := x.cells.LogCell(ctx, name)
		if err != nil {
			return nil, err
		}
		for _, p := range list[:n] {
			var ok bool
			if leaves, ok = r.search(value, p.hash, leaves[:0]); !ok || !slices.Contains(leaves, p.leaf) {
				missing = append(missing, p.leaf)
			}
		}
		list = list[n:]
	}
	return missing, nil
}

// commitBytes is how many bytes of cells of the index are committed at once, about.
const commitBytes = 1 << 20

// cellWriter collects changes of cells, and commits them when they are many.
type cellWriter struct {
	cells   Keeper
	changes []stele.CellChange
	size    int
}

func (w *cellWriter) add(ctx context.Context, changes ...stele.CellChange) error {
	for _, c := range changes {
		w.size += len(c.Name) + len(c.Before) + len(c.After)
	}
	if w.changes = append(w.changes, changes...); w.size < commitBytes {
		return nil
	}
	return w.flush(ctx)
}

func (w *cellWriter) flush(ctx context.Context) error {
	if len(w.changes) == 0 {
		return nil
	}
	err := w.cells.KeepLog(ctx, w.changes...)
	w.changes, w.size = nil, 0
	return err
}

// merge makes eight runs one of the next level, a part of each at a time. It is committed in steps, and
// done again after a crash: the merged runs stay until the state says that they are merged.
func (x index) merge(ctx context.Context, level int, block uint64) error {
	above := run{level + 1, block}
	w := cellWriter{cells: x.cells}
	names := make([]string, runsAbove)
	var list []place
	for part := range uint64(1) << parts(level) {
		for i := range names {
			names[i] = indexCell(level, block+uint64(i)*span(level), part)
		}
		values, err := x.cells.LogValues(ctx, names)
		if err != nil {
			return err
		}
		list = list[:0]
		for i, value := range values {
			var ok bool
			if list, ok = (run{level, block + uint64(i)*span(level)}).decodePart(part, value, list); !ok {
				return damaged(names[i])
			}
		}
		above.sort(list)
		changes, err := x.changes(ctx, above, part<<runBits, runsAbove, list)
		if err != nil {
			return err
		}
		if err := w.add(ctx, changes...); err != nil {
			return err
		}
	}
	return w.flush(ctx)
}

// sort sorts places of a run. In one number, hash and leaf are sorted faster than by a function.
func (r run) sort(list []place) {
	if !r.packs() {
		slices.SortFunc(list, comparePlaces)
		return
	}
	packed := r.packed(list)
	slices.Sort(packed)
	for i, v := range packed {
		list[i] = place{uint32(v >> 32), r.first() + v&(1<<32-1)}
	}
}

// changes returns how neighbouring parts of a run change. What is there already is not written again: the same leaves give the same
// octets, whichever server writes them.
func (x index) changes(ctx context.Context, r run, first, count uint64, list []place) (changes []stele.CellChange, err error) {
	names := make([]string, count)
	for i := range names {
		names[i] = indexCell(r.Level, r.Block, first+uint64(i))
	}
	before, err := x.cells.LogValues(ctx, names)
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		var after []byte
		after, list = cutPart(r, first+uint64(i), list)
		if !bytes.Equal(before[i], after) {
			changes = append(changes, stele.CellChange{Name: name, Before: before[i], After: after})
		}
	}
	return changes, nil
}

// block returns how the cells of a new run of level 0 change.
func (x index) block(ctx context.Context, block uint64, list []place) ([]stele.CellChange, error) {
	r := run{0, block}
	list = slices.Clone(list)
	r.sort(list)
	return x.changes(ctx, r, 0, 1<<parts(0), list)
}

// completes reports whether runs are merged when a block is added.
func completes(block uint64) bool { return (block+1)%runsAbove == 0 }

// addBlock writes the run of a block, and merges runs as far as they are complete then. It returns those that were
// merged.
func (x index) addBlock(ctx context.Context, block uint64, list []place) (merged []run, err error) {
	changes, err := x.block(ctx, block, list)
	if err != nil {
		return nil, err
	}
	if len(changes) > 0 {
		if err := x.cells.KeepLog(ctx, changes...); err != nil {
			return nil, err
		}
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

// remove removes the cells of runs that were merged, as far as they are there.
func (x index) remove(ctx context.Context, runs []run) error {
	w := cellWriter{cells: x.cells}
	for _, r := range runs {
		names := make([]string, 0, 1<<min(parts(r.Level), 8))
		for part := range uint64(1) << parts(r.Level) {
			if names = append(names, indexCell(r.Level, r.Block, part)); len(names) < cap(names) {
				continue
			}
			values, err := x.cells.LogValues(ctx, names)
			if err != nil {
				return err
			}
			for i, value := range values {
				if value == nil {
					continue
				}
				if err := w.add(ctx, stele.CellChange{Name: names[i], Before: value}); err != nil {
					return err
				}
			}
			names = names[:0]
		}
	}
	return w.flush(ctx)
}
