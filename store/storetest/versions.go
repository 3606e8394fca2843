package storetest

import (
	"fmt"
	"math"
	"time"

	"github.com/stele-id/stele"
)

// checkVersion: every version is found by its number, and by its time.
func checkVersion(s *session) {
	base := time.Date(2031, 5, 2, 10, 0, 0, 0, time.UTC)
	r := s.full(s.ark("a"), s.ark("alias"))
	r.Modified = base
	neighbour := first(s.ark("a/b"))
	s.put(r, neighbour)
	list := []*stele.Record{r}
	for i := range 299 {
		r = next(r, fmt.Sprint("version ", i+2))
		r.Modified = base.Add(time.Duration(i+1) * time.Minute)
		if i%3 == 0 { // two versions at one time
			r.Modified = list[len(list)-1].Modified
		}
		list = append(list, r)
		s.put(r)
	}
	for i, want := range list {
		got, err := s.Version(s.ctx, r.ID, uint64(i)+1)
		if err != nil {
			s.Fatalf("Version(%d): %v", i+1, err)
		}
		s.same(fmt.Sprintf("Version(%d)", i+1), got, want)
		best := want
		for _, v := range list {
			if v.Modified.Equal(want.Modified) {
				best = v
			}
		}
		for _, late := range []time.Duration{0, time.Nanosecond, 30 * time.Second} {
			got, err := s.VersionAt(s.ctx, r.ID, want.Modified.Add(late))
			if err != nil {
				s.Fatalf("VersionAt(%v): %v", want.Modified.Add(late), err)
			}
			s.same(fmt.Sprintf("VersionAt(version %d and %v)", i+1, late), got, best)
		}
	}
	for _, version := range []uint64{0, 301, math.MaxUint64} {
		_, err := s.Version(s.ctx, r.ID, version)
		s.wantKind(fmt.Sprintf("Version(%d)", version), err, stele.NotFound)
	}
	_, err := s.VersionAt(s.ctx, r.ID, base.Add(-time.Nanosecond))
	s.wantKind("VersionAt before the first version", err, stele.NotFound)
	for _, name := range []stele.ID{s.ark("unknown"), s.ark("alias"), s.ark("a/")} {
		_, err := s.Version(s.ctx, name, 1)
		s.wantKind(fmt.Sprintf("Version of %q", name), err, stele.NotFound)
		_, err = s.VersionAt(s.ctx, name, base.Add(time.Hour))
		s.wantKind(fmt.Sprintf("VersionAt of %q", name), err, stele.NotFound)
	}
	for _, before := range []uint64{0, 1, 2, 150, 300, 301, 1000, math.MaxUint64} {
		got := all(s, "HistoryBefore", s.HistoryBefore(s.ctx, r.ID, before))
		want := int(min(uint64(len(list)), max(before, 1)-1))
		if len(got) != want {
			s.Fatalf("HistoryBefore(%d) has %d versions, want %d", before, len(got), want)
		}
		for i, v := range got {
			s.same("HistoryBefore", v, list[want-1-i])
		}
	}
	if got := all(s, "HistoryBefore", s.HistoryBefore(s.ctx, s.ark("alias"), 9)); len(got) != 0 {
		s.Errorf("HistoryBefore of an alias has %d versions", len(got))
	}
}

// checkWithheld: what is withheld is carried forward, and found.
func checkWithheld(s *session) {
	a, b := first(s.ark("a")), first(s.ark("b"))
	s.put(a, b)
	if got := all(s, "Withholding", s.Withholding(s.ctx)); len(got) != 0 {
		s.Errorf("nothing is withheld, and Withholding has %v", got)
	}
	a2 := next(a, "two")
	a2.Withheld.Disavowed = []stele.Disavowal{{First: 1, Last: 1, Reason: "hijacked", At: time.Unix(1, 5).UTC(), By: "user:ana"}}
	b2 := next(b, "two")
	b2.Withheld.Redacted = 2
	s.put(a2, b2)
	s.want(a.ID, a2)
	for _, r := range []*stele.Record{a2, b2} {
		n := next(r, "three")
		n.Withheld = stele.Withheld{}
		s.refuse("what is withheld is forgotten", records(n), stele.Invalid)
	}
	early := next(b2, "three")
	early.Withheld.Erased = 3
	s.refuse("a version erases itself", records(early), stele.Invalid)
	born := first(s.ark("c"))
	born.Withheld.Redacted = 1
	s.refuse("the first version withholds", records(born), stele.Invalid)
	errs, err := s.Ingest(s.ctx, []*stele.Record{born}, nil, nil, nil)
	if err != nil || len(errs) != 1 || stele.KindOf(errs[0]) != stele.Invalid {
		s.Errorf("Ingest of a first version that withholds: %v, %v; want Invalid", errs, err)
	}
	a3, b3 := next(a2, "three"), next(b2, "three")
	s.put(a3, b3)
	got := all(s, "Withholding", s.Withholding(s.ctx))
	if len(got) != 2 || got[0] != a.ID || got[1] != b.ID {
		s.Errorf("Withholding has %v, want %v and %v", got, a.ID, b.ID)
	}
}

// checkErase: of erased versions an entry is left, whatever asks for them, and the rest
// is as it was.
func checkErase(s *session) {
	r := s.full(s.ark("a"), s.ark("alias"))
	neighbour := s.full(s.ark("a/b"))
	s.put(r, neighbour)
	list := []*stele.Record{r}
	for i := range 40 {
		r = next(r, fmt.Sprint("version ", i+2))
		r.Modified = r.Modified.Add(time.Duration(i) * time.Hour)
		list = append(list, r)
		s.put(r)
	}
	other := next(neighbour, "two")
	erase := func(upTo uint64, with ...*stele.Record) {
		s.Helper()
		r = next(r, fmt.Sprint("erases up to ", upTo))
		r.Withheld.Erased = upTo
		list = append(list, r)
		changes := s.lastChange()
		s.put(append([]*stele.Record{r}, with...)...)
		if now := s.lastChange(); now != changes+1+uint64(len(with)) {
			s.Errorf("an erasure makes %d changes, want 1", now-changes)
		}
		for i := range upTo {
			list[i] = list[i].Entry()
		}
		s.wantErased(list)
	}
	erase(10)
	erase(10)                       // nothing more
	erase(uint64(len(list)), other) // all before it, with another record
	r = next(r, "and goes on")      // what comes later is not erased
	list = append(list, r)
	s.put(r)
	s.wantErased(list)
	if got := s.history(neighbour.ID); len(got) != 2 {
		s.Errorf("the history of another record has %d versions, want 2", len(got))
	} else {
		s.same("another record", got[1], neighbour)
	}
	s.want(s.ark("alias"), r)
	if err := s.Purge(s.ctx); err != nil {
		s.Errorf("Purge: %v", err)
	}
	s.wantErased(list)
	s.put(next(r, "after Purge"))
	s.replayInto(s.other(s.test.TempDir() + "/copy"))
}

// wantErased compares the history of a record, the oldest first.
func (s *session) wantErased(list []*stele.Record) {
	s.Helper()
	id := list[0].ID
	got := s.history(id)
	if len(got) != len(list) {
		s.Fatalf("History has %d versions, want %d", len(got), len(list))
	}
	for i, want := range list {
		s.same(fmt.Sprintf("version %d in the history", i+1), got[len(got)-1-i], want)
		one, err := s.Version(s.ctx, id, uint64(i)+1)
		if err != nil {
			s.Fatalf("Version(%d): %v", i+1, err)
		}
		s.same(fmt.Sprintf("Version(%d)", i+1), one, want)
	}
	first, err := s.VersionAt(s.ctx, id, list[1].Modified.Add(-1))
	if err == nil && first.Version > 2 || err != nil && stele.KindOf(err) != stele.NotFound {
		s.Errorf("VersionAt before version 2 is %v, %v", first, err)
	}
}

// replayInto replays all changes of records to another store, which must be the same
// then. It ends the other.
func (s *session) replayInto(to *session) {
	s.Helper()
	for _, change := range s.changes(0) {
		r, err := s.Version(s.ctx, change.ID, change.Version)
		if err != nil {
			s.Fatalf("Version(%v): %v", change, err)
		}
		// As in the store that is copied, where no commit said which zones it touched.
		to.apply(&stele.Commit{Records: []*stele.Record{r}, Replay: []stele.Change{change}, Touch: touching(1 << 40)})
	}
	to.wantImage("a store to which an erasure was replayed", s.image())
	to.end()
}

// checkNamespaceHistory: every version of a namespace is kept, the newest first.
func checkNamespaceHistory(s *session) {
	n, sibling := space("ark", "12345"), space("ark", "12345/x")
	s.apply(&stele.Commit{Namespaces: []*stele.Namespace{n, sibling}})
	list := []*stele.Namespace{n}
	for i := range 300 {
		n = nextNamespace(n, fmt.Sprint("title ", i))
		list = append(list, n)
		s.apply(&stele.Commit{Namespaces: []*stele.Namespace{n}})
	}
	got := all(s, "NamespaceHistory", s.NamespaceHistory(s.ctx, n.Key()))
	if len(got) != len(list) {
		s.Fatalf("NamespaceHistory has %d versions, want %d", len(got), len(list))
	}
	for i, v := range got {
		if want := list[len(list)-1-i]; v.Version != want.Version || v.Title != want.Title {
			s.Errorf("NamespaceHistory, entry %d, is version %d, %q; want version %d, %q", i, v.Version, v.Title, want.Version, want.Title)
		}
	}
	if got := all(s, "NamespaceHistory", s.NamespaceHistory(s.ctx, sibling.Key())); len(got) != 1 {
		s.Errorf("a namespace that never changed has %d versions", len(got))
	}
	if got := all(s, "NamespaceHistory", s.NamespaceHistory(s.ctx, stele.NamespaceKey{Scheme: "ark", Prefix: "1"})); len(got) != 0 {
		s.Errorf("a namespace that is not there has %d versions", len(got))
	}
	for range s.NamespaceHistory(s.ctx, n.Key()) { // leaving early is allowed
		break
	}
}
