package storetest

import (
	"fmt"
	"slices"

	"github.com/stele-id/stele"
)

// ingest must succeed as a whole. It returns the error of each record.
func (s *session) ingest(list []*stele.Record, count stele.NamespaceCounter, state *stele.MinterState) []error {
	s.Helper()
	errs, err := s.Ingest(s.ctx, list, count, nil, state)
	if err != nil {
		s.Fatalf("Ingest: %v", err)
	}
	if len(errs) != len(list) {
		s.Fatalf("Ingest of %d records returned %d errors", len(list), len(errs))
	}
	return errs
}

// checkIngest: each record has its own result, and those that are committed are as if
// Apply had committed them.
func checkIngest(s *session) {
	key := stele.NamespaceKey{Scheme: "ark"}
	hdl := s.id("hdl", "10.1000/1")
	old := first(s.ark("old"), hdl)
	s.put(old)
	before := s.lastChange()
	list := []*stele.Record{
		s.full(s.ark("m"), s.ark("m1"), s.id("urn", "urn:a1:m")),
		first(s.ark("b")),
		first(old.ID),                     // 2: taken in the store
		first(s.ark("c"), hdl),            // 3: its alias is taken in the store
		first(hdl),                        // 4: an alias in the store
		first(s.ark("d"), old.ID),         // 5: its alias is an identifier in the store
		first(s.ark("b")),                 // 6: taken by 1
		first(s.ark("m1")),                // 7: an alias of 0
		first(s.ark("e"), s.ark("m1")),    // 8: its alias is one of 0
		first(s.ark("f"), s.ark("b")),     // 9: its alias is 1
		first(s.ark("a"), s.ark("a1")),    // good, and its text is before the others
		first(s.ark("c")),                 // good: 3 was refused and took nothing
		first(s.ark("z"), s.ark("d")),     // good: so was 5
		first(s.id("hdl", "ark:12345/b")), // good: another scheme
	}
	good := []int{0, 1, 10, 11, 12, 13}
	errs := s.ingest(list, countFor(key, 0), nil)
	for i, r := range list {
		if slices.Contains(good, i) {
			if errs[i] != nil {
				s.Errorf("Ingest, record %d: %v", i, errs[i])
				continue
			}
			s.wantIngested(r)
			continue
		}
		s.wantKind(fmt.Sprintf("Ingest, record %d", i), errs[i], stele.Conflict)
	}
	s.want(old.ID, old)
	s.want(hdl, old)
	s.wantNone(s.ark("e"), s.ark("f"))
	s.wantCount(key, uint64(len(good))+4) // with the aliases of 0, 10 and 12
	s.wantFeed(before, list, good)
	s.wantTexts("Scan after Ingest", texts(s.scan("ark", "", "")),
		[]string{"ark:12345/a", "ark:12345/b", "ark:12345/c", "ark:12345/m", "ark:12345/old", "ark:12345/z"})

	// They can be changed like others.
	s.put(next(list[0], "second"))
	s.want(s.ark("m1"), next(list[0], "second"))
	s.refuse("a name that was ingested", records(first(s.ark("m1"))), stele.Conflict)
	if got := s.history(list[0].ID); len(got) != 2 {
		s.Errorf("History of an ingested record has %d versions, want 2", len(got))
	}
	if errs := s.ingest(nil, nil, nil); len(errs) != 0 {
		s.Errorf("Ingest of nothing: %v", errs)
	}

	// A record that is not a first version is refused, alone or with all the others.
	for _, r := range []*stele.Record{next(first(s.ark("v2")), "second"), next(list[1], "second"), withVersion(first(s.ark("v0")), 0)} {
		errs, err := s.Ingest(s.ctx, []*stele.Record{r}, nil, nil, nil)
		if err == nil && len(errs) == 1 {
			err = errs[0]
		}
		s.wantKind(fmt.Sprintf("Ingest of a version %d", r.Version), err, stele.Invalid)
	}
	s.wantNone(s.ark("v2"), s.ark("v0"))
	s.want(list[1].ID, list[1])
}

// wantIngested looks for a record in every way.
func (s *session) wantIngested(r *stele.Record) {
	s.Helper()
	for _, name := range r.Names() {
		s.want(name, r)
	}
	if got := s.history(r.ID); len(got) != 1 {
		s.Errorf("History of the ingested %q has %d versions", r.ID, len(got))
	} else {
		s.same("History after Ingest", got[0], r)
	}
	for _, t := range r.Targets {
		if !slices.Contains(s.pointing(stele.Location{URL: t.URL}, stele.ID{}), r.ID) {
			s.Errorf("the ingested %q is not found by its URL", r.ID)
		}
		if host := t.Host(); host != "" && !slices.Contains(s.pointing(stele.Location{Host: host}, stele.ID{}), r.ID) {
			s.Errorf("the ingested %q is not found by its host", r.ID)
		}
	}
}

// wantFeed checks that the feed has an entry for each of the good records, in any
// order, and no more.
func (s *session) wantFeed(before uint64, list []*stele.Record, good []int) {
	s.Helper()
	left := make(map[stele.ID]bool)
	for _, i := range good {
		left[list[i].ID] = true
	}
	for i, c := range s.changes(before) {
		if c.Seq != before+uint64(i)+1 || c.Version != 1 || c.At.IsZero() || !left[c.ID] {
			s.Errorf("a change after Ingest that should not be so: %+v", c)
		}
		delete(left, c.ID)
	}
	if len(left) > 0 {
		s.Errorf("the feed lacks %d of the ingested records", len(left))
	}
	if n := s.lastChange(); n != before+uint64(len(good)) {
		s.Errorf("LastChange is %d after %d and %d ingested records", n, before, len(good))
	}
}

// checkIngestMinter: a minter's state goes with the records or not at all.
func checkIngestMinter(s *session) {
	state := func(before, after string) *stele.MinterState {
		m := &stele.MinterState{Name: "m", After: []byte(after)}
		if before != "" {
			m.Before = []byte(before)
		}
		return m
	}
	if errs := s.ingest(s.numbered("a%d", 3), nil, state("", "1")); errs[0] != nil || errs[2] != nil {
		s.Errorf("Ingest: %v", errs)
	}
	s.wantMinter("m", []byte("1"))
	image := s.image()
	for _, before := range []string{"", "2", "11"} {
		_, err := s.Ingest(s.ctx, s.numbered("b%d", 3), countFor(stele.NamespaceKey{Scheme: "ark"}, 0), nil, state(before, "no"))
		s.wantKind(fmt.Sprintf("Ingest with the minter's state %q where there is 1", before), err, stele.Conflict)
		s.wantImage("a refused Ingest left something behind", image)
	}
	s.wantNone(s.ark("b0"))
	// Also if every record is refused, the state is committed.
	if errs := s.ingest(s.numbered("a%d", 3), nil, state("1", "2")); errs[0] == nil || errs[2] == nil {
		s.Errorf("Ingest of taken names: %v", errs)
	}
	s.wantMinter("m", []byte("2"))
	s.ingest(nil, nil, state("2", "3"))
	s.wantMinter("m", []byte("3"))
}

// checkIngestQuota: no more than the quota. Whether those beyond it are refused
// alone or all together is left to the store.
func checkIngestQuota(s *session) {
	key := stele.NamespaceKey{Scheme: "ark"}
	s.apply(&stele.Commit{Records: []*stele.Record{first(s.ark("old"))}, Counter: countFor(key, 5)})
	list := append([]*stele.Record{first(s.ark("old"))}, s.numbered("n%d", 7)...)
	errs, err := s.Ingest(s.ctx, list, countFor(key, 5), nil, nil)
	if err != nil {
		s.wantKind("Ingest beyond the quota", err, stele.Exhausted)
		s.wantCount(key, 1)
		errs, err = s.Ingest(s.ctx, list[:5], countFor(key, 5), nil, nil)
	}
	if err != nil || len(errs) < 5 {
		s.Fatalf("Ingest up to the quota: %v, %v", errs, err)
	}
	s.wantKind("a taken name", errs[0], stele.Conflict)
	for i, err := range errs[1:] {
		if i < 4 && err != nil {
			s.Errorf("record %d is within the quota: %v", i+1, err)
		} else if i >= 4 {
			s.wantKind("a record beyond the quota", err, stele.Exhausted)
			s.wantNone(list[i+1].ID)
		}
	}
	s.wantCount(key, 5)
	s.ingest(s.numbered("m%d", 2), countFor(key, 0), nil)
	s.wantCount(key, 7)
}

// checkAliasQuota: an alias counts for the namespace that it is in, when it is new, with a
// new record or an old one, in a commit and in an ingest; and a record that is refused
// because of one of its names counts for none.
func checkAliasQuota(s *session) {
	ark, hdl := stele.NamespaceKey{Scheme: "ark"}, stele.NamespaceKey{Scheme: "hdl", Prefix: "10.1000/"}
	alias := func(text string) stele.ID { return s.id("hdl", "10.1000/"+text) }
	quota := func(limit uint64) stele.NamespaceCounter {
		return func(name stele.ID) (stele.NamespaceKey, uint64) {
			if name.Scheme() == "hdl" {
				return hdl, limit
			}
			return ark, 0
		}
	}
	commit := func(limit uint64, list ...*stele.Record) *stele.Commit {
		return &stele.Commit{Records: list, Counter: quota(limit)}
	}
	want := func(arks, handles uint64) {
		s.Helper()
		s.wantCount(ark, arks)
		s.wantCount(hdl, handles)
	}
	a := first(s.ark("a"), alias("1"), alias("2"))
	s.refuse("a new record with an alias too many", commit(1, a), stele.Exhausted)
	want(0, 0)
	s.apply(commit(3, a))
	want(1, 2)
	a2 := next(a, "second")
	s.apply(commit(3, a2))
	want(1, 2) // the aliases are not new
	s.refuse("a version with an alias too many", commit(3, next(a2, "third", alias("3"), alias("4"))), stele.Exhausted)
	a3 := next(a2, "third", alias("3"), s.ark("a3"))
	s.apply(commit(3, a3))
	want(2, 3)
	changes := s.changes(s.lastChange() - 1)
	if len(changes) != 1 || !slices.Equal(changes[0].CountedAliases, []stele.NamespaceKey{hdl, ark}) || changes[0].Counted != (stele.NamespaceKey{}) {
		s.Errorf("the change that added two aliases is %+v", changes)
	}

	list := []*stele.Record{first(s.ark("b"), alias("5")), first(s.ark("c"), s.ark("c1"), alias("6"), alias("7")), first(s.ark("d"))}
	for i, err := range s.ingest(list, quota(5), nil) {
		if i == 1 {
			s.wantKind("Ingest of a record with an alias too many", err, stele.Exhausted)
		} else if err != nil {
			s.Errorf("Ingest, record %d: %v", i, err)
		}
	}
	s.wantNone(list[1].ID)
	s.wantNone(alias("6"))
	want(4, 4)
	s.ingest(list[1:2], quota(6), nil)
	want(6, 6)
	s.apply(&stele.Commit{Records: []*stele.Record{next(a3, "fourth", alias("8"))}}) // counts for none
	want(6, 6)
}

// many is how many records a large ingest has.
const many = 20_000

// checkIngestMany: a large ingest, with clashes here and there.
func checkIngestMany(s *session) {
	key := stele.NamespaceKey{Scheme: "ark"}
	s.put(first(s.ark("7777")))
	list := s.numbered("%d", many)
	for i, r := range list {
		r.Targets = []stele.Target{at(fmt.Sprintf("https://h%d.example/%d", i%100, i))}
		if i%5 == 0 {
			r.Aliases = []stele.ID{s.id("hdl", fmt.Sprint("10.1000/", i))}
		}
	}
	list[many-1] = first(s.ark("late"), s.id("hdl", "10.1000/5000")) // an alias of 5000
	var good []int
	for i, err := range s.ingest(list, countFor(key, 2*many), nil) {
		switch {
		case i == 7777 || i == many-1:
			s.wantKind(fmt.Sprintf("Ingest, record %d", i), err, stele.Conflict)
		case err != nil:
			s.Fatalf("Ingest, record %d: %v", i, err)
		default:
			good = append(good, i)
		}
	}
	s.wantCount(key, many-2+many/5)
	s.wantFeed(1, list, good)
	for i := 0; i < many-1; i += 997 {
		s.wantIngested(list[i])
	}
	if got := s.scan("ark", "", ""); len(got) != many-1 || !slices.IsSorted(texts(got)) {
		s.Errorf("Scan has %d records, sorted: %v; want %d", len(got), slices.IsSorted(texts(got)), many-1)
	}
	if got := s.pointing(stele.Location{Host: "h42.example"}, stele.ID{}); len(got) != many/100 || !slices.IsSortedFunc(got, stele.ID.Compare) {
		s.Errorf("%d records point at a host, want %d in order", len(got), many/100)
	}
	s.wantTexts("Scan of a prefix", texts(s.scan("ark", "ark:12345/1234", "")), s.decimals("1234"))

	// Once more, and a new one among them.
	list[500] = first(s.ark("new"))
	for range 2 {
		for i, err := range s.ingest(list[:1000], nil, nil) {
			if i == 500 && err == nil {
				continue
			}
			s.wantKind(fmt.Sprintf("Ingest once more, record %d", i), err, stele.Conflict)
		}
	}
	s.wantIngested(list[500])
	s.want(list[499].ID, list[499])
}

// decimals returns the texts of numbered identifiers that begin with the digits.
func (s *session) decimals(digits string) (out []string) {
	for i := range many {
		if text := fmt.Sprint(i); len(text) >= len(digits) && text[:len(digits)] == digits {
			out = append(out, s.ark(text).String())
		}
	}
	slices.Sort(out)
	return out
}
