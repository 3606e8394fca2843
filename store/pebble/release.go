package pebble

import "github.com/stele-id/stele"

var _ stele.Releaser = (*Store)(nil)

// Numbers of Release.
const (
	releaseKept  = 4 << 20 // bytes of blocks that stay: above all indexes of tables, which are read for every name
	releasePart  = 64      // and the part of the store's files that stays: indexes are larger in a larger store
	releaseWorth = 8 << 20 // bytes that are worth the evicting
	releaseStep  = 1 << 20
)

// Release implements [stele.Releaser]. It evicts blocks of tables, those first that were read once:
// what was made of them (a packed answer, a redirect) is kept by its maker, and the system has the
// file in its own cache still. Pebble evicts them if it believes that the memory is needed for
// something else; how much it reserves for memtables is not known, so the reservation grows until
// enough is evicted.
func (s *Store) Release() (released int64) {
	h := s.current.Load()
	if !h.begin() {
		return 0 // it is closed
	}
	defer h.end()
	before := s.cache.Size()
	if before < releaseKept+releaseWorth {
		return 0
	}
	kept := max(releaseKept, int64(h.db.Metrics().DiskSpaceUsage()/releasePart))
	if before < kept+releaseWorth {
		return 0
	}
	for reserved := int64(0); reserved < s.o.CacheSize && s.cache.Size() > kept; reserved += releaseStep {
		defer s.cache.Reserve(releaseStep)()
	}
	return before - s.cache.Size()
}
