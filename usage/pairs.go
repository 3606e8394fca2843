package usage

import "math/bits"

// pairs knows the last click of each reader on each name in an hour. A pair has 8 bytes:
//
//	51 bits  of its key, which is a hash: see tally.pair
//	 1 bit   the last click is the one that the session counts
//	12 bits  second of the hour of the last click, plus one; 0: it is not known
//
// Two pairs are the same to it with a chance of one to 2^51 for each that is looked at, which are one or two.
type pairs struct {
	slots []uint64 // open addressing; 0 is free. As many as a power of two, of which at most half are used
	shift int      // the upper bits of a key that remain are the slot where the search begins
	used  int
}

const (
	clickBits  = 12
	uniqueBit  = 1 << clickBits
	clickMask  = uniqueBit - 1
	keyMask    = ^uint64(uniqueBit | clickMask)
	firstPairs = 1 << 12 // slots
)

func newPairs(slots int) *pairs {
	p := &pairs{}
	p.resize(max(slots, firstPairs))
	return p
}

func (p *pairs) resize(slots int) {
	old := p.slots
	p.slots, p.shift = make([]uint64, slots), 64-bits.TrailingZeros(uint(slots))
	for _, s := range old {
		if s != 0 {
			*p.find(s) = s
		}
	}
}

// find returns the slot of a key: one that is 0 if the pair is not known. It is valid until the next call of a method.
func (p *pairs) find(key uint64) *uint64 {
	want := tagOf(key)
	for at := key >> p.shift; ; at = (at + 1) & uint64(len(p.slots)-1) {
		if s := &p.slots[at]; *s == 0 || *s&keyMask == want {
			return s
		}
	}
}

// tagOf returns what is kept of a key. It is not 0.
func tagOf(key uint64) uint64 {
	if tag := key & keyMask; tag != 0 {
		return tag
	}
	return uniqueBit << 1
}

// touch reads the slot of a key; see [tally.touch].
func (p *pairs) touch(key uint64) uint64 { return p.slots[key>>p.shift] }

// add adds a pair that is not known. It returns false if there is no room.
func (p *pairs) add(key uint64, second int64, unique bool) bool {
	if p.used >= maxClicks {
		return false
	}
	if 2*(p.used+1) > len(p.slots) {
		p.resize(2 * len(p.slots))
	}
	slot := p.find(key)
	*slot = tagOf(key)
	setClick(slot, second, unique)
	p.used++
	return true
}

// setClick notes the last click of a pair.
func setClick(slot *uint64, second int64, unique bool) {
	*slot = *slot&keyMask | uint64(second+1)
	if unique {
		*slot |= uniqueBit
	}
}

// lastClick returns the second of the last click of a pair, and whether it is the one that the session counts; false if
// it is not known.
func lastClick(slot uint64) (second int64, unique, known bool) {
	second = int64(slot & clickMask)
	return second - 1, slot&uniqueBit != 0, second > 0
}

// forgetClicks forgets when pairs clicked, but not that they did.
func (p *pairs) forgetClicks() {
	for i := range p.slots {
		p.slots[i] &^= clickMask
	}
}
