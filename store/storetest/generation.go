package storetest

import (
	"path/filepath"
	"slices"
	"time"

	"github.com/stele-id/stele"
)

func (s *session) generations() stele.Generations {
	s.Helper()
	list, err := s.Generations(s.ctx)
	if err != nil {
		s.Fatalf("Generations: %v", err)
	}
	if err := list.Check(); err != nil {
		s.Fatalf("Generations = %+v: %v", list, err)
	}
	return list
}

// wantGenerations compares the list, and the position with it.
func (s *session) wantGenerations(want stele.Generations) {
	s.Helper()
	if got := s.generations(); !slices.Equal(got, want) {
		s.Errorf("Generations = %+v, want %+v", got, want)
	}
	position, err := s.Position(s.ctx)
	if wanted := (stele.Position{Generation: want.Last().ID, Change: s.lastChange()}); err != nil || position != wanted {
		s.Errorf("Position = %v, %v; want %v", position, err, wanted)
	}
}

// checkGenerations: a store has a generation of its own from the beginning, which stays
// until the list is replaced by a caller that knows it; a backup has the list.
func checkGenerations(s *session) {
	first := s.generations()
	if len(first) != 1 || first[0].Number != 1 || first[0].Restored != (stele.Position{}) || first[0].Replaced != (stele.Position{}) {
		s.Errorf("a new store has the generations %+v; want one, with the number 1", first)
	}
	s.wantGenerations(first)
	s.fill()
	s.wantGenerations(first)
	another := s.other(filepath.Join(s.test.TempDir(), "another"))
	if other := another.generations(); other[0].ID == first[0].ID {
		s.Errorf("two new stores have the same generation %s", other[0].ID)
	}
	another.end()

	folder := filepath.Join(s.test.TempDir(), "backup")
	if err := s.Backup(s.ctx, folder); err != nil {
		s.Fatalf("Backup: %v", err)
	}
	last := s.lastChange()
	now := time.Date(2031, 5, 2, 10, 0, 0, 250_000_000, time.UTC)
	second := first.Next(now, last, nil, 0)
	third := second.Next(now.Add(time.Hour), last-1, stele.Generations{{ID: stele.NewGenerationID(), Number: 17}}, 99)
	if third.Last().Number != 18 {
		s.Errorf("the number of a generation that replaces number 17 is %d", third.Last().Number)
	}
	s.wantKind("SetGenerations of a list without any", s.SetGenerations(s.ctx, first.Last().ID, nil), stele.Invalid)
	s.wantKind("SetGenerations of a list out of order", s.SetGenerations(s.ctx, first.Last().ID, stele.Generations{second[1], second[0]}), stele.Invalid)
	s.wantKind("SetGenerations by who knows another one", s.SetGenerations(s.ctx, second.Last().ID, third), stele.Conflict)
	s.wantGenerations(first)
	for _, list := range []stele.Generations{second, third, first, third} {
		if err := s.SetGenerations(s.ctx, s.generations().Last().ID, list); err != nil {
			s.Fatalf("SetGenerations: %v", err)
		}
		s.wantGenerations(list)
	}
	if got := s.lastChange(); got != last {
		s.Errorf("a generation made a change: %d, not %d", got, last)
	}
	s.seal("moved")
	s.wantKind("SetGenerations of a sealed store", s.SetGenerations(s.ctx, third.Last().ID, second), stele.Conflict)
	s.seal("")
	s.goOn(last)
	if s.h.Durable {
		s.reopen()
	}
	s.wantGenerations(third)
	s.verify()

	b := s.other(folder)
	defer b.end()
	b.wantGenerations(first)
	if err := b.SetGenerations(b.ctx, first.Last().ID, second); err != nil {
		s.Fatalf("SetGenerations of a backup: %v", err)
	}
	b.wantGenerations(second)
}
