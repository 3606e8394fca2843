package dnsd

import "sync/atomic"

// zoneCounts counts answers by the number of their zone. Most servers have few zones, so that the counts are in pages, which
// are made when they are needed.
type zoneCounts [256]atomic.Pointer[zonePage]

type zonePage [256]atomic.Uint64

func (c *zoneCounts) add(zone uint16) {
	page := c[zone>>8].Load()
	if page == nil {
		c[zone>>8].CompareAndSwap(nil, new(zonePage))
		page = c[zone>>8].Load()
	}
	page[zone&0xff].Add(1)
}

// ZoneAnswers returns how many authoritative answers were sent for each zone since the server was made, by the name of the zone;
// nothing without [Options.CountZones].
func (s *Server) ZoneAnswers() map[string]uint64 {
	s.mu.Lock()
	tallies := s.tallies
	s.mu.Unlock()
	found := make(map[string]uint64)
	for number, zone := range *s.serials.list.Load() {
		if zone == nil {
			continue
		}
		for _, t := range tallies {
			if page := t.zones[number>>8].Load(); page != nil {
				found[zone.apex] += page[number&0xff].Load()
			}
		}
	}
	return found
}
