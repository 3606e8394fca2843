package postgres

import "github.com/stele-id/stele"

var _ stele.Measured = (*Store)(nil)

// Measure implements [stele.Measured].
func (s *Store) Measure() (m stele.StoreMeasure) {
	s.tally.Fill(&m)
	m.Waiting, m.MayWait = len(s.queue), cap(s.queue)
	pools := s.reads.Stat()
	m.Connections, m.MaxConnections = int(pools.AcquiredConns()), int(pools.MaxConns())
	pools = s.writes.Stat()
	m.Connections, m.MaxConnections = m.Connections+int(pools.AcquiredConns()), m.MaxConnections+int(pools.MaxConns())
	return m
}
