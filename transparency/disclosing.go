package transparency

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"hash/maphash"
	"iter"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
)

// Disclosing finds what makes leaves of the log again, for many versions at once. It holds a table of the wanted leaves in memory,
// about 45 bytes for each, so that one pass over the change feed serves them all.
type Disclosing struct {
	l     *Log
	size  uint64
	seed  maphash.Seed
	list  []disclosed
	slots []uint32 // numbers in the list, and 1, by hash
	tiles []uint64 // a bit for each tile of leaves that has a wanted one
}

// disclosed is a leaf in the table.
type disclosed struct {
	hash uint64
	leaf uint64 // its index, and the flags in the highest byte
	at   int64  // microseconds
	seed seed
}

const flagShift = 56

func (d *disclosed) index() uint64 { return d.leaf & (1<<flagShift - 1) }

func (d *disclosed) flags() byte { return byte(d.leaf >> flagShift) }

// maxDisclosed is how many leaves the table can have.
const maxDisclosed = 1<<32 - 2

// Disclose reads the log of a size, which has to be the one that is there or an earlier one, and returns what finds the leaves of
// the changes that are wanted. Several goroutines ask at once what is wanted.
func (l *Log) Disclose(ctx context.Context, size uint64, wants func(*stele.Change) bool) (*Disclosing, error) {
	for {
		d := &Disclosing{l: l, size: size, seed: maphash.MakeSeed(), tiles: make([]uint64, size/tileWidth/64+1)}
		if err := d.read(ctx, wants); err != nil {
			return nil, err
		}
		if d.index() { // if two have the same hash, which is rare, another seed gives other hashes
			return d, nil
		}
	}
}

// disclosingPart is how many leaves are read by one pass over the feed. A store over a database has few of them at a time, so that each is
// short.
const disclosingPart = 64 * tileWidth

// read reads the log, in parts, by some goroutines.
func (d *Disclosing) read(ctx context.Context, wants func(*stele.Change) bool) error {
	size := cmp.Or(d.l.disclosed, disclosingPart)
	lists := make([][]disclosed, (d.size+size-1)/size)
	workers := min(runtime.GOMAXPROCS(0), 4, len(lists))
	errs := make([]error, workers)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var next atomic.Uint64
	var work sync.WaitGroup
	for w := range workers {
		work.Go(func() {
			var wanted []disclosed
			for n := next.Add(1) - 1; n < uint64(len(lists)) && errs[w] == nil; n = next.Add(1) - 1 {
				if wanted, errs[w] = d.part(ctx, wanted[:0], n*size, min((n+1)*size, d.size), wants); errs[w] != nil {
					cancel()
				}
				lists[n] = slices.Clone(wanted)
			}
		})
	}
	work.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	if err := cmp.Or(errs...); err != nil {
		return err
	}
	if d.list = slices.Concat(lists...); len(d.list) > maxDisclosed {
		return &stele.Error{Op: "read log", Kind: stele.Exhausted, Err: stele.Messagef("log.too-many-to-disclose", "the log has too many leaves for one bundle; make bundles of several prefixes")}
	}
	for i := range d.list {
		n := d.list[i].index() / tileWidth
		d.tiles[n/64] |= 1 << (n % 64)
	}
	return nil
}

// part appends the wanted ones of the leaves from one on and before another.
func (d *Disclosing) part(ctx context.Context, list []disclosed, first, end uint64, wants func(*stele.Change) bool) ([]disclosed, error) {
	var tile []byte
	next := first
	for c, err := range d.l.o.Source.Changes(ctx, first) {
		if err != nil {
			return nil, err
		}
		leaf := c.Seq - 1
		if leaf != next {
			break
		}
		next++
		if leaf%tileWidth == 0 {
			tile = nil
		}
		if wants(&c) {
			if tile == nil {
				if tile, err = d.tile(ctx, leaf/tileWidth); err != nil {
					return nil, err
				}
			}
			k := readKept(tile, int(leaf%tileWidth))
			kind, name := subject(&c)
			list = append(list, disclosed{
				hash: d.hash(kind, name, c.Version), leaf: leaf | uint64(k.flags)<<flagShift, at: c.At.UnixMicro(), seed: k.seed,
			})
		}
		if next == end {
			return list, nil
		}
	}
	return nil, otherFeed()
}

// tile reads the cell of a tile of leaves.
func (d *Disclosing) tile(ctx context.Context, n uint64) ([]byte, error) {
	name := tileCell(0, n)
	value, err := d.l.o.Cells.LogCell(ctx, name)
	if err != nil {
		return nil, err
	}
	if leavesIn(value) < TileOf(n*tileWidth, d.size).Width {
		return nil, damaged(name)
	}
	return value, nil
}

func (d *Disclosing) hash(kind Kind, name string, version uint64) uint64 {
	var h maphash.Hash
	h.SetSeed(d.seed)
	var b [9]byte
	b[0] = kind[0]
	binary.LittleEndian.PutUint64(b[1:], version)
	_, _ = h.Write(b[:]) // it never fails
	_, _ = h.WriteString(name)
	return h.Sum64()
}

// index makes the table by hash. False if two versions have the same hash.
func (d *Disclosing) index() bool {
	size := 1024
	for size < len(d.list)*2 {
		size *= 2
	}
	d.slots = make([]uint32, size)
	for i := range d.list {
		at := d.list[i].hash & uint64(size-1)
		for ; d.slots[at] != 0; at = (at + 1) & uint64(size-1) {
			if d.list[d.slots[at]-1].hash == d.list[i].hash {
				return false
			}
		}
		d.slots[at] = uint32(i + 1)
	}
	return true
}

func (d *Disclosing) find(kind Kind, name string, version uint64) *disclosed {
	hash := d.hash(kind, name, version)
	mask := uint64(len(d.slots) - 1)
	for at := hash & mask; d.slots[at] != 0; at = (at + 1) & mask {
		if e := &d.list[d.slots[at]-1]; e.hash == hash {
			return e
		}
	}
	return nil
}

// Tiles yields the tiles of leaves that have wanted ones, and the last one if it is not full.
func (d *Disclosing) Tiles() iter.Seq[TileID] {
	return func(yield func(TileID) bool) {
		for n := uint64(0); n*tileWidth < d.size; n++ {
			id := TileOf(n*tileWidth, d.size)
			if (d.tiles[n/64]>>(n%64)&1 != 0 || id.Width < tileWidth) && !yield(id) {
				return
			}
		}
	}
}

// Has reports whether the log of that size has a record, which is a wanted one.
func (d *Disclosing) Has(id stele.ID) bool { return d.find(KindRecord, id.String(), 1) != nil }

// Record returns what makes the leaf of a version of a record again. False if the log of that size does not have it. If the
// document is not shown as it was logged, the disclosure has the leaf itself: no salt of what is not shown is disclosed.
func (d *Disclosing) Record(ctx context.Context, logged *stele.Record, shown bool) (Disclosure, bool, error) {
	return d.disclose(ctx, KindRecord, logged.ID.String(), logged.Version, shown, func(s *Disclosure) (*Leaf, error) { return s.RecordLeaf(logged) })
}

// Namespace returns what makes the leaf of a version of a namespace again; see Record.
func (d *Disclosing) Namespace(ctx context.Context, n *stele.Namespace) (Disclosure, bool, error) {
	return d.disclose(ctx, KindNamespace, n.Key().String(), n.Version, true, func(s *Disclosure) (*Leaf, error) { return s.NamespaceLeaf(n) })
}

func (d *Disclosing) disclose(ctx context.Context, kind Kind, name string, version uint64, shown bool, leaf func(*Disclosure) (*Leaf, error)) (s Disclosure, ok bool, err error) {
	e := d.find(kind, name, version)
	if e == nil {
		return s, false, nil
	}
	flags := e.flags()
	s = Disclosure{Index: e.index(), At: time.UnixMicro(e.at).UTC(), Listed: flags&flagListed != 0, Bare: flags&flagNoted == 0}
	if flags&flagErased != 0 {
		was, err := d.l.erased(ctx, s.Index)
		if err != nil {
			return s, false, err
		}
		s.Leaf = was.Leaf
	} else {
		s.Seed = Key(e.seed)
	}
	if !s.Listed && (version > 1 || s.Leaf != "") {
		if s.NameKey, err = d.nameKey(ctx, kind, name); err != nil {
			return s, false, err
		}
	}
	if shown || s.Leaf != "" {
		return s, true, nil
	}
	// It may have been erased since the table was made, by a redaction.
	if now, err := d.l.kept(ctx, s.Index); err != nil {
		return s, false, err
	} else if now.flags&flagErased != 0 {
		was, err := d.l.erased(ctx, s.Index)
		s.Leaf, s.NameKey, s.Seed = was.Leaf, was.Key, Key{}
		if s.Listed {
			s.NameKey = Key{}
		}
		return s, err == nil, err
	}
	asked := s
	made, err := leaf(&asked)
	if err != nil {
		return s, false, err
	}
	if !s.Listed && version == 1 {
		s.NameKey = e.seed.nameKey()
	}
	s.Leaf, s.Seed = string(made.Append(nil)), Key{}
	return s, true, nil
}

// nameKey returns the key that blinds a name: that of its first leaf.
func (d *Disclosing) nameKey(ctx context.Context, kind Kind, name string) (Key, error) {
	first := d.find(kind, name, 1)
	if first == nil {
		return Key{}, otherFeed()
	}
	if first.flags()&flagErased == 0 {
		return first.seed.nameKey(), nil
	}
	was, err := d.l.erased(ctx, first.index())
	return was.Key, err
}
