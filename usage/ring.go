package usage

import (
	"sync/atomic"
	"unsafe"
)

// event is an answer.
type event struct {
	text    string // of the name
	name    uint64 // a hash of the text
	visitor uint64 // keyed hash of the address and the user agent
	second  uint16 // of the time in Unix seconds, the lower bits
	scheme  uint8  // number of the scheme
	what    uint8  // kind and class
}

// hit is a place for an event, in 32 bytes: half a line of the processor's cache. Between two hits on a busy server all else that a request needs
// passes through the cache, so that each line costs about as much as all instructions of [ring.put].
type hit struct {
	text          *byte // the first of the name
	name, visitor uint64
	// word has, from its highest bits, 16 with whose turn the place is, the second, 16 with the size of the text, 8 with the scheme, and what.
	word atomic.Uint64
}

const (
	turnShift   = 48
	secondShift = 32
	sizeShift   = 16
	schemeShift = 8
	mostOfText  = 1<<16 - 1
)

// ring is a bounded queue of hits: many goroutines write, one reads, and none waits (Vyukov's bounded queue). In the round n of the ring, a place whose
// turn is 2n is free, and one with 2n+1 is full.
type ring struct {
	slots []hit
	round int           // bits of a position that are the place; the others are the round
	tail  atomic.Uint32 // where the next writer writes
	_     [60]byte      // writers and the reader use different lines of the processor's cache
	head  uint32        // where the reader reads
	_     [60]byte
}

// newRing returns a ring of 2^bits places.
func newRing(bits int) *ring { return &ring{slots: make([]hit, 1<<bits), round: bits} }

// turn returns whose turn a place is at a position, if it is free.
func (r *ring) turn(at uint32) uint16 { return uint16(at >> r.round << 1) }

// touch reads the place where the next event goes: the processor fetches it while the caller makes the event, and put need not wait.
func (r *ring) touch() { r.slots[r.tail.Load()&uint32(len(r.slots)-1)].word.Load() }

// put adds an event, and returns which one it is, from 0; false if the ring is full. A text of more than mostOfText bytes has no room.
func (r *ring) put(e *event) (uint32, bool) {
	mask := uint32(len(r.slots) - 1)
	for {
		at := r.tail.Load()
		s, turn := &r.slots[at&mask], r.turn(at)
		switch ahead := int16(uint16(s.word.Load()>>turnShift) - turn); {
		case ahead < 0 || len(e.text) > mostOfText:
			return at, false
		case ahead == 0 && r.tail.CompareAndSwap(at, at+1):
			s.text, s.name, s.visitor = unsafe.StringData(e.text), e.name, e.visitor
			s.word.Store(uint64(turn+1)<<turnShift | uint64(e.second)<<secondShift | uint64(len(e.text))<<sizeShift | uint64(e.scheme)<<schemeShift | uint64(e.what))
			return at, true
		}
	}
}

// take moves events from the ring to a list, and returns how many. The places forget them.
func (r *ring) take(list []event) int {
	mask := uint32(len(r.slots) - 1)
	for i := range list {
		s, turn := &r.slots[r.head&mask], r.turn(r.head)
		word := s.word.Load()
		if uint16(word>>turnShift) != turn+1 {
			return i
		}
		list[i] = event{unsafe.String(s.text, uint16(word>>sizeShift)), s.name, s.visitor, uint16(word >> secondShift), uint8(word >> schemeShift), uint8(word)}
		s.text, s.name, s.visitor = nil, 0, 0
		s.word.Store(uint64(turn+2) << turnShift)
		r.head++
	}
	return len(list)
}
