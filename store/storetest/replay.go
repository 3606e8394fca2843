package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/stele-id/stele"
)

// checkChangeOrder: the changes of a commit are in the order of its records and then
// of its namespaces, however many they are, and those of an ingest in that of the list.
func checkChangeOrder(s *session) {
	var want []string
	for _, n := range []int{2, 10, 64, 65, 300} {
		list := s.numbered(fmt.Sprint(n, "-%05d"), n)
		// Neither in the order of their names nor against it.
		slices.Reverse(list[n/3:])
		prefix := fmt.Sprint(n)
		s.apply(&stele.Commit{
			Records:    list,
			Namespaces: []*stele.Namespace{space("z", prefix), space("a", prefix), space("m", prefix)},
			Counter:    countFor(stele.NamespaceKey{Scheme: "ark"}, 0),
		})
		for _, r := range list {
			want = append(want, r.ID.String()+" 1")
		}
		want = append(want, "z "+prefix, "a "+prefix, "m "+prefix)

		// Again, with new records among the old, and some that count elsewhere.
		again := make([]*stele.Record, 0, 2*n)
		for i, r := range list {
			again = append(again, next(r, "again"), first(s.ark(fmt.Sprintf("%d+%05d", n, n-i))))
		}
		s.apply(&stele.Commit{Records: again, Counter: func(id stele.ID) (stele.NamespaceKey, uint64) {
			return stele.NamespaceKey{Scheme: "ark", Prefix: id.String()}, 0
		}})
		ingested := s.numbered(fmt.Sprint(n, "=%05d"), n)
		slices.Reverse(ingested)
		s.ingest(ingested, nil, nil)
		for _, r := range append(again, ingested...) {
			want = append(want, fmt.Sprint(r.ID, " ", r.Version))
		}
	}
	var got []string
	for _, c := range s.changes(0) {
		if text := c.ID.String(); c.ID.IsValid() {
			got = append(got, fmt.Sprint(text, " ", c.Version))
			s.wantCounted(c)
		} else {
			got = append(got, c.Namespace.Scheme+" "+c.Namespace.Prefix)
		}
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			s.Fatalf("the feed has %d changes, want %d; from %d on they are %.300q, want %.300q", len(got), len(want), i+1, got[min(i, len(got)):], want[min(i, len(want)):])
		}
	}
}

// wantCounted checks for which namespace the record of a change of checkChangeOrder
// counts: only new ones do, and ingested ones do not.
func (s *session) wantCounted(c stele.Change) {
	s.Helper()
	var want stele.NamespaceKey
	text := c.ID.String()
	switch {
	case c.Version == 1 && slices.Contains([]byte(text), '-'):
		want = stele.NamespaceKey{Scheme: "ark"}
	case slices.Contains([]byte(text), '+'):
		want = stele.NamespaceKey{Scheme: "ark", Prefix: text}
	}
	if c.Counted != want {
		s.Errorf("change %d, of %q version %d, counts for %q, want %q", c.Seq, text, c.Version, c.Counted, want)
	}
}

// checkReplay: what another store has done is done again, at the same numbers, at the
// same times, and counts for the same namespaces.
func checkReplay(s *session) {
	key, other := stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/"}, stele.NamespaceKey{Scheme: "hdl"}
	a, b, root := first(s.ark("a"), s.ark("alias")), first(s.ark("b")), space("ark", "")
	at := func(d time.Duration) time.Time { return spring.Truncate(time.Microsecond).Add(d) }
	one := &stele.Commit{
		Records: []*stele.Record{b, a}, Namespaces: []*stele.Namespace{root},
		Counter: countFor(stele.NamespaceKey{Scheme: "urn"}, 1), // is not called
		Cells:   []stele.CellChange{{Name: "place", After: []byte("3")}},
		Replay: []stele.Change{
			{Seq: 1, ID: b.ID, Version: 1, Counted: key, At: at(0)},
			{Seq: 2, ID: a.ID, Version: 1, Counted: other, CountedAliases: []stele.NamespaceKey{key}, At: at(time.Microsecond)},
			{Seq: 3, Namespace: root.Key(), Version: 1, At: at(-time.Hour)},
		},
	}
	s.refuseReplays(one)
	s.apply(one)
	s.refuse("a replay again", one, stele.Conflict)

	a2, c := next(a, "second", s.ark("alias 2"), s.ark("alias 3")), first(s.ark("c"))
	two := &stele.Commit{
		Records: []*stele.Record{a2, c},
		Cells:   []stele.CellChange{{Name: "place", Before: []byte("3"), After: []byte("5")}},
		Replay: []stele.Change{
			{Seq: 4, ID: a2.ID, Version: 2, CountedAliases: []stele.NamespaceKey{other}, At: at(time.Hour)},
			{Seq: 5, ID: c.ID, Version: 1, At: at(time.Hour)},
		},
	}
	s.refuseReplays(two)
	s.apply(two)
	s.put(first(s.ark("d"))) // the clock is the store's again
	s.wantReplayed(append(one.Replay, two.Replay...))
	s.wantCount(key, 2)
	s.wantCount(other, 2)
	s.wantCount(stele.NamespaceKey{Scheme: "urn"}, 0)

	// Many at once, whose names are not in order.
	many := &stele.Commit{Records: s.numbered("many%05d", 700)}
	slices.Reverse(many.Records)
	for i, r := range many.Records {
		many.Replay = append(many.Replay, stele.Change{Seq: uint64(7 + i), ID: r.ID, Version: 1, Counted: key, At: at(time.Duration(i/3) * time.Second)})
	}
	s.apply(many)
	all := s.changes(0)
	s.wantReplayed(slices.Concat(one.Replay, two.Replay, all[5:6], many.Replay))
	s.wantCount(key, 702)
	if now := all[5].At; now.Equal(at(time.Hour)) || now.IsZero() {
		s.Errorf("a commit after those that were replayed has the time %s", now)
	}
}

// refuseReplays tries a commit with changes that are not its own.
func (s *session) refuseReplays(good *stele.Commit) {
	s.Helper()
	for why, spoil := range map[string]func(list []stele.Change) []stele.Change{
		"numbers that leave one out":  func(l []stele.Change) []stele.Change { return shifted(l, 1) },
		"numbers that were given":     func(l []stele.Change) []stele.Change { return shifted(l, -1) },
		"one is missing":              func(l []stele.Change) []stele.Change { return l[:len(l)-1] },
		"one is missing at the front": func(l []stele.Change) []stele.Change { return l[1:] },
		"one is too many":             func(l []stele.Change) []stele.Change { return append(l, l[0]) },
		"none":                        func(l []stele.Change) []stele.Change { return []stele.Change{} },
		"another order":               func(l []stele.Change) []stele.Change { l[0], l[1] = l[1], l[0]; return l },
		"another record":              func(l []stele.Change) []stele.Change { l[1].ID = s.ark("other"); return l },
		"another version":             func(l []stele.Change) []stele.Change { l[0].Version++; return l },
		"a number in between":         func(l []stele.Change) []stele.Change { l[1].Seq++; return l },
		"a version that counts already": func(l []stele.Change) []stele.Change {
			l[len(l)-1].Version, l[len(l)-1].Counted = 2, stele.NamespaceKey{Scheme: "ark"}
			return l
		},
		"more aliases than there are": func(l []stele.Change) []stele.Change {
			l[0].CountedAliases = make([]stele.NamespaceKey, 4)
			for i := range l[0].CountedAliases {
				l[0].CountedAliases[i].Scheme = "ark"
			}
			return l
		},
		"an alias that counts for none": func(l []stele.Change) []stele.Change {
			l[1].CountedAliases = []stele.NamespaceKey{{}}
			return l
		},
	} {
		c := *good
		c.Replay = spoil(slices.Clone(good.Replay))
		s.refuse("a replay with "+why, &c, stele.Invalid, stele.Conflict)
	}
}

func shifted(list []stele.Change, by int) []stele.Change {
	for i := range list {
		list[i].Seq += uint64(by)
	}
	return list
}

// wantReplayed compares the beginning of the feed.
func (s *session) wantReplayed(want []stele.Change) {
	s.Helper()
	got := s.changes(0)
	for i, w := range want {
		if i >= len(got) {
			s.Fatalf("the feed has %d changes, want %d", len(got), len(want))
		}
		g := got[i]
		if !g.At.Equal(w.At) {
			s.Errorf("change %d was replayed with the time %s, and has %s", w.Seq, w.At, g.At)
		}
		if g.At, w.At = (time.Time{}), (time.Time{}); !g.Equal(w) {
			s.Fatalf("change %d is %+v, want %+v", w.Seq, g, w)
		}
	}
}
