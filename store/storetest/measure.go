package storetest

import "github.com/stele-id/stele"

// checkMeasure: a store that counts says how many commits it kept and refused.
func checkMeasure(s *session) {
	m, ok := s.Store.(stele.Measured)
	if !ok {
		return // it is optional
	}
	before := m.Measure()
	a := first(s.ark("a"))
	s.put(a)
	s.refuse("the same first version again", records(a), stele.Conflict)
	if refused, err := s.Ingest(s.ctx, []*stele.Record{first(s.ark("b")), first(s.ark("c"))}, nil, nil, nil); err != nil || refused[0] != nil {
		s.Fatalf("ingest: %v, %v", refused, err)
	}
	now := m.Measure()
	if now.Commits-before.Commits != 2 || now.Refused-before.Refused != 1 || now.Failed != before.Failed {
		s.Errorf("kept %d, refused %d, failed %d, want 2, 1 and 0", now.Commits-before.Commits, now.Refused-before.Refused, now.Failed-before.Failed)
	}
	if now.Groups <= before.Groups || now.Waiting != 0 || now.MayWait <= 0 {
		s.Errorf("%+v", now)
	}
}
