package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/stele-id/stele"
)

// past returns a new record with its history: n versions with dates of their own, the oldest
// first. Where the record points changes with every version, and every third version leads back
// to where the first did. The last versions have an alias more.
func (s *session) past(name string, n int) (list []*stele.Record) {
	base := time.Date(2004, 2, 3, 4, 5, 6, 0, time.UTC)
	r := s.full(s.ark(name), s.ark(name+" alias"))
	r.Created, r.Modified = base, base
	for i := range n {
		if i > 0 {
			r = next(r, fmt.Sprint("version ", i+1))
		}
		if i == n/2 {
			r.Aliases = append(slices.Clone(r.Aliases), s.ark(name+" late"))
		}
		r.Modified, r.By, r.Import = base.AddDate(0, i, 0), fmt.Sprint("clerk ", i), 7
		r.Targets = []stele.Target{at(fmt.Sprintf("https://h%d.example/%s", i%3, name))}
		list = append(list, r)
	}
	return list
}

// checkImported: a new record comes with all its versions in one commit, or with none; each is a
// change, is found by its number and by its own date, and counts once.
func checkImported(s *session) {
	key := stele.NamespaceKey{Scheme: "ark"}
	old := first(s.ark("old"))
	s.put(old)
	var all []*stele.Record
	many := [][]*stele.Record{s.past("m", 1), s.past("a", 3), s.past("z", 40), s.past("b", 100), s.past("c", 2)}
	for _, list := range many {
		all = append(all, list...)
	}
	image, before := s.image(), s.lastChange()
	spoilt := func(i int, r *stele.Record) *stele.Commit {
		list := slices.Clone(all)
		list[i] = r
		return &stele.Commit{Records: list, Counter: countFor(key, 0)}
	}
	late := withAliases(all[len(all)-1], s.ark("c alias"), s.ark("c late"), old.ID)
	s.refuse("the last version of the last record has a name that is taken", spoilt(len(all)-1, late), stele.Conflict)
	dropped := withAliases(all[len(all)-1], s.ark("c late"))
	s.refuse("a version drops a name", spoilt(len(all)-1, dropped), stele.Invalid)
	withholds := next(all[len(all)-2], "x")
	withholds.Withheld.Redacted = 1
	s.refuse("a version withholds another one", spoilt(len(all)-1, withholds), stele.Invalid)
	s.refuse("a version is missing", spoilt(2, withVersion(all[2], 3)), stele.Invalid)
	s.refuse("more names than the quota", &stele.Commit{Records: all, Counter: countFor(key, uint64(3*len(many)-1))}, stele.Exhausted)
	s.refuse("versions apart", records(all[1], first(s.ark("x")), all[2]), stele.Invalid)
	s.refuse("versions of a record that is registered", records(next(old, "2"), withVersion(next(old, "3"), 3)), stele.Invalid)
	s.refuse("another record with this name", records(all[1], all[2], first(old.ID), next(first(old.ID), "2")), stele.Conflict)
	s.wantImage("a commit that was refused left something behind", image)

	s.apply(&stele.Commit{Records: all, Counter: countFor(key, uint64(3*len(many)))})
	s.wantCount(key, uint64(3*len(many)))
	for i, c := range s.changes(before) {
		if c.Seq != before+uint64(i)+1 || c.ID != all[i].ID || c.Version != all[i].Version || (c.Counted == key) != (c.Version == 1) || c.At.IsZero() {
			s.Fatalf("change %d is %+v, want version %d of %q", i, c, all[i].Version, all[i].ID)
		}
	}
	if n := s.lastChange(); n != before+uint64(len(all)) {
		s.Errorf("LastChange is %d after %d and %d versions", n, before, len(all))
	}
	for _, list := range many {
		s.wantPast(list)
	}

	// They go on as others do.
	last := many[3][len(many[3])-1]
	s.put(next(last, "after the import"))
	s.want(last.ID, next(last, "after the import"))
	s.wantKind("VersionAt before the first version", s.versionAt(last.ID, last.Created.Add(-time.Second)), stele.NotFound)
}

func (s *session) versionAt(id stele.ID, at time.Time) error {
	_, err := s.VersionAt(s.ctx, id, at)
	return err
}

// wantPast looks for all versions of a record, in every way.
func (s *session) wantPast(list []*stele.Record) {
	s.Helper()
	last := list[len(list)-1]
	for _, name := range last.Names() {
		s.want(name, last)
	}
	got := s.history(last.ID)
	if len(got) != len(list) {
		s.Fatalf("History of %q has %d versions, want %d", last.ID, len(got), len(list))
	}
	for i, want := range list {
		s.same("History", got[len(got)-1-i], want)
		one, err := s.Version(s.ctx, last.ID, uint64(i)+1)
		if err != nil {
			s.Fatalf("Version(%d): %v", i+1, err)
		}
		s.same("Version", one, want)
		then, err := s.VersionAt(s.ctx, last.ID, want.Modified.Add(time.Hour))
		if err != nil {
			s.Fatalf("VersionAt(%v): %v", want.Modified, err)
		}
		s.same("VersionAt", then, want)
	}
	for i := range 3 {
		url := fmt.Sprintf("https://h%d.example/%s", i, last.ID.String()[len("ark:12345/"):])
		if found := slices.Contains(s.pointing(stele.Location{URL: url}, stele.ID{}), last.ID); found != (last.Targets[0].URL == url) {
			s.Errorf("%q is found by %s: %t; it points at %s", last.ID, url, found, last.Targets[0].URL)
		}
	}
}
