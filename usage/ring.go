package usage

import "sync/atomic"

// hit is one answer, in 32 bytes.
type hit struct {
	text    string        // of the name
	visitor uint64        // keyed hash of the address and the user agent
	turn    atomic.Uint32 // whose turn the slot is: a writer's, or the reader's
	second  uint16        // of the time in Unix seconds, the lower bits
	scheme  uint8         // number of the scheme
	what    uint8         // kind and class
}

// ring is a bounded queue of hits: many goroutines write, one reads, and none waits (Vyukov's bounded queue). A slot
// whose turn is the position of the writer is free; one more, and it is full.
type ring struct {
	tail  atomic.Uint32 // where the next writer writes
	_     [60]byte      // writers and the reader use different lines of the processor's cache
	head  uint32        // where the reader reads
	_     [60]byte
	slots []hit
}

// newRing returns a ring of size slots, a power of two.
func newRing(size int) *ring {
	r := &ring{slots: make([]hit, size)}
	for i := range r.slots {
		r.slots[i].turn.Store(uint32(i))
	}
	return r
}

// put adds a hit. It returns false if the ring is full.
func (r *ring) put(text string, visitor uint64, second uint16, scheme, what uint8) bool {
	mask := uint32(len(r.slots) - 1)
	for {
		at := r.tail.Load()
		s := &r.slots[at&mask]
		switch ahead := int32(s.turn.Load() - at); {
		case ahead < 0:
			return false
		case ahead == 0 && r.tail.CompareAndSwap(at, at+1):
			s.text, s.visitor, s.second, s.scheme, s.what = text, visitor, second, scheme, what
			s.turn.Store(at + 1)
			return true
		}
	}
}

// event is a hit as it was taken from a ring.
type event struct {
	text    string
	visitor uint64
	second  uint16
	scheme  uint8
	what    uint8
}

// take appends the hits that are there to a list. The slots forget them.
func (r *ring) take(list []event) []event {
	mask := uint32(len(r.slots) - 1)
	for range r.slots {
		s := &r.slots[r.head&mask]
		if s.turn.Load() != r.head+1 {
			break
		}
		list = append(list, event{s.text, s.visitor, s.second, s.scheme, s.what})
		s.text, s.visitor = "", 0
		s.turn.Store(r.head + uint32(len(r.slots)))
		r.head++
	}
	return list
}
