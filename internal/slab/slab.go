// Package slab keeps many small entries in a fixed amount of memory without pointers, so
// that the garbage collector has nothing to scan, however many there are. The resolver's
// redirect cache and the name server's cache of packed answers are built on it.
//
// An entry is a run of bytes that is found by a 64-bit hash. The package does not know
// what is in an entry: the caller compares the key in it. The memory is divided into
// parts, each with a lock of its own, so that callers seldom wait for each other.
package slab

import (
	"encoding/binary"
	"math/bits"
	"sync"
)

// A part has an index of slots and the memory of the entries. A hash leads to a part by its
// highest bits, and there to a bucket of eight slots. A slot is 0 if it is free, and
// otherwise has
//
//	12 bits  of the hash, so that other entries of the bucket are seldom read
//	 1 bit   the lap in which the entry was written: see Part.lap
//	19 bits  the place of the entry, in units of four bytes, plus one
//
// At its place an entry has two bytes for its room in units, and then its content.
//
// The index has few slots at first and more as there are more entries: a hash leads to any slot,
// so that a few entries in a large index would take a page of the system's memory each. The bits
// of the hash that choose among the buckets that are added are also among those in the slots, so
// that a slot says to which bucket it goes.
const (
	unit        = 4
	placeBits   = 19
	placeMask   = 1<<placeBits - 1
	lapBit      = 1 << placeBits
	markMask    = ^uint32(placeMask | lapBit)
	markShift   = placeBits + 1
	slotBytes   = 4
	bucketSlots = 8
	bucketBytes = bucketSlots * slotBytes
	headBytes   = 2

	// MaxPart is how many bytes of entries a part has at most: more have no place in a slot.
	MaxPart = unit << placeBits

	maxRoom = unit * (1<<16 - 1) // what two bytes can say
	largest = 4                  // part of a ring that an entry may overwrite

	// align keeps a bucket in one line of the processor's cache.
	align = 64

	// firstIndex is how many bytes of slots a part has at first. The bits of a hash that choose
	// among these are not in the slots: the fewer there are, the more often entries of other keys
	// are read.
	firstIndex = 8 << 10

	// An index grows when a bucket is full and so many eighths of all slots are used. With
	// less than that few entries find their bucket full.
	growAt = 3
)

// Options are the settings of a Slab.
type Options struct {
	// Bytes is how much memory is used in all, about: that for entries and the index. The
	// system provides it as it is written to.
	Bytes uint64

	// EntryBytes is how many bytes of entries there are for each slot of the index. If it
	// is smaller than most entries are, few find no free slot. It is a power of two.
	EntryBytes int

	// MaxEntry is how many bytes entries may have in an empty part, however small Bytes is.
	MaxEntry int

	// MinParts is how many parts there are at least, as far as Bytes and MaxEntry allow.
	MinParts int

	// Overwrite says that in a full part a new entry overwrites the oldest ones; entries
	// that have more than a quarter of a part are refused then. Without it a full part
	// refuses new entries.
	Overwrite bool
}

// Slab is a fixed amount of memory for entries. Many goroutines use it at once, each with
// the lock of the part that it looks at.
type Slab struct {
	parts  []Part
	memory []byte
}

// Part is a part of the memory of a Slab. Its methods need its lock: Seek to read, the
// others to write. An entry that Seek or Add returns may be used while the lock is held.
type Part struct {
	sync.RWMutex
	slots []byte // those that are used
	index []byte // the memory for slots; what is not used is zero
	text  []byte
	tail  int    // bytes of text that are used, or in a later lap overwritten
	lap   uint32 // 0 or lapBit: changes whenever tail begins again at 0
	later bool   // text was full once, so that what is after tail is of the lap before

	lost      int // bytes of text before tail that no slot leads to
	taken     int // slots; in a ring some of them are of entries that were overwritten
	overwrite bool
}

// New returns a Slab. If the system has no memory for it, it is as after Close.
func New(o Options) *Slab {
	// Of each part, entries take text bytes, and the index a slot for EntryBytes of these.
	partBytes := func(text int) int { return text + slotsOf(text, o.EntryBytes)*slotBytes }
	n := max(1, o.MinParts, int(o.Bytes/uint64(partBytes(MaxPart))))
	least := o.MaxEntry + headBytes + unit
	if o.Overwrite {
		least *= largest
	}
	text := MaxPart
	for n > 1 && int(o.Bytes/uint64(n)) < partBytes(least) {
		n /= 2
	}
	if each := int(o.Bytes / uint64(n)); each < partBytes(MaxPart) {
		text = min(MaxPart, max(least, each*o.EntryBytes/(o.EntryBytes+slotBytes)))
	}
	text = text &^ (align - 1)
	if text < least {
		text += align
	}
	slots := slotsOf(text, o.EntryBytes) * slotBytes
	s := &Slab{parts: make([]Part, n), memory: newArena(n * (slots + text))}
	if s.memory == nil {
		return s
	}
	rest := s.memory
	cut := func(size int) (piece []byte) {
		piece, rest = rest[:size:size], rest[size:]
		return piece
	}
	for i := range s.parts {
		p := &s.parts[i]
		p.index, p.text, p.overwrite = cut(slots), cut(text), o.Overwrite
		p.slots = p.index[:min(slots, firstIndex)]
	}
	return s
}

// slotsOf returns how many slots there are for so many bytes of entries: a power of two.
func slotsOf(text, entryBytes int) int {
	return max(align/slotBytes, 1<<(bits.Len(uint(text/entryBytes))-1))
}

// Close returns the memory to the system. From then on Seek finds nothing and Add refuses
// everything.
func (s *Slab) Close() {
	for i := range s.parts {
		p := &s.parts[i]
		p.Lock()
		p.slots, p.index, p.text = nil, nil, nil
		p.Unlock()
	}
	freeArena(s.memory)
	s.memory = nil
}

// Clear removes all entries.
func (s *Slab) Clear() {
	for i := range s.parts {
		p := &s.parts[i]
		p.Lock()
		p.clear()
		p.Unlock()
	}
}

// Part returns the part that has the entries with a hash.
func (s *Slab) Part(hash uint64) *Part {
	high, _ := bits.Mul64(hash, uint64(len(s.parts)))
	return &s.parts[high]
}

// bucket returns the slots for a hash; nil after Close.
func (p *Part) bucket(hash uint64) []byte {
	if len(p.slots) == 0 {
		return nil
	}
	first := min(len(p.slots), firstIndex) / bucketBytes
	later := len(p.slots)/bucketBytes/first - 1
	i := (int(hash>>9)&(first-1) + first*(int(hash>>23)&later)) * bucketBytes
	return p.slots[i : i+bucketBytes]
}

// markOf returns the bits of a hash that stand in a slot.
func markOf(hash uint64) uint32 { return uint32(hash>>23) << markShift }

// placeOf returns where in the text the entry of a slot is.
func placeOf(slot uint32) int { return (int(slot&placeMask) - 1) * unit }

// Seek returns the first entry from the slot at on whose hash may be the one given, and its
// slot. The caller compares the key, and goes on at the next slot if it is another:
//
//	for e, at := p.Seek(hash, 0); e != nil; e, at = p.Seek(hash, at+1) { ... }
//
// The entry is nil if there is none, and the slot then negative. An entry may be longer
// than what was written: it has all the room that it may fill.
func (p *Part) Seek(hash uint64, at int) (entry []byte, slot int) {
	slots, mark := p.bucket(hash), markOf(hash)
	for i := at * slotBytes; i < len(slots); i += slotBytes {
		v := binary.LittleEndian.Uint32(slots[i:])
		if v&markMask != mark || v == 0 || p.stale(v) {
			continue
		}
		place := placeOf(v)
		return p.text[place+headBytes : place+p.room(place)], i / slotBytes
	}
	return nil, -1
}

// stale reports whether the entry of a slot was overwritten. What was written in this lap
// is before the tail. What was written in the lap before is overwritten up to the tail.
// There are no slots of earlier laps: see wrap.
func (p *Part) stale(v uint32) bool {
	return v&lapBit != p.lap && placeOf(v) < p.tail
}

// room returns how many bytes the entry at a place has, with its head.
func (p *Part) room(place int) int { return int(binary.LittleEndian.Uint16(p.text[place:])) * unit }

// Full reports whether new entries overwrite older ones from now on.
func (p *Part) Full() bool { return p.later }

// Remove removes the entry of a slot that Seek returned.
func (p *Part) Remove(hash uint64, slot int) {
	s := p.bucket(hash)[slot*slotBytes:][:slotBytes]
	p.lost += p.room(placeOf(binary.LittleEndian.Uint32(s)))
	p.taken--
	clear(s)
}

// Add makes room for an entry of so many bytes, and returns it to be written; nil if there
// is none. The caller has removed, or names by its slot, the entry with the same key; that
// slot is negative if there is none.
func (p *Part) Add(hash uint64, slot, size int) []byte {
	size = (headBytes + size + unit - 1) &^ (unit - 1)
	limit := min(len(p.text), maxRoom)
	if p.overwrite {
		limit = min(len(p.text)/largest, maxRoom)
	}
	if size > limit || !p.makeRoom(size) {
		return nil
	}
	slots := p.bucket(hash)
	if slot < 0 {
		for slot = p.unusedSlot(slots); slot < 0 && p.grow(); slot = p.unusedSlot(slots) {
			slots = p.bucket(hash)
		}
		if slot < 0 {
			slot = p.oldestSlot(slots)
		} else if binary.LittleEndian.Uint32(slots[slot*slotBytes:]) == 0 {
			p.taken++
		}
		if slot < 0 {
			return nil
		}
	}
	place := p.tail
	p.tail += size
	binary.LittleEndian.PutUint32(slots[slot*slotBytes:], markOf(hash)|p.lap|uint32(place/unit+1))
	binary.LittleEndian.PutUint16(p.text[place:], uint16(size/unit))
	return p.text[place+headBytes : p.tail]
}

// makeRoom makes room for so many bytes at the tail, if it can.
func (p *Part) makeRoom(size int) bool {
	switch {
	case p.tail+size <= len(p.text):
	case p.overwrite:
		p.wrap()
	case p.lost > p.tail/4:
		p.clear() // it is simpler to begin again than to move what is left together
	default:
		return false
	}
	return true
}

// wrap begins another lap at the beginning of the text. Slots of the lap before the present
// one, whose entries are all overwritten, would be taken for slots of the next: they are
// freed.
func (p *Part) wrap() {
	p.taken = 0
	for s := p.slots; len(s) > 0; s = s[slotBytes:] {
		v := binary.LittleEndian.Uint32(s)
		switch {
		case v == 0:
		case v&lapBit != p.lap:
			clear(s[:slotBytes])
		default:
			p.taken++
		}
	}
	p.tail, p.lost, p.later = 0, 0, true
	p.lap ^= lapBit
}

// clear removes all entries.
func (p *Part) clear() {
	clear(p.slots)
	p.tail, p.lost, p.lap, p.later, p.taken = 0, 0, 0, false, 0
}

// grow doubles the slots, if enough of them are used and there is memory for more. The
// entries of a bucket stay in it or go to the one at the same place of the new half, by the next
// bit of their hash.
func (p *Part) grow() bool {
	half := len(p.slots)
	if 2*half > len(p.index) || p.taken*8 < half/slotBytes*growAt {
		return false
	}
	p.slots = p.index[:2*half]
	bit := uint32(half/min(half, firstIndex)) << markShift
	for i := 0; i < half; i += slotBytes {
		v := binary.LittleEndian.Uint32(p.slots[i:])
		if v == 0 {
			continue
		}
		if p.stale(v) {
			p.taken--
			clear(p.slots[i:][:slotBytes])
		} else if v&bit != 0 {
			binary.LittleEndian.PutUint32(p.slots[half+i:], v)
			clear(p.slots[i:][:slotBytes])
		}
	}
	return true
}

// unusedSlot returns a slot of a bucket that no entry needs; -1 if there is none.
func (p *Part) unusedSlot(slots []byte) int {
	for i := 0; i < len(slots); i += slotBytes {
		if v := binary.LittleEndian.Uint32(slots[i:]); v == 0 || p.stale(v) {
			return i / slotBytes
		}
	}
	return -1
}

// oldestSlot returns the slot of a full bucket with the oldest entry, where the oldest entries
// are overwritten; -1 where they are not.
func (p *Part) oldestSlot(slots []byte) int {
	oldest, most := -1, -1
	for i := 0; i < len(slots) && p.overwrite; i += slotBytes {
		v := binary.LittleEndian.Uint32(slots[i:])
		// How far the entry is before the tail, all round.
		age := p.tail - placeOf(v)
		if v&lapBit != p.lap {
			age += len(p.text)
		}
		if age > most {
			oldest, most = i/slotBytes, age
		}
	}
	return oldest
}
