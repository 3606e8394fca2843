package usage

import "sync/atomic"

// event is an answer.
type event struct {
	text    string // of the name
	name    uint64 // a hash of the text
	visitor uint64 // keyed hash of the address and the user agent
	second  uint16 // of the time in Unix seconds, the lower bits
	scheme  uint8  // number of the scheme
	what    uint8  // kind and class
}

// hit is a place for an event, in 40 bytes.
type hit struct {
	text          string
	name, visitor uint64
	turn          atomic.Uint32 // whose turn the slot is: a writer's, or the reader's
	second        uint16
	scheme, what  uint8
}

// ring is a bounded queue of hits: many goroutines write, one reads, and none waits (Vyukov's bounded queue). A slot
// whose turn is the position of the writer is free; one more, and it is full.
type ring struct {
	slots []hit
	tail  atomic.Uint32 // where the next writer writes
	_     [60]byte      // writers and the reader use different lines of the processor's cache
	head  uint32        // where the reader reads
	_     [60]byte
}

// newRing returns a ring of size slots, a power of two.
func newRing(size int) *ring {
	r := &ring{slots: make([]hit, size)}
	for i := range r.slots {
		r.slots[i].turn.Store(uint32(i))
	}
	return r
}

// put adds an event, and returns which one it is, from 0; false if the ring is full.
func (r *ring) put(e *event) (uint32, bool) {
	mask := uint32(len(r.slots) - 1)
	for {
		at := r.tail.Load()
		s := &r.slots[at&mask]
		switch ahead := int32(s.turn.Load() - at); {
		case ahead < 0:
			return at, false
		case ahead == 0 && r.tail.CompareAndSwap(at, at+1):
			s.text, s.name, s.visitor, s.second, s.scheme, s.what = e.text, e.name, e.visitor, e.second, e.scheme, e.what
			s.turn.Store(at + 1)
			return at, true
		}
	}
}

// take moves events from the ring to a list, and returns how many. The slots forget them.
func (r *ring) take(list []event) int {
	mask := uint32(len(r.slots) - 1)
	for i := range list {
		s := &r.slots[r.head&mask]
		if s.turn.Load() != r.head+1 {
			return i
		}
		list[i] = event{s.text, s.name, s.visitor, s.second, s.scheme, s.what}
		s.text, s.name, s.visitor = "", 0, 0
		s.turn.Store(r.head + uint32(len(r.slots)))
		r.head++
	}
	return len(list)
}
