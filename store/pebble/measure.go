package pebble

import "github.com/stele-id/stele"

var _ stele.Measured = (*Store)(nil)

// Measure implements [stele.Measured].
func (s *Store) Measure() (m stele.StoreMeasure) {
	s.tally.Fill(&m)
	m.Waiting, m.MayWait, m.Reserve = len(s.queue), cap(s.queue), s.o.Reserve
	if disk, err := s.fs.GetDiskUsage(s.folder); err == nil {
		m.Free = disk.AvailBytes
	}
	h := s.current.Load()
	if !h.begin() {
		return m // it is closed
	}
	defer h.end()
	of := h.db.Metrics()
	m.Bytes, m.Unmerged = of.DiskSpaceUsage(), of.Compact.EstimatedDebt
	m.Hits, m.Misses = uint64(max(of.BlockCache.Hits, 0)), uint64(max(of.BlockCache.Misses, 0))
	return m
}
