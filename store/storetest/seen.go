package storetest

import (
	"errors"
	"fmt"
	"sync"

	"github.com/stele-id/stele"
)

// checkSeen: a commit that was judged by records is made only if they are as they were.
func checkSeen(s *session) {
	a, b := first(s.ark("1"), s.ark("alias")), first(s.ark("2"))
	s.apply(&stele.Commit{Records: []*stele.Record{a, b}})
	s.apply(&stele.Commit{Records: []*stele.Record{next(a, "changed")}})
	cell := func(name string, seen ...stele.SeenRecord) *stele.Commit {
		return &stele.Commit{Seen: seen, Cells: []stele.CellChange{{Name: name, After: []byte("x")}}}
	}
	for i, list := range [][]stele.SeenRecord{
		{{ID: a.ID, Version: 1}},
		{{ID: a.ID, Version: 3}},
		{{ID: b.ID, Version: 1}, {ID: a.ID, Version: 1}},
		{{ID: s.ark("alias"), Version: 2}},
		{{ID: s.ark("none"), Version: 1}},
	} {
		name := fmt.Sprint("refused ", i)
		if err := s.Apply(s.ctx, cell(name, list...)); stele.KindOf(err) != stele.Conflict {
			s.Errorf("%v: %v", list, err)
		}
		s.wantCell(name, nil)
	}
	for _, c := range []*stele.Commit{
		cell("c", stele.SeenRecord{ID: a.ID}),
		cell("c", stele.SeenRecord{Version: 1}),
		cell("c", stele.SeenRecord{ID: a.ID, Version: 2}, stele.SeenRecord{ID: a.ID, Version: 2}),
		{Seen: []stele.SeenRecord{{ID: a.ID, Version: 2}}, Records: []*stele.Record{next(next(a, "changed"), "again")}},
	} {
		if err := s.Apply(s.ctx, c); stele.KindOf(err) != stele.Invalid {
			s.Errorf("%v: %v", c.Seen, err)
		}
	}
	s.apply(cell("c", stele.SeenRecord{ID: a.ID, Version: 2}, stele.SeenRecord{ID: b.ID, Version: 1}))
	s.wantCell("c", []byte("x"))

	// What is judged by a record is refused like the record if its namespace was sealed meanwhile.
	s.apply(sealing(space("ark", "ark:12345/"), nil, 0))
	late := cell("late", stele.SeenRecord{ID: b.ID, Version: 1})
	late.Touch = touching(0)
	if err := s.Apply(s.ctx, late); !errors.Is(err, stele.ErrFenced) {
		s.Errorf("judged before the seal: %v", err)
	}
	late.Touch = touching(1)
	s.apply(late)

	// Of a version and of what was judged by the one before, one is refused.
	r := b
	for range 20 {
		var work sync.WaitGroup
		var written, seen error
		n := next(r, "again")
		c := cell(fmt.Sprint("race ", r.Version), stele.SeenRecord{ID: r.ID, Version: r.Version})
		work.Go(func() { written = s.Apply(s.ctx, &stele.Commit{Records: []*stele.Record{n}}) })
		work.Go(func() { seen = s.Apply(s.ctx, c) })
		work.Wait()
		if written != nil || seen != nil && stele.KindOf(seen) != stele.Conflict {
			s.Fatalf("%v, %v", written, seen)
		}
		r = n
	}
}
