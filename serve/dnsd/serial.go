package dnsd

import (
	"context"
	"sync"
	"sync/atomic"
)

// serials know the present serial of each zone, so that it can be put into an answer
// that was packed before the last change. Zones have numbers that never change.
type serials struct {
	from source

	mu     sync.Mutex
	number map[string]uint16
	list   atomic.Pointer[[]*serial] // by number; 0 is not a zone
}

// serial is the serial of a zone at the time of a change: both in one word, so that
// they always belong together.
type serial struct {
	apex string
	word atomic.Uint64 // count of changes, its lower half; and the serial
	seal atomic.Pointer[soaSignature]
}

func newSerials(from source) *serials {
	s := &serials{from: from, number: make(map[string]uint16)}
	s.list.Store(&[]*serial{nil})
	return s
}

const maxZones = 1<<16 - 1

// numberOf returns a zone's number, or 0 if there are too many.
func (s *serials) numberOf(apex string) uint16 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, ok := s.number[apex]; ok {
		return n
	}
	list := *s.list.Load()
	if len(list) > maxZones {
		return 0
	}
	n := uint16(len(list))
	// A word that no change has makes the first reader fetch the serial.
	z := &serial{apex: apex}
	z.word.Store(uint64(^uint32(s.from.Changed())) << 32)
	list = append(list[:n:n], z)
	s.list.Store(&list)
	s.number[apex] = n
	return n
}

// now returns the present serial of a zone, or ok = false if it can't be told.
func (s *serials) now(ctx context.Context, number uint16) (_ uint32, ok bool) {
	list := *s.list.Load()
	if number == 0 || int(number) >= len(list) {
		return 0, false
	}
	z := list[number]
	changes := uint32(s.from.Changed())
	if word := z.word.Load(); uint32(word>>32) == changes {
		return uint32(word), true
	}
	at, err := s.from.find(ctx, z.apex)
	if err != nil || at == nil {
		return 0, false
	}
	soa, _ := at.Apex()
	z.word.Store(uint64(changes)<<32 | uint64(soa.Serial))
	return soa.Serial, true
}
