package usage

// index finds places in a list by 64-bit hashes. It has no pointers, so that the garbage collector has nothing to scan: between
// two collections of a busy server there are a few thousand hits, and a map of as many names would cost more than to count them.
//
// Open addressing: a hash leads to a slot by its upper half, and from there to the next free one. At most half of the slots are used.
type index struct {
	slots []uint64 // upper half of the hash, and place + 1; 0 is a free slot. As many as a power of two
	used  int
}

const minSlots = 1 << 10

// first returns the slot where the search for a hash begins. There must be slots.
func (x *index) first(hash uint64) uint64 { return hash >> 32 & uint64(len(x.slots)-1) }

// next returns the slot after another one.
func (x *index) next(at uint64) uint64 { return (at + 1) & uint64(len(x.slots)-1) }

// place returns the place in a slot, if it may be that of a hash: the caller compares what is there.
func place(slot, hash uint64) (uint32, bool) { return uint32(slot) - 1, slot>>32 == hash>>32 }

// add adds a place. The caller knows that it is not there yet.
func (x *index) add(hash uint64, to uint32) {
	if 2*(x.used+1) > len(x.slots) {
		x.grow()
	}
	x.put(hash>>32<<32 | uint64(to+1))
	x.used++
}

func (x *index) put(slot uint64) {
	at := x.first(slot)
	for x.slots[at] != 0 {
		at = x.next(at)
	}
	x.slots[at] = slot
}

func (x *index) grow() {
	old := x.slots
	x.slots = make([]uint64, max(minSlots, 2*len(old)))
	for _, slot := range old {
		if slot != 0 {
			x.put(slot)
		}
	}
}

// forget empties the index. It keeps its memory unless most of that was not used.
func (x *index) forget() {
	if len(x.slots) > max(minSlots, 16*x.used) {
		x.slots = nil
	}
	clear(x.slots)
	x.used = 0
}
