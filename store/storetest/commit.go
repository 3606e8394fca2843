package storetest

import (
	"fmt"

	"github.com/stele-id/stele"
)

// records makes a commit of records.
func records(list ...*stele.Record) *stele.Commit { return &stele.Commit{Records: list} }

// withVersion returns r with another version number.
func withVersion(r *stele.Record, version uint64) *stele.Record {
	v := *r
	v.Version = version
	return &v
}

// withAliases returns r with these aliases only.
func withAliases(r *stele.Record, aliases ...stele.ID) *stele.Record {
	v := *r
	v.Aliases = aliases
	return &v
}

// checkVersions: version n is committed on n-1 only.
func checkVersions(s *session) {
	a := first(s.ark("a"), s.ark("alias"))
	for _, version := range []uint64{2, 3, 1 << 40} {
		s.refuse("a new record begins late", records(withVersion(a, version)), stele.Conflict)
	}
	s.wantNone(a.Names()...)
	s.put(a)
	s.refuse("the same first version again", records(a), stele.Conflict)
	s.refuse("another first version", records(withVersion(next(a, "other"), 1)), stele.Conflict)
	s.refuse("version 3 on 1", records(withVersion(a, 3)), stele.Conflict)
	b := next(a, "second")
	s.put(b)
	s.want(s.ark("alias"), b)
	s.refuse("version 2 again", records(b), stele.Conflict)
	s.refuse("a first version after the second", records(a), stele.Conflict)
	s.refuse("version 4 on 2", records(withVersion(a, 4)), stele.Conflict)
	s.put(next(b, "third"))
	s.want(a.ID, next(b, "third"))
	if err := s.Apply(s.ctx, &stele.Commit{}); err != nil {
		s.Errorf("an empty commit: %v", err)
	}
	if n := s.lastChange(); n != 3 {
		s.Errorf("there were 3 changes, the last has the number %d", n)
	}
}

// checkNames: a name belongs to one record, for ever.
func checkNames(s *session) {
	hdl := s.id("hdl", "10.1000/1")
	a := first(s.ark("a"), s.ark("a1"), hdl)
	b := first(s.ark("b"), s.ark("b1"))
	s.put(a, b)

	// Not to another record, neither as identifier nor as alias.
	s.refuse("a new record named as an alias", records(first(hdl)), stele.Conflict)
	s.refuse("a new record with another's identifier as alias", records(first(s.ark("c"), a.ID)), stele.Conflict)
	s.refuse("a new record with another's alias", records(first(s.ark("c"), s.ark("c1"), hdl)), stele.Conflict)
	s.refuse("an update takes another's identifier", records(next(b, "x", a.ID)), stele.Conflict)
	s.refuse("an update takes another's alias", records(next(b, "x", hdl)), stele.Conflict)
	s.refuse("an alias becomes the identifier", records(&stele.Record{
		ID: hdl, Aliases: []stele.ID{a.ID, s.ark("a1")}, State: stele.Active, Version: 2,
	}), stele.Conflict)
	s.wantNone(s.ark("c"), s.ark("c1"))

	// Not to two records of one commit, and not handed over within one.
	s.refuse("two records want one name", records(first(s.ark("c"), s.ark("x")), first(s.ark("d"), s.ark("x"))), stele.Conflict, stele.Invalid)
	s.refuse("two records want each other's name", records(first(s.ark("c"), s.ark("d")), first(s.ark("d"))), stele.Conflict, stele.Invalid)
	s.refuse("an alias changes hands", records(withAliases(next(a, "x"), hdl), next(b, "x", s.ark("a1"))), stele.Invalid, stele.Conflict)

	// And never to none.
	s.refuse("an update without one alias", records(withAliases(next(a, "x"), hdl)), stele.Invalid)
	s.refuse("an update with another alias in its place", records(withAliases(next(a, "x"), hdl, s.ark("new"))), stele.Invalid)
	s.refuse("an update without aliases", records(withAliases(next(a, "x"))), stele.Invalid)
	withdrawn := withAliases(next(a, "x"), hdl)
	withdrawn.State = stele.Withdrawn
	s.refuse("a withdrawal without one alias", records(withdrawn), stele.Invalid)
	s.wantNone(s.ark("new"))

	// The order of aliases does not matter, and new ones are welcome.
	c := withAliases(next(a, "x"), s.ark("a2"), hdl, s.ark("a1"))
	s.put(c)
	for _, name := range c.Names() {
		s.want(name, c)
	}
	s.refuse("the newest alias is dropped", records(withVersion(next(a, "y"), 3)), stele.Invalid)
	s.put(next(c, "y"))
	s.want(s.ark("a2"), next(c, "y"))

	// Names of a withdrawn record are not free.
	gone := next(b, "gone")
	gone.State = stele.Withdrawn
	s.put(gone)
	s.refuse("a withdrawn record's name", records(first(s.ark("b"))), stele.Conflict)
	s.refuse("a withdrawn record's alias", records(first(s.ark("e"), s.ark("b1"))), stele.Conflict)
}

// checkAtomic: a commit with one fault changes nothing, wherever the fault is.
func checkAtomic(s *session) {
	old := first(s.ark("old"), s.ark("old alias"))
	kept := space("ark", "ark:12345/")
	s.apply(&stele.Commit{
		Records:    []*stele.Record{old},
		Namespaces: []*stele.Namespace{kept},
		Minters:    []stele.MinterState{{Name: "kept", After: []byte{1}}},
		Cells:      []stele.CellChange{{Name: "kept", After: []byte{1}}, {Name: "removed", After: []byte{1}}},
	})
	// Each commit is valid except for what spoil does to it.
	for name, spoil := range map[string]func(*stele.Commit){
		"the last record is taken":    func(c *stele.Commit) { c.Records[2] = first(old.ID) },
		"the first record is taken":   func(c *stele.Commit) { c.Records[0] = first(s.ark("new"), s.ark("old alias")) },
		"an update comes late":        func(c *stele.Commit) { c.Records[1].Version++ },
		"a namespace is there":        func(c *stele.Commit) { c.Namespaces[1].Version = 1 },
		"a namespace is not there":    func(c *stele.Commit) { c.Namespaces[0].Version = 2 },
		"a minter has another state":  func(c *stele.Commit) { c.Minters[1].Before = []byte{2} },
		"a minter has a state":        func(c *stele.Commit) { c.Minters[1].Before = nil },
		"a minter has no state":       func(c *stele.Commit) { c.Minters[0].Before = []byte{} },
		"a cell has another value":    func(c *stele.Commit) { c.Cells[1].Before = []byte{2} },
		"a cell has a value":          func(c *stele.Commit) { c.Cells[1].Before = nil },
		"a cell has no value":         func(c *stele.Commit) { c.Cells[0].Before = []byte{} },
		"a cell to remove is another": func(c *stele.Commit) { c.Cells[2].Before = []byte{2} },
		"a cell is there twice":       func(c *stele.Commit) { c.Cells[2].Name = "kept" },
		"a cell has no name":          func(c *stele.Commit) { c.Cells[2].Name = "" },
		"a record drops its alias":    func(c *stele.Commit) { c.Records[1].Aliases = nil },
		"the quota is used up":        func(c *stele.Commit) { c.Counter = countFor(kept.Key(), 2) },
		"a record is there twice":     func(c *stele.Commit) { c.Records[2] = next(old, "again") },
		"a new record is there twice": func(c *stele.Commit) { c.Records[2] = c.Records[0] },
	} {
		c := s.goodCommit(old, kept)
		spoil(c)
		s.refuse(name, c, stele.Conflict, stele.Invalid, stele.Exhausted)
		s.wantNone(s.ark("new"), s.ark("new alias"), s.ark("third"))
		for name, want := range map[string]string{"kept": "\x01", "new": ""} {
			if got, err := s.MinterState(s.ctx, name); err != nil || string(got) != want {
				s.Errorf("MinterState(%q) = %q, %v after a refused commit", name, got, err)
			}
		}
		s.wantCell("new", nil)
		s.wantCell("kept", []byte{1})
		s.wantCell("removed", []byte{1})
	}
	c := s.goodCommit(old, kept)
	s.apply(c)
	for _, r := range c.Records {
		for _, name := range r.Names() {
			s.want(name, r)
		}
	}
	s.wantCount(kept.Key(), 3)
	s.wantCell("new", []byte{1})
	s.wantCell("kept", []byte{2})
	s.wantCell("removed", nil)
	if n := s.lastChange(); n != 2+5 {
		s.Errorf("3 records and 2 namespaces were committed after 2 changes; the last has the number %d", n)
	}
}

// goodCommit makes a commit with three records, two namespaces, two minters and three
// cells.
func (s *session) goodCommit(old *stele.Record, kept *stele.Namespace) *stele.Commit {
	return &stele.Commit{
		Records:    []*stele.Record{first(s.ark("new"), s.ark("new alias")), next(old, "updated"), first(s.ark("third"))},
		Counter:    countFor(kept.Key(), 3),
		Namespaces: []*stele.Namespace{space("hdl", "10.1000/"), nextNamespace(kept, "updated")},
		Minters: []stele.MinterState{
			{Name: "new", After: []byte{1}},
			{Name: "kept", Before: []byte{1}, After: []byte{2}},
		},
		Cells: []stele.CellChange{
			{Name: "new", After: []byte{1}},
			{Name: "kept", Before: []byte{1}, After: []byte{2}},
			{Name: "removed", Before: []byte{1}},
		},
	}
}

// checkInvalid: commits that can't be right under any circumstances.
func checkInvalid(s *session) {
	a := first(s.ark("a"))
	s.put(a)
	b := next(a, "b")
	s.refuse("one version twice", records(b, b), stele.Invalid)
	s.refuse("two versions of one record", records(b, next(b, "c")), stele.Invalid)
	n := first(s.ark("n"))
	s.refuse("two versions of a new record, the newer first", records(next(n, "o"), n), stele.Invalid)
	s.refuse("a version 0", records(withVersion(n, 0)), stele.Invalid)
	s.refuse("a version 0 of a record", records(withVersion(a, 0)), stele.Invalid)
	s.refuse("a record without identifier", records(first(stele.ID{})), stele.Invalid)
	s.put(b)
}

// checkChanges: every version has its entry; numbers begin with 1 and have no gaps.
func checkChanges(s *session) {
	if n := s.lastChange(); n != 0 {
		s.Errorf("LastChange of an empty store is %d", n)
	}
	if got := s.changes(0); len(got) != 0 {
		s.Errorf("an empty store has the changes %v", got)
	}
	a, n := first(s.ark("a"), s.ark("alias")), space("ark", "")
	s.put(a)
	s.refuse("a conflict", records(a), stele.Conflict)
	s.apply(&stele.Commit{Namespaces: []*stele.Namespace{n}})
	s.apply(&stele.Commit{Minters: []stele.MinterState{{Name: "m", After: []byte{1}}}}) // no change of the feed
	s.apply(cell("c", nil, []byte{1}))                                                  // nor this
	s.put(next(a, "b"))
	s.apply(&stele.Commit{Namespaces: []*stele.Namespace{nextNamespace(n, "b")}})
	if errs, err := s.Ingest(s.ctx, []*stele.Record{first(s.ark("i")), a}, nil, nil, nil); err != nil || len(errs) != 2 || errs[0] != nil {
		s.Fatalf("Ingest: %v, %v", errs, err)
	}
	want := []stele.Change{
		{Seq: 1, ID: a.ID, Version: 1},
		{Seq: 2, Namespace: n.Key(), Version: 1},
		{Seq: 3, ID: a.ID, Version: 2},
		{Seq: 4, Namespace: n.Key(), Version: 2},
		{Seq: 5, ID: s.ark("i"), Version: 1},
	}
	for after := range uint64(len(want) + 3) {
		got := s.changes(after)
		for i, c := range got {
			if c.At.IsZero() {
				s.Errorf("change %d has no time", c.Seq)
			}
			got[i].At = stele.Change{}.At
		}
		if w := want[min(after, uint64(len(want))):]; fmt.Sprint(got) != fmt.Sprint(w) {
			s.Errorf("Changes(%d) = %v, want %v", after, got, w)
		}
	}
	if got := s.changes(1<<64 - 1); len(got) != 0 {
		s.Errorf("after the greatest number there are the changes %v", got)
	}
	if n := s.lastChange(); n != 5 {
		s.Errorf("LastChange is %d, want 5", n)
	}
	for c, err := range s.Changes(s.ctx, 2) {
		if err != nil || c.Seq != 3 {
			s.Errorf("Changes(2) begins with %v, %v", c, err)
		}
		break
	}
}
