package transparency

import (
	"sync"

	"github.com/stele-id/stele"
)

// shelf keeps what was read lately of the log of one era, and what never changes there: tiles as far as they go, and parts of the
// index. After a restore the same name may stand for something else, so nothing is kept of another era.
type shelf[K comparable, V any] struct {
	most int

	mu   sync.Mutex
	era  stele.GenerationID
	kept map[K]V
}

// newShelf returns a shelf with room for so many.
func newShelf[K comparable, V any](most int) *shelf[K, V] { return &shelf[K, V]{most: most} }

func (s *shelf[K, V]) get(era stele.GenerationID, key K) (value V, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.era != era {
		return value, false
	}
	value, ok = s.kept[key]
	return value, ok
}

func (s *shelf[K, V]) put(era stele.GenerationID, key K, value V) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.era != era || s.kept == nil {
		s.era, s.kept = era, map[K]V{}
	}
	for other := range s.kept { // any of them: maps begin anywhere
		if len(s.kept) < s.most {
			break
		}
		delete(s.kept, other)
	}
	s.kept[key] = value
}
